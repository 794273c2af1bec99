"""The verdict distinguishes right alignments from those that only agree with themselves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qwp.judging import null
from qwp.judging.estimate import Share, empty_estimate
from qwp.judging.measured import Measured, interval
from qwp.judging.null import NullDistribution, NullRun, nearest_orthogonal, search
from qwp.judging.verdict import (
    CRITERIA,
    EFFORTS,
    FAILED,
    SUCCEEDED,
    UNDECIDED,
    WEAK,
    Quality,
    VerdictEffort,
    decide,
    judge,
    unjudged,
)
from qwp.maps.procrustes import Maps, orthogonality_error, polar, reweighted
from qwp.search.calibration import CALIBRATION
from qwp.spaces.normalization import fit
from qwp.stages.agreement import Agreement, agreement, both_ways, per_word_ratio, random_rotation, translations
from qwp.stages.refinement import WEIGHTED, CslsRefinement
from tests.libraries import host
from tests.problems import SMALL_EFFORT, Array, null_maps_of, planted, rotation


def test_a_true_map_succeeds() -> None:
    problem = planted(300, d=15, noise=0.3, dtype="float32")
    quality = judge(problem.src, problem.tgt, Maps(problem.w))
    assert quality.verdict == SUCCEEDED
    assert quality.ratio > 1.5
    assert quality.fitted.mean_csls > quality.random.mean_csls
    assert quality.explanation == (
        "Succeeded: the map is better than null maps, and its accuracy cannot be estimated: outside the calibration "
        "range (fewer than 1,000 words, 15 dimensions instead of 50 to 300). Held-out agreement is "
        f"{quality.ratio:.2f} times the null mean, better than 1 null run. Against unrelated spaces, p = 0.0078, the "
        "smallest possible (level 0.01)."
    )


def test_unordered_items_are_judged_on_the_counterparts_that_each_map_finds() -> None:
    problem = planted(1500, d=15, noise=0.3, dtype="float32", shuffle=True)
    x, y, maps = problem.src, problem.tgt, Maps(problem.w)
    effort = replace(SMALL_EFFORT, words=300, estimated=False)
    # The first 300 rows of both sides contain some sixty pairs of counterparts.
    ordered = judge(x, y, maps, effort=effort)
    found = judge(x, y, maps, effort=effort, ordered=False)
    assert found.verdict == SUCCEEDED
    assert found.ratio > ordered.ratio + 0.3
    assert found.n_words == 300
    # Null maps profit alike: a map that was fitted to all items of two unrelated clouds fails.
    other = planted(1500, d=15, noise=0.3, dtype="float32", seed=50).tgt
    wrong = CslsRefinement(rounds=5, words=0).refine(x, other, Maps(rotation(15, 3).astype("f4")))
    unrelated = judge(x, other, wrong, effort=effort, ordered=False)
    assert unrelated.verdict == FAILED
    assert unrelated.ratio < 1.15


def test_a_self_consistent_but_wrong_map_fails() -> None:
    problem = planted(400, d=15, noise=0.3, dtype="float32")
    start = Maps(rotation(15, 100).astype("f4"))
    wrong = CslsRefinement(rounds=1).refine(problem.src, problem.tgt, start)
    assert problem.accuracy(wrong.src) < 0.1  # a refinement may find the answer from a random rotation
    quality = judge(problem.src, problem.tgt, wrong, effort=SMALL_EFFORT)
    assert quality.verdict == FAILED
    assert quality.explanation.startswith("Failed: ")


def test_two_sided_maps_are_judged_like_the_equivalent_one_sided_map() -> None:
    problem = planted(300, d=15, noise=0.3)
    turn = rotation(15, 31)
    one_sided = judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT)
    two_sided = judge(problem.src, problem.tgt, Maps(problem.w @ turn, turn), effort=SMALL_EFFORT)
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=1e-9)
    for name in ("fitted", "random", "held_out", "null"):
        ours, theirs = getattr(two_sided, name), getattr(one_sided, name)
        assert (ours.pairs, ours.share) == (theirs.pairs, theirs.share)
        assert ours.mean_csls == pytest.approx(theirs.mean_csls)


def test_reweighted_maps_succeed_by_the_same_criteria() -> None:
    problem = planted(300, d=15, noise=0.3)
    one_sided = judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT)
    maps = reweighted(problem.src[problem.gold[:, 0]], problem.tgt[problem.gold[:, 1]])
    two_sided = judge(problem.src, problem.tgt, maps, effort=SMALL_EFFORT)
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=0.02)
    assert two_sided.random == one_sided.random
    assert two_sided.null == one_sided.null


def test_wrong_maps_of_both_sides_fail() -> None:
    problem = planted(300, d=15, noise=0.3)
    turn = rotation(15, 40)
    # Each map is right only with its own counterpart.
    for maps in (Maps(problem.w, turn), Maps(problem.w @ turn), Maps(problem.w @ turn, turn.T)):
        quality = judge(problem.src, problem.tgt, maps, effort=SMALL_EFFORT)
        assert quality.verdict == FAILED
        assert quality.fitted.share < 0.5


def test_held_out_words_of_both_sides_are_judged() -> None:
    # A map that is not orthogonal must have the same baseline as a rotation.
    problem = planted(300, d=10, noise=0.3)
    x, y = problem.src, problem.tgt
    maps = reweighted(x[problem.gold[:, 0]], y[problem.gold[:, 1]], 1.0, dewhiten=0.5)
    assert orthogonality_error(maps.src) > 0.1
    quality = judge(x, y, maps, effort=SMALL_EFFORT)
    assert quality.fitted == agreement(x, y, maps, 10)
    assert quality.held_out == both_ways(x, y, maps, 10)


def unrelated(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Return two unrelated spaces."""
    rng = np.random.default_rng(seed)
    x, y = (host(fit(rng.standard_normal((n, d)).astype("f4"))[1]) for _ in range(2))
    return x, y


