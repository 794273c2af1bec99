"""What is found once about all words of an alignment: best partners both ways, hubs, neighbours, suspects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.judging.estimate import found_from
from qwp.results import sidecars
from qwp.results.alignment import Alignment
from qwp.results.saved import EXPLORED
from qwp.search import confidence, retrieval
from qwp.search.confidence import CANDIDATES
from qwp.spaces.embeddings import SIDES, FloatArray, Side
from qwp.spaces.frequency import Ints

Told = Callable[[str, int, int], None]
"""Gets what is being done, how much of it is done, and how much there is."""
Bools = npt.NDArray[np.bool_]

NEIGHBOURS = 10
"""Nearest words of the same language that are kept of each word."""
CROSSING = 6
"""Best words of the other language that are kept of each word, for the map."""
REASONS = ("margin", "one-way", "hub", "overlap")
"""Why a pair is a suspect: a low margin, not each other's best, a target that many have, other neighbours."""
BATCH = 1000
"""Words that are searched between two reports of progress."""
# The share of pairs whose margin is low, and the share of common neighbours that is little.
_LOW_MARGINS = 0.2
_LITTLE_OVERLAP = 0.15
# Words of the other language that have a word as their best, from which on it is a hub.
HUB = 4


@dataclass(frozen=True, eq=False)
class Findings:
    """Of the n most frequent source words and the m most frequent target words. Rows are those of the vectors.

    src_rows (n,), tgt_rows (m,): the words, most frequent first. best (n,): the row of the best translation of each;
    score, margin, chance (n,): its CSLS, its lead over the second, its confidence; mutual (n,). back (m,): the row of
    the best source word for each target word. src_near (n, k), tgt_near (m, k): nearest words of the same language, as
    positions among the n or m. src_across (n, c), tgt_across (m, c): the best of the other language, likewise, -1 for
    one that is not among them.
    """

    src_rows: Ints
    tgt_rows: Ints
    best: Ints
    score: FloatArray
    margin: FloatArray
    chance: FloatArray
    mutual: Bools
    back: Ints
    src_near: Ints
    tgt_near: Ints
    src_across: Ints
    tgt_across: Ints

    def rows(self, side: Side) -> Ints:
        """The words of a side, most frequent first."""
        return self.src_rows if side == "src" else self.tgt_rows

    @cached_property
    def src_places(self) -> dict[int, int]:
        """The position of each source row."""
        return {row: place for place, row in enumerate(self.src_rows.tolist())}

    @cached_property
    def tgt_places(self) -> dict[int, int]:
        """The position of each target row."""
        return {row: place for place, row in enumerate(self.tgt_rows.tolist())}

    @cached_property
    def best_places(self) -> Ints:
        """The position of each best translation among the target words, -1 where it is rarer, (n,)."""
        return np.array([self.tgt_places.get(row, -1) for row in self.best.tolist()], dtype=np.int64)

    @cached_property
    def back_places(self) -> Ints:
        """The position of the best source word of each target word, -1 where it is rarer, (m,)."""
        return np.array([self.src_places.get(row, -1) for row in self.back.tolist()], dtype=np.int64)

    @cached_property
    def tgt_chosen(self) -> Ints:
        """How many source words have each target word as their best, (m,): many for a hub, none for an orphan."""
        return _counts(self.best_places, len(self.tgt_rows))

    @cached_property
    def src_chosen(self) -> Ints:
        """How many target words have each source word as their best, (n,)."""
        return _counts(self.back_places, len(self.src_rows))

    @cached_property
    def hubness(self) -> Ints:
        """How many source words share the best translation of each source word, (n,)."""
        _, which, counts = np.unique(self.best, return_inverse=True, return_counts=True)
        return np.asarray(counts[which], dtype=np.int64)

    @cached_property
    def overlap(self) -> FloatArray:
        """The share of the neighbours of each source word whose translations lie around its own, (n,)."""
        around = np.full((len(self.src_rows), self.tgt_near.shape[1] + 1), -2, dtype=np.int64)
        known = self.best_places >= 0
        around[known, 0] = self.best_places[known]
        around[known, 1:] = self.tgt_near[self.best_places[known]]
        translated = self.best_places[self.src_near]
        shared = (translated[:, :, None] == around[:, None, :]).any(axis=2)
        return np.asarray(shared.mean(axis=1) if shared.shape[1] else np.zeros(len(shared)), dtype=np.float32)

    @cached_property
    def suspects(self) -> Bools:
        """Whether each reason for suspicion holds of each pair, (n, 4), in the order of REASONS."""
        low = self.margin <= np.quantile(self.margin, _LOW_MARGINS)
        return np.column_stack([low, ~self.mutual, self.hubness >= HUB, self.overlap <= _LITTLE_OVERLAP])


def _counts(chosen: Ints, n: int) -> Ints:
    return np.bincount(chosen[chosen >= 0], minlength=n)


