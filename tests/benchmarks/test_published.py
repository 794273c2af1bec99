"""The published figures: their records are complete, and the settings they justify are the shipped ones."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ablation, confidence, items, kernels, planted, problems, records, spelling, systems
from benchmarks.data import TASKS
from benchmarks.problems import Problem
from benchmarks.records import Record, Run, read_records
from qwp import Alignment, Lexicon
from qwp.judging.verdict import FAILED, SUCCEEDED
from qwp.methods import METHODS
from qwp.search.confidence import logistic
from qwp.search.spelling import Spelling

# --------------------------------------------------------------------------- records


def test_only_missing_runs_are_measured_and_every_record_is_kept_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "records.jsonl"

    def runs() -> Iterable[Run]:
        for seed in range(3):
            yield Run({"task": "x", "seed": seed}, lambda: {"p1": 1.5, "stages": {}})
        yield Run({"task": "y", "seed": 0}, lambda: 1 / 0)  # type: ignore[arg-type, return-value]

    with pytest.raises(ZeroDivisionError):
        records.measure_missing(runs(), path)
    assert [record["seed"] for record in read_records(path)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        records.measure_missing(runs(), path)
    assert len(read_records(path)) == 3


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        (
            ablation.RESULTS,
            [run for name in ablation.SUITES if name != "robust" for run in ablation.SUITES[name]("cpu")],
        ),
        (items.RESULTS, [*items.related_suite("cpu")]),
        (planted.RESULTS, [*planted.suite("cpu")]),
        (spelling.RESULTS, [*spelling.choice_suite("cpu"), *spelling.final_suite("cpu")]),
        (systems.RESULTS, [*systems.accuracy_suite("cpu")]),
    ],
    ids=["ablation", "items", "planted", "spelling", "systems"],
)
def test_every_run_of_a_benchmark_is_recorded_once(path: Path, runs: list[Run]) -> None:
    found = read_records(path)
    counts = Counter(sum(records.is_recorded(run.key, [record]) for record in found) for run in runs)
    assert counts == {1: len(runs)}


def test_every_method_is_in_the_comparison() -> None:
    assert {system.method for system in systems.SYSTEMS} == set(METHODS)


def test_settings_are_chosen_on_the_training_split_and_scored_on_the_test_split() -> None:
    def dictionaries(some: Iterable[Problem]) -> set[str | Lexicon | None]:
        return {gold for problem in some for gold in (problem.forward, problem.backward)} - {None}

    chosen_on = dictionaries([*problems.development_problems(), *problems.odd_problems()])
    assert all(str(file).startswith("muse/") and str(file).endswith(".0-5000.txt") for file in chosen_on)
    scored_on = dictionaries(map(problems.of_task, TASKS))
    assert len(scored_on) == len(TASKS)
    assert not scored_on & chosen_on


def test_no_unrelated_pair_of_the_records_is_called_a_success() -> None:
    verdicts = [record["verdict"] for record in read_records(items.RESULTS) if record["suite"] == "unrelated"]
    assert len(verdicts) >= 36
    assert set(verdicts) == {"failed"}


def test_spelling_with_the_shipped_weight_gains_on_average_and_loses_at_most_a_point() -> None:
    final = [record for record in read_records(spelling.RESULTS) if record["suite"] == "final"]
    assert {record["weight"] for record in final} == {Spelling.weight}
    same_script = {pair.name for pair in spelling.PAIRS if pair.one_script}
    for split in (spelling.TRAIN, spelling.TEST):
        gains = [r["spelled"] - r["plain"] for r in final if r["split"] == split and r["pair"] in same_script]
        assert np.mean(gains) > 1
        assert min(gains) > -1
    assert all(record["spelled"] == record["plain"] for record in final if record["pair"] not in same_script)


# --------------------------------------------------------------------------- figures


def test_scores_of_both_directions_and_their_mean(aligned: Alignment) -> None:
    best = {pair.src: pair.tgt for pair in aligned.induce()}
    words = list(best)[:100]
    # The first ten source words have a wrong translation in the dictionary.
    forward = Lexicon(tuple((word, best[word]) for word in words[10:]) + tuple((word, "t399") for word in words[:10]))
    backward = Lexicon(tuple((best[word], word) for word in words[:40]))
    problem = Problem("planted", lambda: (aligned.src, aligned.tgt), forward, backward)
    found = ablation.p1(aligned, problem, "cpu")
    assert (found["forward"], found["backward"], found["p1"]) == pytest.approx((90.0, 100.0, 95.0))
    assert (found["forward_covered"], found["backward_covered"]) == (100, 40)
    forward_only = ablation.p1(aligned, replace(problem, backward=None), "cpu")
    assert forward_only["p1"] == forward_only["forward"] == pytest.approx(90.0)


def row(table: str, label: str) -> list[str]:
    """Return the cells of the row of a Markdown table with this label."""
    [line] = [line for line in table.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_final_table_shows_mean_standard_deviation_and_worst_seed() -> None:
    scores = [40.0, 43.5, 38.25]
    run = {"task": "novels en-es", "label": "default", "forward_covered": 1234, "seconds": 2.0}
    found = [{**run, "seed": seed, "p1": p1, "verdict": SUCCEEDED} for seed, p1 in enumerate(scores)]
    found[2]["verdict"] = FAILED
    expected = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} (38.25)"
    assert row(ablation.final_table(found), "novels en-es")[1:3] == [expected, "2 of 3"]


def test_the_verdict_table_counts_false_alarms_and_missed_failures() -> None:
    runs = [
        (50.0, SUCCEEDED, True),
        (45.0, FAILED, True),  # a false alarm
        (0.5, SUCCEEDED, True),  # a missed failure
        (None, SUCCEEDED, False),  # unrelated spaces: another missed failure
        (ablation.LEAST_P1 - 0.01, FAILED, True),
    ]
    found = [
        {"task": "x", "seed": 0, "verdict": verdict, "ratio": 1.0, "real": real} | ({} if p1 is None else {"p1": p1})
        for p1, verdict, real in runs
    ]
    table = ablation.verdict_table(found)
    assert table.startswith("5 runs, 3 wrong.")
    assert row(table, "P@1 of 10 or more")[1:] == ["1", "1"]
    assert row(table, "P@1 below 10, or unrelated spaces")[1:] == ["2", "1"]


def test_the_calibration_error_of_known_predictions() -> None:
    predicted = np.repeat([0.25, 0.75], 400)
    right = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 4 != 0]).astype(np.float64)
    assert ablation.calibration_error(predicted, right)[0] == pytest.approx(0.0, abs=1e-12)
    # Three words are 0.2 too high and one is 0.1 too low: the errors do not cancel.
    error, bins = ablation.calibration_error(np.array([0.2, 0.2, 0.2, 0.9]), np.array([0.0, 0.0, 0.0, 1.0]))
    assert error == pytest.approx((3 * 0.2 + 0.1) / 4)
    assert [count for count, *_ in bins] == [3, 1]


def test_the_confidence_fit_recovers_the_weights_that_made_the_data() -> None:
    rng, truth = np.random.default_rng(0), np.array([-0.5, 0.6, -0.4, 1.2])
    features = np.column_stack([np.ones(40_000), rng.standard_normal((40_000, 3))])
    right = (rng.random(40_000) < logistic(features @ truth)).astype(np.float64)
    record = {"task": "novels en-es", "label": "as it is", "method": "qwp", "seed": 0}
    ranks = np.sort(rng.integers(0, 20_000, 40_000)).astype(np.float64)
    found = confidence.fit([confidence.Sample(record, features, ranks, right)])
    np.testing.assert_allclose(found, truth, atol=0.08)


def test_differences_between_kernels_and_seeds() -> None:
    def record(kernel: str, seed: int, p1: float) -> Record:
        return {"pair": "demo en-es", "kernel": kernel, "seed": seed, "csls_p1": p1}

    found = [record("Nehalem", 1, 74.5), record("Haswell", 0, 75.0), record("Nehalem", 0, 74.0)]
    assert kernels.largest_difference(found, ("pair", "seed")) == 1.0
    assert kernels.largest_difference(found, ("pair", "kernel")) == 0.5
