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

import logging
import math
from dataclasses import dataclass

import numpy as np

from qwp import backend
from qwp.backend import Array
from qwp.errors import InputError
from qwp.retrieval import unit

logger = logging.getLogger(__name__)

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


def kmeans_plusplus_bank(
    x: Array, k: int, size: int, rng: np.random.Generator, *, m: int | None = None
) -> Bank:
    """Draw `size` k-means++ quantisations in lock-step.

    x: (n, d). m: i.i.d. draws per coreset (default: `oversampling(k)`). Each of the k steps costs one (B, d)
    by (d, n) product and a few passes over (B, n).
    """
    n = x.shape[0]
    if not 1 <= k <= n:
        raise InputError(f"k={k} should be between 1 and the number of points, {n}")
    if size < 1:
        raise InputError(f"bank size={size} should be at least 1")
    xp = backend.namespace(x)
    draws = rng.multinomial(oversampling(k) if m is None else m, np.full(n, 1.0 / n), size=size)
    counts = backend.asarray(draws.astype(np.float64), x)
    uniforms = rng.random((k, size))

    transposed = x.T
    squares = xp.sum(x * x, axis=1)
    # Rounding leaves a centre at a tiny distance from itself; this margin makes it exactly zero, so never
    # drawn again.
    margin = 8.0 * backend.eps(x) * float(xp.max(squares))
    distances = xp.full((size, n), xp.inf, dtype=x.dtype, device=backend.device(x))
    labels = xp.zeros((size, n), dtype=xp.int32, device=backend.device(x))
    centres = []
    for step in range(k):
        mass = counts * distances if step else counts
        chosen = _draw(mass, uniforms[step])
        centres.append(chosen)
        rows = xp.take(x, chosen, axis=0)
        to_new = (rows * -2.0) @ transposed
        to_new += squares
        to_new += xp.expand_dims(xp.take(squares, chosen) - margin, axis=1)
        to_new = xp.clip(to_new, 0.0, None)
        closer = to_new < distances
        labels = xp.where(closer, xp.asarray(step, dtype=xp.int32, device=backend.device(x)), labels)
        distances = xp.where(closer, to_new, distances)
    return Bank(xp.stack(centres, axis=1), labels, counts)


def _draw(mass: Array, uniforms: np.ndarray) -> Array:
    """One index per row with probability proportional to `mass`. mass: (B, n); uniforms: (B,). Returns (B,).

    Two-level inverse transform: sums of short blocks, then one block. Cheaper than a running sum over the
    whole row and accurate in float32. A row without mass (fewer distinct points than centres) repeats its
    first point.
    """
    xp = backend.namespace(mass)
    size, n = mass.shape
    n_blocks = -(-n // _SAMPLING_BLOCK)
    padding = n_blocks * _SAMPLING_BLOCK - n
    if padding:
        zeros = xp.zeros((size, padding), dtype=mass.dtype, device=backend.device(mass))
        mass = xp.concat([mass, zeros], axis=1)
    blocks = xp.reshape(mass, (size, n_blocks, _SAMPLING_BLOCK))
    running = xp.cumulative_sum(xp.sum(blocks, axis=2), axis=1, dtype=xp.float64)
    target = running[:, -1] * backend.asarray(uniforms, running)
    block = xp.sum(xp.astype(running <= xp.expand_dims(target, axis=1), xp.int64), axis=1)
    block = xp.clip(block, None, n_blocks - 1)
    rows = xp.arange(size, device=backend.device(mass))
    inside = xp.take(xp.reshape(blocks, (size * n_blocks, _SAMPLING_BLOCK)), rows * n_blocks + block, axis=0)
    before = xp.take(xp.reshape(running, (size * n_blocks,)), rows * n_blocks + block) - xp.sum(
        inside, axis=1, dtype=xp.float64
    )
    within = xp.cumulative_sum(inside, axis=1, dtype=xp.float64)
    short = within <= xp.expand_dims(target - before, axis=1)
    offset = xp.sum(xp.astype(short, xp.int64), axis=1)
    # Rounding may point one past the last entry or at one without mass: take the heaviest of the block then.
    offset = xp.clip(offset, None, _SAMPLING_BLOCK - 1)
    flat = xp.reshape(inside, (size * _SAMPLING_BLOCK,))
    empty = xp.take(flat, rows * _SAMPLING_BLOCK + offset) <= 0
    offset = xp.where(empty, xp.argmax(inside, axis=1), offset)
    return xp.clip(block * _SAMPLING_BLOCK + offset, None, n - 1)


def coreset_from_bank(
    x: Array, bank: Bank, i: int, *, lloyd: bool, on_sphere: bool, weight_power: float = 1.0
) -> Coreset:
    """Coreset i of the bank. x: (n, d) the space it was drawn from.

    lloyd: centres move to the mean of their cell; on_sphere: those means go back to unit length, because
    means of unit vectors shrink towards zero, which flattens the transport plan. weight_power: the weights are
    raised to this power and renormalised (1 = the paper's weights, 0 = equal weights). Cells without mass are
    dropped.
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
