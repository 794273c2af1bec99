"""How right translations are, by how sure they seemed and by how frequent the words are.

Words come most frequent first, each with the confidence of its best translation; those that a lexicon has are known to
be right or wrong. Shares of right ones have 95 % intervals of Wilson (1927).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from qwp.judging.estimate import Share

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_BINS = 10
# The last rank of each band; the vocabulary ends the last one.
_EDGES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
_Z = 1.959964  # of a normal distribution, for 95 %


@dataclass(frozen=True)
class Judged:
    """Source words, most frequent first.

    confidence: (n,) that of the best translation. known: (n,) whether a lexicon has the word; right: (n,) whether it
    has the translation as well.
    """

    confidence: Floats
    known: Flags
    right: Flags


@dataclass(frozen=True)
class Measured:
    """A share of right translations among some words, with its interval; all from 0 to 1."""

    words: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, right: int, words: int) -> Measured:
        """Wilson's interval for so many right ones among at least one word."""
        share, square = right / words, _Z**2 / words
        middle = (share + square / 2) / (1 + square)
        half = _Z * math.sqrt(share * (1 - share) / words + square / (4 * words)) / (1 + square)
        return cls(words, share, max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True)
class Bin:
    """Words whose confidence lies between two limits: its mean, and how many are right."""

    low: float
    high: float
    confidence: float
    measured: Measured


@dataclass(frozen=True)
class Reliability:
    """The confidence held against a lexicon.

    error: by how much confidence and share differ, the mean over the words, bin by bin (the expected calibration
    error). confidence: its mean over the words of the lexicon.
    """

    bins: list[Bin]
    error: float
    confidence: float
    measured: Measured


@dataclass(frozen=True)
class RankBand:
    """The words from one rank to another, counted from 1.

    estimated: the share of right translations by the confidence alone; measured: by a lexicon that has some of them.
    """

    first: int
    last: int
    estimated: Share | None
    measured: Measured | None


def reliability(words: Judged) -> Reliability | None:
    """Bins of equal width of the words that a lexicon has; None where it has none."""
    confidence, right = words.confidence[words.known], words.right[words.known]
    if not len(confidence):
        return None
    which = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    bins = []
    for number in range(_BINS):
        inside = which == number
        if inside.any():
            measured = Measured.of(int(right[inside].sum()), int(inside.sum()))
            bins.append(Bin(number / _BINS, (number + 1) / _BINS, float(confidence[inside].mean()), measured))
    error = sum(each.measured.words * abs(each.confidence - each.measured.share) for each in bins) / len(confidence)
    return Reliability(bins, error, float(confidence.mean()), Measured.of(int(right.sum()), len(right)))


def by_rank(words: Judged, *, real: bool) -> list[RankBand]:
    """Bands of rank, wider and wider. real: whether it is worth estimating, being no failure."""
    n = len(words.confidence)
    edges = [0, *(edge for edge in _EDGES if edge < n), n]
    found = []
    for first, last in pairwise(edges):
        band = slice(first, last)
        known = int(words.known[band].sum())
        measured = Measured.of(int(words.right[band].sum()), known) if known else None
        found.append(RankBand(first + 1, last, Share.of(words.confidence[band]) if real else None, measured))
    return found