def test_figures_match_null_runs() -> None:
    x, y = unrelated(250, 20, 1)
    start = Maps(random_rotation(20, 77, x))
    effort, thorough = replace(SMALL_EFFORT, estimated=False), SMALL_EFFORT.thorough
    assert thorough is not None
    quality = judge(x, y, start, seed=3, effort=effort)
    null_maps = null_maps_of(x, y, range(quality.null_runs), seed=3, csls_k=10, effort=thorough)
    null = [both_ways(x, y, maps, 10) for maps in null_maps]
    values = [one.share * one.mean_csls for one in null]
    assert quality.null_hits == 0
    assert quality.null.mean_csls == pytest.approx(np.mean([one.mean_csls for one in null]))
    # The map itself, or where the search of the null runs leads from it.
    begin = nearest_orthogonal(x, y, start, csls_k=10)
    [led_to] = search(x, [y], [begin], [0], seed=3, csls_k=10, effort=thorough)
    reached = [both_ways(x, y, maps, 10) for maps in (start, led_to)]
    assert any(quality.held_out.mean_csls == pytest.approx(each.mean_csls) for each in reached)
    mean = quality.null.csls_per_word
    assert quality.ratio == pytest.approx(quality.held_out.csls_per_word / mean)
    assert mean == pytest.approx(np.mean(values), rel=0.02)
    assert quality.null_deviation == pytest.approx(np.std(values, ddof=1) / np.mean(values))
    assert quality.z == pytest.approx((quality.ratio - 1) / (quality.null_deviation or 0))
    assert quality.verdict == FAILED


def test_more_runs_are_made_near_the_threshold() -> None:
    x, y = unrelated(250, 10, 2)
    maps = null_maps_of(x, y, [50], seed=3, csls_k=10, effort=SMALL_EFFORT.quick)[0]
    near, far = (
        judge(x, y, maps, seed=3, effort=replace(SMALL_EFFORT, near=near, estimated=False))
        for near in ((0.5, 2.0), (5.0, 6.0))
    )
    assert (far.null_runs, near.null_runs) == (2, 3)
    assert near.thorough
    assert far.thorough


def test_a_clear_case_needs_no_thorough_runs() -> None:
    problem = planted(400, d=15, noise=0.3, dtype="float32")
    quality = judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT)
    assert (quality.null_runs, quality.thorough) == (1, False)
    assert quality.ratio >= 2.0
    # One null run is enough if the ratio to it is beyond doubt.
    less_sure = replace(SMALL_EFFORT, beyond_doubt=quality.ratio + 0.01)
    assert judge(problem.src, problem.tgt, Maps(problem.w), effort=less_sure).null_runs == 2


