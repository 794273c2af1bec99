"""The calibration file of the package: its source, its intervals and its p-values."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import confidence as benchmark
from benchmarks import judgement
from benchmarks.records import read_records
from qwp.search.calibration import CALIBRATION, Calibration


def test_the_file_follows_from_the_records() -> None:
    recorded = json.loads(benchmark.RESULTS.read_text("utf-8"))
    made = benchmark.calibration(recorded, list(read_records(judgement.RESULTS)))
    assert made == json.loads(benchmark.DATA.read_text("utf-8"))
    assert Calibration.from_dict(made) == CALIBRATION


def test_the_interval_covers_nine_errors_in_ten_of_each_origin_left_out() -> None:
    assert sum(each["alignments"] for each in CALIBRATION.words.origins.values()) == 184
    assert set(CALIBRATION.words.origins) == {"mixed", "novels", "pretrained", "zhang"}
    # A lower bound that notices a broken calibration; docs/judgement.md has the figures.
    assert all(each["covered"] >= 0.8 for each in CALIBRATION.words.origins.values())
    assert set(CALIBRATION.items.origins) == {"e5 use", "minilm wordllama"}
    assert all(each["error"] <= 7 for each in CALIBRATION.items.origins.values())


def test_conformal_widths_cover_new_errors_of_the_same_kind() -> None:
    rng = np.random.default_rng(0)
    covered = [
        np.mean(np.abs(rng.standard_t(3, 200)) <= benchmark.conformal_width([rng.standard_t(3, 60)]))
        for _ in range(300)
    ]
    assert np.mean(covered) == pytest.approx(math.ceil(0.9 * 61) / 61, abs=0.01)
    assert benchmark.conformal_width([np.array([-3.0, 1.0]), np.array([2.0])]) == 3.0


def test_p_values_are_ranks() -> None:
    four = replace(CALIBRATION, unrelated={"one": (0.9, 1.0, 1.0, 1.1)})
    for value, as_high in ((0.5, 4), (0.9, 4), (0.95, 3), (1.0, 3), (1.05, 1), (1.1, 1), (1.2, 0)):
        assert four.p_value(value) == (1 + as_high) / 5
    # The least favourable kind decides.
    assert replace(four, unrelated={**four.unrelated, "other": (0.8, 1.3)}).p_value(1.05) == 2 / 3


def test_p_values_above_the_threshold_are_at_most_the_level() -> None:
    some = replace(CALIBRATION, unrelated={"one": (0.9, 1.0, 1.1, 1.2), "other": tuple(np.linspace(0.8, 1.15, 9))})
    assert some.threshold(0.1) == math.inf  # four pairs have no p-value below 0.2
    for calibration, levels in ((some, (0.2, 0.4, 0.5)), (CALIBRATION, (0.01, 0.05))):
        for level in levels:
            at = calibration.threshold(level)
            assert calibration.p_value(at) > level
            assert calibration.p_value(at + 1e-9) <= level


def test_p_values_under_the_null_are_super_uniform() -> None:
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(500):
        # Rounded, so that ratios tie.
        ratios = np.round(1.0 + 0.1 * rng.standard_normal(40), 2)
        p_values.append(replace(CALIBRATION, unrelated={"all": tuple(sorted(ratios[1:]))}).p_value(ratios[0]))
    for level in (0.025, 0.05, 0.1, 0.3, 0.6, 0.9):
        # Three binomial standard deviations.
        assert np.mean(np.array(p_values) <= level) <= level + 3 * math.sqrt(level * (1 - level) / 500)
