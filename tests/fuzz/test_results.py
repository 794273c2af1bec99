"""A few attacks of fuzz/results.py and fuzz/kills.py."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from fuzz import edits, kills, results
from qwp import InputError


def test_edits_and_flips() -> None:
    found = results.run(edits=30, flips=15, saves=0, seed=1)
    assert found.found == []
    assert sum(found.outcomes.values()) == 45
    refused = sum(count for name, count in found.outcomes.items() if name.endswith("refused"))
    assert refused > 22


@pytest.mark.slow
def test_saves_at_the_same_time() -> None:
    found = results.run(edits=0, flips=0, saves=12, seed=0)
    assert found.found == []
    assert found.outcomes["save together done"] == found.outcomes["save several-together done"] == 6
    assert found.outcomes["save together read meanwhile"] > 0


@pytest.mark.slow
def test_kills() -> None:
    report = kills.run(2, seed=0)
    assert report.findings == []
    assert report.counts["SIGKILL"] + report.counts["SIGTERM"] >= 2


def test_a_case_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main(["--only", "flip:3"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("flip:3 (")
    assert results.main(["--only", "flip:3"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == first


def test_findings_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # A loader that checks no hashes.
    monkeypatch.setattr("qwp.results.saved.file_sha256", lambda path: "0" * 64)
    monkeypatch.setattr("qwp.results.saved.schema.digest", lambda value: "0" * 64)
    assert results.main(["--edits", "40", "--flips", "0", "--saves", "0"]) == 1
    captured = capsys.readouterr()
    assert "FINDING edit:" in captured.err
    assert "it was loaded, but differs from what was saved" in captured.err
    assert " findings in " in captured.out


def test_an_edit_changes_json_in_one_place() -> None:
    value = {"a": [1, 2], "b": {"c": "x"}}
    for number in range(200):
        edited, what = edits.edit_json(json.loads(json.dumps(value)), random.Random(number))
        assert what
        json.dumps(edited)
    assert set(edits.paths(value)) == {("a",), ("a", 0), ("a", 1), ("b",), ("b", "c")}


def test_reseal_makes_an_edited_result_valid(tmp_path: Path) -> None:
    results.make_alignment(1).save(tmp_path)
    path = tmp_path / "alignment.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(InputError):
        results.load_alignment(tmp_path)
    assert edits.reseal(tmp_path)
    results.load_alignment(tmp_path)
    path.write_text("{")
    assert not edits.reseal(tmp_path)
