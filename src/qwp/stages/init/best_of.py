"""Search for an initial map: try several initializers, score each without a dictionary, and keep the best.

Each initializer fails on some pairs of spaces. So each of their maps goes through a trial, a short loop, and is scored.
Cheap initializers come first, and the first candidate that is clearly accepted ends the search, so easy pairs cost
little. Hard pairs get rounds of fused initializers that differ in their words, spectra and weights, because those fail
independently, each with a longer trial. Then the candidates vote: pairs of words that several of them found make one
more candidate, which is often right where none of them is. A weak but correct map does not differ from a random one at
once, so the most promising candidates of each round are refined and scored again. If the order of the words is in
doubt, an estimated order competes with the given one.

Unordered items, some without a counterpart, need other settings: few of each side share hardly any counterparts, so
nearly all have to take part from the beginning. Few items are first matched by belief propagation, which needs fewer
items than any other initializer.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.maps.procrustes import MOST_RESTORED, Maps
from qwp.parameters import fixed
from qwp.search.retrieval import csls_k_param
from qwp.stages.agreement import (
    SAME,
    Agreement,
    from_both_sides,
    mean_csls_ratio,
    random_rotation,
    share_alike,
    translations,
)
from qwp.stages.init import ensemble
from qwp.stages.init.belief_propagation import BeliefPropagation
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.profiles import Profiles
from qwp.stages.problem import Problem, View, log_estimated_order
from qwp.stages.refinement import WEIGHTED, CslsRefinement, refine
from qwp.stages.stage import Initializer, Monitor, Stage, State
from qwp.stages.wasserstein_procrustes import StepFigures, Trial

logger = logging.getLogger(__name__)

FALLBACK = "identical, as a last resort"
"""The name of the fallback candidate in results."""
_FUSED = FusedGromovWasserstein(sample=0.8)


@dataclass(frozen=True)
class Candidate:
    """An initial map that was tried.

    ratio: agreement on held-out words relative to that of a random rotation; refined: the same after a refinement.
    voted: whether it comes from the pairs of others. kind: candidates of one kind fail alike, so that their agreement
    says little; empty for those that do not.
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

    def record(self) -> dict[str, Any]:
        """Return what a result keeps of the candidate."""
        return {"initializer": self.name, "order": self.order, "score": self.score, "rescore": self.rescore}


