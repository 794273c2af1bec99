"""Retrieval of translations: nearest neighbour, CSLS and inverted softmax, in blocks that bound the memory.

All three rank the keys for a query by `scale * <query, key> - penalty[key]`. They differ in the penalty of hubs, keys
that are close to many queries. One `Retriever` serves translating, inducing and scoring; `approximate` ranks its
candidates in the same way. `cross_neighbours` searches both directions at once.

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
from qwp.search.one_pass import one_pass

T = TypeVar("T")
METHODS = ("nn", "csls", "softmax")
DEFAULT_CSLS_K = 10
DEFAULT_TEMPERATURE = 30.0


def csls_k_param() -> Any:
    """Declare the parameter `csls_k` of a component."""
    return param(DEFAULT_CSLS_K, "Neighbourhood size of CSLS.", REFINE, least=1, most=MOST_SIZE, shared=True)


def neighbourhood_means(
    queries: Array, keys: Array, k: int = DEFAULT_CSLS_K, callback: Callable[[int], None] | None = None
) -> Array:
    """Return the mean similarity of each query to its k nearest keys, (n,). queries: (n, d), keys: (m, d).

    callback: gets the number of queries of each finished block, from the thread that computed it.
    """
    xp = arrays.namespace(queries, keys)
    wide = isinstance(queries, np.ndarray) and k <= _TILE < _WIDE <= keys.shape[0]

    def means(rows: slice) -> Array:
        found = (
            tiled_means(arrays.to_numpy(queries[rows, :]), arrays.to_numpy(keys), k)
            if wide
            else arrays.mean_of_largest(queries[rows, :] @ keys.T, k)
        )
        if callback is not None:
            callback(found.shape[0])
        return found

    size = arrays.block_rows(_TILE if wide else keys.shape[0], queries)
    return xp.concat(arrays.map_blocks(means, queries.shape[0], size, queries))


# From this number of keys on, a block of all of them has so few queries that its product is slow.
_WIDE = 40_000
_TILE = 8192


def tiled_means(queries: np.ndarray, keys: np.ndarray, k: int, tile: int = _TILE) -> np.ndarray:
    """Return the mean similarity of queries (b, d) to their k nearest keys (m, d), (b,), by tiles of keys, k <= tile.

    After the first tile only similarities above the k-th largest so far count, which are few.
    """
    n = queries.shape[0]
    largest = arrays.to_numpy(arrays.top_k(queries @ keys[:tile, :].T, k)[0])
    memory = np.empty((n, tile), dtype=largest.dtype)
    for start in range(tile, keys.shape[0], tile):
        part = keys[start : start + tile, :]
        similarity = np.matmul(queries, part.T, out=memory[:, : part.shape[0]])
        # One number for each entry: two would take several times as long.
        rows, columns = np.divmod(np.flatnonzero(similarity > largest.min(axis=1, keepdims=True)), part.shape[0])
        counts = np.bincount(rows, minlength=n)
        more = np.full((n, counts.max()), -np.inf, dtype=largest.dtype)
        more[rows, np.arange(rows.shape[0]) - (np.cumsum(counts) - counts)[rows]] = similarity[rows, columns]
        merged = np.concatenate([largest, more], axis=1)
        merged.partition(merged.shape[1] - k, axis=1)
        largest = merged[:, merged.shape[1] - k :]
    means: np.ndarray = largest.mean(axis=1)
    return means


def log_partition(queries: Array, keys: Array, temperature: float) -> Array:
    """Return log sum over keys of exp(temperature * similarity) for each query, (n,). queries: (n, d), keys: (m, d)."""
    xp = arrays.namespace(queries, keys)

    def sums(rows: slice) -> Array:
        scores = temperature * (queries[rows, :] @ keys.T)
        top = xp.max(scores, axis=1, keepdims=True)
        return xp.log(xp.sum(xp.exp(scores - top), axis=1)) + top[:, 0]

    return xp.concat(arrays.map_blocks(sums, queries.shape[0], arrays.block_rows(keys.shape[0], queries), queries))


@dataclass(frozen=True)
class Retriever:
    """Ranks keys for queries of the same space. `retriever` builds one.

    keys: (m, d) unit rows; penalty: (m,) of each key; method: one of `METHODS`; csls_k: neighbourhood size of CSLS.
    """

    keys: Array
    penalty: Array
    scale: float
    method: str
    csls_k: int

    def scores(self, queries: Array) -> Array:
        """Return ranking scores, (n, m), comparable within a row only. Pass blocks of queries to bound the memory."""
        return self.scale * (queries @ self.keys.T) - self.penalty

    def top_k(self, queries: Array, k: int) -> tuple[Array, Array]:
        """Return the k best keys of each query: indices (n, k) and scores (n, k), best first.

        The scores are those of the method: cosine, CSLS with the query's term, or log-probability up to a constant of
        the pool. They can be compared between queries.
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
    """Return the k best keys by similarities (n, m) of queries: indices (n, k) and scores (n, k), best first.

    The similarities are overwritten, because another array of their size takes as long as a third of their product.

    penalty: (m,). neighbours: subtract the mean of this many largest similarities of a query, its own term in CSLS.
    """
    own = arrays.mean_of_largest(similarity, neighbours) if neighbours else None
    if scale != 1.0:
        similarity *= scale
    similarity -= penalty
    values, indices = arrays.top_k(similarity, k)
    return indices, values if own is None else values - own[:, None]


