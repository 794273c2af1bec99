"""Whole numbers as short texts, for records that are lines of JSON."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from qwp.judging.evaluation import QueryRanks

Ints = npt.NDArray[np.int64]
GOLDS = "golds"


def pack(values: npt.ArrayLike) -> str:
    """Numbers from 0 below 2^32, (n,), as base64 of what zlib makes of them, four bytes each, the lowest first."""
    return base64.b64encode(zlib.compress(np.asarray(values).astype("<u4").tobytes(), 9)).decode()


def unpack(text: str) -> Ints:
    """The numbers again, (n,)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u4").astype(np.int64)


def packed_ranks(ranks: Mapping[str, QueryRanks]) -> dict[str, str]:
    """Ranks by retrieval method, and how many gold words each query has, which is the same for all of them."""
    golds = next(iter(ranks.values())).golds
    return {GOLDS: pack(golds), **{method: pack(each.ranks) for method, each in ranks.items()}}


def unpacked_ranks(packed: Mapping[str, str], method: str) -> QueryRanks:
    """The ranks of one retrieval method."""
    return QueryRanks(unpack(packed[GOLDS]), unpack(packed[method]))
