"""The word pairs of an alignment: best translations in both directions, hubs, neighbours and suspect pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Bools, Ints
from qwp.judging.estimate import search_figures
from qwp.results import sidecars
from qwp.results.alignment import Alignment
from qwp.results.saved import EXPLORED
from qwp.search import retrieval
from qwp.search.confidence import CONFIDENCE_MODEL
from qwp.spaces.embeddings import SIDES, Side, other

OnProgress = Callable[[str, int, int], None]
"""Called with the name of the work, how much of it is done, and how much there is."""

NEIGHBOURS = 10
"""Nearest words of the same language stored for each word."""
CROSSING = 6
"""Best words of the other language stored for each word, for the map."""
REASONS = ("margin", "one-way", "hub", "overlap")
"""Why a pair is suspect: a low margin, not mutual, a target of many source words, or different neighbours."""


@dataclass(frozen=True)
class Suspicion:
    """What makes a pair suspect. Set by hand.

    Attributes:
        low_margins: the share of the pairs with the lowest margins.
        hub: a word is a hub if it is the best translation of at least this number of words.
        low_overlap: the words of the pair share at most this part of their neighbours.
    """

    low_margins: float = 0.2
    hub: int = 4
    low_overlap: float = 0.15


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of the n most frequent source words and the m most frequent target words.

    Rows are rows of the vectors; positions count among the n or m words, and -1 is a word that is not among them.

    Attributes:
        src_rows, tgt_rows: rows of the words, most frequent first, (n,) and (m,).
        best: row of the best translation of each source word (n,).
        score, margin, confidence: its CSLS, its lead over the second candidate, and its confidence (n,).
        mutual: whether both words are each other's best (n,).
        back: row of the best source word for each target word (m,).
        src_near, tgt_near: positions of the nearest words of the same language, (n, k) and (m, k).
        src_across, tgt_across: positions of the best words of the other language, (n, c) and (m, c).
        pinned: whether the user accepted the pair (n,).
    """

    src_rows: Ints
    tgt_rows: Ints
    best: Ints
    score: AnyFloats
    margin: AnyFloats
    confidence: AnyFloats
    mutual: Bools
    back: Ints
    src_near: Ints
    tgt_near: Ints
    src_across: Ints
    tgt_across: Ints
    pinned: Bools
    rules: ClassVar[Suspicion] = Suspicion()

    def rows(self, side: Side) -> Ints:
        """Return the rows of a side, most frequent first."""
        return self.src_rows if side == "src" else self.tgt_rows

    def pin(self, pairs: Ints, scores: AnyFloats, back: Mapping[int | None, int | None]) -> PairTable:
        """Return a table with accepted pairs in place of the computed ones. They have confidence 1.

        pairs: rows of the words (p, 2). scores: their CSLS (p,). back: row of the accepted answer of target rows.
        """
        at = _positions(pairs[:, 0], self.src_rows)
        pairs, scores, at = pairs[at >= 0], scores[at >= 0], at[at >= 0]
        best, score, margin = self.best.copy(), self.score.copy(), self.margin.copy()
        probability, pinned = self.confidence.copy(), np.zeros(len(best), dtype=bool)
        other_one = best[at] != pairs[:, 1]
        margin[at] = np.where(other_one, scores - score[at], margin[at])
        score[at] = np.where(other_one, scores, score[at])
        best[at], probability[at], pinned[at] = pairs[:, 1], 1.0, True
        # A target word with an accepted answer is the counterpart of that answer alone.
        mutual = [
            bool(was) if back.get(target) is None else back[target] == row
            for target, row, was in zip(best.tolist(), self.src_rows.tolist(), self.mutual, strict=True)
        ]
        backs = [back.get(row, was) for row, was in zip(self.tgt_rows.tolist(), self.back.tolist(), strict=True)]
        return replace(
            self,
            best=best,
            score=score,
            margin=margin,
            confidence=probability,
            mutual=np.array(mutual, dtype=bool),
            back=np.array(backs, dtype=np.int64),
            pinned=pinned,
        )

    @cached_property
    def best_positions(self) -> Ints:
        """Position of each best translation, -1 if it is rarer than the m words, (n,)."""
        return _positions(self.best, self.tgt_rows)

    @cached_property
    def back_positions(self) -> Ints:
        """Position of the best source word of each target word, -1 if it is rarer than the n words, (m,)."""
        return _positions(self.back, self.src_rows)

    @cached_property
    def tgt_occurrences(self) -> Ints:
        """Number of source words whose best is each target word, (m,): many for a hub, none for an orphan."""
        return _counts(self.best_positions, len(self.tgt_rows))

    @cached_property
    def src_occurrences(self) -> Ints:
        """Number of target words whose best is each source word, (n,)."""
        return _counts(self.back_positions, len(self.src_rows))

    @cached_property
    def hubness(self) -> Ints:
        """Number of source words that share the best translation of each source word, (n,)."""
        _, which, counts = np.unique(self.best, return_inverse=True, return_counts=True)
        return np.asarray(counts[which], dtype=np.int64)

    @cached_property
    def overlap(self) -> AnyFloats:
        """Share of the neighbours of each source word whose translations are neighbours of its translation, (n,)."""
        around = np.full((len(self.src_rows), self.tgt_near.shape[1] + 1), -2, dtype=np.int64)
        known = self.best_positions >= 0
        around[known, 0] = self.best_positions[known]
        around[known, 1:] = self.tgt_near[self.best_positions[known]]
        translated = self.best_positions[self.src_near]
        shared = (translated[:, :, None] == around[:, None, :]).any(axis=2)
        return np.asarray(shared.mean(axis=1) if shared.shape[1] else np.zeros(len(shared)), dtype=np.float32)

    @cached_property
    def suspects(self) -> Bools:
        """Whether each of REASONS holds for each pair, (n, 4)."""
        low = self.margin <= np.quantile(self.margin, self.rules.low_margins)
        alone = self.overlap <= self.rules.low_overlap
        reasons = np.column_stack([low, ~self.mutual, self.hubness >= self.rules.hub, alone])
        return np.asarray(reasons & ~self.pinned[:, None])

    @cached_property
    def suspicion(self) -> AnyFloats:
        """The confidence of each pair times the share of REASONS that contradict it, (n,): unsure pairs come last."""
        return np.asarray(self.confidence * self.suspects.mean(axis=1), dtype=np.float32)


