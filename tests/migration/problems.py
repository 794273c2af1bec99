"""Two planted encoders: vectors of the same texts in spaces of different width, with means, skew and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.problems import Array


@dataclass(frozen=True)
class Encoders:
    """Vectors of the same n texts, row by row: old (n, d), new (n, e), unit rows."""

    old: Array
    new: Array
    ids: list[str]

    def recall(self, documents: Array, queries: Array) -> float:
        """Return the share of queries (n, e) whose nearest document (n, e) by cosine is their own."""
        documents = documents / np.linalg.norm(documents, axis=1, keepdims=True)
        return float(np.mean((queries @ documents.T).argmax(axis=1) == np.arange(len(queries))))


def encoders(n: int = 600, old: int = 24, new: int = 20, noise: float = 0.02, seed: int = 0) -> Encoders:
    """Return two encoders of clustered texts."""
    rng = np.random.default_rng(seed)
    latent = 16
    centres = rng.standard_normal((25, latent)) * 0.8 ** np.arange(latent)
    texts = centres[rng.integers(25, size=n)] + 0.7 * rng.standard_normal((n, latent)) * 0.85 ** np.arange(latent)

    def encoded(width: int) -> Array:
        rotation = np.linalg.qr(rng.standard_normal((width, width)))[0][:latent]
        skew = np.exp(0.15 * rng.standard_normal(latent))
        rows = (texts * skew) @ rotation + 2.0 * rng.standard_normal(width) / np.sqrt(width)
        rows += noise * rng.standard_normal((n, width))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    return Encoders(encoded(old), encoded(new), [f"id{row}" for row in range(n)])