def found_in(alignment: Alignment, most: int, tell: Told, *, batch: int = BATCH) -> Findings:
    """The findings for at most so many words of each side; kept beside the alignment.

    tell: is told before each batch of words how far the search is.
    """
    rows = {side: alignment.side(side).frequent(most) for side in SIDES}
    known = sidecars.read(alignment.origin, EXPLORED, "pairs", _shapes(len(rows["src"]), len(rows["tgt"])))
    if known is not None and all(np.array_equal(known[f"{side}_rows"], rows[side]) for side in SIDES):
        return Findings(**{**known, "mutual": known["mutual"].astype(bool)})
    found = _search(alignment, rows, tell, batch)
    values = {field.name: getattr(found, field.name) for field in fields(Findings)}
    sidecars.write(alignment.origin, EXPLORED, "pairs", {**values, "mutual": found.mutual.astype(np.uint8)})
    return found


def _shapes(n: int, m: int) -> dict[str, tuple[int, ...]]:
    one = ("src_rows", "best", "score", "margin", "chance", "mutual")
    return {
        **dict.fromkeys(one, (n,)),
        **dict.fromkeys(("tgt_rows", "back"), (m,)),
        "src_near": (n, min(NEIGHBOURS, n - 1)),
        "tgt_near": (m, min(NEIGHBOURS, m - 1)),
        "src_across": (n, min(CROSSING, m)),
        "tgt_across": (m, min(CROSSING, n)),
    }


def _search(alignment: Alignment, rows: dict[Side, Ints], tell: Told, batch: int) -> Findings:
    forward, scores = _partners(alignment, "src", rows["src"], tell, batch)
    best = forward[:, 0]
    # A best translation may be rarer than the words that are looked at.
    wanted = np.union1d(rows["tgt"], best)
    backward, back_scores = _partners(alignment, "tgt", wanted, tell, batch)
    at = np.searchsorted(wanted, best)
    preferred = alignment.preferred(rows["src"], forward[:, :CANDIDATES])
    found = found_from(scores[:, :CANDIDATES], back_scores[at], backward[at], rows["src"], preferred)
    order = np.searchsorted(wanted, rows["tgt"])
    margin = scores[:, 0] - scores[:, 1] if scores.shape[1] > 1 else np.zeros(len(scores))
    return Findings(
        src_rows=rows["src"],
        tgt_rows=rows["tgt"],
        best=best,
        score=scores[:, 0].astype(np.float32),
        margin=margin.astype(np.float32),
        chance=confidence.confidence(found, alignment.estimate.scale).astype(np.float32),
        mutual=np.asarray(found.back_ranks) == 0,
        back=backward[order, 0],
        src_near=_near(alignment, "src", rows["src"], tell, batch),
        tgt_near=_near(alignment, "tgt", rows["tgt"], tell, batch),
        src_across=_places(forward[:, :CROSSING], rows["tgt"]),
        tgt_across=_places(backward[order, :CROSSING], rows["src"]),
    )


def _partners(alignment: Alignment, side: Side, rows: Ints, tell: Told, batch: int) -> tuple[Ints, FloatArray]:
    """The best words of the other side for some of this one: rows (r, 11) and their CSLS (r, 11), best first."""
    other: Side = "tgt" if side == "src" else "src"
    keys, pool = (arrays.to_numpy(alignment.mapped(each)) for each in (other, side))
    finder = retrieval.retriever(keys, pool, hubs=alignment.lookup(other).hubs)
    return _by_parts(finder, pool[rows], CANDIDATES + 1, f"translations of {side}", tell, batch)


def _near(alignment: Alignment, side: Side, rows: Ints, tell: Told, batch: int) -> Ints:
    """The nearest words of the same side among some of it, as positions (r, k)."""
    words = arrays.to_numpy(alignment.mapped(side))[rows]
    k = min(NEIGHBOURS, len(rows) - 1)
    finder = retrieval.retriever(words, words[:1], method="nn")
    found, _ = _by_parts(finder, words, k + 1, f"neighbours in {side}", tell, batch)
    own = found == np.arange(len(rows))[:, None]
    # Where others have the same vector, a word need not be among its own nearest: then the last goes.
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(len(rows), k), dtype=np.int64)


def _by_parts(
    finder: retrieval.Retriever, queries: FloatArray, k: int, what: str, tell: Told, batch: int
) -> tuple[Ints, FloatArray]:
    found = []
    for start in range(0, len(queries), batch):
        tell(what, start, len(queries))
        found.append([arrays.to_numpy(part) for part in finder.top_k(queries[start : start + batch], k)])
    indices, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return indices.astype(np.int64), scores


def _places(rows: Ints, of: Ints) -> Ints:
    """Positions of rows (r, c) among others (m,), -1 for those that are not there."""
    order = np.argsort(of)
    at = np.minimum(np.searchsorted(of, rows, sorter=order), len(of) - 1)
    return np.where(of[order[at]] == rows, order[at], -1)
