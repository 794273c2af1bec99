"""The attack on experiments: a short one, and that it would find what must not be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fuzz import experiments

TINY = """
data = "demo"
directions = ["en-es"]
max_vocab = 300
seeds = [0, 1, 2]

[options]
start = "profiles"
start_words = 200
steps = 3
coreset_size = 50
bank_size = 5
refine = 1
verdict = "none"

[[systems]]
name = "one"
preset = "paper"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_short_attack_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(TINY)
    assert experiments.main(["--kills", "1", "--experiment", str(config), "--workers", "1"]) == 0
    assert "of 3 cells: every result as undisturbed, once" in capsys.readouterr().out


def test_a_cell_that_is_there_twice_is_found(tmp_path: Path) -> None:
    line = json.dumps({"address": "a", "status": "done", "seconds": 1.0, "scores": {}}) + "\n"
    (tmp_path / "results.jsonl").write_text(line)
    assert experiments.results_of(tmp_path) == {"a": {"address": "a", "status": "done", "scores": {}}}
    (tmp_path / "results.jsonl").write_text(line * 2)
    with pytest.raises(AssertionError, match=r"1 cells are in .* twice"):
        experiments.results_of(tmp_path)
