"""Neighbourhood means and CSLS nearest neighbours of two NumPy spaces, in both directions, from one matrix product.

The usual way takes three products: the means of the rows, those of the columns, and the CSLS. Here each word first gets
a bar, a similarity that some dozens of words of the other side exceed, from a sample of the words. The product then
keeps the entries above the bar of their row or of their column. All other entries are at most the lower of both bars.
This bounds what they can change, and the few words whose result stays in doubt are compared with all others. So the
result is exact, however good the bars are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from qwp import arrays

T = TypeVar("T")
Matrix: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Bars:
    """How bars are chosen, and how many entries above them are too many. The time depends on it, not the result.

    Attributes:
        share: every `share`-th word sets the bars, at the greatest cost of an eighth of the product.
        group: similarities of the sample of which only the largest counts: partitioning maxima is several times as
            fast.
        most: blocks with more entries for each row and column than this multiple of the usual number are given up.
        widest: words with more entries than this multiple of the mean are compared with all others, which saves memory.
    """

    share: int = 16
    group: int = 4
    most: int = 8
    widest: int = 3

    def of(self, queries: Matrix, keys: Matrix, rank: int) -> Matrix:
        """Return the similarity of each query to about its (rank * share)-th nearest key, (n,)."""

        def bars(similarity: Matrix) -> Matrix:
            groups = similarity.shape[1] // self.group
            maxima = similarity[:, : groups * self.group].reshape(-1, self.group, groups).max(axis=1)
            found: Matrix = np.partition(maxima, groups - rank, axis=1)[:, groups - rank]
            return found

        return np.concatenate(_in_blocks(bars, queries, np.ascontiguousarray(keys[:: self.share, :])))


BARS = Bars()


@dataclass(frozen=True)
class _Side:
    """The kept entries of the words of one side: their own row, ascending, the row of the other side, the similarity.

    bars: (n,) of the words of this side.
    """

    own: Matrix
    other: Matrix
    values: Matrix
    bars: Matrix

    def means(self, k: int, widest: int) -> tuple[Matrix, Matrix]:
        """Return the mean of the k largest entries of each word, (n,), and the words where k entries are not sure.

        widest: words with more entries than this multiple of the mean are not sure.
        """
        n = self.bars.shape[0]
        above = self.values > self.bars[self.own]
        own, values = self.own[above], self.values[above]
        counts = np.bincount(own, minlength=n)
        width = max(k, int(min(counts.max(), widest * counts.mean())))
        # The number of each entry among those of its word.
        number = np.arange(own.shape[0], dtype=np.int32)
        number -= (np.cumsum(counts) - counts).astype(np.int32)[own]
        fits = number < width
        table = np.full((n, width), -np.inf, dtype=values.dtype)
        table[own[fits], number[fits]] = values[fits]
        table.partition(width - k, axis=1)
        return table[:, width - k :].mean(axis=1), np.flatnonzero((counts < k) | (counts > width))

    def best(self, penalties: Matrix) -> tuple[Matrix, Matrix]:
        """Return the best other word of each word by 2 s - penalty and that score, (n,) each; -inf without entries.

        penalties: of the words of the other side.
        """
        n = self.bars.shape[0]
        scores = 2.0 * self.values - penalties[self.other]
        counts = np.bincount(self.own, minlength=n)
        some = np.flatnonzero(counts)
        highest = np.full(n, -np.inf, dtype=scores.dtype)
        highest[some] = np.maximum.reduceat(scores, (np.cumsum(counts) - counts)[some])
        ties = np.flatnonzero(scores == highest[self.own])
        words, first = np.unique(self.own[ties], return_index=True)
        best = np.zeros(n, dtype=np.int64)
        best[words] = self.other[ties[first]]
        return best, highest


@dataclass(frozen=True)
class OnePass:
    """The result of `one_pass`. src_means: (n,), tgt_means: (m,), of the k largest similarities of each word."""

    src: Matrix
    tgt: Matrix
    src_means: Matrix
    tgt_means: Matrix
    _sides: tuple[_Side, _Side]

    def nearest(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return the nearest neighbours by CSLS and their CSLS: of the source words (n,) twice, of the target (m,)."""
        of_src, of_tgt = self._sides
        forward, forward_scores = _nearest(self.src, self.tgt, of_src, of_tgt.bars, self.tgt_means)
        backward, backward_scores = _nearest(self.tgt, self.src, of_tgt, of_src.bars, self.src_means)
        return forward, forward_scores - self.src_means, backward, backward_scores - self.tgt_means


