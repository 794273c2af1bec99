"""The verdict on an alignment, without any dictionary.

The map is refitted by two plain refinement rounds on every other word, and scored on the mutual CSLS pairs among the
remaining words, from both sides. Its held-out agreement, relative to the mean plus two deviations of null runs on the
same spaces (`null`), is the statistic of one test: its p-value is its rank among unrelated pairs of spaces that went
through full fits. In doubt, the map goes through the same search as the null runs: a search from a good map, however
weak, leads far beyond what it finds from a random rotation. docs/judgement.md states the test and its error rates.

Known pairs outweigh the null runs, in both directions: held-out pairs measure P@1 (`measured`), and a map that finds no
more of them than chance has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from qwp.arrays import Array
from qwp.judging.counterparts import Counterparts
from qwp.judging.estimate import Estimate, Share, empty_estimate, estimate, outside_calibration
from qwp.judging.measured import Measured
from qwp.judging.null import QUICK, THOROUGH, NullDistribution, NullTest, SameMap, SearchEffort
from qwp.judging.null_data import NullData, sequential_test
from qwp.maps.procrustes import Maps
from qwp.search.calibration import CALIBRATION
from qwp.stages.agreement import Agreement, agreement, agreement_of, per_word_ratio

SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED = "succeeded", "weak", "failed", "undecided", "unjudged"
VERDICTS = (SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED)
_WORST_FIRST = (FAILED, UNJUDGED, UNDECIDED, WEAK, SUCCEEDED)
FULL, EXACT, BRIEF, NONE = "full", "exact", "quick", "none"


@dataclass(frozen=True)
class Criteria:
    """The thresholds of a verdict. docs/judgement.md has the measurements behind them."""

    level: float = 0.01
    """A map is better than null maps if its p-value is at most this. Each kind of unrelated pairs has 127 or more."""
    strong_accuracy: float = 0.2
    """An alignment with a lower measured or, without held-out pairs, estimated accuracy is weak."""
    confirmed_share: float = 0.05
    """A map that translates this share of held-out words correctly does not fail,"""
    confirmed_hits: int = 5
    """if these are at least this many words"""
    confirmed_level: float = 0.001
    """and the p-value against chance is at most this."""
    refuted_level: float = 0.01
    """A map whose p-value is above this fails if the interval of P@1 ends below `strong_accuracy`."""
    fewest_words: int = 200
    """With fewer words there is no verdict."""


CRITERIA = Criteria()


@dataclass(frozen=True)
class VerdictEffort:
    """How much work a verdict does, and its criteria."""

    words: int = 2500
    """Most frequent words of each side that are judged, at most."""
    quick: SearchEffort = QUICK
    """The search of a quick null run."""
    quick_runs: int = 2
    """Number of quick null runs."""
    clear: float = 1.4
    """A statistic of the quick null runs from which no thorough runs are needed. Unrelated pairs reach 1.157 with
    thorough null runs, which agree a tenth better at most."""
    beyond_doubt: float = 2.0
    """A ratio to the first quick null run from which no second one is needed."""
    thorough: SearchEffort | None = THOROUGH
    """The search of a thorough null run; None leaves an alignment undecided if its ratio is not clear."""
    thorough_runs: int = 3
    """Number of thorough null runs, which replace the quick ones."""
    more_runs: int = 5
    """Number of further thorough runs if the statistic is near its threshold."""
    near: tuple[float, float] = (0.93, 1.1)
    """What counts as near, relative to the threshold of the statistic."""
    estimated: bool = True
    """Whether the accuracy is estimated. Without an estimate no alignment is weak."""
    null_data: int = 0
    """Most fits of null data from the same spaces, if a success is not clear. None of 19 reaches a map: p = 0.05."""
    criteria: Criteria = CRITERIA
    """The thresholds."""
    same: SameMap = field(default_factory=SameMap)
    """When the end of a search from the map counts as the same map."""


FULL_EFFORT = VerdictEffort()
EXACT_EFFORT = VerdictEffort(null_data=19)
QUICK_EFFORT = VerdictEffort(thorough=None, estimated=False)
EFFORTS: Mapping[str, VerdictEffort | None] = {
    FULL: FULL_EFFORT,
    EXACT: EXACT_EFFORT,
    BRIEF: QUICK_EFFORT,
    NONE: None,
}
"""The effort for each value of the parameter `verdict`; None skips the verdict."""
DEPTHS = tuple(EFFORTS)


@dataclass(frozen=True)
class Quality:
    """The verdict on a fitted map and the figures behind it. No figure needs a dictionary.

    Attributes:
        verdict: one of `VERDICTS`.
        explanation: the verdict in sentences.
        ratio: held_out.csls_per_word / null.csls_per_word, the size of the effect.
        n_words: number of words of each side that were judged.
        fitted: mutual pairs under the map.
        random: mutual pairs under a random rotation.
        held_out: mutual pairs on words that took no part in refitting, from both sides, under the map or under what a
            short search from it finds.
        null: the mean of the same over the null runs.
        null_runs: number of null runs.
        thorough: whether the null runs used the long search.
        null_hits: null runs that converged to the map itself; the scores of their random rotations count instead.
        null_deviation: relative deviation of the CSLS per word of the null runs; None for a single run.
        z: by how many of these deviations the ratio exceeds 1; None for a single run.
        estimate: the estimated accuracy.
        counterparts: how many items of each side have one, for unordered items.
        null_exceedances: null runs that reach the held-out agreement of the map.
        measured: P@1 on known pairs.
        outside_calibration: why the estimate cannot be trusted; empty if it can.
        p_value: of the statistic, its rank among the least favourable kind of unrelated pairs.
        statistic: held-out agreement relative to the null mean plus two deviations.
        interval: 90 % interval of the ratio by the deviation of the null runs; None for a single run.
        null_data: the comparison with full fits of null data from the same spaces, with `verdict="exact"`.

    Results of earlier versions may lack all from `null_runs` on.
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
    null_exceedances: int | None = None
    measured: Measured | None = None
    outside_calibration: list[str] = field(default_factory=list)
    p_value: float | None = None
    statistic: float | None = None
    interval: list[float] | None = None
    null_data: NullData | None = None

    def __repr__(self) -> str:
        return f"Quality({self.short}; {self.ratio:.2f} times the null on {self.n_words:,} words)"

    @property
    def short(self) -> str:
        """The verdict in a few words, with the measured or estimated accuracy unless the alignment failed."""
        if self.verdict in (FAILED, UNDECIDED, UNJUDGED):
            return self.verdict
        if self.measured is not None and self.measured.held_out:
            return f"{self.verdict}: measured accuracy {self.measured}"
        return f"{self.verdict}: estimated accuracy {self.trusted}" if self.trusted else self.verdict

    @property
    def trusted(self) -> Share | None:
        """The estimated accuracy, if the spaces are within the calibration range."""
        return None if self.estimate is None or self.outside_calibration else self.estimate.overall

    @property
    def failed(self) -> bool:
        """True if the alignment is not better than the null distribution."""
        return self.verdict == FAILED

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        """Return the quality of what `to_dict` returned."""
        agreements = ("fitted", "random", "held_out", "null")
        fields: dict[str, Any] = {k: Agreement(**v) if k in agreements else v for k, v in values.items()}
        if fields.get("counterparts") is not None:
            fields["counterparts"] = Counterparts(**fields["counterparts"])
        if fields.get("measured") is not None:
            fields["measured"] = Measured(**fields["measured"])
        if fields.get("null_data") is not None:
            fields["null_data"] = NullData(**fields["null_data"])
        if fields.get("estimate") is not None:
            fields["estimate"] = Estimate.from_dict(fields["estimate"])
        return cls(**fields)


