"""Published figures come from kept records, and the settings they justify are the shipped ones."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ablation, confidence, encoders, items, judgement, kernels, planted, plot, spelling, systems
from benchmarks.ablation import Problem, calibration_error
from benchmarks.common import TABLES_BEGIN, TABLES_END, Record, read_records
from qwp import Alignment, Lexicon
from qwp.judging.verdict import FAILED, SUCCEEDED
from qwp.methods import METHODS
from qwp.search.confidence import chances
from qwp.search.spelling import WEIGHT


def judgement_tables(records: list[Record]) -> str:
    return judgement.tables(records, json.loads(judgement.CONFIDENCE.read_text()))


@pytest.mark.parametrize(
    ("document", "begin", "end", "tables", "records"),
    [
        (ablation.DOCUMENT, TABLES_BEGIN, TABLES_END, ablation.tables, ablation.RESULTS),
        (encoders.DOCUMENT, encoders.BEGIN, encoders.END, encoders.table, encoders.RESULTS),
        (items.DOCUMENT, items.BEGIN, items.END, items.table, items.RESULTS),
        (judgement.DOCUMENT, TABLES_BEGIN, TABLES_END, judgement_tables, judgement.RESULTS),
        (planted.DOCUMENT, planted.BEGIN, planted.END, planted.table, planted.RESULTS),
        (spelling.DOCUMENT, spelling.BEGIN, spelling.END, spelling.tables, spelling.RESULTS),
        (systems.DOCUMENT, TABLES_BEGIN, TABLES_END, systems.tables, systems.RESULTS),
    ],
    ids=["ablation", "encoders", "items", "judgement", "planted", "spelling", "systems"],
)
def test_a_document_holds_the_tables_of_its_records(
    document: Path, begin: str, end: str, tables: Callable[[list[Record]], str], records: Path
) -> None:
    text = document.read_text()
    assert text.count(begin) == text.count(end) == 1
    assert text.split(begin)[1].split(end)[0] == "\n" + tables(read_records(records))


def test_the_growth_chart_shows_its_records() -> None:
    assert plot.OUTPUT.read_text() == plot.growth_svg(plot.read_growth(plot.INPUT))


def test_every_suite_has_records_and_no_run_is_recorded_twice() -> None:
    records = read_records(ablation.RESULTS)
    assert {record["suite"] for record in records} == set(ablation.SUITES)
    runs = Counter((record["suite"], record["task"], record["label"], record["seed"]) for record in records)
    assert [run for run, count in runs.items() if count > 1] == []


def test_every_method_is_in_the_comparison() -> None:
    assert {system.method for system in systems.SYSTEMS} | {"multi"} == set(METHODS)


def test_settings_are_chosen_on_the_training_split_and_scored_on_the_test_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: set[str] = set()
    monkeypatch.setattr(ablation, "gold", read.add)

    def dictionaries(problems: Iterable[Problem]) -> set[str]:
        read.clear()
        for problem in problems:
            for lexicon in (problem.forward, problem.backward):
                if lexicon is not None:
                    lexicon()
        return set(read)

    chosen_on = dictionaries([*ablation.development_problems(), *ablation.odd_problems()])
    assert chosen_on
    assert all(file.startswith("muse/") and file.endswith(".0-5000.txt") for file in chosen_on)
    scored_on = dictionaries(ablation.of_task(task) for task in systems.TASKS)
    assert len(scored_on) == len(systems.TASKS)
    assert not scored_on & chosen_on


def test_no_unrelated_pair_of_the_records_is_called_a_success() -> None:
    verdicts = [record["verdict"] for record in read_records(items.RESULTS) if record["suite"] == "unrelated"]
    assert len(verdicts) >= 36
    assert set(verdicts) == {"failed"}


def test_spelling_with_the_shipped_weight_gains_on_average_and_loses_at_most_a_point() -> None:
    final = [record for record in read_records(spelling.RESULTS) if record["suite"] == "final"]
    assert {record["weight"] for record in final} == {WEIGHT}
    same_script = {pair.name for pair in spelling.PAIRS if pair.one_script}
    for split in (spelling.TRAIN, spelling.TEST):
        gains = [r["spelled"] - r["plain"] for r in final if r["split"] == split and r["pair"] in same_script]
        assert np.mean(gains) > 1
        assert min(gains) > -1
    assert all(record["spelled"] == record["plain"] for record in final if record["pair"] not in same_script)


# --------------------------------------------------------------------------- how figures are computed


def test_scores_of_both_directions_and_their_mean(aligned: Alignment) -> None:
    best = {pair.src: pair.tgt for pair in aligned.induce()}
    words = list(best)[:100]
    # The first ten source words have a wrong translation in the dictionary.
    forward = Lexicon(tuple((word, best[word]) for word in words[10:]) + tuple((word, "t399") for word in words[:10]))
    backward = Lexicon(tuple((best[word], word) for word in words[:40]))
    problem = Problem("planted", lambda: (aligned.src, aligned.tgt), lambda: forward, lambda: backward)
    found = ablation.p1(aligned, problem, "cpu")
    assert (found["forward"], found["backward"], found["p1"]) == pytest.approx((90.0, 100.0, 95.0))
    assert (found["forward_covered"], found["backward_covered"]) == (100, 40)
    forward_only = ablation.p1(aligned, replace(problem, backward=None), "cpu")
    assert forward_only["p1"] == forward_only["forward"] == pytest.approx(90.0)


def row(table: str, label: str) -> list[str]:
    """The cells of the row of a Markdown table that begins with this label."""
    [line] = [line for line in table.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_final_table_shows_mean_standard_deviation_and_worst_seed() -> None:
    scores = [40.0, 43.5, 38.25]
    run = {"task": "novels en-es", "label": "default", "forward_covered": 1234, "seconds": 2.0}
    records = [{**run, "seed": seed, "p1": p1, "verdict": SUCCEEDED} for seed, p1 in enumerate(scores)]
    records[2]["verdict"] = FAILED
    expected = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} (38.25)"
    assert row(ablation.final_table(records), "novels en-es")[1:3] == [expected, "2 of 3"]


def test_the_verdict_table_counts_false_alarms_and_missed_failures() -> None:
    runs = [
        (50.0, SUCCEEDED, True),
        (45.0, FAILED, True),  # a false alarm
        (0.5, SUCCEEDED, True),  # a missed failure
        (None, SUCCEEDED, False),  # unrelated spaces: another missed failure
        (systems.REAL_P1 - 0.01, FAILED, True),
    ]
    records = [
        {"task": "x", "seed": 0, "verdict": verdict, "ratio": 1.0, "real": real} | ({} if p1 is None else {"p1": p1})
        for p1, verdict, real in runs
    ]
    table = ablation.verdict_table(records)
    assert table.startswith("5 runs, 3 wrong.")
    assert row(table, "real (P@1 of 10 or more)")[1:] == ["1", "1"]
    assert row(table, "not real")[1:] == ["2", "1"]


def test_the_calibration_error_of_known_predictions() -> None:
    predicted = np.repeat([0.25, 0.75], 400)
    right = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 4 != 0]).astype(np.float64)
    assert calibration_error(predicted, right)[0] == pytest.approx(0.0, abs=1e-12)
    # Three words are 0.2 too high and one is 0.1 too low: the errors do not cancel.
    error, bins = calibration_error(np.array([0.2, 0.2, 0.2, 0.9]), np.array([0.0, 0.0, 0.0, 1.0]))
    assert error == pytest.approx((3 * 0.2 + 0.1) / 4)
    assert [count for count, *_ in bins] == [3, 1]


def test_the_confidence_fit_recovers_the_weights_that_made_the_data() -> None:
    rng, truth = np.random.default_rng(0), np.array([-0.5, 0.6, -0.4, 1.2])
    features = np.column_stack([np.ones(40_000), rng.standard_normal((40_000, 3))])
    right = (rng.random(40_000) < chances(features @ truth)).astype(np.float64)
    record = {"task": "novels en-es", "label": "as it is", "method": "qwp", "seed": 0}
    ranks = np.sort(rng.integers(0, 20_000, 40_000)).astype(np.float64)
    found = confidence.fit([confidence.Sample(record, features, ranks, right)])
    np.testing.assert_allclose(found, truth, atol=0.08)


def test_scores_of_kernels_merge_with_earlier_ones() -> None:
    def record(kernel: str, seed: int, p1: float) -> Record:
        about = {"verdict": SUCCEEDED, "estimate": 70.0, "covered": 1234, "gold_words": 1500, "cpu_seconds": 2.0}
        return {"pair": "demo en-es", "kernel": kernel, "seed": seed, "csls_p1": p1, **about}

    records: list[Record] = []
    for each in (record("Nehalem", 1, 0.0), record("Haswell", 0, 75.0), record("Nehalem", 0, 74.0)):
        records = kernels.merged(records, each)
    records = kernels.merged(records, record("Nehalem", 1, 74.5))
    table = kernels.table(records)
    assert "| demo en-es | Nehalem | succeeded | 70.0 | 74.00, 74.50 | 1,234 of 1,500 | 2.0 |" in table
    assert table.endswith(
        "at most 1.00 points between kernels (same pair and seed) and by at most 0.50 points between "
        "seeds (same pair and kernel)."
    )
