"""Pairs that the user knows, and what is held out of them to check maps by.

Held-out pairs take no part in fitting, so they show which of several maps is better.
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

# One word in this many is held out if there are enough of them; a share of fewer words would say little.
_EVERY = 10
_FEWEST_WORDS = 200
# Deviations of a share by which another one must be higher to count as such.
_DEVIATIONS = 2.0


@dataclass(frozen=True)
class KnownPairs:
    """Pairs to learn from, and held-out ones: None if there are too few. Rows of both sides, (p,) each."""

    used: RowPairs
    held_out: RowPairs | None = None

    @classmethod
    def of(cls, pairs: RowPairs) -> KnownPairs:
        """Return known pairs, with all translations of some of the source words held out."""
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
