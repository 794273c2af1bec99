"""Coresets: a space summarised by k weighted points.

`random` takes k words with equal weights (the batches of Grave et al. 2019). `kmeans++` and `lloyd` follow
Algorithm 2 of the qWP paper: oversample m = k^2 log k points i.i.d., pick k centres by k-means++, weight each
by the share of points in its Voronoi cell; `lloyd` then moves each centre to the mean of its cell.

Two facts make this cheap with the same distribution. i.i.d. draws from n words are multinomial counts on n
points, so k-means++ runs on n weighted words, not on m points. And distances inside one space do not change
under an orthogonal map, so coresets do not depend on W: a bank of them is drawn once, all in lock-step, each
step one matrix product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qwp import backend
from qwp.backend import Array
from qwp.errors import InputError
from qwp.retrieval import unit

KINDS = ("random", "kmeans++", "lloyd")
_SAMPLING_BLOCK = 128


@dataclass(frozen=True)
class Coreset:
    """k weighted points. points: (k, d); weights: (k,), positive, sum 1."""

    points: Array
    weights: Array


@dataclass(frozen=True)
class Bank:
    """B k-means++ quantisations of one space.

    centres: (B, k) rows of the space; labels: (B, n) cell of every word; counts: (B, n) how often each word
    was drawn.
    """

    centres: Array
    labels: Array
    counts: Array

    def __len__(self) -> int:
        return int(self.centres.shape[0])

    def weights(self, i: int) -> Array:
        """Share of the drawn points in each cell of coreset i. Returns (k,), float64."""
        k = self.centres.shape[1]
        labels, counts = backend.to_numpy(self.labels[i, :]), backend.to_numpy(self.counts[i, :])
        mass = np.bincount(labels, weights=counts, minlength=k)
        return mass / mass.sum()


def oversampling(k: int) -> int:
    """The paper's number of i.i.d. draws for k centres: k^2 log k, and never fewer than k."""
    return max(k, math.ceil(k * k * math.log(k))) if k > 1 else k


def kmeans_plusplus_bank(x: Array, k: int, size: int, rng: np.random.Generator, *, m: int | None = None) -> Bank:
    """Draw `size` k-means++ quantisations in lock-step.

    x: (n, d). m: i.i.d. draws per coreset (default: `oversampling(k)`). Each of the k steps costs one (B, d)
    by (d, n) product and a few passes over (B, n).
    """
    n = x.shape[0]
    if not 1 <= k <= n:
        raise InputError(f"k={k} should be between 1 and the number of points, {n}")
    if size < 1:
        raise InputError(f"bank size={size} should be at least 1")
    draws = rng.multinomial(oversampling(k) if m is None else m, np.full(n, 1.0 / n), size=size)
    counts = backend.asarray(draws.astype(np.float64), x)
    uniforms = rng.random((k, size))
    lockstep = _Lockstep(x, counts)
    centres = []
    for step in range(k):
        centres.append(lockstep.draw(uniforms[step]))
        lockstep.add(centres[-1], step)
    return Bank(backend.namespace(x).stack(centres, axis=1), lockstep.labels(), counts)