@dataclass(frozen=True)
class Pool:
    """All candidates of a search so far. consensus: whether two independent ones found the same map."""

    candidates: tuple[Candidate, ...] = ()
    consensus: bool = False
    rounds_done: int = 0

    def with_new(self, *new: Candidate) -> Pool:
        """Return the pool with more candidates."""
        return replace(self, candidates=(*self.candidates, *new))

    def with_changed(self, number: int, changed: Candidate) -> Pool:
        """Return the pool with one candidate changed."""
        return replace(self, candidates=(*self.candidates[:number], changed, *self.candidates[number + 1 :]))

    def state(self) -> tuple[Array, dict[str, Any]]:
        """Return the maps of the candidates, (t, d, d), and everything else as plain JSON types."""
        maps = arrays.namespace(self.candidates[0].map).stack([each.map for each in self.candidates])
        records = [{**each.record(), "voted": each.voted, "kind": each.kind} for each in self.candidates]
        return maps, {"candidates": records, "consensus": self.consensus, "rounds_done": self.rounds_done}

    @classmethod
    def restored(cls, maps: Array | None, values: Mapping[str, Any], views: Sequence[View]) -> Pool:
        """Return the pool of a saved state. A state that does not fit is an InputError."""
        x = views[0].x
        try:
            records, given = values["candidates"], np.zeros(0) if maps is None else arrays.to_numpy(maps)
            if given.shape != (len(records), x.shape[1], x.shape[1]) or not np.isfinite(given).all():
                raise ValueError(f"maps of shape {given.shape} for {len(records)} candidates")
            if not {record["order"] for record in records} <= {view.order for view in views}:
                raise ValueError("an order of words that is not known")
            found = tuple(
                Candidate(
                    str(record["initializer"]),
                    record["order"],
                    arrays.asarray(w, x),
                    float(record["score"]),
                    None if record["rescore"] is None else float(record["rescore"]),
                    bool(record["voted"]),
                    str(record["kind"]),
                )
                for record, w in zip(records, given, strict=True)
            )
            return cls(found, bool(values["consensus"]), int(values["rounds_done"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the checkpoint of the search for an initial map cannot be used ({error}): start afresh (--force)"
            ) from error


@dataclass(frozen=True)
class Attempt:
    """One candidate to make: an initializer on a view."""

    name: str
    view: View
    initializer: Profiles | FusedGromovWasserstein | BeliefPropagation
    kind: str = ""


@dataclass(frozen=True)
class Round:
    """Candidates that are tried before those of the next round.

    cheap: whether the candidates of small problems are refined if they are promising, because that costs less than the
    next round. rescore: whether candidates vote, and the most promising are refined and scored again. continue_best:
    whether the best of all continues if it is nearly accepted.
    """

    trial: Trial
    attempts: Sequence[Attempt]
    cheap: bool = False
    rescore: bool = False
    continue_best: bool = False


@dataclass(frozen=True, kw_only=True)
class HeldOutAgreement:
    """Score a map by the agreement of held-out words relative to a random rotation that is refined alike."""

    words: int = 2000
    """Ordered words that a map is scored on."""
    items: int = 4000
    """Unordered items that a map is scored on: more, because they share fewer counterparts."""
    baseline: CslsRefinement = CslsRefinement(rounds=5, words=0)
    """The refinement of the random rotation: cheap, and easy to beat."""

    def scored(self, problem: Problem) -> int:
        """Return how many of the most frequent words a map is scored on."""
        return self.words if problem.ordered else self.items

    def baseline_of(self, problem: Problem, view: View, csls_k: int) -> tuple[Agreement, Agreement] | None:
        """Return the agreement of a random rotation in both directions; None for fewer than two words."""
        x, y = self._rows(problem, view)
        if x.shape[0] < 2:
            return None
        rotation = Maps(random_rotation(x.shape[1], problem.seed, x))
        return from_both_sides(x, y, refine(x, y, rotation, replace(self.baseline, csls_k=csls_k)), csls_k)

    def ratio(
        self, problem: Problem, view: View, w: Array, csls_k: int, baseline: tuple[Agreement, Agreement] | None
    ) -> float:
        """Return the mean ratio of both directions: a correct map is so in both, and chance differs between them."""
        if baseline is None:
            return 0.0
        found = from_both_sides(*self._rows(problem, view), Maps(w), csls_k)
        return sum(mean_csls_ratio(*both) for both in zip(found, baseline, strict=True)) / 2

    def _rows(self, problem: Problem, view: View) -> tuple[Array, Array]:
        n = min(view.x.shape[0], view.y.shape[0], self.scored(problem))
        return view.x[:n, :], view.y[:n, :]


Rejects: TypeAlias = Callable[[View, Array, int, int], bool]
"""Takes a view, a map of it, a seed and a neighbourhood size; whether the map is no better than null maps."""


@dataclass(frozen=True, kw_only=True)
class BestOf(Stage):
    """Try initializers in rounds until a candidate is accepted; return the best.

    A ratio compares the agreement of a map on held-out words with that of a random rotation. docs/method.md explains
    the search. Values without a source were set by hand.
    """

    name = "initialize"

    profiles: Profiles = Profiles()
    """The cheap initializer."""
    fused: tuple[FusedGromovWasserstein, ...] = (
        replace(_FUSED, share=0.6, unary=10.0, epsilon=0.2),
        replace(_FUSED, share=0.4),
        replace(_FUSED, share=0.8, epsilon=0.2),
        replace(_FUSED, share=1.2, spectrum=0.75, unary=3.0, epsilon=0.4, prior=0.5),
        replace(_FUSED, share=0.4, unary=10.0, epsilon=0.2),
        replace(_FUSED, share=0.6, prior=2.0),
    )
    """The initializers of a round, each on a random part of its words: few words are quick, and each fails on its
    own."""
    fused_items: tuple[FusedGromovWasserstein, ...] = (
        FusedGromovWasserstein(epsilon=0.2),
        FusedGromovWasserstein(unary=10.0, epsilon=0.2),
        FusedGromovWasserstein(unary=20.0, epsilon=0.05),
        FusedGromovWasserstein(spectrum=1.0, epsilon=0.1),
    )
    """The initializers of unordered items, one after the other."""
    beliefs: tuple[BeliefPropagation, ...] = (
        BeliefPropagation(),
        BeliefPropagation(spectrum=0.5, correlation=0.55),
        BeliefPropagation(spectrum=0.7),
    )
    """The initializers of few unordered items, one after the other."""
    score: HeldOutAgreement = HeldOutAgreement()
    csls_k: int = csls_k_param()
    fallback: Initializer | None = None
    """Tried if no candidate was accepted and `rejects` finds the best one no better than null maps."""
    rejects: Rejects | None = field(default=None, repr=False)
    fewest_shared: int = 50
    """Words spelt alike that the fallback needs."""
    brief: Trial = Trial(words=5000, steps=100, coreset=500, epsilon=0.05, batches=2)
    """The trial of a cheap candidate."""
    long: Trial = Trial(words=6000, steps=200, coreset=1000, epsilon=0.1, batches=1)
    """The trial of any other candidate: more steps and larger batches, because it begins with few words."""
    refinement: CslsRefinement = fixed(
        replace(WEIGHTED, rounds=5, words=5000, first_words=2000, map="orthogonal", dewhiten=MOST_RESTORED)
    )
    """The refinement before a candidate is scored again: half the rounds of `WEIGHTED`, on a quarter of its words."""
    prior_in_trials: float = 0.5
    """Share of the frequency prior in the trial of a fused map, which has used the ranks already."""
    rounds: int = 3
    """Rounds of fused initializers for ordered words."""
    wider: float = 0.5
    """Growth of the words of each round in an estimated order, whose first words share fewer counterparts."""
    items: tuple[int, int] = (6000, 12_000)
    """Unordered items in the first round of fused initializers, and in the second if there are more."""
    trial_items: int = 20_000
    """Unordered items in a trial: nearly all, because few of each side share hardly any counterparts."""
    belief_items: int = 2000
    """Items of each side in belief propagation, whose cost is cubic. Source: docs/accuracy.md, unordered items."""
    few_words: int = 3000
    """With fewer words on both sides a refinement costs less than the next initializer."""
    promising: int = 2
    """Candidates of a round that are refined and scored again."""
    continuations: int = 3
    """Trials and refinements that the best candidate repeats if none was accepted."""
    accept_ratio: float = 1.5
    """From here on a candidate is accepted. Source: well above every failed run that was measured."""
    rescore_ratio: float = 1.25
    """From here on a cheap candidate of a small problem is refined and scored again."""
    continue_ratio: float = 1.4
    """From here on the best candidate continues before the next round, which takes ten times as long."""
    consensus: float = SAME
    """Share of equal translations from which two candidates agree. Source: `qwp.stages.agreement.SAME`."""
    report_interval: int = 10
    """Steps of a trial for each record of the history."""

    @property
    def compares_orders(self) -> bool:
        """Yes."""
        return True

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the best map."""
        return self.run_many([problem], [state], [monitor])[0]

    def run_many(
        self, problems: Sequence[Problem], states: Sequence[State], monitors: Sequence[Monitor]
    ) -> list[State]:
        """Return the states of several problems, whose trials run in lock-step."""
        searches = [_Search(self, *one) for one in zip(problems, states, monitors, strict=True)]
        pools = run_in_lock_step([search.run() for search in searches])
        return [search.finished(pool) for search, pool in zip(searches, pools, strict=True)]

    def accepted(self, pool: Pool) -> bool:
        """Whether a candidate is accepted: by its score, or because an independent one found the same map."""
        return pool.consensus or any(each.latest >= self.accept_ratio for each in pool.candidates)

    def best(self, pool: Pool) -> int:
        """Return the number of the best candidate among those that were refined or accepted at once."""
        numbered = list(enumerate(pool.candidates))
        seen = [each for each in numbered if each[1].rescore is not None or each[1].score >= self.accept_ratio]
        return max(seen or numbered, key=lambda each: each[1].latest)[0]

    def rounds_of(self, problem: Problem, views: Sequence[View]) -> Iterator[Round]:
        """Yield the rounds of a search, one after the other."""
        return self._word_rounds(views) if problem.ordered else self._item_rounds(views[0])

    def _word_rounds(self, views: Sequence[View]) -> Iterator[Round]:
        for which in (views[:1], views[1:]):
            yield Round(self.brief, [Attempt("profiles", view, self.profiles) for view in which], cheap=True)
        prior = self.prior_in_trials * self.fused[0].frequency_prior if self.fused else 0.0
        trial = replace(self.long, frequency_prior=prior)
        for number in range(self.rounds):
            attempts = []
            for i, view in enumerate(views):
                wider = 1.0 + self.wider * number if i > 0 else 1.0
                for j, variant in enumerate(self.fused, start=1 + number * len(self.fused)):
                    chosen = replace(variant, share=wider * variant.share, number=j)
                    attempts.append(Attempt(f"fused {j}", view, chosen))
            # Votes of two rounds are often better than those of one, so the second round is always made.
            yield Round(trial, attempts, rescore=True, continue_best=number > 0)

    def _item_rounds(self, view: View) -> Iterator[Round]:
        brief, long = (replace(trial, words=self.trial_items) for trial in (self.brief, self.long))
        largest = max(view.x.shape[0], view.y.shape[0])
        yield Round(brief, [Attempt("profiles", view, replace(self.profiles, words=self.items[0]))])
        if self.is_small(view):
            beliefs = [replace(each, words=self.belief_items, frequency_prior=0.0) for each in self.beliefs]
            named = enumerate(beliefs, start=1)
            yield Round(
                long,
                [Attempt(f"belief propagation {i}", view, each, "belief-propagation") for i, each in named],
                rescore=True,
            )
        for number, items in enumerate(self.items):
            for j, variant in enumerate(self.fused_items, start=1 + number * len(self.fused_items)):
                chosen = replace(variant, words=items, frequency_prior=0.0, number=j)
                # Without more items, the candidates vote and are scored again, but none is made twice.
                repeated = number > 0 and largest <= self.items[0]
                yield Round(long, [] if repeated else [Attempt(f"fused {j}", view, chosen)], rescore=True)

    def is_small(self, view: View) -> bool:
        """Whether both sides have few words, for which another initializer takes longer than all the rest."""
        return max(view.x.shape[0], view.y.shape[0]) < self.few_words

    def long_trial(self, problem: Problem) -> Trial:
        """Return the trial of a candidate that continues."""
        return self.long if problem.ordered else replace(self.long, words=self.trial_items)


@dataclass(frozen=True)
class TrialRequest:
    """Candidates whose maps are to go through a trial. report: gets the number of a candidate and figures of a step."""

    trial: Trial
    views: Sequence[View]
    candidates: Sequence[Candidate]
    seed: int
    report: Callable[[int, StepFigures], None]


Trials: TypeAlias = Generator[TrialRequest, list[Array], Pool]
"""A part of a search: yields requests, is sent the maps after the trials, and returns the pool."""


def run_in_lock_step(searches: Sequence[Trials]) -> list[Pool]:
    """Run several searches, the trials that they wait for at the same time together, and return their pools."""
    pools: dict[int, Pool] = {}
    waiting: dict[int, TrialRequest] = {}

    def advance(number: int, maps: list[Array] | None) -> None:
        try:
            waiting[number] = next(searches[number]) if maps is None else searches[number].send(maps)
        except StopIteration as stop:
            pools[number] = stop.value

    for number in range(len(searches)):
        advance(number, None)
    while waiting:
        requests = dict(waiting)
        waiting.clear()
        for number, maps in _run_trials(requests).items():
            advance(number, maps)
    return [pools[number] for number in range(len(searches))]


def _run_trials(requests: Mapping[int, TrialRequest]) -> dict[int, list[Array]]:
    """Run the trials of all requests, those with the same sizes in lock-step."""
    groups: dict[tuple[Trial, int, int], list[tuple[int, int]]] = {}
    for number, request in requests.items():
        for i, view in enumerate(request.views):
            key = request.trial, request.trial.points(view.x, view.y), int(view.x.shape[1])
            groups.setdefault(key, []).append((number, i))
    found: dict[tuple[int, int], Array] = {}
    for (trial, *_), group in groups.items():
        members = [(requests[number], i) for number, i in group]

        def report(figures: list[list[StepFigures]], _: Array, members: Any = members) -> None:
            for (request, i), steps in zip(members, figures, strict=True):
                for step in steps:
                    request.report(i, step)

        maps = trial.run(
            [request.views[i].x for request, i in members],
            [request.views[i].y for request, i in members],
            [request.candidates[i].map for request, i in members],
            [request.seed for request, _ in members],
            report,
        )
        found.update(zip(group, maps, strict=True))
    return {n: [found[n, i] for i in range(len(request.views))] for n, request in requests.items()}


class _Search:
    """The search on one problem. Its parts are generators of the trials they need."""

    def __init__(self, settings: BestOf, problem: Problem, state: State, monitor: Monitor) -> None:
        self.settings, self.problem, self.state, self.monitor = settings, problem, state, monitor
        self.views = [view.projected if state.projected else view for view in problem.views]
        self.history = list(state.history)
        self.seed = int(arrays.rng(problem.seed, Stream.TRIAL).integers(2**31))
        # What a random rotation reaches, computed once for each view.
        self._baselines: dict[str, tuple[Agreement, Agreement] | None] = {}

    # ------------------------------------------------------------------ the search

    def run(self) -> Trials:
        """Run all rounds, as long as no candidate is accepted, and return all candidates."""
        settings, state = self.settings, self.state
        pool = Pool.restored(state.tensors.get("candidates"), state.values, self.views) if state.done else Pool()
        for number, each in enumerate(settings.rounds_of(self.problem, self.views), start=1):
            if settings.accepted(pool) or number <= pool.rounds_done:
                continue
            pool = yield from self.round(pool, each)
            pool = replace(pool, rounds_done=number)
            self._save(pool)
        for _ in range(settings.continuations):
            if not settings.accepted(pool):
                pool = yield from self.continued(pool, settings.best(pool))
        return pool if settings.accepted(pool) else (yield from self.with_fallback(pool))

    def round(self, pool: Pool, each: Round) -> Trials:
        """Try the candidates of a round; score the most promising again if the round asks for it."""
        attempts = iter(each.attempts)
        # A GPU tries all candidates of a round in hardly more time than one.
        at_once = None if arrays.is_cuda(self.views[0].x) else 1
        while not self.settings.accepted(pool) and (batch := list(islice(attempts, at_once))):
            new = [self._made(attempt) for attempt in batch]
            first, pool = len(pool.candidates), pool.with_new(*new)
            maps = yield self._request(each.trial, new)
            for number, w in enumerate(maps, start=first):
                pool = pool.with_changed(number, self.scored(replace(pool.candidates[number], map=w), cheap=each.cheap))
        if each.rescore:
            pool = yield from self.voted(pool)
            pool = yield from self.rescored(pool)
        if each.continue_best and not self.settings.accepted(pool):
            best = self.settings.best(pool)
            if pool.candidates[best].latest >= self.settings.continue_ratio:
                pool = yield from self.continued(pool, best)
        return pool

    def voted(self, pool: Pool) -> Trials:
        """Add a candidate from the pairs of words that several candidates of a view found."""
        for view in [] if self.settings.accepted(pool) else self.views:
            voters = [each.map for each in pool.candidates if each.order == view.order]
            w = ensemble.initial_map(view.x, view.y, voters, csls_k=self.settings.csls_k)
            if w is not None:
                new = self.refined(self.scored(Candidate(f"ensemble vote of {len(voters)}", view.order, w, voted=True)))
                pool = yield from self.continued(pool.with_new(new), len(pool.candidates))
        return pool

    def rescored(self, pool: Pool) -> Trials:
        """Refine and continue the most promising candidates that were not refined yet, and score them again."""
        rest = [number for number, each in enumerate(pool.candidates) if each.rescore is None]
        for number in sorted(rest, key=lambda n: -pool.candidates[n].score)[: self.settings.promising]:
            if self.settings.accepted(pool):
                break
            pool = pool.with_changed(number, self.refined(pool.candidates[number]))
            pool = yield from self.continued(pool, number)
            pool = replace(pool, consensus=pool.consensus or self.in_consensus(pool, number))
        return pool

    def continued(self, pool: Pool, number: int) -> Trials:
        """Let a candidate go through a trial and a refinement again; keep the better of both."""
        before = pool.candidates[number]
        [w] = yield self._request(self.settings.long_trial(self.problem), [before], silent=True)
        after = self.refined(replace(before, map=w))
        return pool.with_changed(number, after) if after.latest > before.latest else pool

    def with_fallback(self, pool: Pool) -> Trials:
        """Try the fallback if the best candidate is no better than null maps."""
        settings, view = self.settings, self.views[0]
        shared = len(set(view.src.space.words) & set(view.tgt.space.words))
        if settings.fallback is None or shared < settings.fewest_shared:
            return pool
        best = pool.candidates[settings.best(pool)]
        if settings.rejects is not None and not settings.rejects(
            self._view(best), best.map, self.problem.seed, settings.csls_k
        ):
            return pool
        logger.warning("no unsupervised initialization succeeded: %d words spelt alike on both sides are tried", shared)
        w = settings.fallback.initial_map(self.problem, view, lambda *_: None)
        new = Candidate(FALLBACK, view.order, w)
        [w] = yield self._request(settings.long_trial(self.problem), [new], silent=True)
        return pool.with_new(self.refined(self.scored(replace(new, map=w))))

    # ------------------------------------------------------------------ one candidate

    def scored(self, candidate: Candidate, *, cheap: bool = False) -> Candidate:
        """Return the candidate with its ratio. A cheap one of a small problem is refined if it is promising."""
        found = replace(candidate, score=self._score(candidate))
        logger.info(
            "%s, %s order: %.2f times the agreement of a random rotation on held-out words",
            found.name,
            found.order,
            found.score,
        )
        settings = self.settings
        promising = settings.rescore_ratio <= found.score < settings.accept_ratio
        return self.refined(found) if cheap and promising and settings.is_small(self.views[0]) else found

    def refined(self, candidate: Candidate) -> Candidate:
        """Return the candidate after a short refinement, with its new ratio."""
        view, settings = self._view(candidate), self.settings
        rounds = replace(settings.refinement, csls_k=settings.csls_k)
        found = replace(candidate, map=refine(view.x, view.y, Maps(candidate.map), rounds).src)
        found = replace(found, rescore=self._score(found))
        logger.info("%s, %s order: %.2f after a short refinement", found.name, found.order, found.rescore)
        return found

    def in_consensus(self, pool: Pool, number: int) -> bool:
        """Whether an independent candidate in the same order translates as this one does."""
        one, settings = pool.candidates[number], self.settings
        others = [
            each
            for i, each in enumerate(pool.candidates)
            if i != number
            and each.order == one.order
            and not each.voted
            and (not each.kind or each.kind != one.kind or one.latest >= settings.rescore_ratio)
        ]
        mine = self._translations(one)
        shares = [share_alike(mine, self._translations(each)) for each in others]
        most = max(shares, default=0.0)
        logger.info("%s: other candidates translate up to %.0f %% of the words alike", one.name, 100 * most)
        return most >= settings.consensus

    def _score(self, candidate: Candidate) -> float:
        score, csls_k, view = self.settings.score, self.settings.csls_k, self._view(candidate)
        if candidate.order not in self._baselines:
            self._baselines[candidate.order] = score.baseline_of(self.problem, view, csls_k)
        return score.ratio(self.problem, view, candidate.map, csls_k, self._baselines[candidate.order])

    def _translations(self, candidate: Candidate) -> Array:
        """Return the best partners of the frequent words, (n,)."""
        view, n = self._view(candidate), self.settings.score.scored(self.problem)
        return translations(view.x[:n, :], view.y[:n, :], Maps(candidate.map), csls_k=self.settings.csls_k)

    def _view(self, candidate: Candidate) -> View:
        return next(view for view in self.views if view.order == candidate.order)

    # ------------------------------------------------------------------ initializers, trials, states

    def _made(self, attempt: Attempt) -> Candidate:
        """Return the candidate of an initializer."""
        view, each = attempt.view, attempt.initializer

        def told(step: int, steps: int) -> None:
            self.monitor.tell(self.settings.name, step, steps, {"initializer": attempt.name})

        if isinstance(each, FusedGromovWasserstein):
            w = each.solve(view.x, view.y, self.problem.seed, told)
        elif isinstance(each, BeliefPropagation):
            w = each.solve(view.x, view.y, told)
        else:
            w = each.solve(view.x, view.y)
        return Candidate(attempt.name, view.order, w, kind=attempt.kind)

    def _request(self, trial: Trial, candidates: Sequence[Candidate], *, silent: bool = False) -> TrialRequest:
        def report(number: int, step: StepFigures) -> None:
            figures = {"initializer": candidates[number].name, "objective": step.objective}
            if step.step % self.settings.report_interval == 0 or step.step == step.n_steps:
                self.history.append({"stage": self.settings.name, "step": step.step, **figures})
            self.monitor.tell(self.settings.name, step.step, step.n_steps, figures)

        views = [self._view(each) for each in candidates]
        return TrialRequest(trial, views, candidates, self.seed, (lambda *_: None) if silent else report)

    def _save(self, pool: Pool) -> None:
        if pool.candidates and self.monitor.due():
            maps, values = pool.state()
            best = pool.candidates[self.settings.best(pool)]
            state = replace(self.state, history=tuple(self.history))
            reached = state.reached(
                self.settings.name, pool.rounds_done, Maps(best.map), tensors={"candidates": maps}, values=values
            )
            self.monitor.save(reached)

    def finished(self, pool: Pool) -> State:
        """Return the state with the best map."""
        best = pool.candidates[self.settings.best(pool)]
        if best.order != self.views[0].order:
            log_estimated_order([self.views[0].src.space, self.views[0].tgt.space])
        return replace(
            self.state,
            maps=Maps(best.map),
            order=best.order,
            history=tuple(self.history),
            candidates=tuple(each.record() for each in pool.candidates),
            initializer=best.name,
            accepted=any(each.latest >= self.settings.accept_ratio for each in pool.candidates),
            remark=_FALLBACK_REMARK if best.name == FALLBACK else "",
        )


_FALLBACK_REMARK = (
    "No unsupervised initialization succeeded: this alignment begins with words that both sides spell alike."
)
