from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from qwp.downloads.records import Record, read_record, record_path, write_record


def test_a_record_describes_its_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.vec"
    path.write_bytes(b"abc")
    record = Record("en", "u", 1, True, 3, hashlib.sha256(b"abc").hexdigest(), "l", "c")
    write_record(path, record)
    assert read_record(path) == record
    assert record.describes(path)
    path.write_bytes(b"abd")
    assert not record.describes(path)
    path.write_bytes(b"abcd")
    assert not record.describes(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}', "{"])
def test_other_records_are_none(tmp_path: Path, text: str) -> None:
    record_path(tmp_path / "x.vec").write_text(text)
    assert read_record(tmp_path / "x.vec") is None
    assert read_record(tmp_path / "none.vec") is None