def one_pass(
    src: Any, tgt: Any, k: int, callback: Callable[[int], None] | None = None, *, bars: Bars = BARS
) -> OnePass | None:
    """Return the neighbourhoods of src (n, d) and tgt (m, d), unit rows, k at most n and m.

    None if the arrays are not NumPy's, if a side is small, or if very many similarities are nearly equal.
    callback: gets the number of source words of each finished block, from the thread that computed it.
    bars: how the bars are chosen.
    """
    # Bars at this rank of the sample leave several times k entries, so that nearly all words have k.
    rank = 3 + k // 4
    if not isinstance(src, np.ndarray) or min(src.shape[0], tgt.shape[0]) < 2 * bars.share * bars.group * rank:
        return None
    chosen = bars.of(src, tgt, rank), bars.of(tgt, src, rank)
    sides = _entries(src, tgt, *chosen, most=bars.most * bars.share * rank, callback=callback)
    if sides is None:
        return None
    means = []
    for queries, keys, side in ((src, tgt, sides[0]), (tgt, src, sides[1])):
        found_means, unsure = side.means(k, bars.widest)
        again = _in_blocks(lambda s: arrays.to_numpy(arrays.mean_of_largest(s, k)), queries[unsure, :], keys)
        if again:
            found_means[unsure] = np.concatenate(again)
        means.append(found_means)
    return OnePass(src, tgt, means[0], means[1], sides)


def _entries(
    src: Matrix, tgt: Matrix, src_bars: Matrix, tgt_bars: Matrix, most: int, callback: Callable[[int], None] | None
) -> tuple[_Side, _Side] | None:
    """Return the similarities above the bar of their row or column, by row and by column; None if they are too many.

    most: entries for each row and column, on average, that are not too many.
    """
    import scipy.sparse  # imported here: it takes as long to load as NumPy

    n, m = src.shape[0], tgt.shape[0]
    # A quarter of a usual block: larger ones are 3 % faster and need 13 MB more for each thread at 20,000 words.
    size = max(1, arrays.block_rows(m, src) // 4)
    buffers = threading.local()

    def block(rows: slice) -> tuple[Matrix, Matrix, Matrix] | None:
        count = rows.stop - rows.start
        if not hasattr(buffers, "similarity"):
            buffers.similarity = np.empty((size, m), dtype=src.dtype)
            buffers.keep, buffers.more = np.empty((2, size, m), dtype=bool)
        similarity, keep, more = (a[:count] for a in (buffers.similarity, buffers.keep, buffers.more))
        np.matmul(src[rows, :], tgt.T, out=similarity)
        np.greater(similarity, src_bars[rows, None], out=keep)
        keep |= np.greater(similarity, tgt_bars, out=more)
        if np.count_nonzero(keep) > most * (count + m * count / n):
            return None
        kept = np.flatnonzero(keep)
        if callback is not None:
            callback(count)
        ends = np.searchsorted(kept, np.arange(1, count + 1) * m)
        return ends, (kept % m).astype(np.int32), similarity.reshape(-1)[kept]

    blocks = arrays.map_blocks(block, n, size, src)
    found = [each for each in blocks if each is not None]
    if len(found) < len(blocks):
        return None
    counts = np.concatenate([np.diff(ends, prepend=0) for ends, _, _ in found])
    columns, values = (np.concatenate([each[i] for each in found]) for i in (1, 2))
    pointers = np.concatenate([[0], np.cumsum(counts)])
    by_column = scipy.sparse.csr_matrix((values, columns, pointers), shape=(n, m)).tocsc()
    return (
        _Side(np.repeat(np.arange(n, dtype=np.int32), counts), columns, values, src_bars),
        _Side(
            np.repeat(np.arange(m, dtype=np.int32), np.diff(by_column.indptr)),
            by_column.indices,
            by_column.data,
            tgt_bars,
        ),
    )


def _nearest(queries: Matrix, keys: Matrix, side: _Side, key_bars: Matrix, key_means: Matrix) -> tuple[Matrix, Matrix]:
    """Return the best key of each query by 2 s - its mean, and that score, (n,) each.

    side: of the queries. key_bars, key_means: (m,).
    """
    best, scores = side.best(key_means)
    # An entry that was not kept scores at most 2 min(bar of the query, bar of the key) - mean of the key.
    order = np.argsort(key_bars, kind="stable")
    low = np.maximum.accumulate(2.0 * key_bars[order] - key_means[order])
    high = np.minimum.accumulate(key_means[order][::-1])[::-1]
    lower = np.searchsorted(key_bars[order], side.bars, side="right")
    padded_low, padded_high = np.append(-np.inf, low), np.append(high, np.inf)
    bounds = np.maximum(padded_low[lower], 2.0 * side.bars - padded_high[lower])
    doubtful = np.flatnonzero(scores <= bounds)

    def exact(similarity: Matrix) -> tuple[Matrix, Matrix]:
        found = 2.0 * similarity - key_means
        rows = found.argmax(axis=1)
        return rows, np.take_along_axis(found, rows[:, None], axis=1)[:, 0]

    again = _in_blocks(exact, queries[doubtful, :], keys)
    if again:
        best[doubtful], scores[doubtful] = (np.concatenate(each) for each in zip(*again, strict=True))
    return best, scores


def _in_blocks(function: Callable[[Matrix], T], queries: Matrix, keys: Matrix) -> list[T]:
    """Return `function` of the similarities of blocks of the queries (n, d) to the keys (m, d)."""
    # If there are few columns, more than 1,024 rows need memory and are no faster.
    size = min(arrays.block_rows(keys.shape[0], queries), 1024)
    return arrays.map_blocks(lambda rows: function(queries[rows, :] @ keys.T), queries.shape[0], size, queries)
