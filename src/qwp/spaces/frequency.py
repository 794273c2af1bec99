"""Vocabularies that are not in order of frequency, and how to bring them into it.

Every stage relies on the most frequent words coming first: the start compares them, the refinement begins with them,
and the verdict is about them. A vocabulary that was sorted otherwise, or shuffled, breaks all of that. Frequency leaves
traces in the vectors, though: in their length, in how near they are to the others and in how much of them lies along
the main directions of the space. So the order of a vocabulary can be checked against these traces, and an order can be
estimated from them: by the relation that an ordered side shows, or by signs that were the same in all vectors looked at
(word2vec and PPMI, four languages) where no side is ordered. Where one side needs it, all get an estimated order:
estimates by the same rule agree with each other better than with the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array, Stream, unit
from qwp.spaces.embeddings import FloatArray

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NO_ORDER = "none"
ORDERS = ("auto", "given", NO_ORDER)

# Below this many words nothing can be told, and hardly anything depends on the order.
FEWEST_WORDS = 500
_LOOKED_AT = 4000
_REFERENCES = 500
# So many words show the main directions as well as all do.
_SHOWING_DIRECTIONS = 20_000
_LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
_MAIN_DIRECTIONS = (10, 50)
# Shuffled vocabularies show correlations of about 1 / sqrt(words looked at); ordered ones were seen at 0.22 or more.
_CORRELATION_NEEDED = 0.1
_DEVIATIONS_NEEDED = 5.0
_RIDGE = 10.0
# Columns of the traces whose sign was the same in nearly all vectors looked at: frequent words have longer vectors,
# more of them along the main directions, and a lower first quartile of similarities.
_SIGNS = {0: -1.0, 2 + _LEVELS.index(0.25): 1.0, 2 + len(_LEVELS): -1.0}
# Of the three the length says most of words: with this weight the estimate is nearer to the truth in 12 of 14 files.
_WEIGHT_OF_LENGTH = 3.0


@dataclass(frozen=True)
class _Traces:
    """What frequency leaves in the vectors of some words of a space, as ranks in [-0.5, 0.5]: (r, features)."""

    rows: Ints
    values: Floats

    def correlation(self) -> float:
        """The strongest rank correlation of a trace with the position in the vocabulary."""
        return float(np.abs(self._correlations(self.values)).max())

    def _correlations(self, columns: Floats) -> Floats:
        """Correlation of each column (r, c) with the position in the vocabulary, zero where constant. Returns (c,)."""
        position, centred = self.rows - self.rows.mean(), columns - columns.mean(axis=0)
        sizes = np.linalg.norm(centred, axis=0) * np.linalg.norm(position)
        found: Floats = np.divide(position @ centred, sizes, out=np.zeros(columns.shape[1]), where=sizes > 0)
        return found

    def rarity(self, weight_of_length: float = 1.0) -> Floats:
        """The traces whose signs are known, put together: higher for rare words, (r,)."""
        weights = {**_SIGNS, 0: weight_of_length * _SIGNS[0]}
        found: Floats = np.sum([weight * self.values[:, column] for column, weight in weights.items()], axis=0)
        return found

    def sorted(self) -> bool:
        """Whether the vocabulary looks sorted by frequency, in one way or the other."""
        return self.correlation() >= max(_CORRELATION_NEEDED, _DEVIATIONS_NEEDED / math.sqrt(len(self.rows)))

    def upside_down(self) -> bool:
        """Whether rare words seem to come first."""
        return bool(self._correlations(self.rarity()[:, None])[0] < 0)

    def ordered(self) -> bool:
        """Whether the vocabulary looks sorted by frequency, and not the other way round."""
        return self.sorted() and not self.upside_down()

    def design(self) -> Floats:
        """Cubic polynomials of all traces and a constant, (r, 3 features + 1)."""
        return np.column_stack([np.ones(len(self.rows)), *(self.values**power for power in (1, 2, 3))])


def orders(spaces: Sequence[Array], *, seed: int = 0) -> list[Ints | None]:
    """For each space (n, d) the rows from frequent to rare, as far as can be told; None where the given order is kept.

    That is the case where all spaces look ordered, or have too few words to tell. A space that looks sorted the other
    way round is turned; where one is not sorted at all, all orders are estimated.
    """
    looked_at = [_traces(space, seed, _LOOKED_AT) if space.shape[0] >= FEWEST_WORDS else None for space in spaces]
    doubtful = [traces is not None and not traces.ordered() for traces in looked_at]
    if not any(doubtful):
        return [None] * len(spaces)
    if all(traces is None or traces.sorted() for traces in looked_at):
        return [
            np.arange(space.shape[0])[::-1].copy() if bad else None for space, bad in zip(spaces, doubtful, strict=True)
        ]
    model = next((_relation(t) for t, bad in zip(looked_at, doubtful, strict=True) if t is not None and not bad), None)
    return [
        None if traces is None else _estimated(space, model, seed, _WEIGHT_OF_LENGTH)
        for space, traces in zip(spaces, looked_at, strict=True)
    ]


def orders_of_items(spaces: Sequence[Array], *, seed: int = 0) -> list[Ints | None]:
    """For spaces (n, d) of items that have no frequency: the rows in an order by the same traces on all sides.

    The first items of two spaces then share more counterparts than they would by chance. None where there are few.
    """
    return [_estimated(space, None, seed) if space.shape[0] >= FEWEST_WORDS else None for space in spaces]


def _traces(space: Array, seed: int, most: int) -> _Traces:
    """Traces of at most `most` evenly spaced words of a space (n, d), measured among these words, in blocks."""
    xp, n = arrays.namespace(space), space.shape[0]
    rows = np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
    vectors = space if n <= most else xp.take(space, arrays.asarray(rows, space), axis=0)
    block = arrays.block_rows(_REFERENCES + 3 * space.shape[1], vectors)

    def in_blocks(function: Callable[[Array], Array]) -> list[Array]:
        return arrays.map_blocks(lambda part: function(vectors[part, :]), len(rows), block, vectors)

    mean = xp.sum(xp.stack(in_blocks(lambda part: xp.sum(unit(part), axis=0))), axis=0) / len(rows)
    some = unit(unit(vectors[:: -(-len(rows) // _SHOWING_DIRECTIONS), :]) - mean)
    axes = arrays.asarray(arrays.eigh_to_host(xp.astype(some.T @ some, xp.float64))[1], vectors, vectors.dtype)
    chosen = arrays.rng(seed, Stream.ORDER).permutation(len(rows))[:_REFERENCES]
    references = unit(unit(xp.take(vectors, arrays.asarray(chosen, vectors), axis=0)) - mean)
    levels = arrays.asarray(np.array([round(level * (len(chosen) - 1)) for level in _LEVELS]), vectors)

    def columns(part: Array) -> Array:
        units = unit(part)
        centred = unit(units - mean)
        similarities = xp.sort(centred @ references.T, axis=1, stable=False)
        energies = [
            xp.sum((centred @ axes[:, max(0, space.shape[1] - main) :]) ** 2, axis=1) for main in _MAIN_DIRECTIONS
        ]
        first = [xp.sqrt(xp.sum(part * part, axis=1)), units @ mean]
        return xp.concat(
            [xp.stack(first, axis=1), xp.take(similarities, levels, axis=1), xp.stack(energies, axis=1)], axis=1
        )

    found = np.concatenate([arrays.to_numpy(part) for part in in_blocks(columns)])
    # Ties share their rank: a trace that is the same for all words says nothing.
    ranks = [_ranks(column) for column in found.T]
    return _Traces(rows, (np.column_stack(ranks) - (len(rows) + 1) / 2) / len(rows))


def _ranks(values: FloatArray) -> Floats:
    """Ranks from 1 on (n,); equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks


def _relation(traces: _Traces) -> Floats:
    """Coefficients that give the logarithm of the rank from the traces of an ordered space."""
    design = traces.design()
    return np.linalg.solve(
        design.T @ design + _RIDGE * np.eye(design.shape[1]), design.T @ np.log(traces.rows + _RIDGE)
    )


def _estimated(space: Array, model: Floats | None, seed: int, weight_of_length: float = 1.0) -> Ints:
    """The rows of a space from frequent to rare, by the relation of another one or, without any, by common signs."""
    traces = _traces(space, seed, space.shape[0])
    if model is not None:
        return np.argsort(traces.design() @ model, kind="stable")
    return np.argsort(traces.rarity(weight_of_length), kind="stable")
