"""Finding translations: nearest neighbour, CSLS and inverted softmax, blocked so that memory stays bounded.

All three rank the keys for a query by `scale * <query, key> - penalty[key]`; they differ in the penalty that a key pays
for being close to everything (a hub). So one retriever serves them all; translating, inducing and scoring use
it, and `approximate` ranks the candidates it finds in the same way. Both directions at once: `cross_neighbours`.

- `nn`: no penalty (cosine, for unit vectors).
- `csls`: penalty = mean similarity of the key to its k nearest queries (Conneau et al. 2018).
- `softmax`: penalty = log-sum over queries of exp(temperature * similarity) (inverted softmax, Smith et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError, at_least, one_of
from qwp.parameters import MOST_SIZE, REFINE, param

T = TypeVar("T")
METHODS = ("nn", "csls", "softmax")
DEFAULT_CSLS_K = 10
DEFAULT_TEMPERATURE = 30.0


def csls_k_param() -> Any:
    """Declare the parameter `csls_k` of a component."""
    return param(DEFAULT_CSLS_K, "Neighbourhood size of CSLS.", REFINE, least=1, most=MOST_SIZE, shared=True)


SAMPLE_ROWS = 256
"""Words that share one random draw of candidates."""


def neighbourhood_means(
    queries: Array, keys: Array, k: int = DEFAULT_CSLS_K, callback: Callable[[int], None] | None = None
) -> Array:
    """Mean similarity of each query to its k nearest keys. queries: (n, d), keys: (m, d). Returns (n,).

    callback: gets the number of queries of each block that is done, from whichever thread did it.
    """
    xp = arrays.namespace(queries, keys)

    def means(rows: slice) -> Array:
        found = arrays.mean_of_largest(queries[rows, :] @ keys.T, k)
        if callback is not None:
            callback(found.shape[0])
        return found

    blocks = arrays.map_blocks(means, queries.shape[0], arrays.block_rows(keys.shape[0], queries), queries)
    return xp.concat(blocks)


def log_partition(queries: Array, keys: Array, temperature: float) -> Array:
    """log sum over keys of exp(temperature * similarity), per query. queries: (n, d), keys: (m, d). Returns (n,)."""
    xp = arrays.namespace(queries, keys)

    def sums(rows: slice) -> Array:
        scores = temperature * (queries[rows, :] @ keys.T)
        top = xp.max(scores, axis=1, keepdims=True)
        return xp.log(xp.sum(xp.exp(scores - top), axis=1)) + top[:, 0]

    return xp.concat(arrays.map_blocks(sums, queries.shape[0], arrays.block_rows(keys.shape[0], queries), queries))


@dataclass(frozen=True)
class Retriever:
    """Ranks `keys` for queries of the same space. Build it with `retriever(...)`.

    keys: (m, d) unit rows; penalty: (m,).
    """

    keys: Array
    penalty: Array
    scale: float
    method: str
    csls_k: int

    def scores(self, queries: Array) -> Array:
        """Ranking scores, (n, m): bring blocks of queries, not all of them. Comparable within a row only."""
        return self.scale * (queries @ self.keys.T) - self.penalty

    def top_k(self, queries: Array, k: int) -> tuple[Array, Array]:
        """Best k keys for each query: indices (n, k) and scores (n, k), best first.

        The scores are the method's own (cosine; CSLS with the query's term; log-probability up to a constant of the
        pool), so they can be compared between queries.
        """
        xp = arrays.namespace(queries, self.keys)

        def block(rows: slice) -> tuple[Array, Array]:
            neighbours = self.csls_k if self.method == "csls" else 0
            return best_of(queries[rows, :] @ self.keys.T, self.penalty, k, scale=self.scale, neighbours=neighbours)

        n = queries.shape[0]
        if n == 0:
            raise InputError("no query vectors were given; expected at least one")
        blocks = arrays.map_blocks(block, n, arrays.block_rows(self.keys.shape[0], queries), queries)
        return xp.concat([b[0] for b in blocks]), xp.concat([b[1] for b in blocks])


def best_of(similarity: Array, penalty: Array, k: int, *, scale: float, neighbours: int = 0) -> tuple[Array, Array]:
    """The k best keys of queries by their similarities (n, m): indices (n, k) and scores (n, k), best first.

    penalty: (m,). neighbours: the mean of so many largest similarities of a query, its own term in CSLS, is taken off
    its scores.
    """
    values, indices = arrays.top_k(scale * similarity - penalty, k)
    if neighbours:
        values = values - arrays.mean_of_largest(similarity, neighbours)[:, None]
    return indices, values


def retriever(
    keys: Array,
    pool: Array,
    *,
    method: str = "csls",
    csls_k: int = DEFAULT_CSLS_K,
    temperature: float = DEFAULT_TEMPERATURE,
    hubs: Array | None = None,
) -> Retriever:
    """A retriever over `keys`.

    keys: (m, d) unit rows of the target side. pool: (n, d) unit rows of the whole query side after mapping; it says
    which keys are hubs. `csls_k` is clamped to the sizes at hand. hubs: (m,) the neighbourhood means of the keys, where
    they are known.
    """
    xp = arrays.namespace(keys, pool)
    one_of(METHODS, retrieval=method)
    at_least(1, csls_k=csls_k)
    csls_k = min(csls_k, keys.shape[0], pool.shape[0])
    if method == "csls":
        known = neighbourhood_means(keys, pool, csls_k) if hubs is None else hubs
        return Retriever(keys, known, 2.0, method, csls_k)
    if method == "softmax":
        return Retriever(keys, log_partition(keys, pool, temperature), temperature, method, csls_k)
    zero = xp.zeros(keys.shape[0], dtype=keys.dtype, device=arrays.device(keys))
    return Retriever(keys, zero, 1.0, method, csls_k)


@dataclass(frozen=True)
class Pairs:
    """Word pairs found by retrieval: rows of the source, rows of the target and their scores, each (p,)."""

    src: Array
    tgt: Array
    scores: Array

    def __len__(self) -> int:
        return int(self.src.shape[0])


@dataclass(frozen=True)
class CrossNeighbours:
    """The best CSLS partner of every word, both ways: forward (n,), backward (m,) and their scores."""

    forward: Array
    forward_scores: Array
    backward: Array
    backward_scores: Array

    def union(self) -> Pairs:
        """Every word with its best partner, the pairs of both directions one after the other."""
        xp = arrays.namespace(self.forward)
        src, tgt = (xp.arange(side.shape[0], device=arrays.device(side)) for side in (self.forward, self.backward))
        both = ((src, self.backward), (self.forward, tgt), (self.forward_scores, self.backward_scores))
        return Pairs(*(xp.concat(list(columns)) for columns in both))

    def mutual(self) -> Pairs:
        """Pairs that are each other's best partner, in source order."""
        xp = arrays.namespace(self.forward)
        rows = xp.arange(self.forward.shape[0], device=arrays.device(self.forward))
        keep = xp.nonzero(xp.take(self.backward, self.forward) == rows)[0]
        return Pairs(keep, xp.take(self.forward, keep), xp.take(self.forward_scores, keep))


