"""The choice between the starts that need nothing but the two spaces.

Each fails on some pairs of spaces, so they are tried: a short loop from each, judged without a dictionary. Cheap ones
come first, and the first that is clearly real ends the search, so easy pairs cost little. Hard pairs get more effort:
rounds of fused starts that differ in their words, spectra and weights, because those fail independently, each with a
longer loop. Then the starts vote: pairs that several of them found make one more start, which is often real where none
of them is. A weak but real start is not told from chance by its ratio at once; so the most promising of each round is
refined before it is judged again. Where the words may not be in order of frequency, an estimated order competes with
the given one.

Items that have no order at all, and of which some have no counterpart, are another matter: a few of each side share
hardly any counterparts, so that nearly all have to take part from the beginning. They are brought into an order of what
can be seen in the vectors alone, and the fused starts are tried one by one: where all items take part, one is enough.
Few of them are first matched by messages, which need fewer items than any other start.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.judging.chance import SAME, Agreement, random_rotation, share_alike, translations
from qwp.judging.verdict import QUICK_BASELINE, from_both_sides, times_random
from qwp.maps.dewhitening import MOST_RESTORED
from qwp.maps.loop import StepFigures
from qwp.maps.procrustes import Maps
from qwp.maps.refinement import WEIGHTED, refine
from qwp.maps.trials import Trial
from qwp.stages.init import belief_propagation, ensemble, fused, profiles
from qwp.stages.init.belief_propagation import BPPrior
from qwp.stages.init.fused import FusedSettings, Variant

logger = logging.getLogger(__name__)

VARIANTS = (
    Variant(words=0.6, linear=10.0, epsilon=0.2),
    Variant(words=0.4),
    Variant(words=0.8, epsilon=0.2),
    Variant(words=1.2, spectrum=0.75, linear=3.0, epsilon=0.4, prior=0.5),
    Variant(words=0.4, linear=10.0, epsilon=0.2),
    Variant(words=0.6, prior=2.0),
)
"""The fused starts of a round, each on a random part of its words: on few words they are quick, and each fails on its
own."""
ITEM_VARIANTS = (
    Variant(epsilon=0.2, sample=1.0),
    Variant(linear=10.0, epsilon=0.2, sample=1.0),
    Variant(linear=20.0, epsilon=0.05, sample=1.0),
    Variant(spectrum=1.0, epsilon=0.1, sample=1.0),
)
"""The fused starts of items without order, one after the other."""
_BY_MESSAGES = "messages"
MESSAGES = (BPPrior(), BPPrior(spectrum=0.5, correlation=0.55), BPPrior(spectrum=0.7))
"""The starts by messages of few items, one after the other."""


_BRIEF = Trial(words=5000, steps=100, coreset=500, epsilon=0.05, batches=2)
_LONG = Trial(words=6000, steps=200, coreset=1000, epsilon=0.1, batches=1)
# The refinement before a candidate is scored again: half the rounds of `WEIGHTED`, on a quarter of its words.
_SECOND_LOOK = replace(
    WEIGHTED, refine=5, refine_words=5000, refine_first_words=2000, map="orthogonal", dewhiten=MOST_RESTORED
)


@dataclass(frozen=True)
class SearchSettings:
    """Effort and thresholds of the search for an initial map.

    A ratio compares the agreement of a map on held-out words with that of a random rotation. docs/method.md explains
    the search ("Start"). Values without a source were set by hand.
    """

    brief: Trial = _BRIEF
    """The trial of a cheap candidate."""
    long: Trial = _LONG
    """The trial of any other candidate: more steps and larger batches, because it starts from few words."""
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
    message_items: int = 2000
    """Items of each side that pass messages, whose cost is cubic. Source: docs/accuracy.md, unordered items."""
    few_words: int = 3000
    """With fewer words on both sides a refinement costs less than the next initializer."""
    judged_words: int = 2000
    """Ordered words that a map is scored on."""
    judged_items: int = 4000
    """Unordered items that a map is scored on: more, because they share fewer counterparts."""
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
    """Share of equal translations from which two candidates agree. Source: `qwp.judging.chance.SAME`."""


@dataclass(frozen=True)
class View:
    """The words of two spaces in one order of frequency. order: its name; x: (n, d), y: (m, d), most frequent first."""

    order: str
    x: Array
    y: Array


@dataclass
class Candidate:
    """A start that was tried.

    ratio: agreement on held-out words over that of a random rotation; refined: the same later. voted: whether it comes
    from the pairs of others. kind: starts of one kind fail alike, so that what they find alike says little; empty for
    those that do not.
    """

    name: str
    order: str
    map: Array
    ratio: float = -math.inf
    refined: float | None = None
    voted: bool = False
    kind: str = ""

    @property
    def score(self) -> float:
        """By which starts are compared in the end."""
        return _score(self.ratio, self.refined)

    def record(self) -> dict[str, Any]:
        """What is kept of it in a result."""
        return {"start": self.name, "order": self.order, "ratio": self.ratio, "refined_ratio": self.refined}


def _score(ratio: float, refined: float | None) -> float:
    return ratio if refined is None else refined


def any_clearly_real(records: Sequence[Mapping[str, Any]], accept_ratio: float = SearchSettings.accept_ratio) -> bool:
    """Whether one of the starts is clearly real by its ratio, of which a result keeps these records."""
    return any(_score(kept["ratio"], kept["refined_ratio"]) >= accept_ratio for kept in records)


@dataclass
class Search:
    """The search for the start of one pair of spaces: its views, its seed, its settings, and all that was tried.

    ordered: whether the words of its views are in an order of frequency, if an estimated one.
    """

    views: Sequence[View]
    seed: int
    ordered: bool = True
    settings: SearchSettings = SearchSettings()
    tried: list[Candidate] = field(default_factory=list)
    consensus: bool = False
    stages_done: int = 0

    @property
    def best(self) -> Candidate:
        """The start that wins: one that got a second look, or that was clearly real at the first."""
        looked_at = [t for t in self.tried if t.refined is not None or t.ratio >= self.settings.accept_ratio]
        return max(looked_at or self.tried, key=lambda t: t.score)

    @property
    def over(self) -> bool:
        """Whether one is clearly real: by its ratio, or because another one found the same."""
        return self.consensus or any(t.score >= self.settings.accept_ratio for t in self.tried)

    @property
    def judged(self) -> int:
        """How many of the most frequent words a map is scored on."""
        return self.settings.judged_words if self.ordered else self.settings.judged_items

    @property
    def small(self) -> bool:
        """Whether both sides have few words, for which another start takes longer than all the rest."""
        return max(self.views[0].x.shape[0], self.views[0].y.shape[0]) < self.settings.few_words

    def view(self, tried: Candidate) -> View:
        """The view that a start was tried in."""
        return next(view for view in self.views if view.order == tried.order)

    def state(self) -> tuple[Array, dict[str, Any]]:
        """What is needed to go on from here: the maps that were tried, (t, d, d), and all else as plain JSON types."""
        maps = arrays.namespace(self.views[0].x).stack([tried.map for tried in self.tried])
        tried = [{**t.record(), "voted": t.voted, "kind": t.kind} for t in self.tried]
        return maps, {"tried": tried, "consensus": self.consensus, "stages_done": self.stages_done}

    def restore(self, maps: np.ndarray, values: Mapping[str, Any]) -> None:
        """Go on from a state: one that does not fit is an InputError."""
        x = self.views[0].x
        orders = {view.order for view in self.views}
        try:
            records = values["tried"]
            if maps.shape != (len(records), x.shape[1], x.shape[1]) or not np.isfinite(maps).all():
                raise ValueError(f"maps of shape {maps.shape} for {len(records)} starts")
            self.tried = [
                Candidate(
                    str(r["start"]),
                    r["order"],
                    arrays.asarray(w, x),
                    float(r["ratio"]),
                    None if r["refined_ratio"] is None else float(r["refined_ratio"]),
                    bool(r["voted"]),
                    str(r["kind"]),
                )
                for r, w in zip(records, maps, strict=True)
            ]
            if not {tried.order for tried in self.tried} <= orders:
                raise ValueError("an order of words that is not known")
            self.consensus, self.stages_done = bool(values["consensus"]), int(values["stages_done"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the checkpoint of the search for a start cannot be used ({error}): start afresh (--force)"
            ) from error


StartCallback: TypeAlias = Callable[[int, str, int, int, dict[str, Any]], None]
"""Called with the number of the pair, the name of the start, step, number of steps and figures."""


def best_starts(
    searches: Sequence[Search],
    settings: FusedSettings,
    *,
    csls_k: int = 10,
    callback: StartCallback | None = None,
    keep: Callable[[int], None] | None = None,
) -> list[Candidate]:
    """Try the unsupervised starts for each pair; return the best of each. The searches then hold all that was tried.

    All searches have the same settings. keep: called with the number of a pair when a stage of its search is over.
    """
    judges = [_Judge(search, csls_k) for search in searches]
    for place, stage in enumerate(_stages(searches, settings, callback), start=1):
        open_searches = [n for n, search in enumerate(searches) if not search.over and search.stages_done < place]
        # A GPU tries all candidates of a stage in hardly more time than one.
        at_once = arrays.is_cuda(searches[0].views[0].x)
        for new in _groups(searches, {n: stage.candidates(n, searches[n]) for n in open_searches}, at_once=at_once):
            _try(searches, judges, new, stage, callback)
        for number in open_searches:
            if stage.second_look:
                judges[number].vote()
                judges[number].second_look()
            if stage.last_look:
                judges[number].last_look()
            searches[number].stages_done = place
            # What made no start leaves nothing to keep.
            if keep is not None and searches[number].tried:
                keep(number)
    for search, judge in zip(searches, judges, strict=True):
        for _ in range(0 if search.over else search.settings.continuations):
            judge.continue_with(search.best)
            if search.over:
                break
    return [search.best for search in searches]


def _groups(
    searches: Sequence[Search], candidates: Mapping[int, Iterator[Candidate]], *, at_once: bool
) -> Iterator[list[tuple[int, Candidate]]]:
    """The candidates of each search, by its number, that are tried together.

    at_once: all of them; otherwise one of each search after the other, as long as none is clearly real.
    """
    while True:
        new = [
            (number, tried)
            for number, left in candidates.items()
            if not searches[number].over
            for tried in islice(left, None if at_once else 1)
        ]
        if not new:
            return
        yield new


def _try(
    searches: Sequence[Search],
    judges: Sequence[_Judge],
    new: Sequence[tuple[int, Candidate]],
    stage: _Stage,
    callback: StartCallback | None,
) -> None:
    """The trial of a stage for new starts, by the numbers of their searches, and a look at what it made of them."""
    for number, tried in new:
        searches[number].tried.append(tried)
    _run_trials(searches, new, stage.trial, callback)
    for number, tried in new:
        judges[number].look(tried)
        settings = searches[number].settings
        if stage.cheap and searches[number].small and settings.rescore_ratio <= tried.ratio < settings.accept_ratio:
            judges[number].refine(tried)


def try_also(search: Search, tried: Candidate, *, csls_k: int = 10) -> Candidate:
    """Try one more start as those of `best_starts`, with a second look at once; return the best of all."""
    judge = _Judge(search, csls_k)
    search.tried.append(tried)
    _run_trials([search], [(0, tried)], _long(search), None)
    judge.look(tried)
    judge.refine(tried)
    return search.best


@dataclass(frozen=True)
class _Stage:
    """What is tried before anything that follows: what makes the starts, their trial, and how the best go on.

    cheap: whether its starts are, so that of few words they are refined rather than given up where they may be real.
    second_look: whether they vote, and the most promising go on; last_look: whether one that is nearly real does.
    """

    trial: Trial
    candidates: Callable[[int, Search], Iterator[Candidate]]
    cheap: bool = False
    second_look: bool = False
    last_look: bool = False


def _stages(searches: Sequence[Search], settings: FusedSettings, callback: StartCallback | None) -> Iterator[_Stage]:
    """What is tried one after the other."""
    effort = searches[0].settings
    if all(search.ordered for search in searches):
        return _stages_of_words(settings, effort, callback)
    return _stages_of_items(settings, effort, callback, few=any(search.small for search in searches))


def _stages_of_words(
    settings: FusedSettings, effort: SearchSettings, callback: StartCallback | None
) -> Iterator[_Stage]:
    """Those of words in an order of frequency."""

    def by_profiles(which: slice, _: int, search: Search) -> Iterator[Candidate]:
        for view in search.views[which]:
            yield Candidate("profiles", view.order, profiles.initial_map(view.x, view.y, settings.start_words))

    def by_transport(round_number: int, number: int, search: Search) -> Iterator[Candidate]:
        for place, view in enumerate(search.views):
            wider = 1.0 + effort.wider * round_number if place > 0 else 1.0
            for i, variant in enumerate(VARIANTS, start=1 + round_number * len(VARIANTS)):
                taken = replace(variant, words=wider * variant.words)
                yield _fused(view, taken, settings, search.seed, i, _told(callback, number))

    for which in (slice(1), slice(1, None)):
        yield _Stage(effort.brief, partial(by_profiles, which), cheap=True)
    trial = replace(effort.long, frequency_prior=effort.prior_in_trials * settings.frequency_prior)
    for round_number in range(effort.rounds):
        # Votes of two rounds are often better than those of one, so that the second is not to be saved.
        yield _Stage(trial, partial(by_transport, round_number), second_look=True, last_look=round_number > 0)


def _stages_of_items(
    settings: FusedSettings, effort: SearchSettings, callback: StartCallback | None, *, few: bool
) -> Iterator[_Stage]:
    """Those of items without any order. few: whether a search has few of them."""

    def by_profiles(_: int, search: Search) -> Iterator[Candidate]:
        view = search.views[0]
        yield Candidate("profiles", view.order, profiles.initial_map(view.x, view.y, effort.items[0]))

    def by_transport(items: int, which: int, number: int, search: Search) -> Iterator[Candidate]:
        view = search.views[0]
        if items == effort.items[0] or max(view.x.shape[0], view.y.shape[0]) > effort.items[0]:
            i = 1 + which + effort.items.index(items) * len(ITEM_VARIANTS)
            without_prior = replace(FusedSettings.of(settings), start_words=items, frequency_prior=0.0)
            yield _fused(view, ITEM_VARIANTS[which], without_prior, search.seed, i, _told(callback, number))

    def by_messages(number: int, search: Search) -> Iterator[Candidate]:
        view = search.views[0]
        for i, assumed in enumerate(MESSAGES if search.small else (), start=1):
            name, told = f"{_BY_MESSAGES} {i}", _told(callback, number)
            x, y = (side[: effort.message_items, :] for side in (view.x, view.y))
            w = belief_propagation.initial_map(x, y, assumed, callback=None if told is None else partial(told, name))
            yield Candidate(name, view.order, w, kind=_BY_MESSAGES)

    # Nearly all items take part in a trial.
    brief, long = (replace(trial, words=effort.trial_items) for trial in (effort.brief, effort.long))
    yield _Stage(brief, by_profiles)
    if few:
        yield _Stage(long, by_messages, second_look=True)
    for items in effort.items:
        for which in range(len(ITEM_VARIANTS)):
            yield _Stage(long, partial(by_transport, items, which), second_look=True)


def _long(search: Search) -> Trial:
    long = search.settings.long
    return long if search.ordered else replace(long, words=search.settings.trial_items)


def _told(callback: StartCallback | None, number: int) -> Callable[[str, int, int], None] | None:
    return None if callback is None else partial(_report_start, callback, number)


def _fused(
    view: View,
    variant: Variant,
    settings: FusedSettings,
    seed: int,
    number: int,
    callback: Callable[[str, int, int], None] | None,
) -> Candidate:
    """The fused start of this number."""
    name = f"fused {number}"
    told = None if callback is None else partial(callback, name)
    return Candidate(name, view.order, fused_map(view, variant, settings, seed, number, told))


def fused_map(
    view: View,
    variant: Variant,
    settings: FusedSettings,
    seed: int,
    number: int,
    callback: Callable[[int, int], None] | None = None,
) -> Array:
    """The map (d, d) of a fused start on the words of a view that the variant takes."""
    xp = arrays.namespace(view.x)
    most = max(1, round(variant.words * settings.start_words))
    rng = arrays.rng(seed, Stream.START_WORDS, number)
    rows = []
    for side in (view.x, view.y):
        n = min(most, side.shape[0])
        taken = np.sort(rng.permutation(n)[: max(1, round(variant.sample * n))])
        rows.append(arrays.asarray(taken, side))
    x, y = (xp.take(side, r, axis=0) for side, r in zip((view.x, view.y), rows, strict=True))
    return fused.initial_map(x, y, (rows[0], rows[1]), variant, settings.frequency_prior, callback)


class _Judge:
    """Compares starts of one pair with what a random rotation reaches, which is found out once for each view."""

    def __init__(self, search: Search, csls_k: int) -> None:
        self.search, self.settings, self.csls_k = search, search.settings, csls_k
        self._baselines: dict[str, tuple[Agreement, Agreement]] = {}

    def look(self, tried: Candidate) -> None:
        tried.ratio = self._ratio(tried)
        logger.info(
            "start %s, %s order: %.2f times the agreement of a random rotation on held-out words",
            tried.name,
            tried.order,
            tried.ratio,
        )

    def vote(self) -> None:
        """Try what several starts of a view found as one more start of it."""
        for view in [] if self.search.over else self.search.views:
            voters = [t.map for t in self.search.tried if t.order == view.order]
            w = ensemble.initial_map(view.x, view.y, voters, csls_k=self.csls_k)
            if w is not None:
                tried = Candidate(f"votes of {len(voters)}", view.order, w, voted=True)
                self.search.tried.append(tried)
                self.look(tried)
                self.refine(tried)
                self.continue_with(tried)

    def second_look(self) -> None:
        """Let the most promising starts that were not refined yet go on for a while, and judge them again."""
        if self.search.over:
            return
        rest = sorted((t for t in self.search.tried if t.refined is None), key=lambda t: -t.ratio)
        for tried in rest[: self.settings.promising]:
            self.refine(tried)
            self.continue_with(tried)
            self.search.consensus = self.search.consensus or self._consensus(tried)
            if self.search.over:
                return

    def last_look(self) -> None:
        """Let the best start of all go on if it is nearly real."""
        if not self.search.over and self.search.best.score >= self.settings.continue_ratio:
            self.continue_with(self.search.best)

    def refine(self, tried: Candidate) -> None:
        """Refine a start briefly and judge it again."""
        view = self.search.view(tried)
        tried.map = refine(view.x, view.y, Maps(tried.map), replace(_SECOND_LOOK, csls_k=self.csls_k)).src
        tried.refined = self._ratio(tried)
        logger.info("start %s, %s order: %.2f after a brief refinement", tried.name, tried.order, tried.refined)

    def continue_with(self, tried: Candidate) -> None:
        """Let a start go through a trial and a refinement again; keep what it was if that is no better."""
        again = replace(tried)
        apart = Search(self.search.views, self.search.seed, settings=self.settings)
        _run_trials([apart], [(0, again)], _long(self.search), None)
        self.refine(again)
        if again.score > tried.score:
            tried.map, tried.refined = again.map, again.refined

    def _consensus(self, tried: Candidate) -> bool:
        """Whether another start in the same order translates many of the frequent words as this one does."""
        others = [
            t
            for t in self.search.tried
            if t is not tried
            and t.order == tried.order
            and not t.voted
            and (not t.kind or t.kind != tried.kind or tried.score >= self.settings.rescore_ratio)
        ]
        mine = self._translations(tried)
        shares = [share_alike(mine, self._translations(t)) for t in others]
        logger.info(
            "start %s: others translate up to %.0f %% of the words alike", tried.name, 100 * max(shares, default=0)
        )
        return max(shares, default=0.0) >= self.settings.consensus

    def _translations(self, tried: Candidate) -> Array:
        """The best partners of the frequent words, (n,)."""
        view = self.search.view(tried)
        x, y = (side[: self.search.judged, :] for side in (view.x, view.y))
        return translations(x, y, Maps(tried.map), csls_k=self.csls_k)

    def _ratio(self, tried: Candidate) -> float:
        """The mean of both directions: a start that is real is so in both, and chance is not alike in them."""
        view = self.search.view(tried)
        n = min(view.x.shape[0], view.y.shape[0], self.search.judged)
        if n < 2:
            return 0.0
        x, y = view.x[:n, :], view.y[:n, :]
        if tried.order not in self._baselines:
            rotation = Maps(random_rotation(x.shape[1], self.search.seed, x))
            lost = refine(x, y, rotation, replace(QUICK_BASELINE, csls_k=self.csls_k))
            self._baselines[tried.order] = from_both_sides(x, y, lost, self.csls_k)
        found = from_both_sides(x, y, Maps(tried.map), self.csls_k)
        ratios = [times_random(*pair) for pair in zip(found, self._baselines[tried.order], strict=True)]
        return sum(ratios) / 2


def _run_trials(
    searches: Sequence[Search], new: Sequence[tuple[int, Candidate]], trial: Trial, callback: StartCallback | None
) -> None:
    """A short loop from each of these starts, those with the same sizes in lock-step."""
    groups: dict[int, list[tuple[int, Candidate]]] = {}
    for number, tried in new:
        view = searches[number].view(tried)
        groups.setdefault(trial.points(view.x, view.y), []).append((number, tried))
    for group in groups.values():
        views = [searches[number].view(tried) for number, tried in group]
        maps = trial.run(
            [view.x for view in views],
            [view.y for view in views],
            [tried.map for _, tried in group],
            [int(arrays.rng(searches[number].seed, Stream.TRIAL).integers(2**31)) for number, _ in group],
            None if callback is None else partial(_report_trials, callback, group),
        )
        for (_, tried), w in zip(group, maps, strict=True):
            tried.map = w


def _report_start(callback: StartCallback, number: int, name: str, step: int, steps: int) -> None:
    callback(number, name, step, steps, {})


def _report_trials(
    callback: StartCallback, group: Sequence[tuple[int, Candidate]], figures: list[list[StepFigures]], _: Array
) -> None:
    for (number, tried), steps in zip(group, figures, strict=True):
        for step in steps:
            callback(number, tried.name, step.step, step.n_steps, {"objective": step.objective})
