"""Coresets: a space summarised by k weighted points.

`random` samples k words with equal weights (Grave et al. 2019). `kmeans++` and `lloyd` follow Algorithm 2 of the qWP
paper: sample m = k^2 log k points i.i.d., choose k centres by k-means++, and weight each by the share of points in its
Voronoi cell. `lloyd` then moves each centre to the mean of its cell.

Two facts make this cheap without changing the distribution:

- i.i.d. samples from n words are counts of n words, so k-means++ runs on n weighted words, not on m points. The counts
  of many samples are independent Poisson numbers of mean m / n, so their total is m on average.
- An orthogonal map does not change distances within a space, so coresets do not depend on W. A bank of them is drawn
  once, all in lock-step, with one matrix product per step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.errors import InputError, at_least

KINDS = ("random", "kmeans++", "lloyd")
# Words in a run: sampling first chooses a run by its sum, then a word in it.
_RUN = 128
# Steps between two progress reports.
_STEPS_PER_REPORT = 50
# From this many samples on, multinomial counts are replaced by Poisson counts, which are faster to draw.
_MANY_DRAWS = 10_000


@dataclass(frozen=True)
class Bank:
    """B k-means++ quantisations of one space.

    centres: (B, k) rows of the space. counts: (B, n) samples of each word. labels: (B, n) Voronoi cell of each word, or
    None if they were not requested.
    """

    centres: Array
    counts: Array
    labels: Array | None = None

    def __len__(self) -> int:
        return int(self.centres.shape[0])

    @property
    def nbytes(self) -> int:
        """The memory of the arrays in bytes."""
        # `nbytes` is not part of the array API standard.
        parts: tuple[Any, ...] = (self.centres, self.counts, self.labels)
        return sum(int(array.nbytes) for array in parts if array is not None)

    def weights(self, power: float = 1.0) -> Array:
        """Return the share of the samples in each cell, raised to `power` and renormalised, (B, k).

        power: 1 as in the paper; 0 for equal weights, which need no labels. A cell without samples has weight zero.
        """
        xp = arrays.namespace(self.counts)
        if power == 0.0:
            return xp.full(
                self.centres.shape, 1.0 / self.centres.shape[1], dtype=self.counts.dtype, device=self._device
            )
        k = self.centres.shape[1]
        labels, counts = arrays.to_numpy(self._labels()), arrays.to_numpy(self.counts)
        mass = np.stack([np.bincount(row, weights=c, minlength=k) for row, c in zip(labels, counts, strict=True)])
        share = mass / mass.sum(axis=1, keepdims=True)
        tempered = np.where(share > 0, share, 1.0) ** power * (share > 0)
        return arrays.asarray(tempered / tempered.sum(axis=1, keepdims=True), self.counts)

    def points(self, x: Array, i: int) -> Array:
        """Return the centres of quantisation i as vectors, (k, d). x: (n, d) the space."""
        return arrays.namespace(x).take(x, self.centres[i, :], axis=0)

    def centroids(self, x: Array, i: int, *, on_sphere: bool) -> Array:
        """Return the mean of each cell of quantisation i, zero for a cell without samples, (k, d). x: (n, d).

        on_sphere: scale the means to unit length. Means of unit vectors are shorter, which flattens the transport plan.
        """
        xp = arrays.namespace(x)
        labels, counts, k = self._labels()[i, :], self.counts[i, :], self.centres.shape[1]
        sums = arrays.segment_sum(x, labels, counts, k)
        if on_sphere:
            return unit(sums)
        mass = arrays.segment_sum(xp.expand_dims(counts, axis=1), labels, xp.ones_like(counts), k)
        return sums / xp.where(mass > 0, mass, xp.ones_like(mass))

    def _labels(self) -> Array:
        if self.labels is None:
            raise InputError("this bank was drawn without labels: draw it with labels=True")
        return self.labels

    @property
    def _device(self) -> Any:
        return arrays.device(self.counts)


def oversampling(k: int) -> int:
    """Return the number of i.i.d. samples for k centres in the paper: k^2 log k, and at least k."""
    return max(k, math.ceil(k * k * math.log(k))) if k > 1 else k


def kmeans_plusplus_bank(
    x: Array, k: int, size: int, rng: np.random.Generator, *, m: int | None = None, labels: bool = True
) -> Bank:
    """Draw `size` k-means++ quantisations of one space. x: (n, d). See `kmeans_plusplus_banks`."""
    return kmeans_plusplus_banks([x], k, size, [rng], m=m, labels=labels)[0]


def kmeans_plusplus_banks(
    spaces: Sequence[Array],
    k: int,
    size: int,
    rngs: Sequence[np.random.Generator],
    *,
    m: int | None = None,
    labels: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> list[Bank]:
    """Draw `size` k-means++ quantisations of each space, all in lock-step.

    Each of the k steps costs one (B, d) by (d, n) product for each space and a few passes over (B, n).

    Args:
        spaces: (n_s, d) each.
        k: centres of a quantisation.
        size: quantisations of each space.
        rngs: a random stream for each space.
        m: i.i.d. samples of a quantisation; `oversampling(k)` by default.
        labels: whether to return the cell of every word, which takes a quarter of the time.
        progress: called with the finished and the total number of steps.
    """
    if len(spaces) > 1 and isinstance(spaces[0], np.ndarray):
        # A single space fits the cache of a CPU better.
        banks = []
        for number, (x, rng) in enumerate(zip(spaces, rngs, strict=True)):
            share = None if progress is None else partial(_report_share, progress, number, len(spaces))
            banks += kmeans_plusplus_banks([x], k, size, [rng], m=m, labels=labels, progress=share)
        return banks
    fewest = min(x.shape[0] for x in spaces)
    if not 1 <= k <= fewest:
        raise InputError(f"k={k} should be between 1 and the number of points, {fewest}")
    at_least(1, bank_size=size)
    draws = oversampling(k) if m is None else m
    counts = [_word_counts(rng, draws, size, x) for x, rng in zip(spaces, rngs, strict=True)]
    # Slightly below one, so that rounding never selects beyond the last word.
    uniforms = np.stack([rng.random((k, size)) for rng in rngs], axis=1) * (1.0 - 1e-12)
    lockstep = _LockStepSampler(spaces, counts, arrays.asarray(uniforms, spaces[0], dtype="float64"), labels=labels)
    with arrays.RepeatedStep(lockstep.step, spaces[0]) as repeated:
        for done in range(0, k, _STEPS_PER_REPORT):
            repeated.run(min(_STEPS_PER_REPORT, k - done))
            if progress is not None:
                progress(min(done + _STEPS_PER_REPORT, k), k)
    return [
        Bank(lockstep.centres(i), c, lockstep.labels_of(i, c.shape[1]) if labels else None)
        for i, c in enumerate(counts)
    ]


def _word_counts(rng: np.random.Generator, m: int, size: int, x: Array) -> Array:
    """Return the counts of the n words of x (n, d) among m i.i.d. samples, (size, n)."""
    n = x.shape[0]
    if m >= _MANY_DRAWS:
        return arrays.poisson(rng, m / n, (size, n), x)
    # The Poisson counts of few samples may all be zero.
    return arrays.asarray(rng.multinomial(m, np.full(n, 1.0 / n), size=size).astype(np.float64), x)


def _report_share(progress: Callable[[int, int], None], number: int, parts: int, done: int, total: int) -> None:
    """Report the progress of one of several equal parts as progress of the whole."""
    progress(number * total + done, parts * total)


class _LockStepSampler:
    """B quantisations of each of S spaces, which all grow by one centre per step.

    The words are divided into blocks that fit the cache and run on threads. The division depends on the sizes alone,
    never on the number of threads; each of several blocks is one product on one BLAS thread. Other libraries than NumPy
    have a single block with the words of all spaces. A step works in place and reads no value on the host, so that CUDA
    can record it.

    Arrays of block i: distances and counts (S, B, c), factor (S, d', c) with d' slightly above d. Smaller spaces are
    padded with words that are never drawn.
    """

    def __init__(self, spaces: Sequence[Array], counts: Sequence[Array], uniforms: Array, *, labels: bool) -> None:
        """spaces: S times (n_s, d); counts: S times (B, n_s); uniforms: (k, S, B)."""
        first = spaces[0]
        xp = self.xp = arrays.namespace(first)
        where = {"device": arrays.device(first)}
        self.n_spaces, self.size = len(spaces), counts[0].shape[0]
        longest = max(x.shape[0] for x in spaces)
        per_block = -(-longest // arrays.cache_blocks(longest, self.size, first))
        self.width = -(-per_block // _RUN) * _RUN
        self.n_blocks = -(-longest // self.width)
        self.total = self.n_blocks * self.width
        padded = [self._pad(x, 0) for x in spaces]
        words = xp.stack(padded)
        squares = xp.sum(words * words, axis=2, keepdims=True)
        # Rounding leaves a centre at a tiny distance from itself. The margin makes it at most zero, so that no centre
        # is drawn twice. The error of an inner product grows with the square root of the dimension.
        margin = max(8.0, 2.0 * first.shape[1] ** 0.5) * arrays.eps(first) * xp.max(squares)
        # The product of (-2 centre, 1, |centre|^2) and (word, |word|^2, 1) is a squared distance. The rows of all
        # spaces are stacked for a single look-up and padded to a multiple of 8 columns, which products prefer.
        zeros = xp.zeros((*squares.shape[:2], -(first.shape[1] + 2) % 8), dtype=first.dtype, **where)
        ones = xp.ones_like(squares)
        as_centres = xp.concat([words * -2.0, ones, squares - margin, zeros], axis=2)
        self.as_centres = xp.reshape(as_centres, (-1, as_centres.shape[2]))
        columns = xp.permute_dims(xp.concat([words, squares, ones, zeros], axis=2), (0, 2, 1))
        edges = [(i * self.width, (i + 1) * self.width) for i in range(self.n_blocks)]
        # Contiguous: the product takes half the time of one with a transposed view.
        self.factors = [arrays.contiguous(columns[:, :, a:b]) for a, b in edges]
        stacked = xp.stack([self._pad(c, 1) for c in counts])
        self.counts = xp.stack([stacked[:, :, a:b] for a, b in edges])
        shape = (self.n_blocks, self.n_spaces, self.size, self.width)
        self.products = xp.empty(shape, dtype=first.dtype, **where)
        # Before the first centre all words are equally far away, so their counts decide.
        far = 1e-8 * float(xp.finfo(first.dtype).max)
        self.distances = xp.full(shape, far, dtype=first.dtype, **where)
        self.runs = self.width // _RUN
        self.sums = xp.zeros((self.n_spaces, self.size, self.n_blocks, self.runs), dtype=xp.float64, **where)
        for i in range(self.n_blocks):
            self._set_sums(i)
        self._labels = xp.zeros(shape, dtype=xp.int32, **where) if labels else None
        self.uniforms = uniforms
        self.chosen = xp.zeros((uniforms.shape[0], self.n_spaces, self.size), dtype=xp.int64, **where)
        self.number = xp.zeros((1,), dtype=xp.int64, **where)
        self.first_word = xp.reshape(xp.arange(self.n_spaces, **where) * self.total, (-1, 1))
        self.last_word = xp.reshape(xp.asarray([x.shape[0] - 1 for x in spaces], **where), (-1, 1))
        self.quantisation = xp.arange(self.n_spaces * self.size, **where)
        self.first_run = self.quantisation * (self.n_blocks * self.runs)

    def _pad(self, block: Array, axis: int) -> Array:
        """Return the array padded with zeros along `axis` to the width of all blocks."""
        missing = self.total - block.shape[axis]
        if not missing:
            return block
        shape = [missing if a == axis else size for a, size in enumerate(block.shape)]
        zeros = self.xp.zeros(tuple(shape), dtype=block.dtype, device=arrays.device(block))
        return self.xp.concat([block, zeros], axis=axis)

    def _set_sums(self, i: int) -> None:
        """Update the sums of the runs of block i."""
        sums = arrays.run_sums(self.counts[i, ...], self.distances[i, ...], _RUN)
        self.sums[:, :, i, :] = self.xp.astype(sums, self.xp.float64)

    def step(self) -> None:
        """Draw the next centre of every quantisation and update the distances to the nearest centre."""
        xp = self.xp
        drawn = self._draw(xp.take(self.uniforms, self.number, axis=0)[0, ...])
        arrays.put_row(self.chosen, self.number, drawn)
        self._add(xp.reshape(drawn + self.first_word, (-1,)))
        self.number += 1

    def _add(self, rows: Array) -> None:
        """Add a centre to each quantisation. rows: (S * B,) rows of `as_centres`."""
        xp = self.xp
        left = xp.reshape(xp.take(self.as_centres, rows, axis=0), (self.n_spaces, self.size, -1))

        def block(which: slice) -> None:
            i = which.start
            distances = self.distances[i, ...]
            to_new = arrays.matmul_into(self.products[i, ...], left, self.factors[i])
            if self._labels is not None:
                # Labels only grow, so the maximum is the newest; `maximum` is vectorised, a choice is not.
                newest = xp.astype(to_new < distances, xp.int32) * xp.astype(self.number, xp.int32)
                self._labels[i, ...] = xp.maximum(self._labels[i, ...], newest)
            arrays.minimum_into(distances, to_new)
            self._set_sums(i)

        arrays.map_blocks(block, self.n_blocks, 1, self.as_centres)

    def centres(self, i: int) -> Array:
        """Return the centres of space i, (B, k)."""
        return arrays.contiguous(self.xp.permute_dims(self.chosen[:, i, :], (1, 0)))

    def labels_of(self, i: int, n: int) -> Array:
        """Return the cells of the n words of space i, (B, n)."""
        assert self._labels is not None
        return self.xp.concat([self._labels[b, i, ...] for b in range(self.n_blocks)], axis=1)[:, :n]

    def _draw(self, uniforms: Array) -> Array:
        """Draw a word for each quantisation with probability proportional to count times distance, (S, B).

        Inverse transform sampling in two levels, first the sums of short runs, then one run, is cheaper than a
        cumulative sum over all words and accurate in float32. If there are fewer distinct points than centres, a point
        is repeated, and its cell stays empty. uniforms: (S, B).
        """
        xp = self.xp
        n_quantisations, n_runs = self.n_spaces * self.size, self.n_blocks * self.runs
        running = xp.cumulative_sum(xp.reshape(self.sums, (n_quantisations, n_runs)), axis=1)
        target = running[:, -1] * xp.reshape(uniforms, (-1,))
        run = arrays.first_above(running, target)
        in_running = self.first_run + run
        if self.n_blocks == 1:
            in_blocks = in_running
        else:
            in_blocks = (run // self.runs * n_quantisations + self.quantisation) * self.runs + run % self.runs
        distances, counts = (
            xp.take(xp.reshape(a, (-1, _RUN)), in_blocks, axis=0) for a in (self.distances, self.counts)
        )
        inside = xp.cumulative_sum(arrays.clamped(distances * counts, 0.0, math.inf), axis=1, dtype=xp.float64)
        mass = inside[:, -1]
        before = xp.take(xp.reshape(running, (-1,)), in_running) - mass
        # The two levels round differently, so the target is clipped to the run.
        offset = arrays.first_above(inside, xp.minimum(target - before, mass * (1.0 - 1e-12)))
        drawn = xp.reshape(run * _RUN + offset, (self.n_spaces, self.size))
        return xp.minimum(drawn, self.last_word)


def random_rows(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k distinct rows out of n, (k,)."""
    if not 1 <= k <= n:
        raise InputError(f"k={k} should be between 1 and the number of points, {n}")
    return rng.choice(n, size=k, replace=False)
