"""The trial of the verdict: its spaces, its cases, its records and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import judgement
from benchmarks.common import TABLES_BEGIN, TABLES_END, read_records
from benchmarks.judgement import Case
from qwp import Embeddings, Lexicon

REAL = Embeddings([f"w{i}" for i in range(900)], np.random.default_rng(0).standard_normal((900, 12)) * np.arange(1, 13))


def record(group: str, ratio: float, z: float = 20.0, **more: Any) -> dict[str, Any]:
    return {"group": group, "task": "gaussian", "method": "qwp", "ratio": ratio, "z": z, **more}


@pytest.mark.parametrize("family", judgement.FAMILIES)
def test_unrelated_spaces_are_as_large_as_their_label_says(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "_space", lambda name: REAL)
    source = " x novels/en" if family in judgement.FROM_REAL else ""
    case = Case("unrelated", family, f"300 x 10{source}", "qwp", 3)
    x, y = judgement.unrelated_spaces(case)
    assert x.shape == y.shape == (300, 10)
    assert np.isfinite(x).all()
    # The same for every call, others for another seed; and no row is one of the other side.
    np.testing.assert_allclose(judgement.unrelated_spaces(case)[1], y, atol=1e-9)
    other = judgement.unrelated_spaces(Case("unrelated", family, f"300 x 10{source}", "qwp", 4))
    assert not np.allclose(other[1], y)
    one, two = (np.sort(np.linalg.norm(side, axis=1)) for side in (x, y))
    assert not np.allclose(one, two)


def test_the_list_is_the_same_for_every_call_and_a_longer_one_begins_with_it() -> None:
    few, many = list(judgement.unrelated_cases(40)), list(judgement.unrelated_cases(80))
    assert many[: len(few)] == few
    assert len({case.key for case in many}) == len(many)
    assert {case.task for case in many} <= set(judgement.FAMILIES)


def test_what_labels_do_to_a_space() -> None:
    assert judgement.changed(REAL, "as it is", 0) is REAL
    assert judgement.changed(REAL, "200 pairs", 0) is REAL
    assert len(judgement.changed(REAL, "first 100", 0)) == 100
    assert judgement.changed(REAL, "5 dimensions", 0).dim == 5
    noisy = judgement.changed(REAL, "30 % noise", 0)
    assert (noisy.vectors != REAL.vectors.astype(np.float32)).any(axis=1).sum() == 270


def test_so_many_pairs_that_both_sides_hold() -> None:
    lexicon = Lexicon(tuple((f"w{i}", f"w{i + 890}") for i in range(30)))
    assert len(judgement.some_pairs(lexicon, REAL, REAL, 5).pairs) == 5
    assert len(judgement.some_pairs(lexicon, REAL, REAL, 50).pairs) == 10


def test_a_run_is_recorded_and_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "found.jsonl"
    cases = [Case("unrelated", "gaussian", "220 x 5", "self-learning", 0)]
    judgement.run_all(cases, "cpu", 1, output, 1e9)
    [found] = read_records(output)
    assert found["verdict"] in ("failed", "weak", "succeeded")
    assert {"ratio", "z", "runs", "agreement", "estimate", "seconds"} <= set(found)
    judgement.run_all(cases, "cpu", 1, output, 1e9)
    assert len(read_records(output)) == 1
    assert "gaussian" in capsys.readouterr().out


def test_an_error_is_a_record() -> None:
    found, signals = judgement.run_case(Case("unrelated", "gaussian", "50 x 5", "no such method", 0), "cpu")
    assert "no such method" in found["error"]
    assert signals == {}


def test_the_limits_of_today_decide() -> None:
    assert judgement.is_called_failed(record("unrelated", 1.0))
    assert judgement.is_called_failed(record("unrelated", 2.0, z=1.0))
    assert not judgement.is_called_failed(record("unrelated", 1.5))


def test_tables_count_what_is_wrong() -> None:
    records = [
        *(record("unrelated", ratio) for ratio in (1.0, 1.1, 1.5)),
        record("related", 1.4, p1=30.0, covered=100),
        record("related", 1.0, p1=30.0, covered=100),
        record("related", 1.0, p1=30.0, covered=3),
        {"group": "unrelated", "task": "gaussian", "method": "qwp", "error": "out of memory"},
    ]
    found = judgement.tables(records, None)
    assert "| gaussian | 3 | 0 | 0 | 0 | 1 of 3 | 1.50 |" in found
    assert "| 20 and more | 2 | 1 | 1.00 |" in found


def test_the_document_has_the_tables_of_the_records() -> None:
    left_out = json.loads(judgement.CONFIDENCE.read_text())
    expected = judgement.tables(read_records(judgement.RESULTS), left_out)
    document = judgement.DOCUMENT.read_text()
    assert document.split(TABLES_BEGIN)[1].split(TABLES_END)[0] == "\n" + expected