def retriever(
    keys: Array,
    pool: Array,
    *,
    method: str = "csls",
    csls_k: int = DEFAULT_CSLS_K,
    temperature: float = DEFAULT_TEMPERATURE,
    hubs: Array | None = None,
) -> Retriever:
    """Build a retriever over keys.

    Args:
        keys: (m, d) unit rows of the target side.
        pool: (n, d) unit rows of the whole query side after mapping; they determine which keys are hubs.
        method: "nn", "csls" or "softmax".
        csls_k: neighbourhood size of CSLS, clamped to n and m.
        temperature: of the inverted softmax.
        hubs: (m,) the neighbourhood means of the keys, if they are known.
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
    """Word pairs found by retrieval: source rows, target rows and scores, each (p,)."""

    src: Array
    tgt: Array
    scores: Array

    def __len__(self) -> int:
        return int(self.src.shape[0])


@dataclass(frozen=True)
class CrossNeighbours:
    """The nearest neighbour of every word by CSLS in both directions: forward (n,), backward (m,) and their scores."""

    forward: Array
    forward_scores: Array
    backward: Array
    backward_scores: Array

    def union(self) -> Pairs:
        """Return every word with its nearest neighbour, the forward pairs before the backward ones."""
        xp = arrays.namespace(self.forward)
        src, tgt = (xp.arange(side.shape[0], device=arrays.device(side)) for side in (self.forward, self.backward))
        both = ((src, self.backward), (self.forward, tgt), (self.forward_scores, self.backward_scores))
        return Pairs(*(xp.concat(list(columns)) for columns in both))

    def mutual(self) -> Pairs:
        """Return the pairs that are nearest neighbours of each other, in source order."""
        xp = arrays.namespace(self.forward)
        rows = xp.arange(self.forward.shape[0], device=arrays.device(self.forward))
        keep = xp.nonzero(xp.take(self.backward, self.forward) == rows)[0]
        return Pairs(keep, xp.take(self.forward, keep), xp.take(self.forward_scores, keep))


def cross_neighbours(src: Array, tgt: Array, *, csls_k: int = DEFAULT_CSLS_K) -> CrossNeighbours:
    """Return the nearest neighbours by CSLS in both directions, from one pass over the blocks of similarities.

    src: (n, d) mapped unit rows; tgt: (m, d) unit rows.
    """
    xp = arrays.namespace(src, tgt)
    size = arrays.block_rows(tgt.shape[0], src)
    only_block = size >= src.shape[0]
    few_blocks = _AT_ONCE * size >= src.shape[0]
    if few_blocks and src.shape[0] * tgt.shape[0] <= _AT_ONCE * arrays.BLOCK_ELEMENTS:
        return _neighbours_at_once(src, tgt, min(csls_k, src.shape[0], tgt.shape[0]))
    found = one_pass(src, tgt, min(csls_k, src.shape[0], tgt.shape[0]))
    if found is not None:
        return CrossNeighbours(*found.nearest())
    queries, keys = _csls_factors(src, tgt, csls_k)

    def block(rows: slice) -> tuple[Array, Array, Array, Array]:
        scores = queries[rows, :] @ keys.T
        best = xp.argmax(scores, axis=1)
        return best, xp.max(scores, axis=1), xp.max(scores, axis=0), xp.argmax(scores, axis=0) if only_block else best

    blocks = arrays.map_blocks(block, src.shape[0], size, src)
    maxima = xp.stack([b[2] for b in blocks])
    # The argmax over a block is the best query of each key only if one block holds all queries.
    backward = blocks[0][3] if only_block else _best_rows(queries, keys, size, xp.argmax(maxima, axis=0))
    forward, forward_scores = (xp.concat([b[i] for b in blocks]) for i in (0, 1))
    return CrossNeighbours(forward, forward_scores, backward, xp.max(maxima, axis=0))


# Up to this many blocks of similarities are kept in memory, which saves computing them twice: 2 x 32 MiB a thread.
_AT_ONCE = 2
# They are still processed in parts, so that threads can share the work.
_PARTS = 4


def _neighbours_at_once(src: Array, tgt: Array, k: int) -> CrossNeighbours:
    """Return `cross_neighbours` with all similarities in memory: one product serves the means and the scores."""
    xp = arrays.namespace(src, tgt)
    similarity = src @ tgt.T
    transposed = arrays.transposed(similarity)

    def means(rows: slice, table: Array) -> Array:
        return arrays.mean_of_largest(table[rows, :], k)

    def best(rows: slice, table: Array, hubs: Array, own: Array) -> tuple[Array, Array]:
        scores = 2.0 * table[rows, :] - hubs
        found = xp.argmax(scores, axis=1)
        return found, xp.take_along_axis(scores, found[:, None], axis=1)[:, 0] - own[rows]

    def in_parts(function: Callable[[slice], T], table: Array) -> list[T]:
        n = table.shape[0]
        return arrays.map_blocks(function, n, -(-n // _PARTS) if isinstance(table, np.ndarray) else n, table)

    src_means, tgt_means = (xp.concat(in_parts(partial(means, table=t), t)) for t in (similarity, transposed))
    forward = in_parts(partial(best, table=similarity, hubs=tgt_means, own=src_means), similarity)
    backward = in_parts(partial(best, table=transposed, hubs=src_means, own=tgt_means), transposed)
    return CrossNeighbours(*(xp.concat([part[i] for part in parts]) for parts in (forward, backward) for i in (0, 1)))


def _csls_factors(src: Array, tgt: Array, csls_k: int) -> tuple[Array, Array]:
    """Return two matrices, (n, d + 2) and (m, d + 2), whose product is the CSLS of src (n, d) and tgt (m, d)."""
    xp = arrays.namespace(src, tgt)
    k = min(csls_k, src.shape[0], tgt.shape[0])
    src_means = xp.expand_dims(neighbourhood_means(src, tgt, k), axis=1)
    tgt_means = xp.expand_dims(neighbourhood_means(tgt, src, k), axis=1)
    # Two more columns turn the product into CSLS: 2 <x, y> - mean of x - mean of y.
    queries = xp.concat([2.0 * src, -src_means, -xp.ones_like(src_means)], axis=1)
    return queries, xp.concat([tgt, xp.ones_like(tgt_means), tgt_means], axis=1)


def sampled_neighbours(
    src: Array,
    tgt: Array,
    keep: float,
    rng: np.random.Generator,
    *,
    csls_k: int = DEFAULT_CSLS_K,
    sample_rows: int = 256,
) -> CrossNeighbours:
    """Return the nearest neighbours by CSLS among a random share of the other side for each word.

    This is the stochastic dictionary induction of Artetxe et al. (2018), who drop every similarity independently. Here
    blocks of words share a draw, so only the kept similarities are computed and the search costs `keep` times that of
    `cross_neighbours`. The draws do not depend on the number of threads. Scores may differ by rounding.

    Args:
        src: (n, d) mapped unit rows.
        tgt: (m, d) unit rows.
        keep: share of the other side.
        rng: draws the shares.
        csls_k: neighbourhood size of CSLS.
        sample_rows: number of words that share a draw.
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
    """Return the best key of a sample for each query and its score, (n,) each. queries: (n, d), keys: (m, d)."""
    xp = arrays.namespace(queries)
    n, m = queries.shape[0], keys.shape[0]
    size = max(1, round(keep * m))
    # Drawn before the threads start, so that the samples do not depend on the order of the blocks.
    samples = [rng.permutation(m)[:size] for _ in range(0, n, at_once)]

    def block(rows: slice) -> tuple[Array, Array]:
        sample = arrays.asarray(samples[rows.start // at_once], queries)
        scores = queries[rows, :] @ xp.take(keys, sample, axis=0).T
        return xp.take(sample, xp.argmax(scores, axis=1)), xp.max(scores, axis=1)

    blocks = arrays.map_blocks(block, n, at_once, queries)
    return xp.concat([b[0] for b in blocks]), xp.concat([b[1] for b in blocks])


def _best_rows(queries: Array, keys: Array, rows: int, best_block: Array) -> Array:
    """Return the best query of every key, (m,), given the block of `rows` queries that contains it.

    Searching one block costs little; the argmax of all columns in all blocks takes a quarter of the product's time.

    queries: (n, d), keys: (m, d), best_block: (m,).
    """
    xp = arrays.namespace(queries)

    def block(which: slice) -> tuple[Array, Array]:
        columns = xp.nonzero(best_block == which.start // rows)[0]
        scores = queries[which, :] @ xp.take(keys, columns, axis=0).T
        return columns, xp.argmax(scores, axis=0) + which.start

    blocks = arrays.map_blocks(block, queries.shape[0], rows, queries)
    order = xp.argsort(xp.concat([b[0] for b in blocks]))
    return xp.take(xp.concat([b[1] for b in blocks]), order)
