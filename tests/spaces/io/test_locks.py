"""One writer at a time, and readers that wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from qwp import InputError
from qwp.spaces.io import locks

HOLDER = """
import sys, time
from pathlib import Path
from qwp.spaces.io import locks
with locks.exclusive(Path(sys.argv[1])):
    print("has it", flush=True)
    time.sleep(60)
"""


def test_the_lock_file_exists_only_while_it_is_held(tmp_path: Path) -> None:
    with locks.exclusive(tmp_path):
        assert locks.held(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="x"), locks.exclusive(tmp_path):
        raise ValueError("x")
    assert list(tmp_path.iterdir()) == []


def test_writers_take_turns(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def write() -> None:
        for _ in range(10):
            with locks.exclusive(tmp_path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], list(tmp_path.iterdir())) == (1, [])


def test_a_killed_writer_holds_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "has it\n"
    another = f"another process is writing into {tmp_path}"
    with pytest.raises(InputError, match=another), locks.exclusive(tmp_path, seconds=0.05):
        pass
    with locks.shared(tmp_path, seconds=0.05) as shared:
        assert not shared
    holder.kill()
    holder.communicate()
    assert locks.held(tmp_path)  # what it left
    with locks.shared(tmp_path) as shared:
        assert shared
    with locks.exclusive(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_reader_creates_nothing_and_keeps_writers_waiting(tmp_path: Path) -> None:
    with locks.shared(tmp_path) as shared:
        assert not shared
    assert list(tmp_path.iterdir()) == []
    (tmp_path / locks.LOCK_FILE).touch()
    with locks.shared(tmp_path) as one, locks.shared(tmp_path) as two:
        assert (one, two) == (True, True)
        with pytest.raises(InputError, match="another process"), locks.exclusive(tmp_path, seconds=0.05):
            pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
def test_pipes_and_links_in_place_of_the_lock_file_do_not_block_readers(tmp_path: Path) -> None:
    lock, outside = tmp_path / locks.LOCK_FILE, tmp_path / "outside"
    os.mkfifo(lock)
    with locks.shared(tmp_path):
        pass
    lock.unlink()
    lock.symlink_to(outside)
    with locks.shared(tmp_path) as shared:
        assert not shared
    with pytest.raises(OSError, match="symbolic link"), locks.exclusive(tmp_path):
        pass
    assert not outside.exists()


def test_file_systems_without_locks_are_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with locks.exclusive(tmp_path), locks.shared(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
