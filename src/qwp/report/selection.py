"""Words worth showing: content words, told without a list of words, and sure pairs of many topics.

Function words have no counterpart but several, so a line between two of them is long however good the alignment is.
They are the most frequent words, mostly short; and as they stand beside everything, their vectors, as they were read,
point where those of all words do in the mean. Content words lead away from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qwp.results.alignment import InducedPair
from qwp.results.examples import looks_like_content
from qwp.results.sides import AlignedSide

Floats = npt.NDArray[np.floating]

# The most frequent words are grammar; so is a fiftieth of a small vocabulary.
_FIRST_RANK, _SMALL = 100, 50
# Examples are taken up to this rank: rare words say little to most readers.
_LAST_RANK = 1500
# Pairs that are looked at, the surest first, for each that is wanted; and how alike two of the chosen words may be.
_POOL = 12
_ALIKE = (0.4, 0.6, 1.1)


def generality(side: AlignedSide) -> Floats:
    """How far each word, most frequent first, points where all do: its cosine to the mean of the unit vectors, (n,)."""
    vectors = side.space.vectors[side.frequent(len(side.space))].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    mean = unit.mean(axis=0)
    return np.asarray(unit @ mean / max(float(np.linalg.norm(mean)), 1e-12))


def content_ranks(side: AlignedSide, last: int | None = None) -> list[int]:
    """The ranks, from 0, of words that look like content words: the half of them that is less general."""
    names, n = side.space.words, len(side.space)
    ranks = np.arange(first_rank(n), n if last is None else min(last, n))
    found = generality(side)[ranks]
    rows = side.frequent(n)
    return [
        int(rank)
        for rank, general in zip(ranks, found <= np.median(found) if len(found) else [], strict=True)
        if general and looks_like_content(names[rows[rank]])
    ]


def first_rank(n: int) -> int:
    """Where the words of a vocabulary of n begin that are not mere grammar."""
    return min(_FIRST_RANK, n // _SMALL)


def example_words(side: AlignedSide, wanted: int) -> list[str]:
    """Content words spread evenly over the ranks of frequent ones; chosen without a look at their translations."""
    rows = side.frequent(len(side.space))
    ranks = content_ranks(side, _LAST_RANK) or list(range(min(_LAST_RANK, len(rows))))
    return [side.space.words[rows[rank]] for rank in ranks[:: max(1, len(ranks) // wanted)][:wanted]]


def content_pairs(
    pairs: Sequence[InducedPair], sides: tuple[AlignedSide, AlignedSide], vectors: Floats, wanted: int
) -> list[int]:
    """Which pairs to draw, surest first, words of new topics before others.

    pairs: of all source words, most frequent first; vectors: (n, d) theirs, unit rows in the common space.
    """
    chosen: list[int] = []
    pool = _candidates(pairs, sides)[: _POOL * wanted]
    for alike in _ALIKE:
        for row in pool:
            if len(chosen) == wanted:
                return chosen
            if row not in chosen and (not chosen or float(np.max(vectors[chosen] @ vectors[row])) < alike):
                chosen.append(row)
    return chosen


def _candidates(pairs: Sequence[InducedPair], sides: tuple[AlignedSide, AlignedSide]) -> list[int]:
    """Rows of pairs of content words that choose each other and are not just spelt alike, surest first."""
    src, tgt = sides
    order = tgt.frequent(len(tgt.space))
    targets = {tgt.space.words[order[rank]] for rank in content_ranks(tgt)}
    mutual = [row for row in content_ranks(src) if pairs[row].mutual and pairs[row].tgt in targets]
    told = [row for row in mutual if pairs[row].src.lower() != pairs[row].tgt.lower()]
    return sorted(told or mutual or range(len(pairs)), key=lambda row: -pairs[row].confidence)