def worst(verdicts: Iterable[str]) -> str:
    """Return the worst of several verdicts."""
    return min(verdicts, key=_WORST_FIRST.index)


# --------------------------------------------------------------------------- judging


def judge(
    x: Array,
    y: Array,
    maps: Maps,
    *,
    seed: int = 0,
    csls_k: int = 10,
    effort: VerdictEffort | None = FULL_EFFORT,
    ordered: bool = True,
    known: Measured | None = None,
    callback: Callable[[int, int], None] | None = None,
    null_fit: Callable[[int], tuple[Array, Array, Maps]] | None = None,
) -> Quality:
    """Return the verdict on maps.

    Held-out words are always scored under an orthogonal map that was refitted on the other words, so that maps of every
    kind are measured alike.

    Args:
        x: (n, d) normalised source rows, most frequent first.
        y: (m, d) normalised target rows, most frequent first.
        maps: the maps to judge.
        seed: of the random rotations and the null runs.
        csls_k: neighbourhood size of CSLS.
        effort: how much work to do; None does not judge the maps.
        ordered: whether most counterparts of the first rows of one side are among the first rows of the other. If not,
            every map, null maps included, is scored on the counterparts that it finds among all rows.
        known: the accuracy of the maps on known pairs.
        callback: gets the number of finished steps and their total.
        null_fit: returns the spaces and the maps of a full fit of null data, by its number.
    """
    if effort is None:
        return unjudged()
    progress = _Progress(callback, total=4 if effort.estimated else 3)
    n = min(x.shape[0], y.shape[0], effort.words)
    test = NullTest(
        x[:n, :],
        y[:n, :],
        maps,
        seed=seed,
        csls_k=csls_k,
        candidates=None if ordered or n == y.shape[0] else y,
        same=effort.same,
    )
    fitted = agreement_of(test.neighbours)
    rotation = test.rotation(0)
    random = agreement(test.x, test.targets(rotation), rotation, csls_k)
    decided = partial(decide, n, fitted, random, known=known, ordered=ordered, effort=effort)
    if n < 2:
        return decided(fitted, NullDistribution((random,)), empty_estimate(x.shape[1]))
    progress.step()
    held_out, nulls = _compare(test, effort, progress)
    if not effort.estimated:
        return decided(held_out, nulls, None)
    better = _better_than_chance(held_out, nulls, known, effort.criteria)
    found = estimate(x, y, maps, csls_k=csls_k, succeeded=n < effort.criteria.fewest_words or better, ordered=ordered)
    progress.step()
    quality = decided(held_out, nulls, found, outside=outside_calibration(x, y, ordered=ordered))
    clear = not nulls.thorough or not better or _confirmed(known, effort.criteria) is not None
    if null_fit is None or clear or not effort.null_data or n < effort.criteria.fewest_words:
        return quality
    progress.total += effort.null_data

    def null_statistic(number: int) -> float:
        rows, others, fitted_maps = null_fit(number)
        bare = replace(effort, estimated=False, null_data=0)
        of_null = judge(rows, others, fitted_maps, seed=seed, csls_k=csls_k, effort=bare, ordered=ordered)
        progress.step()
        return of_null.statistic or 0.0

    tested = sequential_test(nulls.statistic(held_out), null_statistic, effort.null_data)
    verdict = FAILED if tested.exceedances else quality.verdict
    quality = replace(quality, verdict=verdict, null_data=tested)
    return replace(quality, explanation=_explanation(quality, effort, "words" if ordered else "items"))


