from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import loader
from qwp.spaces.io import load


def test_the_sample_is_a_sound_file(tmp_path: Path) -> None:
    loader.write_sample(tmp_path / "x.vec", 300, 5)
    report = load(tmp_path / "x.vec").report
    assert report is not None
    assert (report.n_words, report.dim, report.duplicates, report.warnings) == (300, 5, 0, ())


def test_a_small_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gensim")
    loader.main(["--n", "200", "--d", "4", "--repeats", "1", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["matrix_bytes"] == 200 * 4 * 4
    assert result["ratio"] == pytest.approx(result["gensim_seconds"] / result["qwp_seconds"])