def _counts(chosen: Ints, n: int) -> Ints:
    return np.bincount(chosen[chosen >= 0], minlength=n)


def find_pairs(alignment: Alignment, max_words: int, on_progress: OnProgress, *, batch: int = 4000) -> PairTable:
    """Find the pairs of the most frequent words, or read them from the sidecar file of the alignment.

    Args:
        alignment: the alignment.
        max_words: words of each side.
        on_progress: called before each batch.
        batch: words searched at a time.
    """
    rows = {side: alignment.side(side).frequent(max_words) for side in SIDES}
    known = sidecars.read(alignment.origin, EXPLORED, "pairs", _shapes(len(rows["src"]), len(rows["tgt"])))
    if known is not None and all(np.array_equal(known[f"{side}_rows"], rows[side]) for side in SIDES):
        return PairTable(**{**known, "mutual": known["mutual"].astype(bool)}, pinned=np.zeros(len(rows["src"]), bool))
    found = _search(alignment, rows, on_progress, batch)
    values = {field.name: getattr(found, field.name) for field in fields(PairTable) if field.name != "pinned"}
    sidecars.write(alignment.origin, EXPLORED, "pairs", {**values, "mutual": found.mutual.astype(np.uint8)})
    return found


def _shapes(n: int, m: int) -> dict[str, tuple[int, ...]]:
    one = ("src_rows", "best", "score", "margin", "confidence", "mutual")
    return {
        **dict.fromkeys(one, (n,)),
        **dict.fromkeys(("tgt_rows", "back"), (m,)),
        "src_near": (n, min(NEIGHBOURS, n - 1)),
        "tgt_near": (m, min(NEIGHBOURS, m - 1)),
        "src_across": (n, min(CROSSING, m)),
        "tgt_across": (m, min(CROSSING, n)),
    }