def _compare(test: NullTest, effort: VerdictEffort, progress: _Progress) -> tuple[Agreement, NullDistribution]:
    """Return the held-out agreement and the null distribution: quick null runs, replaced by thorough ones in doubt."""
    held_out, nulls = test.held_out, test.null_runs(range(1), effort.quick)
    if nulls.statistic(held_out) < effort.beyond_doubt:
        nulls = nulls.with_more(test.null_runs(range(1, effort.quick_runs), effort.quick))
    progress.step()
    clear = nulls.statistic(held_out) >= effort.clear
    if effort.thorough is not None and not clear and test.x.shape[0] >= effort.criteria.fewest_words:
        progress.total += 1
        held_out, nulls = _thorough_test(test, effort, effort.thorough)
        progress.step()
    return held_out, nulls


def _thorough_test(test: NullTest, effort: VerdictEffort, search: SearchEffort) -> tuple[Agreement, NullDistribution]:
    """Return the held-out agreement of the maps, or after a thorough search from them, and thorough null runs."""
    first = range(effort.thorough_runs)
    test.search(search, first, itself=True)
    held_out = test.held_out_after_search(search, first)
    nulls = test.null_runs(first, search, thorough=True)
    low, high = (bound * CALIBRATION.threshold(effort.criteria.level) for bound in effort.near)
    if low <= nulls.statistic(held_out) <= high:
        more = range(effort.thorough_runs, effort.thorough_runs + effort.more_runs)
        nulls = nulls.with_more(test.null_runs(more, search, thorough=True))
    return held_out, nulls


