"""Values with intervals: the value is exact, the interval holds it, and resamples are what they claim to be."""

from __future__ import annotations

import numpy as np

from qwp.judging.scores import Score, interval, ratios


def test_a_score_in_percent() -> None:
    assert Score(0.5, 0.4, 0.6).percent() == "50.0 (40.0 to 60.0)"
    assert Score(0.5, 0.5, 0.5).percent() == "50.0"


def test_ratios_are_those_of_the_sums_and_their_interval_is_about_binomial() -> None:
    shares = (np.arange(400) < 100).astype(float)[:, None]
    value, low, high = ratios(shares, np.ones_like(shares), 2000, np.random.default_rng(0))
    assert value[0] == 0.25
    # The standard error of a share of 0.25 of 400 is 0.0217.
    assert abs(low[0] - (0.25 - 1.96 * 0.0217)) < 0.006
    assert abs(high[0] - (0.25 + 1.96 * 0.0217)) < 0.006


def test_samples_that_say_nothing_stay_at_the_value() -> None:
    value = np.array([3.0])
    found = interval(value, lambda counts: np.full((len(counts), 1), np.nan), 5, 10, np.random.default_rng(0))
    assert [part.tolist() for part in found] == [[3.0], [3.0]]


def test_every_resample_has_as_many_rows_as_there_are() -> None:
    seen = []

    def sizes(counts: np.ndarray) -> np.ndarray:
        seen.extend(counts.sum(axis=1).tolist())
        return np.zeros((len(counts), 1))

    for at_once in (1, 50, 10_000):
        seen.clear()
        interval(np.zeros(1), sizes, 7, 30, np.random.default_rng(0), at_once=at_once)
        assert seen == [7.0] * 30