def cross_neighbours(src: Array, tgt: Array, *, csls_k: int = DEFAULT_CSLS_K) -> CrossNeighbours:
    """Best partners by CSLS in both directions from one pass over the blocks of similarities.

    src: (n, d) mapped unit rows; tgt: (m, d) unit rows.
    """
    xp = arrays.namespace(src, tgt)
    size = arrays.block_rows(tgt.shape[0], src)
    only_block = size >= src.shape[0]
    few_blocks = _AT_ONCE * size >= src.shape[0]
    if few_blocks and src.shape[0] * tgt.shape[0] <= _AT_ONCE * arrays.BLOCK_ELEMENTS:
        return _neighbours_at_once(src, tgt, min(csls_k, src.shape[0], tgt.shape[0]))
    queries, keys = _csls_factors(src, tgt, csls_k)

    def block(rows: slice) -> tuple[Array, Array, Array, Array]:
        scores = queries[rows, :] @ keys.T
        best = xp.argmax(scores, axis=1)
        return best, xp.max(scores, axis=1), xp.max(scores, axis=0), xp.argmax(scores, axis=0) if only_block else best

    blocks = arrays.map_blocks(block, src.shape[0], size, src)
    maxima = xp.stack([b[2] for b in blocks])
    # The last of a block is the best row of each key only where one block has all rows.
    backward = blocks[0][3] if only_block else _best_rows(queries, keys, size, xp.argmax(maxima, axis=0))
    forward, forward_scores = (xp.concat([b[i] for b in blocks]) for i in (0, 1))
    return CrossNeighbours(forward, forward_scores, backward, xp.max(maxima, axis=0))


# So many blocks of similarities are held at once, where that saves computing them twice; they are still cut into parts,
# for threads to share.
_AT_ONCE, _PARTS = 2, 4


