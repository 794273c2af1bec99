"""The comparison of all methods: its tables are those of its records, and it runs what is missing and no more."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from benchmarks import systems
from benchmarks.common import read_records
from qwp.methods import METHODS


def record(task: str, label: str, seed: int, p1: float, ratio: float = 2.0, verdict: str = "succeeded") -> Any:
    scores = {"csls_p1": p1, "nn_p1": p1 - 1, "csls_mrr": p1 + 1, "nn_mrr": p1 + 0.5}
    about = {"covered": 7, "gold_words": 9, "verdict": verdict, "ratio": ratio, "seconds": 1.0}
    return {"task": task, "label": label, "seed": seed, **scores, **about}


def cells(table: str, label: str) -> list[str]:
    [row] = [line for line in table.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_method_is_in_the_comparison() -> None:
    assert {system.method for system in systems.SYSTEMS} | {"multi"} == set(METHODS)


def test_a_row_holds_mean_spread_and_the_seed_that_the_verdict_would_choose() -> None:
    rows = [
        record("zhang es-en", "dema", 0, 70.0, 2.1),
        record("zhang es-en", "dema", 1, 0.0, 0.9, "failed"),
        record("zhang es-en", "dema", 2, 74.0, 2.0),
    ]
    found = cells(systems.task_table(rows), "dema")
    assert found[1] == "3"
    assert found[2] == f"48.00 ± {statistics.stdev([70, 0, 74]):.2f}"
    assert found[3] == "70.00"
    assert found[7] == "2 of 3"
    assert cells(systems.summary(rows), "dema") == ["dema", "48.0", *["-"] * 7]
    assert "3 runs: 1 ended below a P@1 of 10, of which the verdict caught 1" in systems.verdict_line(rows)


def test_a_missed_failure_and_a_wrong_alarm_are_counted() -> None:
    rows = [record("zhang es-en", "dema", 0, 1.0), record("zhang es-en", "dema", 1, 60.0, 1.0, "failed")]
    assert "caught 0; of the other 1 it called 1 failed" in systems.verdict_line(rows)


def test_what_was_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, list[int]]] = []

    def run(system: systems.System, task: Any, seeds: Any, device: str) -> list[Any]:
        asked.append((system.label, task.name, list(seeds)))
        return []

    monkeypatch.setattr(systems, "run", run)
    monkeypatch.setattr(
        systems, "training_lexicon", lambda task, *_: "muse" if task.lexicon.startswith("muse") else None
    )
    chosen = [system for system in systems.SYSTEMS if system.label in ("dema", "procrustes")]
    done = [record("zhang es-en", "dema", seed, 70.0) for seed in (0, 2)]
    list(systems.todo(done, "cpu", chosen, systems.TASKS[:3], multi=False))
    assert asked == [
        ("dema", "zhang es-en", [1, 3, 4]),
        ("dema", "zhang it-en", [0, 1, 2, 3, 4]),
        ("dema", "novels en-es", [0, 1, 2]),
        ("procrustes", "novels en-es", [0]),
    ]


def test_the_document_holds_the_tables_of_the_records() -> None:
    made = systems.tables(read_records(systems.RESULTS))
    assert made in Path(systems.DOCUMENT).read_text()


@pytest.mark.slow
@pytest.mark.bench
def test_a_task_runs_from_the_files_to_the_record(bench: Path) -> None:
    system = systems.System("identical", "identical")
    [found] = systems.run(system, systems.TASKS[0], [0], "cpu")
    assert found["csls_p1"] > 74
    assert (found["covered"], found["gold_words"]) == (3190, 3482)
    assert found["verdict"] == "succeeded"