def _search(alignment: Alignment, rows: dict[Side, Ints], on_progress: OnProgress, batch: int) -> PairTable:
    forward, scores = _best_across(alignment, "src", rows["src"], on_progress, batch)
    best = forward[:, 0]
    # A best translation may be rarer than the most frequent words.
    wanted = np.union1d(rows["tgt"], best)
    backward, back_scores = _best_across(alignment, "tgt", wanted, on_progress, batch)
    at = np.searchsorted(wanted, best)
    preferred = alignment.inducer.preferred(rows["src"], forward[:, : CONFIDENCE_MODEL.candidates])
    found = search_figures(
        scores[:, : CONFIDENCE_MODEL.candidates], back_scores[at], backward[at], rows["src"], preferred
    )
    order = np.searchsorted(wanted, rows["tgt"])
    margin = scores[:, 0] - scores[:, 1] if scores.shape[1] > 1 else np.zeros(len(scores))
    return PairTable(
        src_rows=rows["src"],
        tgt_rows=rows["tgt"],
        best=best,
        score=scores[:, 0].astype(np.float32),
        margin=margin.astype(np.float32),
        confidence=CONFIDENCE_MODEL.confidence(found, alignment.estimate.scale).astype(np.float32),
        mutual=np.asarray(found.back_ranks) == 0,
        back=backward[order, 0],
        src_near=_nearest(alignment, "src", rows["src"], on_progress, batch),
        tgt_near=_nearest(alignment, "tgt", rows["tgt"], on_progress, batch),
        src_across=_positions(forward[:, :CROSSING], rows["tgt"]),
        tgt_across=_positions(backward[order, :CROSSING], rows["src"]),
        pinned=np.zeros(len(best), dtype=bool),
    )


def _best_across(
    alignment: Alignment, side: Side, rows: Ints, on_progress: OnProgress, batch: int
) -> tuple[Ints, AnyFloats]:
    """Return the best words of the other side for rows (r,) of this side: rows (r, 11) and CSLS (r, 11)."""
    keys, pool = (arrays.to_numpy(alignment.mapped(each)) for each in (other(side), side))
    finder = retrieval.retriever(keys, pool, hubs=alignment.lookup(other(side)).hubs)
    return _by_parts(finder, pool[rows], CONFIDENCE_MODEL.candidates + 1, f"translations of {side}", on_progress, batch)


def _nearest(alignment: Alignment, side: Side, rows: Ints, on_progress: OnProgress, batch: int) -> Ints:
    """Return the nearest words of the same side among rows (r,), as positions (r, k)."""
    words = arrays.to_numpy(alignment.mapped(side))[rows]
    k = min(NEIGHBOURS, len(rows) - 1)
    finder = retrieval.retriever(words, words[:1], method="nn")
    found, _ = _by_parts(finder, words, k + 1, f"neighbours in {side}", on_progress, batch)
    own = found == np.arange(len(rows))[:, None]
    # If other words have the same vector, a word may not be among its own nearest: then drop the last one.
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(len(rows), k), dtype=np.int64)


def _by_parts(
    finder: retrieval.Retriever, queries: AnyFloats, k: int, what: str, on_progress: OnProgress, batch: int
) -> tuple[Ints, AnyFloats]:
    found = []
    for start in range(0, len(queries), batch):
        on_progress(what, start, len(queries))
        found.append([arrays.to_numpy(part) for part in finder.top_k(queries[start : start + batch], k)])
    indices, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return indices.astype(np.int64), scores


def _positions(rows: Ints, of: Ints) -> Ints:
    """Return the positions of rows of any shape among rows (m,), -1 for those that are not among them."""
    order = np.argsort(of)
    at = np.minimum(np.searchsorted(of, rows, sorter=order), len(of) - 1)
    return np.where(of[order[at]] == rows, order[at], -1)
