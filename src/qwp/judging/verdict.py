"""Did the alignment find something real? Judged without any dictionary.

A map refitted on its own translations always looks consistent with itself, and so does a map of chance treated the same
way. So the map is judged on words it was not refitted on: two plain refinement rounds on every other word of a side,
then the mutual pairs among the remaining ones, from both sides: how many there are, and how far their CSLS carries.
That is compared with what maps of chance reach on the same spaces (`chance`), by its ratio to their mean and by their
deviation. Where that leaves a doubt, the map goes through the same search as they did: from a real map, if ever so
weak, it leads far beyond what it finds from a random rotation. docs/judgement.md has the ratios of many runs, real ones
and others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.judging import null
from qwp.judging.counterparts import Counterparts
from qwp.judging.estimate import Estimate, estimate, nothing_known
from qwp.judging.null import QUICK, THOROUGH, Effort, Run, Runs, nearest_orthogonal, refined_plainly, searched
from qwp.maps.pairs import ShareFound
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import CrossNeighbours
from qwp.stages.agreement import (
    SAME,
    Agreement,
    agreement,
    agreement_of,
    both_ways,
    mean_agreement,
    per_word_ratio,
    random_rotation,
    share_alike,
    translations,
)
from qwp.stages.refinement import neighbours

SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED = "succeeded", "weak", "failed", "undecided", "unjudged"
VERDICTS = (SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED)
_WORST_FIRST = (FAILED, UNJUDGED, UNDECIDED, WEAK, SUCCEEDED)
FULL, BRIEF, NONE = "full", "quick", "none"
# Above what unrelated spaces were seen to reach, and below real maps of few right words.
RATIO_NEEDED = 1.19
# Deviations of chance that are needed as well; the relative deviation is this at least, for few runs say little of it.
DEVIATIONS_NEEDED, _LEAST_DEVIATION = 6.0, 0.01
# A real map with a lower estimate of its share of right translations is weak.
STRONG_SHARE = 0.2
# Share of known partners that were kept back, and how many of them at least, that no map finds by chance.
KNOWN_SHARE_NEEDED, _KNOWN_NEEDED = 0.05, 5
FEWEST_WORDS = 200
MOST_WORDS = 2500
# What a search from a map finds translates this share of the words as the map does if it has to do with it, and by so
# many deviations more of them than random rotations do. Maps with one word in a hundred right were seen to have 0.03 to
# 0.06.
_LEAST_ALIKE, _ALIKE_DEVIATIONS = 0.02, 6.0


@dataclass(frozen=True)
class VerdictEffort:
    """What a verdict spends.

    words: the most frequent words of each side that are judged, at most. quick: the search of each quick null run. The
    first quick run decides where the ratio to it is at least `beyond_doubt`, all `quick_runs` where the ratio to their
    mean is at least `clear`. thorough: the search of each thorough null run, or None to leave a map undecided that is
    not clear. `thorough_runs` take the place of the quick ones; `more_runs` are added where the ratio lies within
    `near`, relative to `RATIO_NEEDED`. estimated: whether the share of right translations is estimated.
    """

    words: int = MOST_WORDS
    quick: Effort = QUICK
    quick_runs: int = 2
    clear: float = 1.5
    beyond_doubt: float = 2.0
    thorough: Effort | None = THOROUGH
    thorough_runs: int = 3
    more_runs: int = 5
    near: tuple[float, float] = (0.93, 1.1)
    estimated: bool = True


FULL_EFFORT = VerdictEffort()
QUICK_EFFORT = VerdictEffort(thorough=None, estimated=False)
EFFORTS: Mapping[str, VerdictEffort | None] = {FULL: FULL_EFFORT, BRIEF: QUICK_EFFORT, NONE: None}
"""What each value of the parameter `verdict` spends; None judges nothing."""
DEPTHS = tuple(EFFORTS)


@dataclass(frozen=True)
class Quality:
    """Unsupervised figures of a fitted map, and what they mean.

    fitted, random: mutual pairs under the map and under a random rotation. held_out, null: the same on words
    that took no part in refitting, from both sides, under the map (or what a short search from it finds) and under maps
    of chance (their mean). ratio: held_out.csls_per_word / null.csls_per_word. n_words: words judged.

    runs: maps of chance; thorough: whether they went through the long loop, which they do where the short one leaves a
    doubt. found_again: how many of them led to the map itself; what their random rotations reach alone counts in their
    place. deviation: of the CSLS per word of chance, relative to it. z: by how many of these deviations the map is
    above chance. estimate: of the share of right translations. Results of version 0.1 have one run and none of these
    three. partners: how much of each side has one, for items that have no order and may lack a counterpart.
    """

    verdict: str
    explanation: str
    ratio: float
    n_words: int
    fitted: Agreement
    random: Agreement
    held_out: Agreement
    null: Agreement
    null_runs: int = 1
    thorough: bool = True
    null_hits: int = 0
    null_deviation: float | None = None
    z: float | None = None
    estimate: Estimate | None = None
    counterparts: Counterparts | None = None

    def __repr__(self) -> str:
        return f"Quality({self.short}; {self.ratio:.2f} times chance on {self.n_words:,} words)"

    @property
    def short(self) -> str:
        """The verdict in a few words, with the estimate where it is worth something."""
        if self.estimate is None or self.verdict in (FAILED, UNDECIDED, UNJUDGED):
            return self.verdict
        return f"{self.verdict}: about {self.estimate.overall} right"

    @property
    def failed(self) -> bool:
        """True when the figures say that the alignment is not real."""
        return self.verdict == FAILED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        """The inverse of `to_dict`."""
        agreements = ("fitted", "random", "held_out", "null")
        fields: dict[str, Any] = {k: Agreement(**v) if k in agreements else v for k, v in values.items()}
        if fields.get("counterparts") is not None:
            fields["counterparts"] = Counterparts(**fields["counterparts"])
        if fields.get("estimate") is not None:
            fields["estimate"] = Estimate.from_dict(fields["estimate"])
        return cls(**fields)


def runs_of(number: int) -> str:
    """So many runs of chance, in words."""
    return "1 run" if number == 1 else f"{number} runs"


def worst(verdicts: Iterable[str]) -> str:
    """Of several verdicts, that which says least for its alignment."""
    return min(verdicts, key=_WORST_FIRST.index)


def judge(
    x: Array,
    y: Array,
    maps: Maps,
    *,
    seed: int = 0,
    csls_k: int = 10,
    effort: VerdictEffort | None = FULL_EFFORT,
    ordered: bool = True,
    known: ShareFound | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> Quality:
    """The verdict on maps. x: (n, d), y: (m, d) normalised rows, most frequent first.

    ordered: whether the counterparts of the first rows of one side are, by and large, among the first of the other. If
    not, every map, be it of chance, is judged on the partners that it finds for them among all. known: what the maps
    find of known pairs that were kept back.

    The words held out are always judged under an orthogonal map that was refitted on the others, so that every kind of
    map is measured alike. effort: what the verdict spends; None leaves the maps unjudged. Without an estimate a real
    map counts as a success. callback: gets the steps done and those there will be, of which the last is that the
    verdict is there.
    """
    if effort is None:
        return unjudged()
    steps = _Steps(callback, total=4 if effort.estimated else 3)
    n = min(x.shape[0], y.shape[0], effort.words)
    case = _Case(x[:n, :], y[:n, :], maps, seed, csls_k, among=None if ordered or n == y.shape[0] else y)
    fitted = agreement_of(case.neighbours)
    rotation = case.rotation(0)
    random = agreement(case.x, case.seen(rotation), rotation, csls_k)
    if n < 2:
        return _decide(n, fitted, random, fitted, _NullRuns([random]), nothing_known(x.shape[1]), effort=effort)
    steps.done()
    held, nulls = case.held_out, case.null_runs(range(1), effort.quick)
    if per_word_ratio(held, nulls.mean) < effort.beyond_doubt:
        nulls = nulls.with_more(case.null_runs(range(1, effort.quick_runs), effort.quick))
    steps.done()
    if effort.thorough is not None and per_word_ratio(held, nulls.mean) < effort.clear and n >= FEWEST_WORDS:
        steps.total += 1
        held, nulls = _looked_at_closely(case, effort, effort.thorough)
        steps.done()
    found = None
    if effort.estimated:
        real = n < FEWEST_WORDS or _is_real(held, nulls) or (known is not None and _convinces(known))
        found = estimate(x, y, maps, csls_k=csls_k, real=real)
        steps.done()
    quality = _decide(n, fitted, random, held, nulls, found, effort=effort)
    return quality if known is None else with_known_pairs(quality, known)


def _looked_at_closely(case: _Case, effort: VerdictEffort, search: Effort) -> tuple[Agreement, _NullRuns]:
    """What the map reaches by itself or after a thorough search, and thorough null runs."""
    first = range(effort.thorough_runs)
    case.search(search, first, itself=True)
    held = case.held_out_after_search(search, first)
    nulls = case.null_runs(first, search, thorough=True)
    low, high = (bound * RATIO_NEEDED for bound in effort.near)
    if low <= per_word_ratio(held, nulls.mean) <= high:
        more = range(effort.thorough_runs, effort.thorough_runs + effort.more_runs)
        nulls = nulls.with_more(case.null_runs(more, search, thorough=True))
    return held, nulls


def unjudged() -> Quality:
    """For maps that nobody wants to be judged."""
    nothing = Agreement(0, 0.0, 0.0)
    text = "Not judged, as was asked for: nothing is known of how good it is."
    return Quality(UNJUDGED, text, 0.0, 0, nothing, nothing, nothing, nothing, null_runs=0, thorough=False)


class _Steps:
    """Tells whoever listens how far a judgement is."""

    def __init__(self, callback: Callable[[int, int], None] | None, total: int) -> None:
        self.total, self._done, self._callback = total, 0, callback

    def done(self) -> None:
        self._done += 1
        if self._callback is not None:
            self._callback(self._done, self.total)


@dataclass(frozen=True)
class _NullRuns:
    """What maps of chance reached on held-out words, and how many of them were the judged map itself."""

    reached: list[Agreement]
    found_again: int = 0
    thorough: bool = True

    @property
    def mean(self) -> Agreement:
        return mean_agreement(self.reached)

    @property
    def deviation(self) -> float:
        """Of the CSLS per word, relative to its mean."""
        values = [one.csls_per_word for one in self.reached]
        mean = float(np.mean(values))
        if len(values) < 2 or mean <= 0:
            return _LEAST_DEVIATION
        return max(float(np.std(values, ddof=1)) / mean, _LEAST_DEVIATION)

    def with_more(self, others: _NullRuns) -> _NullRuns:
        return _NullRuns(self.reached + others.reached, self.found_again + others.found_again, self.thorough)


@dataclass(frozen=True)
class _Case:
    """Maps that are judged on some words. x: (n, d), y: (n, d).

    among: all items of the other side (m, d), where the counterparts of x can be anywhere among them. Each map is then
    judged on the partners that it finds for x there, which favours it; so does it favour those of chance.
    """

    x: Array
    y: Array
    maps: Maps
    seed: int
    csls_k: int
    among: Array | None = None

    @cached_property
    def held_out(self) -> Agreement:
        return both_ways(self.x, self._own, self.maps, self.csls_k)

    @cached_property
    def neighbours(self) -> CrossNeighbours:
        return neighbours(self.x, self._own, self.maps, self.csls_k)

    @cached_property
    def translations(self) -> np.ndarray:
        return arrays.to_numpy(self.neighbours.forward) if self.among is None else self._translated(self.maps)

    @cached_property
    def _own(self) -> Array:
        """What the judged maps are judged on, (n, d)."""
        return self.y if self.among is None else self._partners_and_others(self.among, self.translations)

    def seen(self, maps: Maps) -> Array:
        """What some maps are judged on, (n, d)."""
        return self.y if self.among is None else self._partners_and_others(self.among, self._translated(maps))

    def _partners_and_others(self, among: Array, translated: np.ndarray) -> Array:
        """The partners (n,) of x among all, and as many others as are missing, (n, d)."""
        partners = np.unique(translated)
        others = np.setdiff1d(np.arange(self.x.shape[0] + len(partners)), partners)
        rows = np.concatenate([partners, others[others < among.shape[0]]])[: self.x.shape[0]]
        return arrays.namespace(self.y).take(among, arrays.asarray(rows, self.y), axis=0)

    def reached(self, maps: Maps) -> Agreement:
        """What some maps reach on held-out words."""
        return both_ways(self.x, self.seen(maps), maps, self.csls_k)

    def _translated(self, maps: Maps) -> np.ndarray:
        """How maps translate the words, (n,)."""
        to = self.y if self.among is None else self.among
        return arrays.to_numpy(translations(self.x, to, maps, csls_k=self.csls_k))

    def held_out_after_search(self, effort: Effort, numbers: Iterable[int]) -> Agreement:
        """The same where the search of the null runs of these numbers leads from these maps, if that is better.

        A weak map is not better by itself than what chance fitted to the words; but it lies where the search finds a
        real one, and a map of chance does not. What it leads to must still be the same map to some degree.
        """
        self.search(effort, (), itself=True)
        found = self._found[effort]
        its = self._translated(found)
        if share_alike(self.translations, its) < max(_LEAST_ALIKE, self._alike_by_chance(its, numbers)):
            return self.held_out
        return max(self.reached(found), self.held_out, key=lambda reached: reached.csls_per_word)

    def _alike_by_chance(self, its: np.ndarray, numbers: Iterable[int]) -> float:
        """The share of translations (n,) that maps which have nothing to do with theirs hardly ever have in common."""
        n = self.x.shape[0]
        shares = [share_alike(its, self._translated(self.rotation(number))) for number in numbers]
        usual = float(np.mean(shares))
        return usual + _ALIKE_DEVIATIONS * math.sqrt((usual + 1.0 / n) / n)

    @cached_property
    def _found(self) -> dict[Effort, Maps]:
        """Where the search of the maps of chance leads from these maps."""
        return {}

    def search(self, effort: Effort, numbers: Iterable[int], *, itself: bool) -> None:
        """Make the runs of chance of these numbers, and the search from the maps themselves, that are still missing."""
        known = self._runs_known
        missing = [number for number in numbers if (effort.name, number) not in known]
        jobs = [(self.y, self.rotation(number).src, number) for number in missing]
        # The search from the maps draws what that of the first rotation draws.
        own = [(self._own, self._start, 0)] if itself and effort not in self._found else []
        if arrays.is_cuda(self.x):
            found = self._searched(jobs + own, effort)
        else:
            # Apart from each other: the runs may be known, and their company could round the sums otherwise.
            found = self._searched(jobs, effort) + self._searched(own, effort)
        if own:
            self._found[effort] = found.pop()
        for number, maps in zip(missing, found, strict=True):
            last = maps if self.among is None else self._fitted_to_partners(maps, effort)
            translated = self._translated(last)
            judged_on = self.y if self.among is None else self._partners_and_others(self.among, translated)
            known[effort.name, number] = Run(translated, both_ways(self.x, judged_on, last, self.csls_k))

    def _fitted_to_partners(self, maps: Maps, effort: Effort) -> Maps:
        """Maps of chance, refined on the partners that they find: the judged ones saw all items, too."""
        return refined_plainly(self.x, self.seen(maps), maps, effort.rounds, self.csls_k)

    def _searched(self, jobs: Sequence[tuple[Array, Array, int]], effort: Effort) -> list[Maps]:
        """What is found on the other side (n, d) from each start (d, d) with the draws of its number, in lock-step."""
        if not jobs:
            return []
        others, starts, draws = zip(*jobs, strict=True)
        return searched(self.x, others, starts, draws, seed=self.seed, csls_k=self.csls_k, effort=effort)

    def rotation(self, number: int) -> Maps:
        """A random rotation; of these words and this seed as many as there are numbers."""
        return Maps(random_rotation(self.x.shape[1], self.seed, self.x, number))

    @cached_property
    def _start(self) -> Array:
        return nearest_orthogonal(self.x, self._own, self.maps, csls_k=self.csls_k)

    def null_runs(self, numbers: range, effort: Effort, *, thorough: bool = False) -> _NullRuns:
        """Runs of chance. One that ends at the judged map is not by chance: what its rotation reaches alone counts."""
        self.search(effort, numbers, itself=False)
        reached, found_again = [], 0
        for number in numbers:
            run = self._runs_known[effort.name, number]
            if share_alike(self.translations, run.translations) >= SAME:
                found_again += 1
                reached.append(self.reached(self.rotation(number)))
            else:
                reached.append(run.reached)
        return _NullRuns(reached, found_again, thorough)

    @cached_property
    def _runs_known(self) -> Runs:
        """Runs of chance on these spaces that were made before: they know nothing of the maps.

        A GPU makes them beside the search from the maps, for nothing; and how many loops go in lock-step there decides
        how their sums are rounded, so what a verdict says must not depend on what was known before it.
        """
        if arrays.is_cuda(self.x):
            return {}
        other = self.y if self.among is None else self.among
        return null.known_of(null.key_of(self.x, other, self.seed, self.csls_k))


def with_known_pairs(quality: Quality, known: ShareFound) -> Quality:
    """The verdict where some known pairs were kept back, and how much of them is found: that outweighs all else."""
    seen = f"of {known.words} words whose partners were known and kept back, it finds {known}."
    if not (quality.failed and _convinces(known)):
        return replace(quality, explanation=f"{quality.explanation} {seen.capitalize()}")
    return replace(
        quality,
        verdict=SUCCEEDED if known.share >= STRONG_SHARE else WEAK,
        explanation=f"The alignment is real: {seen} By itself it could not be told from chance ({quality.ratio:.2f} "
        f"times what that reaches, where {RATIO_NEEDED:g} is needed).",
    )


def _convinces(known: ShareFound) -> bool:
    """Whether no map finds so much by chance."""
    return known.share >= KNOWN_SHARE_NEEDED and known.hits >= _KNOWN_NEEDED


def _is_real(held: Agreement, nulls: _NullRuns) -> bool:
    ratio = per_word_ratio(held, nulls.mean)
    return ratio >= RATIO_NEEDED and _deviations(ratio, nulls) >= DEVIATIONS_NEEDED


def _deviations(ratio: float, nulls: _NullRuns) -> float:
    """By how many deviations of chance a ratio to its mean is above one."""
    return (ratio - 1.0) / nulls.deviation


def _decide(
    n: int,
    fitted: Agreement,
    random: Agreement,
    held: Agreement,
    nulls: _NullRuns,
    found: Estimate | None,
    *,
    effort: VerdictEffort = FULL_EFFORT,
) -> Quality:
    reached = nulls.mean
    ratio = per_word_ratio(held, reached)
    figures = (
        f"on words it was not refitted on, mutual translation pairs bring a CSLS of {held.csls_per_word:.3f} for each "
        f"word, {ratio:.2f} times what chance reaches on these spaces ({reached.csls_per_word:.3f} in "
        f"{runs_of(len(nulls.reached))})"
    )
    share = "" if found is None else f" About {found.overall} of the translations of dictionary words may be right."
    if n < FEWEST_WORDS:
        verdict = UNDECIDED
        text = f"Undecided: {n} words are too few to tell a real alignment from chance ({FEWEST_WORDS} needed)."
    elif effort.thorough is None and ratio < effort.clear:
        verdict = UNDECIDED
        text = (
            f"Undecided: {figures}. A quick look is sure from {effort.clear:g} on alone; a full judgement "
            "(`--verdict full`) can tell more."
        )
    elif not _is_real(held, nulls):
        verdict = FAILED
        text = (
            f"The alignment failed: {figures}, where {RATIO_NEEDED:g} is needed. Do not trust the translations. "
            "Try another start (identical strings, a seed lexicon), more words, or vectors from more similar text."
        )
    elif found is not None and found.overall.p1 < STRONG_SHARE:
        verdict = WEAK
        text = (
            f"The alignment is real but weak: {figures}; {RATIO_NEEDED:g} is needed.{share} "
            "Use it as a start, not as a dictionary."
        )
    else:
        verdict, text = SUCCEEDED, f"The alignment is real: {figures}; {RATIO_NEEDED:g} is needed.{share}"
    return Quality(
        verdict,
        text,
        ratio,
        n,
        fitted,
        random,
        held,
        reached,
        null_runs=len(nulls.reached),
        thorough=nulls.thorough,
        null_hits=nulls.found_again,
        null_deviation=nulls.deviation,
        z=_deviations(ratio, nulls),
        estimate=found,
    )
