"""Counterparts of items that were held out: where each finds its own on the other side, when all are candidates.

The items are rows of two arrays that belong together row by row, such as the same texts by two encoders. They may be
new to the alignment, and should be: what it was fitted to says little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.judging.evaluation import Evaluation, Score, evaluate
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import Retriever, retriever
from qwp.spaces.embeddings import Embeddings, FloatArray, Side
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.objects import Space, as_embeddings

_AT = (1, 5, 10)


class Aligned(Protocol):
    """What maps vectors of both sides into one space: an Alignment."""

    def transform(self, items: Any, side: Side = "src") -> FloatArray: ...


@dataclass(frozen=True)
class Found:
    """By one way of retrieval. recall: the share whose counterpart is among the k best, by k; ranks count from 1."""

    recall: Mapping[int, Score]
    mean_rank: float
    median_rank: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        recall = {str(k): score.to_dict() for k, score in self.recall.items()}
        return {"recall": recall, "mean_rank": self.mean_rank, "median_rank": self.median_rank}


@dataclass(frozen=True)
class CounterpartRetrieval:
    """n: items of each side, all of which are candidates. found: by way of retrieval, nn and csls."""

    n: int
    found: Mapping[str, Found]

    def __repr__(self) -> str:
        shown = ", ".join(f"{way} {100 * each.recall[1].value:.1f} %" for way, each in self.found.items())
        return f"CounterpartRetrieval(recall@1 of {self.n:,}: {shown})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"n": self.n, "found": {way: each.to_dict() for way, each in self.found.items()}}


@dataclass(frozen=True)
class _HeldOut:
    """Items of two sides in the common space of an alignment, called by their row numbers."""

    src: Embeddings
    tgt: Embeddings

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        return arrays.unit(getattr(self, side).vectors)


def evaluate_counterparts(
    alignment: Aligned,
    src: Space,
    tgt: Space,
    *,
    csls_k: int = 10,
    bootstrap: int = 1000,
    seed: int = 0,
) -> CounterpartRetrieval:
    """How well rows of `src` (n, d) find the same rows of `tgt` (n, d'), both as the alignment reads its sides."""
    rows = as_embeddings(src, "src").vectors, as_embeddings(tgt, "tgt").vectors
    n = len(rows[0])
    if len(rows[1]) != n:
        raise InputError(
            f"src has {n:,} held-out items, tgt {len(rows[1]):,}; expected as many on both sides, row by row the same"
        )
    names = [str(row) for row in range(n)]
    sides: tuple[Side, Side] = ("src", "tgt")
    spaces = (Embeddings(names, alignment.transform(each, side)) for each, side in zip(rows, sides, strict=True))
    gold = Lexicon(tuple(zip(names, names, strict=True)))
    scored = evaluate(
        _HeldOut(*spaces), gold, retrieval=("nn", "csls"), at=_AT, csls_k=csls_k, bootstrap=bootstrap, seed=seed
    )
    return CounterpartRetrieval(n, {way: _found(scored, way) for way in scored.scores})


def _found(scored: Evaluation, way: str) -> Found:
    ranks = np.asarray(scored.ranks[way].ranks, dtype=np.float64)
    recall = {k: scored.scores[way].covered[f"P@{k}"] for k in _AT}
    return Found(recall, float(ranks.mean()), float(np.median(ranks)))


# Items of the other side among which partners are sought; of more than that, some are left out.
_AMONG = 100_000


@dataclass(frozen=True)
class Counterparts:
    """The share of the items of each side that have a partner, 0 to 1."""

    src: float
    tgt: float

    def __str__(self) -> str:
        return f"{100 * self.src:.0f} % of src, {100 * self.tgt:.0f} % of tgt"

    def to_dict(self) -> dict[str, float]:
        """Plain JSON types."""
        return asdict(self)


def counterpart_shares(x: Array, y: Array, maps: Maps, *, seed: int = 0, asked: int = 2000) -> Counterparts:
    """The shares of a sample of either side. x: (n, d), y: (m, d) normalised rows.

    asked: items in the sample; of 2,000 a share is known to about two points.
    """
    src = arrays.unit(x[:_AMONG, :] @ maps.src)
    tgt = y[:_AMONG, :]
    tgt = arrays.unit(tgt if maps.tgt is None else tgt @ maps.tgt)
    of_src, of_tgt = (retriever(side, side, method="nn") for side in (src, tgt))
    return Counterparts(_share(src, of_src, tgt, of_tgt, seed, asked), _share(tgt, of_tgt, src, of_src, seed, asked))


def _share(side: Array, of_side: Retriever, others: Array, of_others: Retriever, seed: int, asked: int) -> float:
    """The share of some rows of `side` (n, d) whose nearest among `others` (m, d) has them as its nearest."""
    xp = arrays.namespace(side)
    n = side.shape[0]
    rows = arrays.asarray(arrays.rng(seed, Stream.COUNTERPARTS).permutation(n)[:asked], side)
    nearest, _ = of_others.top_k(xp.take(side, rows, axis=0), 1)
    back, _ = of_side.top_k(xp.take(others, nearest[:, 0], axis=0), 1)
    return float(xp.mean(xp.astype(back[:, 0] == rows, side.dtype)))
