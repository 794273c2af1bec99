"""The planted problems: what is planted is there to be found, and found by who knows where it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import qwp
from benchmarks import planted as benchmark


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ITEMS": 300, "NARROW": 10, "WIDE": 16, "PAIRS": 60}.items():
        monkeypatch.setattr(benchmark, name, value)
    kinds = {name: (make, 10 if width == 300 else 16) for name, (make, width) in benchmark.KINDS.items()}
    monkeypatch.setattr(benchmark, "KINDS", kinds)


@pytest.mark.parametrize("kind", benchmark.KINDS)
def test_common_items_are_the_same_under_a_linear_map(kind: str) -> None:
    narrow, wide, pairs = benchmark.planted(kind, 0)
    assert (narrow.shape, wide.shape, pairs.shape) == ((300, 10), (300, 16), (210, 2))
    assert len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == 210
    x, y = wide[pairs[:, 1]], narrow[pairs[:, 0]]
    solved = np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.linalg.norm(x @ solved - y) < 0.3 * np.linalg.norm(y)
    # Those of other items are not.
    other = narrow[np.roll(pairs[:, 0], 1)]
    assert np.linalg.norm(x @ np.linalg.lstsq(x, other, rcond=None)[0] - other) > 0.5 * np.linalg.norm(other)


def test_what_is_found_is_counted() -> None:
    narrow, wide, pairs = benchmark.planted("falling spectrum, 300 laid into 768", 0)
    alignment = qwp.align(wide, narrow, "procrustes", lexicon=pairs[:, ::-1], order="none", verdict="none")
    assert benchmark.recall(alignment, pairs[:, ::-1]) > 90
    others = np.column_stack([np.roll(pairs[:, 1], 1), pairs[:, 0]])
    assert benchmark.recall(alignment, others) < 20


def test_every_record_is_kept_and_none_is_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "WAYS", benchmark.WAYS[:1])
    first = next(iter(benchmark.KINDS))
    monkeypatch.setattr(benchmark, "KINDS", {first: benchmark.KINDS[first]})
    output = tmp_path / "planted.jsonl"
    for _ in range(2):
        benchmark.main(["seed0", "--output", str(output), "--device", "cpu"])
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [record["pairs"] for record in records] == [60, 0]
    assert records[0]["recall"] > 50
    assert f"{records[0]['recall']:.1f} ({records[0]['verdict']})" in benchmark.table(records)


def test_several_runs_are_shown_from_the_worst_to_the_best() -> None:
    def record(recall: float, verdict: str) -> dict[str, object]:
        return {"recall": recall, "verdict": verdict}

    assert benchmark._cell([]) == "-"
    assert benchmark._cell([record(100.0, "succeeded"), record(99.99, "succeeded")]) == "100.0 (succeeded)"
    found = [record(90.0, "succeeded"), record(5.0, "failed"), record(12.0, "weak")]
    assert benchmark._cell(found) == "5.0 to 90.0 (failed, succeeded, weak)"
