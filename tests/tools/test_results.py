"""Recorded reports of experiments become the tables of docs/results.md."""

from __future__ import annotations

from pathlib import Path

from qwp.experiments.formats import as_file
from qwp.experiments.report import make_report
from tests.experiments.records import known_answers, sizes_plan
from tools.results import experiment


def test_a_recorded_report_becomes_tables(tmp_path: Path) -> None:
    assert experiment("bench", tmp_path) == "No results of `bench` are recorded."
    (tmp_path / "experiment-bench.json").write_text(as_file(make_report(sizes_plan(), known_answers())))
    text = experiment("bench.all", tmp_path)
    assert text.startswith("## A title\n")
    assert "| en-es | Random | 75.00 ± 0.00" in text
    assert "seconds per fit" in text
    short = experiment("bench", tmp_path)
    assert "| average | Random |" in short
    assert "| en-es | Random |" not in short
    assert "seconds per fit" not in short
