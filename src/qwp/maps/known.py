"""Pairs that the user knows, and what is kept back of them to check maps by.

A refinement goes on from known pairs with all words, and as a rule that is better than the pairs alone. Between spaces
that agree little, though, it can drift to a map that agrees with itself and with nothing else; holding on to the pairs
in every round keeps it from that, and costs a little where it would not have drifted. Pairs that took no part show
which of the two is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.pairs import RowPairs
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import retriever

# One word in so many is kept back, where there are enough of them; a share of fewer would say little.
_EVERY = 10
_FEWEST_WORDS = 200
# Deviations of a share by which another one must be higher to count as such.
_DEVIATIONS = 2.0


@dataclass(frozen=True)
class KnownPairs:
    """Pairs to learn from, and those kept back: None where there are too few. Rows of both sides, (p,) each."""

    used: RowPairs
    kept_back: RowPairs | None = None

    @classmethod
    def of(cls, pairs: RowPairs) -> KnownPairs:
        """Known pairs, with all translations of some of the source words kept back."""
        words = np.unique(pairs[0])
        if len(words) < _FEWEST_WORDS:
            return cls(pairs)
        back = np.isin(pairs[0], words[_EVERY // 2 :: _EVERY])
        return cls((pairs[0][~back], pairs[1][~back]), (pairs[0][back], pairs[1][back]))


@dataclass(frozen=True)
class ShareFound:
    """The share of some words whose translation is known, 0 to 1."""

    share: float
    words: int

    @property
    def hits(self) -> int:
        """How many words that are."""
        return round(self.share * self.words)

    def clearly_above(self, other: ShareFound) -> bool:
        """Whether it is higher than another one of the same words, beyond what may be chance."""
        usual = max(self.share, other.share)
        return self.share - other.share > _DEVIATIONS * math.sqrt(usual * (1.0 - usual) / self.words)

    def __str__(self) -> str:
        return f"{100 * self.share:.0f} %"


def share_found(x: Array, y: Array, maps: Maps, pairs: RowPairs) -> ShareFound:
    """How many words of pairs the maps translate as they do. x: (n, d), y: (m, d) normalised rows."""
    asked = np.unique(pairs[0])
    queries = arrays.namespace(x).take(x, arrays.asarray(asked, x), axis=0) @ maps.src
    keys = arrays.unit(y if maps.tgt is None else y @ maps.tgt)
    # By the cosine: the neighbourhoods of CSLS would hold few queries, and with them mostly the right ones.
    best, _ = retriever(keys, keys, method="nn").top_k(arrays.unit(queries), 1)
    known = set(_numbers(pairs))
    hits = sum(each in known for each in _numbers((asked, arrays.to_numpy(best)[:, 0])))
    return ShareFound(hits / len(asked), len(asked))


def _numbers(pairs: RowPairs) -> Iterable[tuple[int, int]]:
    return zip(*(rows.tolist() for rows in pairs), strict=True)
