"""Results that are kept are written into docs/results.md; without any it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.experiments.kept import as_file
from qwp.experiments.report import make_report
from tests.experiments.records import known_answers, sizes_plan
from tools import results


def test_results_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert results.results("bench") == "No results of `bench` are kept yet."
    (tmp_path / "experiment-bench.json").write_text(as_file(make_report(sizes_plan(), known_answers())))
    text = results.results("bench")
    assert text.startswith("## A title\n")
    assert "| en-es | Random | 75.00 ± 0.00" in text
