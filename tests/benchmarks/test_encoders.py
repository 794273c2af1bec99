"""Two encoders: the table is that of the records, and a run scores what was held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import encoders
from benchmarks.common import read_records
from tests.problems import rotation, space


def test_the_document_holds_exactly_the_table_of_the_records() -> None:
    text = encoders.DOCUMENT.read_text()
    assert text.count(encoders.BEGIN) == text.count(encoders.END) == 1
    expected = "\n" + encoders.table(read_records(encoders.RESULTS))
    assert text.split(encoders.BEGIN)[1].split(encoders.END)[0] == expected


def test_pairs_that_are_known_are_those_of_the_shuffled_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "encoders").mkdir()
    texts = space(600, 8, 0).astype("f4")
    np.save(tmp_path / "encoders" / "minilm.npy", texts)
    np.save(tmp_path / "encoders" / "wordllama.npy", texts @ rotation(10, 1)[:8, :].astype("f4"))
    monkeypatch.setattr(encoders, "BENCH", tmp_path)
    monkeypatch.setattr(encoders, "HELD_OUT", 100)
    record = encoders._run("procrustes", 50, 0, "cpu")
    assert record["nn"] > 95
    assert record["mean_rank"] < 1.1
    assert (record["pairs"], record["seed"], record["verdict"]) == (50, 0, "unjudged")
