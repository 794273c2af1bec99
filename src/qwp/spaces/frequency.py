"""Check whether a vocabulary is sorted by frequency, and estimate the order of one that is not.

Every stage relies on the most frequent words coming first: initializers compare them, the refinement begins with them,
and the verdict is about them. Frequency leaves traces in the vectors: in their lengths, in their similarities to other
vectors, and in how much of them lies along the principal axes of the space. These traces tell whether a vocabulary is
sorted, and estimate the order of one that is not. If one side is sorted, a regression on it gives the relation between
traces and rank; otherwise traces whose signs were the same in all vectors we tested do (word2vec and PPMI, four
languages). If one side needs an estimate, all sides get one: two estimates by the same rule agree with each other
better than an estimate agrees with the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Floats, Ints, Stream, unit

NO_ORDER = "none"
ORDERS = ("auto", "given", NO_ORDER)


@dataclass(frozen=True)
class OrderRules:
    """How an order is checked and estimated.

    Attributes:
        min_words: vocabularies with fewer words keep their order; they are too small to judge, and it hardly matters.
        sample_words: number of words whose traces decide whether a vocabulary is sorted.
        references: number of words that similarities are measured to.
        axis_words: number of words that principal axes are computed from; more words give the same axes.
        quantiles: quantiles of the similarities of a word that count as traces.
        axes: numbers of principal axes; the share of a vector along each number of axes counts as a trace.
        min_correlation: rank correlation of a trace with the position that a sorted vocabulary has. We measured 0.22 or
            more; shuffled vocabularies of n words have about 1 / sqrt(n).
        min_deviations: the same in units of 1 / sqrt(n), for small samples.
        ridge: regularisation of the regression, and offset of the ranks before their logarithm.
        length_weight: weight of the vector length if no side is sorted; it improved the estimates of 12 of 14 files.
        block: number of words to process at a time; by default as many as fit into memory.
    """

    min_words: int = 500
    sample_words: int = 4000
    references: int = 500
    axis_words: int = 20_000
    quantiles: tuple[float, ...] = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
    axes: tuple[int, ...] = (10, 50)
    min_correlation: float = 0.1
    min_deviations: float = 5.0
    ridge: float = 10.0
    length_weight: float = 3.0
    block: int | None = None

    @property
    def signs(self) -> dict[int, float]:
        """Columns of the traces whose sign was the same in nearly all vectors we tested.

        Frequent words have longer vectors, a larger share along the first axes, and a lower first quartile of
        similarities.
        """
        return {0: -1.0, 2 + self.quantiles.index(0.25): 1.0, 2 + len(self.quantiles): -1.0}


RULES = OrderRules()


@dataclass(frozen=True)
class _Traces:
    """Traces of frequency in the vectors of some rows of a space, as ranks in [-0.5, 0.5]: (r, features)."""

    rows: Ints
    values: Floats
    rules: OrderRules

    def correlation(self) -> float:
        """Return the largest absolute rank correlation of a trace with the position in the vocabulary."""
        return float(np.abs(self._correlations(self.values)).max())

    def _correlations(self, columns: Floats) -> Floats:
        """Return the correlation of columns (r, c) with the position in the vocabulary (c,), 0 for constant columns."""
        position, centred = self.rows - self.rows.mean(), columns - columns.mean(axis=0)
        sizes = np.linalg.norm(centred, axis=0) * np.linalg.norm(position)
        found: Floats = np.divide(position @ centred, sizes, out=np.zeros(columns.shape[1]), where=sizes > 0)
        return found

    def rarity(self, length_weight: float = 1.0) -> Floats:
        """Return the sum of the traces of known sign, higher for rarer words, (r,)."""
        signs = self.rules.signs
        weights = {**signs, 0: length_weight * signs[0]}
        found: Floats = np.sum([weight * self.values[:, column] for column, weight in weights.items()], axis=0)
        return found

    def is_sorted(self) -> bool:
        """Return whether the vocabulary looks sorted by frequency, ascending or descending."""
        rules = self.rules
        return self.correlation() >= max(rules.min_correlation, rules.min_deviations / math.sqrt(len(self.rows)))

    def is_ascending(self) -> bool:
        """Return whether rare words seem to come first."""
        return bool(self._correlations(self.rarity()[:, None])[0] < 0)

    def is_ordered(self) -> bool:
        """Return whether the vocabulary looks sorted by descending frequency."""
        return self.is_sorted() and not self.is_ascending()

    def design(self) -> Floats:
        """Return a constant and the traces to the powers 1, 2 and 3, (r, 3 features + 1)."""
        return np.column_stack([np.ones(len(self.rows)), *(self.values**power for power in (1, 2, 3))])


def orders(spaces: Sequence[Array], *, seed: int = 0, rules: OrderRules = RULES) -> list[Ints | None]:
    """Return the rows of each space (n, d) from frequent to rare; None for a space that keeps its order.

    All spaces keep their order if each looks sorted or is too small to tell. A space sorted by ascending frequency is
    reversed. If any space is not sorted at all, the orders of all are estimated.
    """
    measured = [
        _traces(space, seed, rules.sample_words, rules) if space.shape[0] >= rules.min_words else None
        for space in spaces
    ]
    doubtful = [traces is not None and not traces.is_ordered() for traces in measured]
    if not any(doubtful):
        return [None] * len(spaces)
    if all(traces is None or traces.is_sorted() for traces in measured):
        return [
            np.arange(space.shape[0])[::-1].copy() if bad else None for space, bad in zip(spaces, doubtful, strict=True)
        ]
    model = next((_regression(t) for t, bad in zip(measured, doubtful, strict=True) if t is not None and not bad), None)
    return [
        None if traces is None else _estimate(space, model, seed, rules, rules.length_weight)
        for space, traces in zip(spaces, measured, strict=True)
    ]


def orders_of_items(spaces: Sequence[Array], *, seed: int = 0, rules: OrderRules = RULES) -> list[Ints | None]:
    """Return an order of the rows of each space (n, d) of items without frequency, by the same traces on all sides.

    The first items of two spaces then share more counterparts than in a random order. None for a space too small.
    """
    return [_estimate(space, None, seed, rules) if space.shape[0] >= rules.min_words else None for space in spaces]


def _traces(space: Array, seed: int, most: int, rules: OrderRules) -> _Traces:
    """Return the traces of at most `most` evenly spaced rows of a space (n, d), measured among these rows."""
    xp, n = arrays.namespace(space), space.shape[0]
    rows = np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
    vectors = space if n <= most else xp.take(space, arrays.asarray(rows, space), axis=0)
    block = rules.block or arrays.block_rows(rules.references + 3 * space.shape[1], vectors)

    def in_blocks(function: Callable[[Array], Array]) -> list[Array]:
        return arrays.map_blocks(lambda part: function(vectors[part, :]), len(rows), block, vectors)

    mean = xp.sum(xp.stack(in_blocks(lambda part: xp.sum(unit(part), axis=0))), axis=0) / len(rows)
    sample = unit(unit(vectors[:: -(-len(rows) // rules.axis_words), :]) - mean)
    axes = arrays.asarray(arrays.eigh_to_host(xp.astype(sample.T @ sample, xp.float64))[1], vectors, vectors.dtype)
    chosen = arrays.rng(seed, Stream.ORDER).permutation(len(rows))[: rules.references]
    references = unit(unit(xp.take(vectors, arrays.asarray(chosen, vectors), axis=0)) - mean)
    levels = arrays.asarray(np.array([round(level * (len(chosen) - 1)) for level in rules.quantiles]), vectors)

    def columns(part: Array) -> Array:
        units = unit(part)
        centred = unit(units - mean)
        similarities = xp.sort(centred @ references.T, axis=1, stable=False)
        shares = [xp.sum((centred @ axes[:, max(0, space.shape[1] - count) :]) ** 2, axis=1) for count in rules.axes]
        first = [xp.sqrt(xp.sum(part * part, axis=1)), units @ mean]
        return xp.concat(
            [xp.stack(first, axis=1), xp.take(similarities, levels, axis=1), xp.stack(shares, axis=1)], axis=1
        )

    found = np.concatenate([arrays.to_numpy(part) for part in in_blocks(columns)])
    # Ties share their rank, so that a trace that is equal for all words carries no information.
    ranks = [_ranks(column) for column in found.T]
    return _Traces(rows, (np.column_stack(ranks) - (len(rows) + 1) / 2) / len(rows), rules)


def _ranks(values: AnyFloats) -> Floats:
    """Return ranks from 1 on (n,); equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks


def _regression(traces: _Traces) -> Floats:
    """Fit the logarithm of the rank to the traces of a sorted space by ridge regression. Return the coefficients."""
    design, ridge = traces.design(), traces.rules.ridge
    return np.linalg.solve(design.T @ design + ridge * np.eye(design.shape[1]), design.T @ np.log(traces.rows + ridge))


def _estimate(space: Array, model: Floats | None, seed: int, rules: OrderRules, length_weight: float = 1.0) -> Ints:
    """Return the rows of a space from frequent to rare, by a regression on another space or by the known signs."""
    traces = _traces(space, seed, space.shape[0], rules)
    if model is not None:
        return np.argsort(traces.design() @ model, kind="stable")
    return np.argsort(traces.rarity(length_weight), kind="stable")