def _neighbours_at_once(src: Array, tgt: Array, k: int) -> CrossNeighbours:
    """`cross_neighbours` where all similarities are held at once: one product serves means and scores."""
    xp = arrays.namespace(src, tgt)
    similarity = src @ tgt.T
    turned = arrays.transposed(similarity)

    def means(rows: slice, table: Array) -> Array:
        return arrays.mean_of_largest(table[rows, :], k)

    def best(rows: slice, table: Array, hubs: Array, own: Array) -> tuple[Array, Array]:
        scores = 2.0 * table[rows, :] - hubs
        found = xp.argmax(scores, axis=1)
        return found, xp.take_along_axis(scores, found[:, None], axis=1)[:, 0] - own[rows]

    def in_parts(function: Callable[[slice], T], table: Array) -> list[T]:
        n = table.shape[0]
        return arrays.map_blocks(function, n, -(-n // _PARTS) if isinstance(table, np.ndarray) else n, table)

    src_means, tgt_means = (xp.concat(in_parts(partial(means, table=t), t)) for t in (similarity, turned))
    forward = in_parts(partial(best, table=similarity, hubs=tgt_means, own=src_means), similarity)
    backward = in_parts(partial(best, table=turned, hubs=src_means, own=tgt_means), turned)
    return CrossNeighbours(*(xp.concat([part[i] for part in parts]) for parts in (forward, backward) for i in (0, 1)))


def _csls_factors(src: Array, tgt: Array, csls_k: int) -> tuple[Array, Array]:
    """Two matrices, (n, d + 2) and (m, d + 2), whose product is the CSLS of src (n, d) and tgt (m, d)."""
    xp = arrays.namespace(src, tgt)
    k = min(csls_k, src.shape[0], tgt.shape[0])
    src_means = xp.expand_dims(neighbourhood_means(src, tgt, k), axis=1)
    tgt_means = xp.expand_dims(neighbourhood_means(tgt, src, k), axis=1)
    # Two more columns make the product the CSLS itself: 2 <x, y> - mean of x - mean of y.
    queries = xp.concat([2.0 * src, -src_means, -xp.ones_like(src_means)], axis=1)
    return queries, xp.concat([tgt, xp.ones_like(tgt_means), tgt_means], axis=1)


def sampled_neighbours(
    src: Array,
    tgt: Array,
    keep: float,
    rng: np.random.Generator,
    *,
    csls_k: int = DEFAULT_CSLS_K,
    sample_rows: int = SAMPLE_ROWS,
) -> CrossNeighbours:
    """Best partners by CSLS where each word may choose among a random share `keep` of the other side only.

    src: (n, d) mapped unit rows; tgt: (m, d) unit rows. This is the stochastic dictionary of Artetxe et al. (2018), who
    drop every similarity by itself. Here a few hundred neighbouring words share their draw, so that only the kept
    similarities are computed: the search costs `keep` times that of `cross_neighbours`. sample_rows: words that share a
    draw. The draws do not depend on the number of threads; the scores may differ between numbers of threads by
    rounding, and with them the choice between words that are nearly level.
    """
    if keep >= 1.0:
        return cross_neighbours(src, tgt, csls_k=csls_k)
    queries, keys = _csls_factors(src, tgt, csls_k)
    forward, forward_scores = _best_of_samples(queries, keys, keep, rng, sample_rows)
    backward, backward_scores = _best_of_samples(keys, queries, keep, rng, sample_rows)
    return CrossNeighbours(forward, forward_scores, backward, backward_scores)


def _best_of_samples(
    queries: Array, keys: Array, keep: float, rng: np.random.Generator, at_once: int
) -> tuple[Array, Array]:
    """Best of a sample of the keys for each query, and its score. queries: (n, d), keys: (m, d). Returns (n,) twice."""
    xp = arrays.namespace(queries)
    n, m = queries.shape[0], keys.shape[0]
    size = max(1, round(keep * m))
    # Drawn before the threads start: whichever block comes first, its sample is the same.
    samples = [rng.permutation(m)[:size] for _ in range(0, n, at_once)]

    def block(rows: slice) -> tuple[Array, Array]:
        sample = arrays.asarray(samples[rows.start // at_once], queries)
        scores = queries[rows, :] @ xp.take(keys, sample, axis=0).T
        return xp.take(sample, xp.argmax(scores, axis=1)), xp.max(scores, axis=1)

    blocks = arrays.map_blocks(block, n, at_once, queries)
    return xp.concat([b[0] for b in blocks]), xp.concat([b[1] for b in blocks])


def _best_rows(queries: Array, keys: Array, rows: int, best_block: Array) -> Array:
    """The best query of every key, when the block of `rows` queries that holds it is known.

    queries: (n, d), keys: (m, d), best_block: (m,). To look for it in that block alone costs next to nothing, where the
    row of the maximum of every column of every block takes as long as a quarter of the product. Returns (m,).
    """
    xp = arrays.namespace(queries)

    def block(which: slice) -> tuple[Array, Array]:
        columns = xp.nonzero(best_block == which.start // rows)[0]
        scores = queries[which, :] @ xp.take(keys, columns, axis=0).T
        return columns, xp.argmax(scores, axis=0) + which.start

    blocks = arrays.map_blocks(block, queries.shape[0], rows, queries)
    order = xp.argsort(xp.concat([b[0] for b in blocks]))
    return xp.take(xp.concat([b[1] for b in blocks]), order)
