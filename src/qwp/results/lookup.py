"""Finding a few words in a large vocabulary without mapping it.

The vector of a word in the common space is a linear combination of its own vector and the means of the normalisation,
times the map. So one product with the vectors as they were read, which may be memory-mapped, and a few coefficients of
each word give the cosines of a query with all words. A sidecar file of the alignment holds these coefficients and the
CSLS neighbourhood means, which need a search of all words against all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.results import sidecars
from qwp.results.saved import LOOKUPS
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide
from qwp.search import retrieval
from qwp.spaces.embeddings import FloatArray, Side

FEW_QUERIES = 256
"""Up to this many queries use a lookup; for more it pays to map the vocabulary."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The words of one language, ready to be found.

    Attributes:
        side: the language.
        hubs: (n,) CSLS neighbourhood means: mean similarity of each word to its `csls_k` nearest of the other language.
        coefficients: (n, 1 + c), see `coefficients`.
        csls_k: neighbourhood size.
    """

    side: AlignedSide
    hubs: FloatArray
    coefficients: FloatArray
    csls_k: int

    def similarities(self, queries: FloatArray) -> FloatArray:
        """Return the cosines (q, n) of queries (q, d), unit rows in the common space, with all words."""
        rotated = queries if self.side.map is None else queries @ self.side.map.T
        found = rotated @ self.side.space.vectors.T
        found *= self.coefficients[:, 0]
        for number, mean in enumerate(self.side.normalization.means, start=1):
            found -= np.outer(rotated @ arrays.to_numpy(mean), self.coefficients[:, number])
        return np.asarray(found)

    def top_k(self, queries: FloatArray, k: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best words for queries (q, d) by "nn" or "csls": rows (q, k) and scores (q, k), best first."""

        def best(block: slice) -> tuple[np.ndarray, np.ndarray]:
            cosines = self.similarities(queries[block])
            if method == "nn":
                rows, scores = retrieval.best_of(cosines, np.zeros_like(self.hubs), k, scale=1.0)
            else:
                rows, scores = retrieval.best_of(cosines, self.hubs, k, scale=2.0, neighbours=self.csls_k)
            return arrays.to_numpy(rows), arrays.to_numpy(scores)

        size = arrays.block_rows(len(self.hubs), queries)
        found = arrays.map_blocks(best, len(queries), size, queries) or [best(slice(0, 0))]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


def coefficients(side: AlignedSide, dtype: str, block_rows: int = 8192) -> FloatArray:
    """Return the coefficients of the words of a language in the common space, (n, 1 + c) for c normalisation means.

    The unit vector of word i there is (a[i, 0] * vectors[i] - sum over k of a[i, 1 + k] * means[k]) @ map.

    block_rows: words read from the disk at a time.
    """
    n = len(side.space)
    found = np.zeros((n, 1 + len(side.normalization.means)), dtype=dtype)
    for start in range(0, n, block_rows):
        block = slice(start, start + block_rows)
        found[block] = _coefficients(side, side.space.vectors[block].astype(dtype, copy=False))
    return found


def _coefficients(side: AlignedSide, rows: FloatArray) -> FloatArray:
    means = [arrays.to_numpy(mean) for mean in side.normalization.means]
    found = np.zeros((len(rows), 1 + len(means)), dtype=rows.dtype)
    found[:, 0] = 1.0
    number = 0
    for step in side.normalization.steps:
        if step == "unit":
            lengths = _lengths(rows)
            rows, found = rows / lengths, found / lengths
        else:
            rows = rows - means[number]
            number += 1
            found[:, number] = 1.0
    return np.asarray(found / _lengths(rows if side.map is None else rows @ side.map))


def _lengths(rows: FloatArray) -> FloatArray:
    """Return the lengths of rows (n, d), (n, 1); 1 for zero rows, so that division leaves them unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(lengths > 0, lengths, 1.0), dtype=rows.dtype)


# --------------------------------------------------------------------------- lookups as sidecars


def write(origin: Origin, name: Side, found: Lookup) -> None:
    """Write the lookup of a language as a sidecar file, if the folder of the alignment is writable."""
    tensors = {"hubs": found.hubs, "coefficients": found.coefficients}
    sidecars.write(origin, LOOKUPS, f"{name}-{found.csls_k}", tensors)


def read(origin: Origin, name: Side, side: AlignedSide, csls_k: int) -> Lookup | None:
    """Return the lookup of a language from its sidecar file, or None without a valid one."""
    n = len(side.space)
    shapes = {"hubs": (n,), "coefficients": (n, 1 + len(side.normalization.means))}
    tensors = sidecars.read(origin, LOOKUPS, f"{name}-{csls_k}", shapes)
    return None if tensors is None else Lookup(side, tensors["hubs"], tensors["coefficients"], csls_k)
