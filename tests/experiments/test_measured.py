"""Measured scores by condition and seed, and estimates with shared resamples."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.experiments import measured
from qwp.experiments.measured import Bootstrap, Condition, MeasuredTables, marks, mean, resample
from tests.experiments.records import known_answers, ranked, sizes_plan

SIZE = (("coreset_size", 200),)


def test_scores_seconds_and_estimates() -> None:
    found = MeasuredTables(sizes_plan().tables, known_answers())
    spot = Condition("table1", "en-es", "KMeans++", SIZE)
    assert found.scores[spot] == {0: 76.875, 1: 76.875}
    assert found.mean(spot) == 76.875
    assert found.estimates[spot].value == 76.875
    assert (found.seconds[spot], spot.size) == ({0: 1.0, 1: 1.0}, 200)
    assert found.mean(Condition("table1", "xx-yy", "KMeans++", SIZE)) is None


def test_seeds_are_averaged_for_each_query() -> None:
    records = known_answers()
    records["en-es Random 200 0"] = ranked("en-es Random 200 0", np.arange(400) < 400)
    records["en-es Random 200 1"] = ranked("en-es Random 200 1", np.arange(400) < 0)
    found = MeasuredTables(sizes_plan().tables, records).estimates[Condition("table1", "en-es", "Random", SIZE)]
    # Each query scores 1 with one seed and 1/2 with the other, so resampling makes no difference.
    assert found.value == 75.0
    assert found.resamples.std() < 1e-9


def test_only_conditions_on_the_same_queries_share_resamples() -> None:
    found = MeasuredTables(sizes_plan().tables, known_answers()).estimates
    here, there = (Condition("table1", direction, "Random", SIZE) for direction in ("en-es", "es-en"))
    same = Condition("table1", "en-es", "Random", (("coreset_size", 500),))
    assert np.array_equal(found[here].resamples, found[same].resamples)
    assert not np.array_equal(found[here].resamples, found[there].resamples)


def test_conditions_without_common_ranks_have_no_estimate() -> None:
    records = known_answers()
    del records["en-es Random 200 0"]["ranks"]
    records["es-en Random 200 0"]["inputs"] = {"gold": "another"}
    found = MeasuredTables(sizes_plan().tables, records)
    for direction in ("en-es", "es-en"):
        spot = Condition("table1", direction, "Random", SIZE)
        assert spot in found.scores
        assert spot not in found.estimates


def estimates(*systems: object, seed: int = 0) -> list[Bootstrap]:
    shares = np.stack([np.asarray(each, dtype=np.float64) for each in systems], axis=1)
    return resample(shares, np.ones_like(shares), np.random.default_rng(seed))


def test_values_are_ratios_of_sums() -> None:
    shares, weights = np.array([[1.0], [0.5]]), np.array([[1.0], [3.0]])
    [found] = resample(shares, weights, np.random.default_rng(0))
    assert found.value == pytest.approx(1.5 / 4)
    assert set(np.round(found.resamples, 6)) == {1.0, 0.375, round(0.5 / 3, 6)}


def test_the_spread_of_a_share_is_the_binomial_one() -> None:
    [found] = estimates(np.arange(400) < 100)
    assert found.resamples.std() == pytest.approx((0.25 * 0.75 / 400) ** 0.5, rel=0.1)
    assert found.interval() == pytest.approx((0.25 - 0.0424, 0.25 + 0.0424), abs=0.006)


def test_pairing_cancels_what_both_have() -> None:
    # One is correct wherever the other is, and on 20 more of 1,000 queries: less than either varies, but significant.
    hard = np.arange(1000) < 500
    one, other = estimates(hard | (np.arange(1000) >= 980), hard)
    assert one.resamples.std() > 0.015
    difference = one.minus(other)
    assert difference.value == pytest.approx(0.02)
    assert difference.resamples.std() < 0.005
    assert difference.p_value() == pytest.approx(2 / (1 + measured.RESAMPLES))
    assert difference.interval()[0] > 0


def test_the_p_value_is_that_of_the_sign_test() -> None:
    # They differ on 12 queries, 9 to 3: in a resample the difference is about normal with mean 6 and variance 12.
    one, other = np.zeros(1000), np.zeros(1000)
    one[:9], other[9:12] = 1, 1
    first, second = estimates(one, other)
    assert first.minus(second).p_value() == pytest.approx(0.083, abs=0.03)
    assert second.minus(first).p_value() == first.minus(second).p_value()


def test_nothing_differs_from_itself() -> None:
    one, other = estimates([1, 0, 1, 1], [1, 0, 1, 1])
    assert one.minus(other).p_value() == 1.0
    assert one.minus(other).interval() == (0.0, 0.0)


def test_false_positive_rate_of_the_p_value() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for number in range(200):
        first, second = estimates(rng.random(150) < 0.5, rng.random(150) < 0.5, seed=number)
        wrong += first.minus(second).p_value() < 0.05
    assert 3 <= wrong <= 22


def test_marks_of_best_level_and_worse() -> None:
    many = np.arange(1000)
    names = ("far", "near", "first")
    found = marks(dict(zip(names, estimates(many < 300, many < 499, many < 500), strict=True)))
    assert {name: mark.rank for name, mark in found.items()} == {"far": "worse", "near": "level", "first": "best"}
    assert found["far"].p < 0.05 < found["near"].p
    assert marks({"alone": estimates(many < 3)[0]}) == {}


def test_the_mean_of_independent_estimates_varies_less() -> None:
    [one], [other] = estimates(np.arange(400) < 200, seed=1), estimates(np.arange(400) < 100, seed=2)
    both = mean([one, other])
    assert both.value == pytest.approx(0.375)
    assert both.resamples.std() == pytest.approx((one.resamples.var() + other.resamples.var()) ** 0.5 / 2, rel=0.1)


def test_blocks_do_not_change_the_resamples() -> None:
    shares = np.arange(30.0)[:, None] % 2
    whole, cut = (
        resample(shares, np.ones_like(shares), np.random.default_rng(0), block_elements=elements)[0].resamples
        for elements in (1 << 21, 5000)
    )
    assert len(cut) == measured.RESAMPLES
    assert np.array_equal(whole, cut)
