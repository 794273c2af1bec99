"""Known pairs of words as rows of the two spaces, and which of them maps find."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc

from qwp import arrays
from qwp.arrays import Array, Ints
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, procrustes
from qwp.search.retrieval import retriever
from qwp.spaces.embeddings import Side
from qwp.spaces.lexicon import Lexicon

logger = logging.getLogger(__name__)


RowPairs: TypeAlias = tuple[Ints, Ints]
"""Rows of matched words of the two sides, (p,) each."""
Flags: TypeAlias = "npt.NDArray[np.bool_]"


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
    """Known pairs as rows of both sides, (p,) each, split by source words; None if there are too few to split.

    used: pairs to learn from. validation: pairs that choose between maps. held_out: pairs that only measure the result.
    """

    used: RowPairs
    validation: RowPairs | None = None
    held_out: RowPairs | None = None

    @classmethod
    def of(cls, pairs: RowPairs, *, every: int = 10, fewest_words: int = 200) -> KnownPairs:
        """Split pairs: one source word in ten, with all its translations, for validation, and one in ten held out.

        fewest_words: source words that this needs.
        """
        words = np.unique(pairs[0])
        if len(words) < fewest_words:
            return cls(pairs)
        choosing, held = (np.isin(pairs[0], words[first::every]) for first in (every // 4, every // 2))
        used, validation, held_out = ((pairs[0][some], pairs[1][some]) for some in (~(choosing | held), choosing, held))
        return cls(used, validation, held_out)


def found_words(x: Array, y: Array, maps: Maps, pairs: RowPairs) -> Flags:
    """Return which of the source words of pairs, in ascending order, the maps translate correctly, (w,).

    x: (n, d), y: (m, d).
    """
    asked = np.unique(pairs[0])
    queries = arrays.namespace(x).take(x, arrays.asarray(asked, x), axis=0) @ maps.src
    keys = arrays.unit(y if maps.tgt is None else y @ maps.tgt)
    # By cosine: with few queries, the neighbourhoods of CSLS would consist mostly of correct pairs.
    best, _ = retriever(keys, keys, method="nn").top_k(arrays.unit(queries), 1)
    known = set(_numbers(pairs))
    return np.asarray([each in known for each in _numbers((asked, arrays.to_numpy(best)[:, 0]))], dtype=bool)


def mcnemar(found: Flags, other: Flags) -> float:
    """Return the one-sided p-value of McNemar's exact test that one map finds more words than another.

    found, other: which of the same words each map finds, (w,). Words that both or neither find say nothing; under the
    null hypothesis each of the others is found by either map with probability 1/2 (McNemar 1947).
    """
    gained, lost = int(np.sum(found & ~other)), int(np.sum(other & ~found))
    return float(bdtrc(gained - 1, gained + lost, 0.5)) if gained else 1.0


def _numbers(pairs: RowPairs) -> Iterable[tuple[int, int]]:
    return zip(*(rows.tolist() for rows in pairs), strict=True)