class _Progress:
    """Reports the finished steps of a verdict to a callback."""

    def __init__(self, callback: Callable[[int, int], None] | None, total: int) -> None:
        self.total, self._done, self._callback = total, 0, callback

    def step(self) -> None:
        self._done += 1
        if self._callback is not None:
            self._callback(self._done, self.total)


def _beats_null(held_out: Agreement, nulls: NullDistribution, criteria: Criteria) -> bool:
    return CALIBRATION.p_value(nulls.statistic(held_out)) <= criteria.level


def _confirmed(known: Measured | None, criteria: Criteria) -> bool | None:
    """Return whether known pairs confirm the maps (True), refute them (False), or leave it open (None)."""
    if known is None:
        return None
    if known.p_value > criteria.refuted_level and known.high < criteria.strong_accuracy:
        return False
    enough = known.p1 >= criteria.confirmed_share and known.hits >= criteria.confirmed_hits
    return True if enough and known.held_out and known.p_value <= criteria.confirmed_level else None


def _better_than_chance(
    held_out: Agreement, nulls: NullDistribution, known: Measured | None, criteria: Criteria
) -> bool:
    """Return what the known pairs say or, if they leave it open, whether the maps are better than the null runs."""
    confirmed = _confirmed(known, criteria)
    return _beats_null(held_out, nulls, criteria) if confirmed is None else confirmed


# --------------------------------------------------------------------------- deciding


def unjudged() -> Quality:
    """Return the quality of maps that were not judged."""
    nothing = Agreement(0, 0.0, 0.0)
    text = "Not judged, as requested: the accuracy is unknown."
    return Quality(UNJUDGED, text, 0.0, 0, nothing, nothing, nothing, nothing, null_runs=0, thorough=False)


def decide(
    n: int,
    fitted: Agreement,
    random: Agreement,
    held_out: Agreement,
    nulls: NullDistribution,
    found: Estimate | None,
    *,
    known: Measured | None = None,
    outside: Iterable[str] = (),
    ordered: bool = True,
    effort: VerdictEffort = FULL_EFFORT,
) -> Quality:
    """Return the verdict that the figures of n words lead to.

    outside: why the estimate cannot be trusted. ordered: whether the words have an order of frequency.
    """
    ratio = per_word_ratio(held_out, nulls.mean)
    quality = Quality(
        _verdict(n, held_out, nulls, found, known, effort),
        "",
        ratio,
        n,
        fitted,
        random,
        held_out,
        nulls.mean,
        null_runs=len(nulls.scores),
        thorough=nulls.thorough,
        null_hits=nulls.hits,
        null_deviation=nulls.deviation,
        z=nulls.z(ratio),
        estimate=found,
        null_exceedances=nulls.exceedances(held_out),
        measured=known,
        outside_calibration=list(outside),
        p_value=CALIBRATION.p_value(nulls.statistic(held_out)),
        statistic=nulls.statistic(held_out),
        interval=nulls.interval(held_out),
    )
    return replace(quality, explanation=_explanation(quality, effort, "words" if ordered else "items"))


def _verdict(
    n: int,
    held_out: Agreement,
    nulls: NullDistribution,
    found: Estimate | None,
    known: Measured | None,
    effort: VerdictEffort,
) -> str:
    criteria = effort.criteria
    if _confirmed(known, criteria) is None:
        unclear = effort.thorough is None and nulls.statistic(held_out) < effort.clear
        if n < criteria.fewest_words or unclear:
            return UNDECIDED
    if not _better_than_chance(held_out, nulls, known, criteria):
        return FAILED
    accuracies = [] if found is None else [found.overall.p1]
    if known is not None:
        # Pairs that the fit saw give an upper bound only.
        accuracies = [known.p1] if known.held_out else [*accuracies, known.high]
    return WEAK if accuracies and min(accuracies) < criteria.strong_accuracy else SUCCEEDED


# --------------------------------------------------------------------------- explaining


_CHECK_PAIRS = "Check that the known pairs belong to these two spaces, in this direction and this order of words."


