"""Known pairs of words as rows of the two spaces, and the share of them that maps find."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Ints
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, procrustes
from qwp.search.retrieval import retriever
from qwp.spaces.embeddings import Side
from qwp.spaces.lexicon import Lexicon

logger = logging.getLogger(__name__)


RowPairs: TypeAlias = "tuple[Ints, Ints]"
"""Rows of matched words of the two sides, (p,) each."""


def from_pairs(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> Array:
    """Return the Procrustes map W (d, d) of pairs of rows (p,). x: (n, d), y: (m, d)."""
    return procrustes(*matched_rows(x, y, src_rows, tgt_rows))


def matched_rows(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> tuple[Array, Array]:
    """Return the vectors of pairs of rows (p,), (p, d) each; warn if they leave the map undetermined."""
    if len(src_rows) < x.shape[1]:
        logger.warning("%d pairs for %d dimensions leave part of the map undetermined", len(src_rows), x.shape[1])
    xp = arrays.namespace(x)
    rows = (arrays.asarray(r, x) for r in (src_rows, tgt_rows))
    src, tgt = (xp.take(side, r, axis=0) for side, r in zip((x, y), rows, strict=True))
    return src, tgt


def lexicon_rows(lexicon: Lexicon, src: Mapping[str, int], tgt: Mapping[str, int]) -> RowPairs:
    """Return the rows of the pairs of a seed lexicon that both vocabularies cover, (p,) each.

    Rows without words are named src:0, src:1, ...; a lexicon may name them by their numbers alone.
    """
    found = ((_row(a, src, "src"), _row(b, tgt, "tgt")) for a, b in lexicon)
    covered = [(a, b) for a, b in found if a is not None and b is not None]
    return _rows(covered, f"seed lexicon of {len(lexicon)} pairs")


def _row(word: str, index: Mapping[str, int], side: Side) -> int | None:
    row = index.get(word)
    return index.get(f"{side}:{word}") if row is None and word.isdecimal() else row


def identical_rows(src_words: Sequence[str], tgt_words: Sequence[str]) -> RowPairs:
    """Return the rows of the words that both vocabularies contain, (p,) each."""
    tgt_index = {word: j for j, word in enumerate(tgt_words)}
    return _rows([(i, tgt_index[word]) for i, word in enumerate(src_words) if word in tgt_index], "identical strings")


def _rows(pairs: Sequence[tuple[int, int]], what: str) -> RowPairs:
    if not pairs:
        raise InputError(f"{what}: no pair is covered by the two vocabularies; expected at least one to start from")
    src, tgt = np.asarray(pairs, dtype=np.int64).T
    return src, tgt


@dataclass(frozen=True)
class KnownPairs:
    """Pairs to learn from, and held-out pairs, or None if there are too few. Rows of both sides, (p,) each."""

    used: RowPairs
    held_out: RowPairs | None = None

    @classmethod
    def of(cls, pairs: RowPairs, *, every: int = 10, fewest_words: int = 200) -> KnownPairs:
        """Hold out all translations of every tenth source word. fewest_words: source words that this needs."""
        words = np.unique(pairs[0])
        if len(words) < fewest_words:
            return cls(pairs)
        held = np.isin(pairs[0], words[every // 2 :: every])
        return cls((pairs[0][~held], pairs[1][~held]), (pairs[0][held], pairs[1][held]))


@dataclass(frozen=True)
class ShareFound:
    """The share of words with a known translation that maps translate correctly, 0 to 1."""

    share: float
    words: int

    @property
    def hits(self) -> int:
        """The number of correct words."""
        return round(self.share * self.words)

    def clearly_above(self, other: ShareFound) -> bool:
        """Return whether it exceeds another share of the same words by more than two standard deviations."""
        largest = max(self.share, other.share)
        return self.share - other.share > 2.0 * math.sqrt(largest * (1.0 - largest) / self.words)

    def __str__(self) -> str:
        return f"{100 * self.share:.0f} %"


def share_found(x: Array, y: Array, maps: Maps, pairs: RowPairs) -> ShareFound:
    """Return the share of the source words of pairs that the maps translate correctly. x: (n, d), y: (m, d)."""
    asked = np.unique(pairs[0])
    queries = arrays.namespace(x).take(x, arrays.asarray(asked, x), axis=0) @ maps.src
    keys = arrays.unit(y if maps.tgt is None else y @ maps.tgt)
    # By cosine: with few queries, the neighbourhoods of CSLS would consist mostly of correct pairs.
    best, _ = retriever(keys, keys, method="nn").top_k(arrays.unit(queries), 1)
    known = set(_numbers(pairs))
    hits = sum(each in known for each in _numbers((asked, arrays.to_numpy(best)[:, 0])))
    return ShareFound(hits / len(asked), len(asked))


def _numbers(pairs: RowPairs) -> Iterable[tuple[int, int]]:
    return zip(*(rows.tolist() for rows in pairs), strict=True)