def test_null_runs_that_find_the_map_itself_are_replaced_by_their_rotations() -> None:
    problem = planted(400, d=12, noise=0.3)
    x, y, answer, other = problem.src, problem.tgt, Maps(problem.w), Maps(rotation(12, 5))
    effort = replace(SMALL_EFFORT, beyond_doubt=np.inf, estimated=False)
    # The cache says that the first null run found the answer, the second another map.
    known = null.cached_runs(null.cache_key(x, y, 4, 10))
    for number, maps in enumerate((answer, other)):
        known[effort.quick.key, number] = NullRun(host(translations(x, y, maps, csls_k=10)), both_ways(x, y, maps, 10))
    quality = judge(x, y, answer, seed=4, effort=effort)
    assert quality.null_hits == 1
    assert quality.verdict == SUCCEEDED
    alone = [Maps(random_rotation(12, 4, x)), other]
    expected = np.mean([both_ways(x, y, maps, 10).mean_csls for maps in alone])
    assert quality.null.mean_csls == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ratio", "deviation", "verdict"),
    [
        *((1.0, 0.01, FAILED), (1.17, 0.01, FAILED), (1.2, 0.01, SUCCEEDED), (1.2, 0.04, FAILED)),
        *((1.3, 0.01, WEAK), (1.9, 0.01, WEAK), (1.9, 0.35, FAILED)),
    ],
)
def test_verdict_follows_from_the_figures(ratio: float, deviation: float, verdict: str) -> None:
    reached = [Agreement(10, 0.5, 0.1 * (1 + sign * deviation / np.sqrt(2))) for sign in (-1.0, 1.0)]
    held = Agreement(10, 0.5, 0.1 * ratio)
    # An alignment that beats the null runs is weak if its estimated accuracy is low.
    share = Share(0.19, 0.1, 0.3) if verdict == WEAK else Share(0.21, 0.1, 0.3)
    found = replace(empty_estimate(10), overall=share)
    quality = decide(500, held, held, held, NullDistribution(tuple(reached)), found)
    assert quality.verdict == verdict
    assert quality.ratio == pytest.approx(ratio)
    assert quality.null_deviation == pytest.approx(deviation)
    assert quality.z == pytest.approx((ratio - 1) / deviation)
    lead = "the map is not clearly better than null maps"
    if verdict != FAILED:
        lead = (
            f"about {100 * share.p1:.0f} % of the words with a counterpart are estimated to be translated correctly "
            "(10-30 %)"
        )
    assert quality.explanation.startswith(f"{verdict.capitalize()}: {lead}.")
    assert f"Held-out agreement is {ratio:.2f} times the null mean" in quality.explanation
    assert quality.statistic == pytest.approx(ratio / (1 + 2 * deviation))
    assert quality.p_value is not None
    assert (quality.p_value <= CRITERIA.level) == (verdict != FAILED)
    # The 95 % point of the t-distribution with one degree of freedom is 6.314.
    error = 6.314 * deviation / np.sqrt(2)
    expected = pytest.approx([ratio / (1 + error), ratio / (1 - error)], rel=1e-3)
    assert quality.interval == (expected if error < 1 else None)


def test_only_what_was_measured_is_reported() -> None:
    held, null_score = Agreement(10, 0.5, 0.25), Agreement(10, 0.5, 0.1)
    one = decide(2000, held, held, held, NullDistribution((null_score,)), None)
    assert (one.verdict, one.null_deviation, one.z, one.null_exceedances) == (SUCCEEDED, None, None, 0)
    assert one.explanation == (
        "Succeeded: the map is better than null maps, and its accuracy was not estimated. Held-out agreement is 2.50 "
        "times the null mean, better than 1 null run. Against unrelated spaces, p = 0.0078, the smallest "
        "possible (level 0.01)."
    )
    # Runs that agree exactly have no deviation to divide by.
    alike = decide(2000, held, held, held, NullDistribution((null_score,) * 2), None)
    assert (alike.verdict, alike.null_deviation, alike.z) == (SUCCEEDED, 0.0, None)
    assert "better than all 2 null runs." in alike.explanation
    scores = (null_score, Agreement(10, 0.5, 0.25), Agreement(10, 0.5, 0.3))
    some = decide(2000, held, held, held, NullDistribution(scores, hits=1), None)
    assert some.null_exceedances == 2
    assert (one.p_value, one.interval) == (1 / 128, None)
    assert some.p_value == CALIBRATION.p_value(some.statistic or 0.0) > CRITERIA.level
    assert "better than 1 of 3 null runs. 1 null run found this map; the random rotation is scored instead." in (
        some.explanation
    )