def _explanation(quality: Quality, effort: VerdictEffort, noun: str) -> str:
    """Return the verdict in sentences. The first one says how much is right, or why that is unknown."""
    confirmed = _confirmed(quality.measured, effort.criteria)
    lead = f"{quality.verdict.capitalize()}: {_lead(quality, effort, confirmed, noun)}."
    sentences = [lead, *_null_sentences(quality, effort, confirmed)]
    share, known = quality.trusted, quality.measured
    contradicted = share is not None and known is not None and known.held_out and known.high < share.low
    if contradicted and quality.verdict != FAILED:
        sentences += [f"Without the known pairs, the estimate would be {share}.", _CHECK_PAIRS]
    if quality.verdict == WEAK:
        sentences.append("Use it as an initialization, not as a dictionary.")
    if quality.verdict == FAILED:
        sentences += ["Do not trust the translations.", _advice(confirmed)]
    return " ".join(sentences)


def _lead(quality: Quality, effort: VerdictEffort, confirmed: bool | None, noun: str) -> str:
    """Return the first sentence of the verdict: measured accuracy if there is one, else the estimate."""
    known, criteria = quality.measured, effort.criteria
    if known is not None and (known.held_out or confirmed is False):
        which = f"{known.words} held-out" if known.held_out else f"the {known.words}"
        seen = "" if known.held_out else " that the fit used"
        chance = f", no more than by chance (p = {known.p_value:.2g})" if confirmed is False else ""
        return (
            f"{100 * known.p1:.0f} % of {which} known pairs{seen} are ranked first "
            f"({100 * known.low:.0f}-{100 * known.high:.0f} %){chance}"
        )
    if quality.n_words < criteria.fewest_words:
        return f"{quality.n_words} words are too few for a verdict; at least {criteria.fewest_words} are needed"
    if quality.verdict == UNDECIDED:
        return (
            f"the quick verdict needs {effort.clear:g} times the null agreement and found {quality.statistic:.2f}; use "
            "`--verdict full`"
        )
    if quality.verdict == FAILED:
        return "the map is not clearly better than null maps"
    if quality.trusted is not None:
        share = quality.trusted
        return (
            f"about {100 * share.p1:.0f} % of the {noun} with a counterpart are estimated to be translated correctly "
            f"({100 * share.low:.0f}-{100 * share.high:.0f} %)"
        )
    reasons = ", ".join(quality.outside_calibration)
    unknown = f"cannot be estimated: outside the calibration range ({reasons})" if reasons else "was not estimated"
    accuracy = "but its accuracy seems low; it" if quality.verdict == WEAK else "and its accuracy"
    return f"the map is better than null maps, {accuracy} {unknown}"


def _null_sentences(quality: Quality, effort: VerdictEffort, confirmed: bool | None) -> list[str]:
    """Return the comparison with the null runs in sentences."""
    if quality.n_words < effort.criteria.fewest_words or quality.verdict == UNDECIDED:
        return []
    runs, exceeded = quality.null_runs, quality.null_exceedances or 0
    which = ("all " if runs > 1 else "") if not exceeded else f"{runs - exceeded} of "
    between = "" if quality.interval is None else " ({:.2f}-{:.2f})".format(*quality.interval)
    found = [
        f"Held-out agreement is {quality.ratio:.2f} times the null mean{between}, better than {which}"
        f"{null_runs_in_words(runs)}."
    ]
    if quality.null_hits:
        found.append(f"{null_runs_in_words(quality.null_hits)} found this map; the random rotation is scored instead.")
    if quality.p_value is not None:
        smallest = ", the smallest possible" if quality.p_value <= CALIBRATION.smallest_p_value else ""
        found.append(
            f"Against unrelated spaces, p = {quality.p_value:.2g}{smallest} (level {effort.criteria.level:g})."
        )
    if quality.null_data is not None:
        found.append(quality.null_data.sentence)
    if confirmed is False:
        found.append("The known pairs outweigh this comparison.")
    return found


def _advice(confirmed: bool | None) -> str:
    if confirmed is False:
        return _CHECK_PAIRS
    return (
        "Try another initialization (identical strings, a seed lexicon), more words, or vectors from more similar text."
    )


def null_runs_in_words(number: int) -> str:
    """Return "1 null run" or "2 null runs"."""
    return "1 null run" if number == 1 else f"{number} null runs"
