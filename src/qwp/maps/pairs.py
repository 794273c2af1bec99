"""Pairs of words that the user knows, as rows of the two spaces."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.procrustes import procrustes
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.sides import Side

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