@pytest.mark.slow
def test_the_best_of_many_null_maps_fails() -> None:
    """The search for an initial map would choose it, and refine it; judged with the default effort."""
    rng = np.random.default_rng(0)
    x, y = (host(fit(rng.standard_t(2.0, (400, 25)).astype("f4"))[1]) for _ in range(2))
    tried = null_maps_of(x, y, range(100, 103), seed=0, csls_k=10)
    best = max(tried, key=lambda maps: both_ways(x, y, maps, 10).mean_csls)
    for maps in (best, WEIGHTED.refine(x, y, best)):
        quality = judge(x, y, maps)
        assert quality.verdict == FAILED
        assert quality.ratio < 1.1


def test_noise_fails_however_long_it_is_refined() -> None:
    x = planted(400, d=15, dtype="float32").src
    noise: Array = host(fit(np.random.default_rng(0).standard_normal((500, 15)).astype("f4"))[1])
    start = Maps(random_rotation(15, 50, x))
    plain = CslsRefinement(rounds=10)
    ours = replace(WEIGHTED, words=plain.words, first_words=200)
    for settings in (plain, ours):
        maps = settings.refine(x, noise, start)
        assert judge(x, noise, maps, effort=SMALL_EFFORT).verdict == FAILED


def test_too_few_words_are_undecided() -> None:
    for n in (2, 10, 150):
        problem = planted(n, d=5, dtype="float32")
        quality = judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT)
        assert quality.verdict == UNDECIDED
        assert str(n) in quality.explanation
        assert np.isfinite(quality.ratio)


def test_a_single_word_is_undecided() -> None:
    problem = planted(10, d=5)
    quality = judge(problem.src[:1], problem.tgt[:1], Maps(problem.w))
    assert (quality.verdict, quality.n_words) == (UNDECIDED, 1)


def test_a_quick_verdict_decides_only_clear_successes() -> None:
    problem = planted(300, d=15, noise=0.3, dtype="float32")
    clear = judge(problem.src, problem.tgt, Maps(problem.w), effort=EFFORTS["quick"])
    assert (clear.verdict, clear.null_runs, clear.thorough, clear.estimate) == (SUCCEEDED, 1, False, None)
    x, y = unrelated(260, 10, 9)
    doubtful = judge(x, y, Maps(random_rotation(10, 1, x)), effort=EFFORTS["quick"])
    assert doubtful.verdict == UNDECIDED
    assert doubtful.ratio < 1.4
    assert doubtful.explanation == (
        f"Undecided: the quick verdict needs 1.4 times the null agreement and found {doubtful.statistic:.2f}; use "
        "`--verdict full`."
    )
    assert judge(x, y, Maps(random_rotation(10, 1, x)), effort=SMALL_EFFORT).verdict == FAILED


def test_unjudged() -> None:
    problem = planted(300, d=8, dtype="float32")
    quality = judge(problem.src, problem.tgt, Maps(problem.w), effort=EFFORTS["none"])
    assert (quality.verdict, quality.n_words, quality.null_runs, quality.estimate) == ("unjudged", 0, 0, None)
    assert quality.explanation.startswith("Not judged, as requested")
    assert not quality.failed
    assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality


@pytest.mark.parametrize(
    ("effort", "expected"),
    [
        (SMALL_EFFORT, [(1, 4), (2, 4), (3, 4)]),
        (replace(SMALL_EFFORT, estimated=False), [(1, 3), (2, 3)]),
        (EFFORTS["quick"], [(1, 3), (2, 3)]),
    ],
)
def test_progress_of_a_clear_case(effort: VerdictEffort, expected: list[tuple[int, int]]) -> None:
    problem = planted(300, d=15, noise=0.3, dtype="float32")
    told: list[tuple[int, int]] = []
    judge(problem.src, problem.tgt, Maps(problem.w), effort=effort, callback=lambda *step: told.append(step))
    assert told == expected


