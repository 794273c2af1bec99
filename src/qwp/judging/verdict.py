"""The verdict on an alignment, without any dictionary.

The map is refitted by two plain refinement rounds on every other word, and scored on the mutual CSLS pairs among the
remaining words, from both sides. Its held-out agreement is compared with null runs on the same spaces (`null`), by the
ratio to their mean and by their deviation. In doubt, the map goes through the same search as the null runs: a search
from a good map, however weak, leads far beyond what it finds from a random rotation. docs/judgement.md reports the
ratios of many alignments and of unrelated pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from qwp.arrays import Array
from qwp.judging.counterparts import Counterparts
from qwp.judging.estimate import Estimate, empty_estimate, estimate
from qwp.judging.null import QUICK, THOROUGH, NullDistribution, NullTest, SameMap, SearchEffort
from qwp.maps.pairs import ShareFound
from qwp.maps.procrustes import Maps
from qwp.stages.agreement import Agreement, agreement, agreement_of, per_word_ratio

SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED = "succeeded", "weak", "failed", "undecided", "unjudged"
VERDICTS = (SUCCEEDED, WEAK, FAILED, UNDECIDED, UNJUDGED)
_WORST_FIRST = (FAILED, UNJUDGED, UNDECIDED, WEAK, SUCCEEDED)
FULL, BRIEF, NONE = "full", "quick", "none"


@dataclass(frozen=True)
class Criteria:
    """The thresholds of a verdict. docs/judgement.md has the measurements behind them."""

    ratio: float = 1.19
    """Held-out agreement relative to the null mean, at least. 1,293 of 1,294 unrelated pairs stay below this or `z`;
    alignments with P@1 of 20 % and more reach 1.28 at least."""
    z: float = 6.0
    """The ratio must exceed 1 by this many relative deviations of the null distribution."""
    least_deviation: float = 0.01
    """Lower bound of that relative deviation, because few null runs underestimate it."""
    strong_accuracy: float = 0.2
    """An alignment with a lower estimated accuracy is weak."""
    held_out_share: float = 0.05
    """An alignment that translates this share of held-out known pairs correctly does not fail."""
    held_out_hits: int = 5
    """It must translate this many held-out words correctly, too."""
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
    clear: float = 1.5
    """A ratio to the quick null runs from which no thorough runs are needed."""
    beyond_doubt: float = 2.0
    """A ratio to the first quick null run from which no second one is needed."""
    thorough: SearchEffort | None = THOROUGH
    """The search of a thorough null run; None leaves an alignment undecided if its ratio is not clear."""
    thorough_runs: int = 3
    """Number of thorough null runs, which replace the quick ones."""
    more_runs: int = 5
    """Number of further thorough runs if the ratio is near the threshold."""
    near: tuple[float, float] = (0.93, 1.1)
    """What counts as near, relative to the threshold of the ratio."""
    estimated: bool = True
    """Whether the accuracy is estimated. Without an estimate no alignment is weak."""
    criteria: Criteria = CRITERIA
    """The thresholds."""
    same: SameMap = field(default_factory=SameMap)
    """When the end of a search from the map counts as the same map."""


FULL_EFFORT = VerdictEffort()
QUICK_EFFORT = VerdictEffort(thorough=None, estimated=False)
EFFORTS: Mapping[str, VerdictEffort | None] = {FULL: FULL_EFFORT, BRIEF: QUICK_EFFORT, NONE: None}
"""The effort for each value of the parameter `verdict`; None skips the verdict."""
DEPTHS = tuple(EFFORTS)


@dataclass(frozen=True)
class Quality:
    """The verdict on a fitted map and the figures behind it. No figure needs a dictionary.

    Attributes:
        verdict: one of `VERDICTS`.
        explanation: the verdict in sentences.
        ratio: held_out.csls_per_word / null.csls_per_word.
        n_words: number of words of each side that were judged.
        fitted: mutual pairs under the map.
        random: mutual pairs under a random rotation.
        held_out: mutual pairs on words that took no part in refitting, from both sides, under the map or under what a
            short search from it finds.
        null: the mean of the same over the null runs.
        null_runs: number of null runs.
        thorough: whether the null runs used the long search.
        null_hits: null runs that converged to the map itself; the scores of their random rotations count instead.
        null_deviation: relative deviation of the CSLS per word of the null runs.
        z: by how many of these deviations the ratio exceeds 1.
        estimate: the estimated accuracy.
        counterparts: how many items of each side have one, for unordered items.

    Results of version 0.1 lack the last four.
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
        return f"Quality({self.short}; {self.ratio:.2f} times the null on {self.n_words:,} words)"

    @property
    def short(self) -> str:
        """The verdict in a few words, with the estimated accuracy unless the alignment failed."""
        if self.estimate is None or self.verdict in (FAILED, UNDECIDED, UNJUDGED):
            return self.verdict
        return f"{self.verdict}: estimated accuracy {self.estimate.overall}"

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
        if fields.get("estimate") is not None:
            fields["estimate"] = Estimate.from_dict(fields["estimate"])
        return cls(**fields)