class _Lockstep:
    """B quantisations that grow by one centre at a time.

    The words are cut into blocks: a step goes through the product, the distances, the labels and the masses
    of one block while it is in the cache, and blocks run on threads. Arrays that belong to block i are
    (B, c), c words; those the draws read are (blocks, B, c). The cut depends on the sizes only, never on the
    number of threads, so that rounding does not either.
    """

    def __init__(self, x: Array, counts: Array) -> None:
        """x: (n, d); counts: (B, n) how often each word was drawn."""
        xp = self.xp = backend.namespace(x)
        self.x = x
        self.size, self.n = counts.shape
        self.width = self._block_width()
        self.n_blocks = -(-self.n // self.width)
        self.squares = xp.sum(x * x, axis=1)
        # Rounding leaves a centre at a tiny distance from itself; this margin makes it exactly zero, so never
        # drawn again. The error of an inner product grows with the root of the dimension.
        self.margin = max(8.0, 2.0 * x.shape[1] ** 0.5) * backend.eps(x) * float(xp.max(self.squares))
        self.factors = [self._factor(i) for i in range(self.n_blocks)]
        edges = [min(i * self.width, self.n) for i in range(self.n_blocks + 1)]
        self.counts = [self._pad(counts[:, a:b], axis=1) for a, b in pairwise(edges)]
        self.mass = xp.stack(self.counts)
        self.sums = xp.stack([self._sums(c) for c in self.counts])
        device = backend.device(x)
        shape = (self.size, self.width)
        self.distances = [xp.full(shape, xp.inf, dtype=x.dtype, device=device) for _ in self.counts]
        self._labels = [xp.zeros(shape, dtype=xp.int32, device=device) for _ in self.counts]

    def _block_width(self) -> int:
        """Words in a block: one block where the library parallelises by itself, else what the cache holds."""
        per_block: int = -(-self.n // backend.cache_blocks(self.n, self.size, self.x))
        return -(-per_block // _SAMPLING_BLOCK) * _SAMPLING_BLOCK

    def _pad(self, block: Array, axis: int) -> Array:
        """Zeros along `axis` up to the width of a block."""
        missing = self.width - block.shape[axis]
        if not missing:
            return block
        shape = [missing if a == axis else size for a, size in enumerate(block.shape)]
        zeros = self.xp.zeros(tuple(shape), dtype=block.dtype, device=backend.device(block))
        return self.xp.concat([block, zeros], axis=axis)

    def _factor(self, i: int) -> Array:
        """Block i of the words as columns, with their squares and a one below. Returns (d + 2, c).

        The product of (-2 centre, 1, |centre|^2) with it is a block of squared distances: nothing is left to
        add. It is laid out for the product, which takes half the time of one with a transposed view.
        """
        xp = self.xp
        last = min((i + 1) * self.width, self.n)
        words, squares = (self._pad(a[i * self.width : last, ...], 0) for a in (self.x, self.squares))
        square_row = xp.expand_dims(squares, axis=0)
        return backend.contiguous(xp.concat([words.T, square_row, xp.ones_like(square_row)], axis=0))

    def _sums(self, mass: Array) -> Array:
        """Sums over short runs of words. mass: (B, c). Returns (B, c / 128)."""
        xp = self.xp
        return xp.sum(xp.reshape(mass, (self.size, -1, _SAMPLING_BLOCK)), axis=2)

    def add(self, chosen: Array, step: int) -> None:
        """Give each quantisation its new centre, number `step`. chosen: (B,) words."""
        xp = self.xp
        rows = xp.take(self.x, chosen, axis=0)
        squares = xp.expand_dims(xp.take(self.squares, chosen) - self.margin, axis=1)
        left = xp.concat([rows * -2.0, xp.ones_like(squares), squares], axis=1)

        def block(which: slice) -> None:
            i = which.start
            to_new = xp.clip(left @ self.factors[i], 0.0, None)
            closer = to_new < self.distances[i]
            # Labels only grow, so the larger one is the newer one: vectorised, where a choice is not.
            self._labels[i] = xp.maximum(self._labels[i], xp.astype(closer, xp.int32) * step)
            self.distances[i] = xp.minimum(to_new, self.distances[i])
            mass = self.counts[i] * self.distances[i]
            self.mass[i, :, :] = mass
            self.sums[i, :, :] = self._sums(mass)

        backend.map_blocks(block, self.n_blocks, 1, self.x)

    def labels(self) -> Array:
        """The cell of every word, (B, n)."""
        return self.xp.concat(self._labels, axis=1)[:, : self.n]

    def draw(self, uniforms: np.ndarray) -> Array:
        """One word for each quantisation with probability proportional to its mass. uniforms: (B,).

        Two-level inverse transform: sums of short runs, then one run. Cheaper than a running sum over all
        words and accurate in float32. Without mass (fewer distinct points than centres) it repeats a point,
        whose cell then stays empty. Returns (B,).
        """
        xp = self.xp
        runs = self.width // _SAMPLING_BLOCK
        ordered = xp.reshape(xp.permute_dims(self.sums, (1, 0, 2)), (self.size, self.n_blocks * runs))
        running = xp.cumulative_sum(ordered, axis=1, dtype=xp.float64)
        target = running[:, -1] * backend.asarray(uniforms, running)
        run = _first_above(running, target)
        rows = xp.arange(self.size, device=backend.device(self.x))
        block, place = run // runs, run % runs
        flat = xp.reshape(self.mass, (self.n_blocks * self.size * runs, _SAMPLING_BLOCK))
        inside = xp.take(flat, (block * self.size + rows) * runs + place, axis=0)
        up_to = xp.take(xp.reshape(running, (-1,)), rows * (self.n_blocks * runs) + run)
        before = up_to - xp.sum(inside, axis=1, dtype=xp.float64)
        offset = _first_above(xp.cumulative_sum(inside, axis=1, dtype=xp.float64), target - before)
        # Rounding may point at an entry without mass: take the heaviest of the run then.
        empty = xp.take(xp.reshape(inside, (-1,)), rows * _SAMPLING_BLOCK + offset) <= 0
        offset = xp.where(empty, xp.argmax(inside, axis=1), offset)
        return xp.clip(run * _SAMPLING_BLOCK + offset, None, self.n - 1)


def _first_above(running: Array, target: Array) -> Array:
    """First column in which a row of running sums exceeds its target, at most the last.

    running: (B, c), target: (B,). Returns (B,).
    """
    xp = backend.namespace(running)
    short = running <= xp.expand_dims(target, axis=1)
    return xp.clip(xp.sum(xp.astype(short, xp.int64), axis=1), None, running.shape[1] - 1)


def coreset_from_bank(
    x: Array, bank: Bank, i: int, *, lloyd: bool, on_sphere: bool, weight_power: float = 1.0
) -> Coreset:
    """Coreset i of the bank. x: (n, d) the space it was drawn from.

    lloyd: centres move to the mean of their cell; on_sphere: those means go back to unit length, because
    means of unit vectors shrink towards zero, which flattens the transport plan. weight_power: the weights
    are raised to this power and renormalised (1 = the paper's weights, 0 = equal weights). Cells without mass
    are dropped.
    """
    xp = backend.namespace(x)
    share = bank.weights(i)
    keep = np.flatnonzero(share > 0)
    weights = share[keep] ** weight_power
    weights /= weights.sum()
    if lloyd:
        sums = backend.segment_sum(x, bank.labels[i, :], bank.counts[i, :], bank.centres.shape[1])
        points = xp.take(sums, backend.asarray(keep, x), axis=0)
        mass = backend.asarray(share[keep] * float(xp.sum(bank.counts[i, :])), x)
        points = unit(points) if on_sphere else points / xp.expand_dims(mass, axis=1)
    else:
        points = xp.take(x, xp.take(bank.centres[i, :], backend.asarray(keep, x)), axis=0)
    return Coreset(points, backend.asarray(weights, x))


def random_coreset(x: Array, k: int, rng: np.random.Generator) -> Coreset:
    """k different rows of x (n, d), equal weights."""
    n = x.shape[0]
    if not 1 <= k <= n:
        raise InputError(f"k={k} should be between 1 and the number of points, {n}")
    xp = backend.namespace(x)
    rows = backend.asarray(rng.choice(n, size=k, replace=False), x)
    weights = xp.full((k,), 1.0 / k, dtype=x.dtype, device=backend.device(x))
    return Coreset(xp.take(x, rows, axis=0), weights)