def test_progress_has_one_more_step_in_doubt() -> None:
    x, y = unrelated(260, 10, 9)
    told: list[tuple[int, int]] = []
    maps = Maps(random_rotation(10, 1, x))
    judge(x, y, maps, effort=SMALL_EFFORT, callback=lambda *step: told.append(step))
    assert told == [(1, 4), (2, 4), (3, 5), (4, 5)]


def test_repr_and_short() -> None:
    none = Agreement(0, 0.0, 0.0)
    found = replace(empty_estimate(8), overall=Share(0.456, 0.29, 0.63))
    quality = Quality(SUCCEEDED, "a long\nexplanation", 1.844, 2500, none, none, none, none, estimate=found)
    assert quality.short == "succeeded: estimated accuracy 46 % (29-63)"
    assert repr(quality) == "Quality(succeeded: estimated accuracy 46 % (29-63); 1.84 times the null on 2,500 words)"
    assert replace(quality, verdict=WEAK).short.startswith("weak: estimated accuracy 46 %")
    for verdict in (FAILED, UNDECIDED):
        assert replace(quality, verdict=verdict).short == verdict, "an estimate would be worth nothing"
    assert replace(quality, estimate=None).short == SUCCEEDED
    assert replace(quality, outside_calibration=["unordered items"]).short == SUCCEEDED
    assert replace(quality, measured=known(1, 2)).short == "succeeded: measured accuracy 50 % (3-97)"


def test_json_round_trip() -> None:
    problem = planted(250, d=8, dtype="float32")
    for pairs in (None, known(240, 250)):
        quality = judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT, known=pairs)
        assert quality.outside_calibration
        assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality


@pytest.mark.slow
def test_a_weak_map_is_recognised_by_where_the_search_from_it_ends() -> None:
    # No search finds the map of these spaces. A map with 7 % right translations agrees less than null maps.
    rng = np.random.default_rng(0)
    x = host(fit(rng.standard_normal((1200, 60)).astype("f4"))[1])
    w = rotation(60, 5).astype("f4")
    noise = host(fit(rng.standard_normal((1200, 60)).astype("f4"))[1])
    y = host(fit(x @ w + 0.8 * noise)[1])
    known = rng.permutation(1200)[:20]
    weak = Maps(polar(x[known].T @ y[known]))
    quality = judge(x, y, weak)
    assert per_word_ratio(both_ways(x, y, weak, 10), quality.null) < CALIBRATION.threshold(CRITERIA.level)
    assert quality.verdict == WEAK


# --------------------------------------------------------------------------- known pairs


def known(hits: int, words: int, p_value: float = 0.0005, *, held_out: bool = True) -> Measured:
    """Return the accuracy on known pairs."""
    return Measured(hits, words, *interval(hits, words), 1 / words, p_value, held_out)


def judged(ratio: float, pairs: Measured | None, estimated: float = 0.5) -> Quality:
    """Return the verdict on a map by its ratio to null runs, known pairs and an estimate."""
    null_scores = tuple(Agreement(10, 0.5, mean) for mean in (0.0999, 0.1001))
    held = Agreement(10, 0.5, 0.1 * ratio)
    found = replace(empty_estimate(100), overall=Share(estimated, 0.1, 0.9))
    return decide(2000, held, held, held, NullDistribution(null_scores), found, known=pairs)


FAILS, BEATS = 1.05, 2.5


