"""Candidate initial maps: the pool of a search, the score of a candidate, and the ensemble vote of several.

Each initializer that fails finds its own wrong pairs and a few right ones. Two of them seldom make the same mistake, so
pairs that several candidates find are right far more often than the pairs of a single one. On vectors of unrelated
origin, seven candidates with 0.1 to 2.3 % of right translations gave a map that ended at 29 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps, procrustes
from qwp.stages.agreement import Agreement, from_both_sides, mean_csls_ratio, random_rotation
from qwp.stages.problem import Problem, View
from qwp.stages.refinement import CslsRefinement, induce_pairs
from qwp.stages.stage import Record

Baseline: TypeAlias = "tuple[Agreement, Agreement] | None"
"""The agreement of a random rotation in both directions; None for spaces that are too small."""


@dataclass(frozen=True)
class Candidate:
    """An initial map (d, d) that was tried.

    score: agreement on held-out words relative to that of a random rotation. rescore: the same after a refinement.
    voted: whether the map comes from an ensemble vote. kind: candidates of one kind fail alike, so their agreement is
    weak evidence; empty for a candidate that fails independently of all others.
    """

    name: str
    order: str
    map: Array
    score: float = -math.inf
    rescore: float | None = None
    voted: bool = False
    kind: str = ""

    @property
    def latest(self) -> float:
        """The rescore if there is one, otherwise the score."""
        return self.score if self.rescore is None else self.rescore

    def record(self) -> Record:
        """Return the record of the candidate in a result."""
        return {"initializer": self.name, "order": self.order, "score": self.score, "rescore": self.rescore}


@dataclass(frozen=True)
class Pool:
    """All candidates of a search so far.

    consensus: whether two independent candidates found the same map. rounds_done: of the current search. search: the
    number of this search, counted from zero. first: the number of its first candidate. stopped: whether the time was
    spent before a candidate was accepted. history: the records of the fit, with those of the trials.
    """

    candidates: tuple[Candidate, ...] = ()
    consensus: bool = False
    rounds_done: int = 0
    search: int = 0
    first: int = 0
    stopped: bool = False
    history: tuple[Record, ...] = ()

    def next_search(self) -> Pool:
        """Return the pool at the beginning of the next search."""
        return replace(self, rounds_done=0, search=self.search + 1, first=len(self.candidates))

    def with_new(self, *new: Candidate) -> Pool:
        """Return the pool with more candidates."""
        return replace(self, candidates=(*self.candidates, *new))

    def with_changed(self, number: int, changed: Candidate) -> Pool:
        """Return the pool with one candidate replaced."""
        return replace(self, candidates=(*self.candidates[:number], changed, *self.candidates[number + 1 :]))

    def state(self) -> tuple[Array, dict[str, Any]]:
        """Return the maps of the candidates, (t, d, d), and all other values but the history as plain JSON types."""
        maps = arrays.namespace(self.candidates[0].map).stack([each.map for each in self.candidates])
        records = [{**each.record(), "voted": each.voted, "kind": each.kind} for each in self.candidates]
        plain = {name: getattr(self, name) for name in _PLAIN}
        return maps, {"candidates": records, **plain}

    @classmethod
    def restored(cls, maps: Array, values: Mapping[str, Any]) -> Pool:
        """Return the pool of `state`."""
        found = tuple(
            Candidate(
                record["initializer"],
                record["order"],
                maps[number, ...],
                record["score"],
                record["rescore"],
                record["voted"],
                record["kind"],
            )
            for number, record in enumerate(values["candidates"])
        )
        return cls(found, **{name: values[name] for name in _PLAIN})


_PLAIN = ("consensus", "rounds_done", "search", "first")
# The fields of a pool that are saved as they are.


@dataclass(frozen=True, kw_only=True)
class HeldOutAgreement:
    """Score a map by the agreement of held-out words, relative to a random rotation that is refined."""

    words: int = 2000
    """Ordered words on which a map is scored."""
    items: int = 4000
    """Unordered items on which a map is scored: more than words, because they share fewer counterparts."""
    baseline: CslsRefinement = CslsRefinement(rounds=5, words=0)
    """The refinement of the random rotation: cheap, and easy to beat."""

    def size(self, problem: Problem) -> int:
        """Return how many of the most frequent words are used."""
        return self.words if problem.ordered else self.items

    def baseline_of(self, problem: Problem, view: View, csls_k: int) -> Baseline:
        """Return the agreement of a random rotation in both directions; None for fewer than two words."""
        x, y = self._rows(problem, view)
        if x.shape[0] < 2:
            return None
        rotation = Maps(random_rotation(x.shape[1], problem.seed, x))
        return from_both_sides(x, y, replace(self.baseline, csls_k=csls_k).refine(x, y, rotation), csls_k)

    def ratio(self, problem: Problem, view: View, w: Array, csls_k: int, baseline: Baseline) -> float:
        """Return the mean ratio of both directions: a correct map scores high in both, a wrong one varies."""
        if baseline is None:
            return 0.0
        found = from_both_sides(*self._rows(problem, view), Maps(w), csls_k)
        return sum(mean_csls_ratio(*both) for both in zip(found, baseline, strict=True)) / 2

    def _rows(self, problem: Problem, view: View) -> tuple[Array, Array]:
        n = min(view.x.shape[0], view.y.shape[0], self.size(problem))
        return view.x[:n, :], view.y[:n, :]


def ensemble_vote(
    x: Array, y: Array, maps: Sequence[Array], *, csls_k: int = 10, words: int = 5000, fewest_pairs: int = 50
) -> Array | None:
    """Return the orthogonal map (d, d) of the pairs that several maps find; None for fewer than `fewest_pairs`.

    Each pair is weighted by its number of votes minus one. x: (n, d), y: (m, d) normalised rows, most frequent first;
    maps: (d, d) each, orthogonal. words: the most frequent words of each side that vote.
    """
    src, tgt, votes = shared_pairs(x, y, maps, csls_k=csls_k, words=words)
    if len(src) < fewest_pairs:
        return None
    xp = arrays.namespace(x)
    left, right = (xp.take(side, arrays.asarray(rows, side), axis=0) for side, rows in ((x, src), (y, tgt)))
    return procrustes(left, right, xp.astype(arrays.asarray(votes - 1, x), x.dtype))


def shared_pairs(
    x: Array, y: Array, maps: Sequence[Array], *, csls_k: int = 10, words: int = 5000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mutual CSLS pairs of more than one map: rows of x, rows of y and votes, (p,) each.

    x: (n, d), y: (m, d). words: the most frequent words of each side that are compared.
    """
    x, y = (side[: min(words, side.shape[0]), :] for side in (x, y))
    found = []
    for w in maps:
        pairs = induce_pairs(x, y, Maps(w), csls_k=csls_k)
        found.append(arrays.to_numpy(pairs.src) * y.shape[0] + arrays.to_numpy(pairs.tgt))
    numbers, votes = np.unique(np.concatenate(found), return_counts=True)
    shared = numbers[votes > 1]
    return shared // y.shape[0], shared % y.shape[0], votes[votes > 1]