def null_runs_in_words(number: int) -> str:
    """Return "1 null run" or "2 null runs"."""
    return "1 null run" if number == 1 else f"{number} null runs"


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
    known: ShareFound | None = None,
    callback: Callable[[int, int], None] | None = None,
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
        known: the share of held-out known pairs that the maps find.
        callback: gets the number of finished steps and their total.
    """
    if effort is None:
        return unjudged()
    progress = _Progress(callback, total=4 if effort.estimated else 3)
    criteria = effort.criteria
    n = min(x.shape[0], y.shape[0], effort.words)
    test = NullTest(
        x[:n, :],
        y[:n, :],
        maps,
        seed=seed,
        csls_k=csls_k,
        candidates=None if ordered or n == y.shape[0] else y,
        same=effort.same,
        least_deviation=criteria.least_deviation,
    )
    fitted = agreement_of(test.neighbours)
    rotation = test.rotation(0)
    random = agreement(test.x, test.targets(rotation), rotation, csls_k)
    if n < 2:
        nulls = NullDistribution((random,), least_deviation=criteria.least_deviation)
        return decide(n, fitted, random, fitted, nulls, empty_estimate(x.shape[1]), effort=effort)
    progress.step()
    held_out, nulls = _compare(test, effort, progress)
    found = None
    if effort.estimated:
        succeeded = n < criteria.fewest_words or _beats_null(held_out, nulls, criteria) or _enough(known, criteria)
        found = estimate(x, y, maps, csls_k=csls_k, succeeded=succeeded)
        progress.step()
    quality = decide(n, fitted, random, held_out, nulls, found, effort=effort)
    return quality if known is None else with_held_out_pairs(quality, known, criteria)


def _compare(test: NullTest, effort: VerdictEffort, progress: _Progress) -> tuple[Agreement, NullDistribution]:
    """Return the held-out agreement and the null distribution: quick null runs, replaced by thorough ones in doubt."""
    held_out, nulls = test.held_out, test.null_runs(range(1), effort.quick)
    if per_word_ratio(held_out, nulls.mean) < effort.beyond_doubt:
        nulls = nulls.with_more(test.null_runs(range(1, effort.quick_runs), effort.quick))
    progress.step()
    clear = per_word_ratio(held_out, nulls.mean) >= effort.clear
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
    low, high = (bound * effort.criteria.ratio for bound in effort.near)
    if low <= per_word_ratio(held_out, nulls.mean) <= high:
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
    ratio = per_word_ratio(held_out, nulls.mean)
    return ratio >= criteria.ratio and nulls.z(ratio) >= criteria.z


def _enough(known: ShareFound | None, criteria: Criteria) -> bool:
    """Whether the maps find more held-out known pairs than any null map."""
    return known is not None and known.share >= criteria.held_out_share and known.hits >= criteria.held_out_hits


# --------------------------------------------------------------------------- deciding and explaining


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
    effort: VerdictEffort = FULL_EFFORT,
) -> Quality:
    """Return the verdict that the figures of n words lead to."""
    criteria, null = effort.criteria, nulls.mean
    ratio = per_word_ratio(held_out, null)
    z = nulls.z(ratio)
    if n < criteria.fewest_words or (effort.thorough is None and ratio < effort.clear):
        verdict = UNDECIDED
    elif not _beats_null(held_out, nulls, criteria):
        verdict = FAILED
    elif found is not None and found.overall.p1 < criteria.strong_accuracy:
        verdict = WEAK
    else:
        verdict = SUCCEEDED
    quality = Quality(
        verdict,
        "",
        ratio,
        n,
        fitted,
        random,
        held_out,
        null,
        null_runs=len(nulls.scores),
        thorough=nulls.thorough,
        null_hits=nulls.hits,
        null_deviation=nulls.deviation,
        z=z,
        estimate=found,
    )
    return replace(quality, explanation=_explanation(quality, effort))


def _explanation(quality: Quality, effort: VerdictEffort) -> str:
    """Return the verdict in sentences."""
    criteria, n = effort.criteria, quality.n_words
    if n < criteria.fewest_words:
        return f"Undecided: {n} words are too few for a verdict; at least {criteria.fewest_words} are needed."
    if quality.verdict == UNDECIDED:
        return (
            f"Undecided: {_figures(quality, effort.clear)}. The quick verdict decides only above its threshold; use "
            "`--verdict full`."
        )
    figures = _figures(quality, criteria.ratio)
    if quality.verdict == FAILED:
        if quality.ratio >= criteria.ratio:
            figures += f", but only {quality.z:.1f} null deviations above 1 (threshold {criteria.z:g})"
        return (
            f"Failed: {figures}. Do not trust the translations. Try another initialization (identical strings, a seed "
            "lexicon), more words, or vectors from more similar text."
        )
    accuracy = "" if quality.estimate is None else f" Estimated accuracy {quality.estimate.overall}."
    if quality.verdict == WEAK:
        return f"Weak: {figures}.{accuracy} Use it as an initialization, not as a dictionary."
    return f"Succeeded: {figures}.{accuracy}"


def _figures(quality: Quality, threshold: float) -> str:
    return (
        f"held-out agreement is {quality.ratio:.2f} times the null (threshold {threshold:g}; CSLS per word "
        f"{quality.held_out.csls_per_word:.3f} against {quality.null.csls_per_word:.3f} in "
        f"{null_runs_in_words(quality.null_runs)})"
    )


def with_held_out_pairs(quality: Quality, known: ShareFound, criteria: Criteria = CRITERIA) -> Quality:
    """Return the verdict in the light of held-out known pairs: finding enough of them outweighs a failure."""
    found = f"it translates {known} of {known.words} held-out words of the lexicon correctly."
    if not (quality.failed and _enough(known, criteria)):
        return replace(quality, explanation=f"{quality.explanation} {found.capitalize()}")
    verdict = SUCCEEDED if known.share >= criteria.strong_accuracy else WEAK
    return replace(
        quality,
        verdict=verdict,
        explanation=f"{verdict.capitalize()}: {found} Without the lexicon it would have failed: held-out agreement is "
        f"{quality.ratio:.2f} times the null (threshold {criteria.ratio:g}).",
    )
