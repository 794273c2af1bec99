"""Looking up a few words in a large vocabulary, without mapping it and without searching it for hubs each time.

A word is in the common space at a sum of its own vector and the means of the normalisation, times the map. So the
similarities of a query to all words follow from one product with the vectors as they were read, which may lie on the
disk, and a few numbers for each word. These numbers, and the CSLS neighbourhood means, which take a search of all words
against all, are kept beside a saved alignment. They can be made again at any time: a file that is missing, damaged or
of another alignment counts for nothing.
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

FEW = 256
"""So many words are looked up one by one; for more it pays to map the vocabulary."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The words of one side as what a search finds.

    hubs: (n,) mean similarity of each to its `csls_k` nearest words of the other side. coefficients: (n, 1 + c), see
    `coefficients`.
    """

    side: AlignedSide
    hubs: FloatArray
    coefficients: FloatArray
    csls_k: int

    def similarities(self, queries: FloatArray) -> FloatArray:
        """Cosines (q, n) of queries (q, d), unit rows in the common space, and all words."""
        turned = queries if self.side.map is None else queries @ self.side.map.T
        found = turned @ self.side.space.vectors.T
        found *= self.coefficients[:, 0]
        for number, mean in enumerate(self.side.normalization.means, start=1):
            found -= np.outer(turned @ arrays.to_numpy(mean), self.coefficients[:, number])
        return np.asarray(found)

    def top_k(self, queries: FloatArray, k: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        """The k best words for queries (q, d) by `nn` or `csls`: rows (q, k) and scores (q, k), best first."""

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
    """How the words of a side get into the common space, (n, 1 + c) for c means of its normalisation.

    block_rows: words that are read from the disk at a time.

    There the unit vector of word i is (a[i, 0] * vectors[i] - sum over k of a[i, 1 + k] * means[k]) @ map.
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
    """Of rows (n, d), (n, 1); one for those of zeros, which stay as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(lengths > 0, lengths, 1.0), dtype=rows.dtype)


# --------------------------------------------------------------------------- keeping


def write(origin: Origin, name: Side, found: Lookup) -> None:
    """Keep a lookup beside its alignment, where that can be written."""
    tensors = {"hubs": found.hubs, "coefficients": found.coefficients}
    sidecars.write(origin, LOOKUPS, f"{name}-{found.csls_k}", tensors)


def read(origin: Origin, name: Side, side: AlignedSide, csls_k: int) -> Lookup | None:
    """The lookup that was kept for a side of this very alignment, if it is there and whole."""
    n = len(side.space)
    shapes = {"hubs": (n,), "coefficients": (n, 1 + len(side.normalization.means))}
    tensors = sidecars.read(origin, LOOKUPS, f"{name}-{csls_k}", shapes)
    return None if tensors is None else Lookup(side, tensors["hubs"], tensors["coefficients"], csls_k)
