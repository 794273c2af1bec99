"""Search for an initial map: try several initializers, score each without a dictionary, and return the best map.

Each initializer fails on some pairs of spaces. So each of their maps goes through a trial, a short loop, and is scored.

- Cheap initializers come first. The first accepted candidate ends the search, so easy pairs cost little.
- Hard pairs get rounds of fused initializers with different words, spectra and weights, which fail independently.
- The candidates of a round vote: the pairs that several of them find make one more candidate.
- A weak but correct map scores hardly better than a random one, so the best candidates are refined and scored again.
- If the order of the words is in doubt, candidates in an estimated order compete with those in the given one.

`effort` bounds the search. More effort repeats it with other random draws until a candidate is accepted: a search that
finds a pair of spaces half of the time finds it in one of five searches nearly always.

Unordered items, some or all of them without a counterpart, need other settings. Few items of each side share hardly any
counterparts, so nearly all items take part in the trials. Neighbour means refine the candidates. Without counterparts,
correct maps score little more than wrong ones, so the search also ends when two candidates agree. Belief propagation
needs fewer items than any other initializer, but its cost is cubic, so the smallest problems try it first.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.maps.procrustes import MOST_RESTORED, Maps
from qwp.parameters import START, fixed, param
from qwp.search.retrieval import csls_k_param
from qwp.stages.agreement import SAME, share_alike, translations
from qwp.stages.init.belief_propagation import BeliefPropagation
from qwp.stages.init.candidates import Baseline, Candidate, HeldOutAgreement, Pool, ensemble_vote
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.profiles import Profiles
from qwp.stages.neighbor_means import NeighborMeans
from qwp.stages.problem import Problem, View, log_estimated_order
from qwp.stages.refinement import WEIGHTED, CslsRefinement
from qwp.stages.stage import Initializer, Monitor, Record, Stage, State
from qwp.stages.wasserstein_procrustes import StepFigures, Trial

logger = logging.getLogger(__name__)

FALLBACK = "identical, as a last resort"
"""The name of the fallback candidate in results."""
_FALLBACK_REMARK = (
    "No unsupervised initialization succeeded: this alignment begins with words that both sides spell alike."
)
_FUSED = FusedGromovWasserstein(sample=0.8)


@dataclass(frozen=True)
class Budget:
    """What a search may spend until a candidate is accepted.

    searches: number of searches with different random draws. rounds: of each, at most. seconds: of all.
    """

    searches: float = 1
    rounds: int | None = None
    seconds: float = math.inf

    @classmethod
    def of(cls, effort: str) -> Budget:
        """Return the budget of a value of the parameter `effort`; raise an InputError for any other text."""
        if effort in EFFORTS:
            return EFFORTS[effort]
        try:
            seconds = float(effort)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise InputError(f"effort={effort!r} is not known; expected {', '.join(EFFORTS)} or a number of seconds")
        return cls(searches=math.inf, seconds=seconds)


EFFORTS = {"low": Budget(rounds=3), "normal": Budget(), "high": Budget(searches=5)}
"""The budget of each level. low stops after the first fused initializers. Five searches find what one finds half of the
time in 97 % of all cases, if they fail independently."""


@dataclass(frozen=True)
class Attempt:
    """A candidate to compute: an initializer on a view."""

    name: str
    view: View
    initializer: Initializer
    kind: str = ""


@dataclass(frozen=True)
class Round:
    """Attempts that are made before those of the next round.

    refine_promising: on small problems, refine a promising candidate at once, which costs less than the next round.
    rescore: let candidates vote, then refine the most promising ones and score them again. continue_best: let the best
    of all candidates continue if it is nearly accepted.
    """

    trial: Trial
    attempts: Sequence[Attempt]
    refine_promising: bool = False
    rescore: bool = False
    continue_best: bool = False
    needs_promising: bool = False


Rejects: TypeAlias = Callable[[View, Array, int, int], bool]
"""Called with a view, a map of it, a seed and a neighbourhood size. Returns whether the map is no better than null
maps."""


@dataclass(frozen=True, kw_only=True)
class BestOf(Stage):
    """Try initializers in rounds until a candidate is accepted; return the best.

    A score compares the agreement of a map on held-out words with that of a random rotation. docs/method.md explains
    the search. Values without a source were set by hand.
    """

    name = "initialize"
    compares_orders = True

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
    """The initializers of a round. Each takes a random sample of its words: few words are quick, and samples fail
    independently."""
    fused_items: tuple[FusedGromovWasserstein, ...] = (
        FusedGromovWasserstein(spectrum=0.75, epsilon=0.2),
        FusedGromovWasserstein(epsilon=0.2),
        FusedGromovWasserstein(spectrum=1.0, epsilon=0.1),
        FusedGromovWasserstein(unary=20.0, epsilon=0.05),
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
    effort: str = param(
        "normal",
        "How long to search: low, normal, high (up to five searches) or seconds.",
        START,
        text=Budget.of,
        range="low, normal, high or a number of seconds",
    )
    fallback: Initializer | None = None
    """Tried if no candidate is accepted and `rejects` finds the best one no better than null maps."""
    rejects: Rejects | None = field(default=None, repr=False)
    fewest_shared: int = 50
    """Words spelt alike that the fallback needs."""
    brief: Trial = Trial(words=5000, steps=100, coreset=500, epsilon=0.05, batches=2)
    """The trial of a cheap candidate."""
    long: Trial = Trial(words=6000, steps=200, coreset=1000, epsilon=0.1, batches=1)
    """The trial of any other candidate: more steps and larger batches, because its initializer used few words."""
    refinement: CslsRefinement = fixed(
        replace(WEIGHTED, rounds=5, words=5000, first_words=2000, map="orthogonal", dewhiten=MOST_RESTORED)
    )
    """The refinement before a candidate is scored again: half the rounds of `WEIGHTED`, on a quarter of its words."""
    neighbor_means: NeighborMeans = fixed(NeighborMeans(rounds=60))
    """The refinement of unordered items before a candidate is scored again."""
    prior_in_trials: float = 0.5
    """Share of the frequency prior in the trial of a fused map, whose initializer has used the ranks already."""
    rounds: int = 3
    """Rounds of fused initializers for ordered words."""
    wider: float = 0.5
    """Growth of the words per round in an estimated order, whose most frequent words share fewer counterparts."""
    items: tuple[int, ...] = (2500, 6000, 12_000)
    """Unordered items in each round of fused initializers. Source: of 6,500 different texts on each side, 2,000 to
    3,000 sufficed for two of four variants."""
    trial_items: int = 20_000
    """Unordered items in a trial: nearly all, because few of each side share hardly any counterparts."""
    belief_items: int = 2000
    """Items of each side in belief propagation, whose cost is cubic. Source: docs/accuracy.md, unordered items."""
    few_items: int = 1000
    """With fewer items on both sides belief propagation costs less than fused initializers, and comes before them."""
    few_words: int = 3000
    """With fewer words on both sides a refinement costs less than the next initializer."""
    vote_words: int = 5000
    """Most frequent words of each side in an ensemble vote: their vectors are the best."""
    vote_pairs: int = 50
    """Pairs that an ensemble vote needs."""
    promising: int = 2
    """Candidates of a round that are refined and scored again."""
    continuations: int = 3
    """Further trials and refinements of the best candidate if none was accepted."""
    accept_ratio: float = 1.5
    """A candidate with this score is accepted. Source: well above every failed run that was measured."""
    rescore_ratio: float = 1.25
    """A cheap candidate of a small problem with this score is refined and scored again."""
    give_up_ratio: float = 1.25
    """The search of a small problem ends if no candidate of its first round of fused initializers reaches this score.
    Of 31 small problems, later rounds led none below it to an accepted candidate; unrelated spaces stay below 1.2."""
    continue_ratio: float = 1.4
    """The best candidate continues from this score before the next round, which takes ten times as long."""
    refine_ratio: float = 1.4
    """A candidate with this score is refined at once. On novels en-hu this saves five of six fused initializers."""
    consensus: float = SAME
    """Two candidates agree from this share of equal translations. Source: `qwp.stages.agreement.SAME`."""
    report_interval: int = 10
    """Steps of a trial for each record of the history."""

    def named(self, name: str) -> str:
        """Return the name, with a remark without a fallback."""
        return name if self.fallback is not None else f"{name} (without shared strings as a fallback)"

    def run_many(
        self, problems: Sequence[Problem], states: Sequence[State], monitors: Sequence[Monitor]
    ) -> list[State]:
        """Return the states of several problems, whose trials run in lock-step."""
        searches = [_Search.of(self, *one) for one in zip(problems, states, monitors, strict=True)]
        pools = run_in_lock_step([search.run() for search in searches])
        return [search.finished(pool) for search, pool in zip(searches, pools, strict=True)]

    def accepted(self, pool: Pool) -> bool:
        """Return whether a candidate is accepted: by its score, or because an independent one found the same map."""
        return pool.consensus or any(each.latest >= self.accept_ratio for each in pool.candidates)

    def best(self, pool: Pool, first: int = 0) -> int:
        """Return the number of the best candidate from number `first` on.

        Candidates that were rescored or accepted at once are preferred.
        """
        numbered = list(enumerate(pool.candidates))[first:]
        reliable = [each for each in numbered if each[1].rescore is not None or each[1].score >= self.accept_ratio]
        return max(reliable or numbered, key=lambda each: each[1].latest)[0]

    def rounds_of(self, problem: Problem, views: Sequence[View], number: int = 0) -> Iterator[Round]:
        """Yield the rounds of search `number`, one after the other."""
        rounds = self._word_rounds(views) if problem.ordered else self._item_rounds(views[0])
        rounds = islice(rounds, Budget.of(self.effort).rounds)
        return rounds if number == 0 else (_redrawn(each, number) for each in rounds)

    def _word_rounds(self, views: Sequence[View]) -> Iterator[Round]:
        for which in (views[:1], views[1:]):
            yield Round(self.brief, [Attempt("profiles", view, self.profiles) for view in which], refine_promising=True)
        prior = self.prior_in_trials * self.fused[0].frequency_prior if self.fused else 0.0
        trial = replace(self.long, frequency_prior=prior)
        for number in range(self.rounds):
            attempts = []
            for i, view in enumerate(views):
                wider = 1.0 + self.wider * number if i > 0 else 1.0
                for j, variant in enumerate(self.fused, start=1 + number * len(self.fused)):
                    chosen = replace(variant, share=wider * variant.share, number=j)
                    attempts.append(Attempt(f"fused {j}", view, chosen))
            # The vote of two rounds is often better than that of one. On small problems this never helped a candidate
            # that was not promising.
            later = number > 0
            yield Round(trial, attempts, rescore=True, continue_best=later, needs_promising=later)

    def _item_rounds(self, view: View) -> Iterator[Round]:
        brief, long = (replace(trial, words=self.trial_items) for trial in (self.brief, self.long))
        largest = max(view.x.shape[0], view.y.shape[0])
        yield Round(brief, [Attempt("profiles", view, replace(self.profiles, words=self.items[0]))])
        fused = []
        for number, items in enumerate(self.items):
            attempts = []
            for j, variant in enumerate(self.fused_items, start=1 + number * len(self.fused_items)):
                attempts.append(Attempt(f"fused {j}", view, replace(variant, words=items, number=j)))
            # If a round has no further items, candidates only vote and are scored again.
            repeated = number > 0 and largest <= self.items[number - 1]
            fused.append(Round(long, [] if repeated else attempts, rescore=True))
            if repeated:
                break
        beliefs = []
        if self.is_small(view):
            attempts = [
                Attempt(f"belief propagation {i}", view, replace(each, words=self.belief_items), "belief-propagation")
                for i, each in enumerate(self.beliefs, start=1)
            ]
            beliefs = [Round(long, attempts, rescore=True)]
        yield from [*beliefs, *fused] if largest < self.few_items else [fused[0], *beliefs, *fused[1:]]

    def is_small(self, view: View) -> bool:
        """Return whether both sides have few words."""
        return max(view.x.shape[0], view.y.shape[0]) < self.few_words

    def long_trial(self, problem: Problem) -> Trial:
        """Return the trial of a candidate that continues."""
        return self.long if problem.ordered else replace(self.long, words=self.trial_items)


def _redrawn(each: Round, number: int) -> Round:
    """Return a round of search `number`, counted from zero, whose initializers all draw random words."""
    attempts = []
    for attempt in each.attempts:
        initializer = attempt.initializer
        if isinstance(initializer, FusedGromovWasserstein):
            initializer = replace(initializer, sample=min(initializer.sample, _FUSED.sample))
        if initializer.uses_seed:
            name = f"{attempt.name}, search {number + 1}"
            attempts.append(replace(attempt, name=name, initializer=initializer))
    return replace(each, attempts=attempts)


@dataclass(frozen=True)
class TrialRequest:
    """Candidates to run through a trial. report: called with the number of a candidate and the figures of a step."""

    trial: Trial
    views: Sequence[View]
    candidates: Sequence[Candidate]
    seed: int
    report: Callable[[int, StepFigures], None]


Trials: TypeAlias = Generator[TrialRequest, list[Array], Pool]
"""A part of a search: yields requests, is sent the maps after the trials, and returns the pool."""


def run_in_lock_step(searches: Sequence[Trials]) -> list[Pool]:
    """Run several searches and return their pools. Trials that searches wait for at the same time run together."""
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
    """Run the trials of all requests, trials of equal sizes in lock-step."""
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


@dataclass(frozen=True)
class _Search:
    """The search on one problem. Methods that need trials are generators of them; all results are in the pool.

    views: by the name of the order, the given one first. baseline: the agreement of a random rotation in an order.
    seconds: returns the time spent so far, with that of an interrupted run.
    """

    settings: BestOf
    problem: Problem
    state: State
    monitor: Monitor
    views: Mapping[str, View]
    baseline: Callable[[str], Baseline]
    seconds: Callable[[], float]

    @classmethod
    def of(cls, settings: BestOf, problem: Problem, state: State, monitor: Monitor) -> _Search:
        """Return the search that continues from a state."""
        views = {view.order: view.projected if state.projected else view for view in problem.views}

        @cache
        def baseline(order: str) -> Baseline:
            return settings.score.baseline_of(problem, views[order], settings.csls_k)

        begin = monitor.clock() - monitor.seconds.get(settings.name, 0.0)
        return cls(settings, problem, state, monitor, views, baseline, lambda: monitor.clock() - begin)

    @property
    def first_view(self) -> View:
        """The view that needs no estimated order."""
        return next(iter(self.views.values()))

    # ------------------------------------------------------------------ the search

    def run(self) -> Trials:
        """Search until a candidate is accepted or the budget is spent, and return the pool."""
        settings, pool = self.settings, replace(self._restored(), history=self.state.history)
        while True:
            pool = yield from self.with_seed_of(pool.search).one(pool)
            if self.over(pool) or pool.search + 1 >= Budget.of(settings.effort).searches:
                break
            pool = pool.next_search()
        if self.out_of_time() and not settings.accepted(pool):
            pool = replace(pool, stopped=True)
        return pool if settings.accepted(pool) else (yield from self.with_fallback(pool))

    def with_seed_of(self, number: int) -> _Search:
        """Return the search with the random draws of search `number`, counted from zero."""
        if number == 0:
            return self
        seed = int(arrays.rng(self.problem.seed, Stream.SEARCH, number).integers(2**31))
        return replace(self, problem=replace(self.problem, seed=seed))

    def one(self, pool: Pool) -> Trials:
        """Run the rounds of one search until a candidate is accepted, and return the pool."""
        settings, views = self.settings, list(self.views.values())
        for number, each in enumerate(settings.rounds_of(self.problem, views, pool.search), start=1):
            if self.over(pool) or number <= pool.rounds_done or (each.needs_promising and not self.promising(pool)):
                continue
            pool = yield from self.round(pool, each)
            pool = replace(pool, rounds_done=number)
            self._save(pool)
        for _ in range(settings.continuations):
            if not self.over(pool) and len(pool.candidates) > pool.first and self.promising(pool):
                pool = yield from self.continued(pool, settings.best(pool, pool.first))
        return pool

    def promising(self, pool: Pool) -> bool:
        """Return whether more work may help a candidate of this search; it always may on many words or on items."""
        if not self.problem.ordered or not self.settings.is_small(self.first_view):
            return True
        found = (each.latest for each in pool.candidates[pool.first :])
        return max(found, default=-math.inf) >= self.settings.give_up_ratio

    def over(self, pool: Pool) -> bool:
        """Return whether the search ends: a candidate is accepted, or there is one and the time is spent."""
        return self.settings.accepted(pool) or (len(pool.candidates) > 0 and self.out_of_time())

    def out_of_time(self) -> bool:
        """Return whether the budget of seconds is spent."""
        return self.seconds() >= Budget.of(self.settings.effort).seconds

    def report_candidates(self, pool: Pool) -> None:
        """Report the number of candidates, the best ratio and what is left, if the budget is not the usual one."""
        budget, n = Budget.of(self.settings.effort), len(pool.candidates)
        if budget == Budget():
            return
        figures: dict[str, Any] = {
            "candidates": n,
            "search": pool.search + 1,
            "best_ratio": max(each.latest for each in pool.candidates),
            "accept_ratio": self.settings.accept_ratio,
        }
        if budget.searches < math.inf:
            figures["searches"] = budget.searches
        if budget.seconds < math.inf:
            figures["seconds_left"] = max(0, round(budget.seconds - self.seconds()))
        self.monitor.report(self.settings.name, n, n, figures)

    def round(self, pool: Pool, each: Round) -> Trials:
        """Try the candidates of a round; score the most promising again if the round asks for it."""
        attempts = iter(each.attempts)
        # A GPU tries all candidates of a round in hardly more time than one.
        at_once = None if arrays.is_cuda(self.first_view.x) else 1
        while not self.over(pool) and (batch := list(islice(attempts, at_once))):
            new = [self._computed(attempt) for attempt in batch]
            records: list[Record] = []
            maps = yield self._request(each.trial, new, records)
            tried = (
                self.scored(replace(candidate, map=w), refine_promising=each.refine_promising)
                for candidate, w in zip(new, maps, strict=True)
            )
            before = len(pool.candidates)
            pool = replace(pool.with_new(*tried), history=(*pool.history, *records))
            check = self.with_nearly_accepted if self.problem.ordered else self.with_consensus
            pool = check(pool, before)
            self.report_candidates(pool)
        if each.rescore and not self.out_of_time():
            pool = yield from self.voted(pool)
            pool = yield from self.rescored(pool)
        if each.continue_best and not self.over(pool) and len(pool.candidates) > pool.first:
            best = self.settings.best(pool, pool.first)
            if pool.candidates[best].latest >= self.settings.continue_ratio:
                pool = yield from self.continued(pool, best)
        return pool

    def with_nearly_accepted(self, pool: Pool, first: int) -> Pool:
        """Refine nearly accepted candidates from number `first` on, which costs less than the next initializer.

        A refinement that does not lead to an accepted candidate is not kept.
        """
        settings, new = self.settings, list(enumerate(pool.candidates))[first:]
        near = [n for n, each in new if each.rescore is None and each.score >= settings.refine_ratio]
        for number in sorted(near, key=lambda n: -pool.candidates[n].score):
            if settings.accepted(pool):
                break
            found = self.refined(pool.candidates[number])
            if found.latest >= settings.accept_ratio:
                pool = pool.with_changed(number, found)
        return pool

    def voted(self, pool: Pool) -> Trials:
        """Add the ensemble vote of all candidates in each order."""
        settings = self.settings
        for view in [] if settings.accepted(pool) else self.views.values():
            # Candidates of an earlier search that failed would outvote the new ones.
            voters = [each.map for each in pool.candidates[pool.first :] if each.order == view.order]
            sizes = {"words": settings.vote_words, "fewest_pairs": settings.vote_pairs}
            w = ensemble_vote(view.x, view.y, voters, csls_k=settings.csls_k, **sizes) if voters else None
            if w is not None:
                name = f"ensemble vote of {len(voters)}" + (f", search {pool.search + 1}" if pool.search else "")
                candidate = Candidate(name, view.order, w, voted=True)
                new = self.refined(self.scored(candidate))
                pool = yield from self.continued(pool.with_new(new), len(pool.candidates))
        return pool

    def rescored(self, pool: Pool) -> Trials:
        """Refine and continue the most promising candidates that have no second score yet."""
        candidates = list(enumerate(pool.candidates))[pool.first :]
        rest = [number for number, each in candidates if each.rescore is None]
        for number in sorted(rest, key=lambda n: -pool.candidates[n].score)[: self.settings.promising]:
            if self.over(pool):
                break
            pool = pool.with_changed(number, self.refined(pool.candidates[number]))
            pool = yield from self.continued(pool, number)
            pool = replace(pool, consensus=pool.consensus or self.in_consensus(pool, number))
        return pool

    def continued(self, pool: Pool, number: int) -> Trials:
        """Run a candidate through one more trial and refinement; keep the better map."""
        before = pool.candidates[number]
        [w] = yield self._request(self.settings.long_trial(self.problem), [before])
        after = self.refined(replace(before, map=w))
        return pool.with_changed(number, after) if after.latest > before.latest else pool

    def with_fallback(self, pool: Pool) -> Trials:
        """Try the fallback if the best candidate is no better than null maps."""
        settings, view = self.settings, self.first_view
        shared = len(set(view.src.space.words) & set(view.tgt.space.words))
        if settings.fallback is None or shared < settings.fewest_shared:
            return pool
        best = pool.candidates[settings.best(pool)]
        if settings.rejects is not None and not settings.rejects(
            self.views[best.order], best.map, self.problem.seed, settings.csls_k
        ):
            return pool
        logger.warning("no unsupervised initialization succeeded: %d words spelt alike on both sides are tried", shared)
        w = settings.fallback.initial_map(self.problem, view, lambda *_: None)
        new = Candidate(FALLBACK, view.order, w)
        [w] = yield self._request(settings.long_trial(self.problem), [new])
        return pool.with_new(self.refined(self.scored(replace(new, map=w))))

    # ------------------------------------------------------------------ one candidate

    def scored(self, candidate: Candidate, *, refine_promising: bool = False) -> Candidate:
        """Return the candidate with its score. refine_promising: refine it too if that pays."""
        found = replace(candidate, score=self._score(candidate))
        logger.info(
            "%s, %s order: %.2f times the agreement of a random rotation on held-out words",
            found.name,
            found.order,
            found.score,
        )
        settings = self.settings
        promising = settings.rescore_ratio <= found.score < settings.accept_ratio
        return self.refined(found) if refine_promising and promising and settings.is_small(self.first_view) else found

    def refined(self, candidate: Candidate) -> Candidate:
        """Return the candidate after a short refinement, with its second score."""
        view, settings = self.views[candidate.order], self.settings
        if self.problem.ordered:
            rounds = replace(settings.refinement, csls_k=settings.csls_k)
            w = rounds.refine(view.x, view.y, Maps(candidate.map)).src
        else:
            w = settings.neighbor_means.fit(view.x, view.y, candidate.map, self.problem.seed)
        found = replace(candidate, map=w)
        found = replace(found, rescore=self._score(found))
        logger.info("%s, %s order: %.2f after a short refinement", found.name, found.order, found.rescore)
        return found

    def with_consensus(self, pool: Pool, first: int) -> Pool:
        """Return the pool with a consensus if a candidate from number `first` on agrees with another one.

        Without counterparts a correct map of unordered items scores little more than a wrong one, but two candidates
        that agree are correct.
        """
        if self.settings.accepted(pool):
            return pool
        return replace(pool, consensus=any(self.in_consensus(pool, n) for n in range(first, len(pool.candidates))))

    def in_consensus(self, pool: Pool, number: int) -> bool:
        """Return whether an independent candidate in the same order translates alike."""
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
        baseline, csls_k = self.baseline(candidate.order), self.settings.csls_k
        return self.settings.score.ratio(self.problem, self.views[candidate.order], candidate.map, csls_k, baseline)

    def _translations(self, candidate: Candidate) -> Array:
        """Return the translations of the frequent words, (n,)."""
        view, n = self.views[candidate.order], self.settings.score.size(self.problem)
        return translations(view.x[:n, :], view.y[:n, :], Maps(candidate.map), csls_k=self.settings.csls_k)

    # ------------------------------------------------------------------ initializers, trials, states

    def _computed(self, attempt: Attempt) -> Candidate:
        """Return the candidate of an attempt."""

        def report(step: int, steps: int, figures: Record) -> None:
            self.monitor.report(self.settings.name, step, steps, {"initializer": attempt.name, **figures})

        w = attempt.initializer.initial_map(self.problem, attempt.view, report)
        return Candidate(attempt.name, attempt.view.order, w, kind=attempt.kind)

    def _request(
        self, trial: Trial, candidates: Sequence[Candidate], records: list[Record] | None = None
    ) -> TrialRequest:
        """Return the request for a trial. records: receives the records of its steps; None reports no step at all."""

        def report(number: int, step: StepFigures) -> None:
            if records is None:
                return
            figures = {"initializer": candidates[number].name, "objective": step.objective}
            if step.step % self.settings.report_interval == 0 or step.step == step.n_steps:
                records.append({"stage": self.settings.name, "step": step.step, **figures})
            self.monitor.report(self.settings.name, step.step, step.n_steps, figures)

        seed = int(arrays.rng(self.problem.seed, Stream.TRIAL).integers(2**31))
        return TrialRequest(trial, [self.views[each.order] for each in candidates], candidates, seed, report)

    def _restored(self) -> Pool:
        """Return the pool of an interrupted search, or an empty one."""
        state = self.state
        if "candidates" not in state.tensors:
            return Pool()
        return Pool.restored(state.tensors["candidates"], state.values)

    def _save(self, pool: Pool) -> None:
        if pool.candidates and self.monitor.due():
            maps, values = pool.state()
            state, best = replace(self.state, history=pool.history), pool.candidates[self.settings.best(pool)]
            tensors = {"candidates": maps}
            name = self.settings.name
            self.monitor.save(state.after_step(name, pool.rounds_done, Maps(best.map), tensors=tensors, values=values))

    def finished(self, pool: Pool) -> State:
        """Return the state with the best map."""
        best, view = pool.candidates[self.settings.best(pool)], self.first_view
        if best.order != view.order:
            log_estimated_order([view.src.space, view.tgt.space])
        return replace(
            self.state,
            maps=Maps(best.map),
            order=best.order,
            history=pool.history,
            candidates=tuple(each.record() for each in pool.candidates),
            initializer=best.name,
            accepted=any(each.latest >= self.settings.accept_ratio for each in pool.candidates),
            remark=" ".join(self.remarks(pool, best)),
        )

    def remarks(self, pool: Pool, best: Candidate) -> Iterator[str]:
        """Yield the sentences about the search that follow the verdict."""
        if best.name == FALLBACK:
            yield _FALLBACK_REMARK
        if pool.stopped:
            n = len(pool.candidates)
            yield (
                f"The search stopped after {self.settings.effort} seconds and {n} candidates without "
                "accepting one; a repetition may try more or fewer."
            )