@pytest.mark.parametrize(
    ("ratio", "pairs", "verdict"),
    [
        # Held-out pairs confirm what the null runs would call failed,
        (FAILS, known(31, 100), SUCCEEDED),
        (FAILS, known(10, 100), WEAK),
        # unless these are few words, a small share, or perhaps chance.
        (FAILS, known(4, 20), FAILED),
        (FAILS, known(20, 500), FAILED),
        (FAILS, known(10, 100, 0.002), FAILED),
        # They refute what the null runs would call a success,
        (BEATS, known(0, 60, 1.0), FAILED),
        (BEATS, known(2, 100, 0.3), FAILED),
        # unless they are too few to tell.
        (BEATS, known(0, 10, 1.0), WEAK),
        # A success needs a fifth of them.
        (BEATS, known(19, 100), WEAK),
        (BEATS, known(21, 100), SUCCEEDED),
        # Pairs that the fit saw can refute a map, but not confirm it.
        (FAILS, known(90, 100, held_out=False), FAILED),
        (BEATS, known(1, 100, 0.6, held_out=False), FAILED),
        (BEATS, known(8, 100, held_out=False), WEAK),
        (BEATS, known(90, 100, held_out=False), SUCCEEDED),
    ],
)
def test_known_pairs_outweigh_the_null_runs_in_both_directions(ratio: float, pairs: Measured, verdict: str) -> None:
    found = judged(ratio, pairs)
    assert found.verdict == verdict
    assert found.measured == pairs
    # Without them, the null runs decide.
    assert judged(ratio, None).verdict == (SUCCEEDED if ratio == BEATS else FAILED)


def test_the_verdict_leads_with_the_measured_accuracy() -> None:
    compared = (
        "Held-out agreement is 2.50 times the null mean (2.48-2.52), better than all 2 null runs. Against unrelated "
        "spaces, p = 0.0078, the smallest possible (level 0.01)."
    )
    confirmed = judged(BEATS, known(56, 100)).explanation
    assert confirmed == f"Succeeded: 56 % of 100 held-out known pairs are ranked first (47-64 %). {compared}"
    refuted = judged(BEATS, known(0, 60, 1.0)).explanation
    lead = "Failed: 0 % of 60 held-out known pairs are ranked first (0-5 %), no more than by chance (p = 1)."
    assert refuted.startswith(f"{lead} {compared} The known pairs outweigh this comparison.")
    assert "Check that the known pairs belong to these two spaces" in refuted
    seen = judged(BEATS, known(1, 100, 0.6, held_out=False)).explanation
    start = "Failed: 1 % of the 100 known pairs that the fit used are ranked first (0-5 %), no more than by chance"
    assert seen.startswith(start)
    # A measurement far below the estimate is worth a look.
    surer = replace(empty_estimate(100), overall=Share(0.79, 0.7, 0.86))
    held, null_scores = Agreement(10, 0.5, 0.25), (Agreement(10, 0.5, 0.1),)
    doubtful, fine = (
        decide(2000, held, held, held, NullDistribution(null_scores), surer, known=known(hits, 122)).explanation
        for hits in (6, 95)
    )
    assert "Without the known pairs, the estimate would be 79 % (70-86). Check that the known pairs belong" in doubtful
    assert "Check" not in fine
    # High figures on pairs that the fit saw are not worth a sentence.
    assert "known pairs" not in judged(BEATS, known(90, 100, held_out=False)).explanation


def test_confidences_follow_the_known_pairs() -> None:
    x, y = unrelated(260, 10, 9)
    maps = Maps(random_rotation(10, 1, x))
    failed, real = (judge(x, y, maps, effort=SMALL_EFFORT, known=pairs) for pairs in (None, known(31, 100)))
    assert (failed.verdict, real.verdict) == (FAILED, SUCCEEDED)
    assert failed.estimate is not None
    assert real.estimate is not None
    assert real.estimate.overall.p1 > 5 * failed.estimate.overall.p1
    # A refuted map has those of a failed one.
    problem = planted(300, d=15, noise=0.3, dtype="float32")
    right, wrong = (
        judge(problem.src, problem.tgt, Maps(problem.w), effort=SMALL_EFFORT, known=pairs)
        for pairs in (None, known(0, 100, 1.0))
    )
    assert (right.verdict, wrong.verdict) == (SUCCEEDED, FAILED)
    assert right.estimate is not None
    assert wrong.estimate is not None
    assert wrong.estimate.overall.p1 < 0.1 * right.estimate.overall.p1
    # They decide a quick verdict, too.
    assert judge(x, y, maps, effort=EFFORTS["quick"], known=known(31, 100)).verdict == SUCCEEDED
    assert judge(x, y, maps, effort=None, known=known(100, 100)) == unjudged()
