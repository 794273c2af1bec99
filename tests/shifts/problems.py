"""Planted shifts: words that moved on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp.spaces.embeddings import Embeddings
from tests.problems import rotation, space


@dataclass(frozen=True)
class Problem:
    """Two spaces of the same words; the last n_moved of `words` moved in the second space."""

    then: Embeddings
    now: Embeddings
    moved: set[str]


def problem(n: int = 1500, d: int = 20, n_moved: int = 30, noise: float = 0.2, seed: int = 0) -> Problem:
    """Make n words whose noise grows with their rank; some have the vector of another word in the second space."""
    rng = np.random.default_rng(seed)
    vectors = space(n, d, seed=seed)
    rows = rng.choice(n, n_moved, replace=False)
    moved = vectors.copy()
    moved[rows] = vectors[(rows + n // 2) % n]
    size = noise / d**0.5 * np.sqrt((np.arange(n) + 50) / n)[:, None]
    words = [f"w{i}" for i in range(n)]
    then, now = (side + size * rng.standard_normal(side.shape) for side in (vectors, moved))
    return Problem(
        Embeddings(words, then.astype(np.float32), name="then"),
        Embeddings(words, (now @ rotation(d, seed=seed)).astype(np.float32), name="now"),
        {words[row] for row in rows},
    )
