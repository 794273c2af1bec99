"""Pairs of words that the user knows, as rows of the two spaces."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, procrustes
from qwp.search.retrieval import retriever
from qwp.spaces.embeddings import Side
from qwp.spaces.lexicon import Lexicon

logger = logging.getLogger(__name__)


Ints: TypeAlias = npt.NDArray[np.int64]
RowPairs: TypeAlias = "tuple[Ints, Ints]"
"""Rows of the two sides that belong together, (p,) each."""


def from_pairs(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> Array:
    """Procrustes on given pairs of rows. x: (n, d), y: (m, d); src_rows, tgt_rows: (p,). Returns W (d, d)."""
    return procrustes(*matched_rows(x, y, src_rows, tgt_rows))


def matched_rows(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> tuple[Array, Array]:
    """The vectors of given pairs, (p, d) each. x: (n, d), y: (m, d); src_rows, tgt_rows: (p,)."""
    if len(src_rows) < x.shape[1]:
        logger.warning("%d pairs for %d dimensions leave part of the map undetermined", len(src_rows), x.shape[1])
    xp = arrays.namespace(x)
    rows = (arrays.asarray(r, x) for r in (src_rows, tgt_rows))
    src, tgt = (xp.take(side, r, axis=0) for side, r in zip((x, y), rows, strict=True))
    return src, tgt


def lexicon_rows(lexicon: Lexicon, src: Mapping[str, int], tgt: Mapping[str, int]) -> RowPairs:
    """Rows of the pairs of a seed lexicon that both vocabularies cover, (p,) each.

    Rows that nobody named are called src:0, src:1, ...: a lexicon may have their numbers alone.
    """
    found = ((_row(a, src, "src"), _row(b, tgt, "tgt")) for a, b in lexicon)
    covered = [(a, b) for a, b in found if a is not None and b is not None]
    return _rows(covered, f"seed lexicon of {len(lexicon)} pairs")


def _row(word: str, index: Mapping[str, int], side: Side) -> int | None:
    row = index.get(word)
    return index.get(f"{side}:{word}") if row is None and word.isdecimal() else row


def identical_rows(src_words: Sequence[str], tgt_words: Sequence[str]) -> RowPairs:
    """Rows of the words that both vocabularies hold, numbers and names mostly, (p,) each."""
    tgt_index = {word: j for j, word in enumerate(tgt_words)}
    return _rows([(i, tgt_index[word]) for i, word in enumerate(src_words) if word in tgt_index], "identical strings")


def _rows(pairs: Sequence[tuple[int, int]], what: str) -> RowPairs:
    if not pairs:
        raise InputError(f"{what}: no pair is covered by the two vocabularies; expected at least one to start from")
    src, tgt = np.asarray(pairs, dtype=np.int64).T
    return src, tgt


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
