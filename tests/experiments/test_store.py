"""The store: several writers, half-written lines, damaged ones."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.store import Store

WRITER = """
import sys
from pathlib import Path
from qwp.experiments.store import Store
store = Store(Path(sys.argv[1]))
for number in range(20):
    store.append({"address": f"{sys.argv[2]}-{number}", "status": "done", "filler": "x" * 5000})
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "a" / "results")
    found.create()
    return found


def test_records_come_back(store: Store) -> None:
    store.append({"address": "a", "status": "done", "scores": {"nn": 0.5}})
    store.append({"address": "b", "status": "failed", "error": "ö\n"})
    other = Store(store.folder)
    assert other.refresh() == store.known
    assert other.known["b"]["error"] == "ö\n"
    store.append({"address": "c", "status": "done"})
    assert set(other.refresh()) == {"a", "b", "c"}


def test_the_first_result_stays_and_a_failure_gives_way(store: Store) -> None:
    for number, status in enumerate(("failed", "done", "done", "failed")):
        store.append({"address": "a", "status": status, "number": number})
    assert store.known["a"]["number"] == 1
    assert Store(store.folder).refresh()["a"]["number"] == 1


@pytest.mark.parametrize(
    "half", [b'{"address": "b", "sta', b"x", b'{"address": "b", "status": "done"}', b"y" * 200_000]
)
def test_half_a_line_is_not_read_and_cut_off_by_the_next_writer(
    store: Store, half: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.append({"address": "a", "status": "done"})
    with store.path.open("ab") as file:
        file.write(half)
    other = Store(store.folder)
    assert set(other.refresh()) == {"a"}
    with caplog.at_level(logging.WARNING):
        other.append({"address": "c", "status": "done"})
    assert f"half a record ({len(half)} bytes)" in caplog.text
    assert set(Store(store.folder).refresh()) == {"a", "c"}
    assert [json.loads(line)["address"] for line in store.path.read_text().splitlines()] == ["a", "c"]


def test_half_a_first_line_is_cut_off(store: Store) -> None:
    store.path.write_bytes(b'{"addr')
    store.append({"address": "a", "status": "done"})
    assert store.path.read_bytes().startswith(b'{"address": "a"')


def test_damaged_lines_are_counted(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.path.write_bytes(b'{"address": "a", "status": "done"}\n\xff\xfe\n[1]\n{"status": "done"}\n')
    with caplog.at_level(logging.WARNING):
        assert set(store.refresh()) == {"a"}
    assert "3 damaged lines left out" in caplog.text


def test_nothing_there_is_nothing(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").refresh() == {}


def test_a_file_that_was_replaced_is_read_anew(store: Store) -> None:
    store.append({"address": "a", "status": "done", "filler": "x" * 100})
    store.refresh()
    store.path.write_bytes(b'{"address": "b", "status": "done"}\n')
    assert set(store.refresh()) == {"b"}


def test_a_full_disk_leaves_no_half_line(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append({"address": "a", "status": "done"})
    before, write = store.path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:5]))
    with pytest.raises(InputError, match="a result could not be written"):
        store.append({"address": "b", "status": "done"})
    assert store.path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        Store(tmp_path / "file" / "results").create()


def test_several_writers(store: Store) -> None:
    arguments = [[sys.executable, "-c", WRITER, str(store.folder), str(number)] for number in range(2)]
    processes = [subprocess.Popen(each) for each in arguments]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(store.refresh()) == 40
    assert len(store.path.read_bytes().splitlines()) == 40
