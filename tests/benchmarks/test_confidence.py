"""How the weights of the confidence are fitted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import confidence as benchmark
from benchmarks.ablation import calibration_error
from benchmarks.confidence import Sample
from qwp.search.confidence import WEIGHTS, Floats, chances


def made_up(
    rng: np.random.Generator, n: int, truth: Floats, task: str = "novels en-es", label: str = "as it is"
) -> Sample:
    features = np.column_stack([np.ones(n), rng.standard_normal((n, len(truth) - 1))])
    right = (rng.random(n) < chances(features @ truth)).astype(np.float64)
    record: dict[str, Any] = {"task": task, "label": label, "method": "qwp", "seed": 0}
    return Sample(record, features, np.sort(rng.integers(0, 20_000, n)).astype(float), right)


def test_the_fit_finds_the_weights_that_made_the_data() -> None:
    rng, truth = np.random.default_rng(0), np.array([-0.5, 0.6, -0.4, 1.2])
    found = benchmark.fit([made_up(rng, 40_000, truth)])
    np.testing.assert_allclose(found, truth, atol=0.08)
    # Alignments count alike, whatever their size: one of wrong pairs alone, a hundredth as large, halves the chances.
    many, few = made_up(rng, 40_000, truth), made_up(rng, 400, np.array([-30.0, 0.0, 0.0, 0.0]))
    both = benchmark.fit([many, few])
    assert chances(many.features @ both).mean() == pytest.approx(many.right.mean() / 2, abs=0.04)


def test_ranks_count_as_those_of_a_dictionary() -> None:
    rng = np.random.default_rng(1)
    crowded = made_up(rng, 2000, np.zeros(2))
    ranks = np.sort(np.concatenate([rng.integers(0, 400, 1900), rng.integers(0, 20_000, 100)])).astype(float)
    weights = Sample(crowded.record, crowded.features, ranks, crowded.right).weights()
    # Nineteen in twenty words are frequent ones; their share of the weight is that of their part of the roots.
    assert weights[ranks < 400].sum() / weights.sum() < 0.3
    assert weights.sum() == pytest.approx(10.0)
    other = Sample({**crowded.record, "label": "first 1000"}, crowded.features, ranks, crowded.right)
    assert other.weights().sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        *(("novels hu-en", "hu"), ("novels en-fr", "fr"), ("zhang it-en", "it")),
        *(("novels/en to mixed/es_sgns", "es"), ("pretrained/ja to pretrained/en", "ja")),
    ],
)
def test_the_language_of_a_pair(task: str, expected: str) -> None:
    assert benchmark.language(task) == expected


def test_a_language_is_judged_by_weights_that_never_saw_it() -> None:
    rng, truth = np.random.default_rng(2), np.array([0.0, 1.0])
    spanish = made_up(rng, 3000, truth, "novels en-es")
    hungarian = made_up(rng, 3000, -truth, "novels en-hu")
    data = {
        "train": [made_up(rng, 3000, truth, "novels en-es"), hungarian],
        "test": [spanish],
        "sample": [spanish, hungarian],
    }
    [found] = benchmark.left_out(data)
    # What Hungarian taught is the opposite of what holds for Spanish.
    assert found["task"] == "novels en-es"
    assert found["ece"] > 0.2
    assert found["ece_all"] > 0.2
    assert (found["words"], found["all_words"]) == (3000, 6000)
    figures = benchmark.summary([found], width=0.5)
    assert figures["alignments"] == 1
    assert figures["ece"] == {"mean": found["ece"], "worst": found["ece"], "worst_mean_of_seeds": found["ece"]}
    assert figures["printed"]["error"] == pytest.approx(abs(found["printed"] - found["p1"]))
    # By weights that did see it there is nothing to say against the confidences.
    weights = benchmark.fit([spanish])
    assert calibration_error(chances(spanish.features @ weights), spanish.right)[0] < 0.05


def test_what_was_taught_by_pairs_of_the_split_teaches_nothing() -> None:
    rng, truth = np.random.default_rng(3), np.array([0.0, 1.0])
    plain, taught = made_up(rng, 3000, truth), made_up(rng, 3000, -truth, label="5000 pairs")
    data = {"train": [plain, taught], "test": [], "sample": []}
    np.testing.assert_array_equal(benchmark.fitted_to(data), benchmark.fit([plain]))
    assert benchmark.fitted_to({**data, "train": [plain, taught, made_up(rng, 3000, -truth, "novels en-hu")]})[1] < 0.5


def test_words_of_a_dictionary_are_compared_with_a_sample_of_all() -> None:
    rng, weights = np.random.default_rng(4), np.array([0.3, 0.0])
    train, other = made_up(rng, 500, weights), made_up(rng, 500, weights)
    surer = replace(train, features=train.features + np.array([1.0, 0.0]))
    of = {other.key: other}
    assert benchmark.in_a_dictionary([train], of, weights) == pytest.approx(0.0)
    assert benchmark.in_a_dictionary([surer], of, weights) == pytest.approx(0.3)


def test_nine_in_ten_estimates_are_within_the_interval() -> None:
    odds = np.random.default_rng(5).standard_normal(2000) * 0.2
    found = [
        {"label": "as it is", "printed": 100 * float(chances(np.array(each))), "p1": 50.0} for each in odds.tolist()
    ]
    width = benchmark.half_width([*found, {"label": "100 pairs", "printed": 99.0, "p1": 1.0}])
    assert np.mean(np.abs(odds) <= width) == pytest.approx(0.9, abs=0.02)


def test_samples_are_read_from_the_records(tmp_path: Path) -> None:
    records = tmp_path / "judgement.jsonl"
    (tmp_path / "judgement").mkdir()
    width = len(WEIGHTS) + 2
    table = np.arange(2 * width, dtype=np.float32).reshape(2, width)
    np.savez(tmp_path / "judgement" / "a.npz", train=table, test=table[:1])
    np.savez(tmp_path / "judgement" / "of other features.npz", train=table[:, 1:])
    lines = [
        {"task": "novels en-es", "verdict": "succeeded", "signals": "a.npz"},
        {"task": "novels en-es", "verdict": "succeeded", "signals": "of other features.npz"},
        {"task": "novels en-es", "verdict": "succeeded", "signals": "not kept.npz"},
        {"task": "novels en-es", "verdict": "failed", "signals": "a.npz"},
        {"task": "gaussian", "verdict": "failed"},
    ]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = benchmark.samples(records)
    assert [len(found[split]) for split in ("train", "test")] == [1, 1]
    assert found["train"][0].features.shape == (2, len(WEIGHTS))
    assert found["train"][0].right.tolist() == [width - 1, 2 * width - 1]
    assert found["train"][0].ranks.tolist() == [width - 2, 2 * width - 2]
