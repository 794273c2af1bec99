from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import locks, open_writer, save
from qwp.spaces.io.files import atomic_write, check_file, check_folder, file_fingerprint

NAMES = ["x.vec", "x.vec.gz", "x.glove", "x.bin", "x.npz", "x.safetensors"]


def test_atomic_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with atomic_write(path) as handle:
        handle.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_atomic_write_leaves_nothing_after_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as handle:
            handle.write(b"new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_write_respects_the_umask(tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    reference.touch()
    with atomic_write(tmp_path / "x") as handle:
        handle.write(b"1")
    assert (tmp_path / "x").stat().st_mode == reference.stat().st_mode


def test_atomic_write_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), atomic_write(tmp_path / "no" / "x"):
        pass
    with pytest.raises(InputError, match="is a directory"), atomic_write(tmp_path):
        pass


def test_the_handle_may_be_closed_within_the_block(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x") as handle:
        handle.write(b"1")
        handle.close()
    assert (tmp_path / "x").read_bytes() == b"1"


def test_names_of_maximum_length(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        with atomic_write(tmp_path / name) as handle:
            handle.write(b"1")
        assert (tmp_path / name).read_bytes() == b"1"


KILLED = """
import sys, time
from pathlib import Path
from qwp.spaces.io.files import atomic_write
with atomic_write(Path(sys.argv[1])) as handle:
    handle.write(b"half")
    handle.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    """Start a process that begins to write this file, and waits."""
    writer = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_the_next_writer_removes_files_of_a_killed_process(tmp_path: Path) -> None:
    writer = start_writer(tmp_path / "x.vec")
    assert writer.stdout is not None
    try:
        (left,) = tmp_path.iterdir()
        with atomic_write(tmp_path / "x.vec") as handle:  # still in use
            handle.write(b"1")
        assert left.exists()
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    with atomic_write(tmp_path / "other.vec") as handle:  # a writer of another file removes nothing
        handle.write(b"1")
    assert left.exists()
    with atomic_write(tmp_path / "x.vec") as handle:
        handle.write(b"2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.vec", "x.vec"]
    assert (tmp_path / "x.vec").read_bytes() == b"2"


def test_two_writers_of_one_file_are_independent(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x") as first:
        first.write(b"first")
        with atomic_write(tmp_path / "x") as second:
            second.write(b"second")
        assert (tmp_path / "x").read_bytes() == b"second"
    assert (tmp_path / "x").read_bytes() == b"first"


def test_without_locks_the_age_of_a_temporary_file_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FILE_LOCKS", False)
    fresh, stale = tmp_path / ".x.01234567.tmp", tmp_path / ".x.89abcdef.tmp"
    fresh.touch()
    stale.touch()
    long_ago = time.time() - 100_000
    os.utime(stale, (long_ago, long_ago))
    with atomic_write(tmp_path / "x") as handle:
        handle.write(b"1")
    assert fresh.exists()
    assert not stale.exists()
    assert (tmp_path / "x").read_bytes() == b"1"


def test_other_hidden_files_are_not_removed(tmp_path: Path) -> None:
    names = [".x.tmp", ".x.1234.tmp", ".x.01234567", "x.01234567.tmp", ".y.01234567.tmp", ".x.y.01234567.tmp"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / ".x.00000000.tmp").mkdir()
    (tmp_path / ".x.11111111.tmp").symlink_to(tmp_path / ".x.tmp")
    with atomic_write(tmp_path / "x") as handle:
        handle.write(b"1")
    assert len(list(tmp_path.iterdir())) == len(names) + 3


def test_a_temporary_file_removed_as_stale_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = locks.lock_file
    taken: list[Path] = []

    def lock(handle: object, *, wait: bool) -> bool | None:
        if wait and not taken:  # another process acts between creating and locking
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        return real(handle, wait=wait)  # type: ignore[arg-type]

    monkeypatch.setattr(locks, "lock_file", lock)
    with atomic_write(tmp_path / "x") as handle:
        handle.write(b"1")
    assert len(taken) == 1
    assert (tmp_path / "x").read_bytes() == b"1"


FULL = """
import resource, sys
import numpy as np
from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import save
space = Embeddings([f"w{i}" for i in range(3000)], np.random.default_rng(0).normal(size=(3000, 50)))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(space, sys.argv[1])
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["x.vec.gz", "x.npz", "x.safetensors"])
def test_a_full_disk_is_explained_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / name)], capture_output=True, text=True, check=True)
    assert "could not be written (File too large), expected a disk with room" in ran.stdout
    assert str(tmp_path) in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_errors_of_other_files_are_not_changed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "x"):
        (tmp_path / "missing").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_pipes_and_devices_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.vec")
    targets = [
        tmp_path / "pipe.vec",
        Path("/dev/null"),
        Path("/dev/stdout"),
        Path("/dev/fd/1"),
        Path("/proc/self/fd/1"),
    ]
    for target in targets:
        with pytest.raises(InputError, match="is a pipe or a device, expected the name of a regular file"):
            check_folder(target)
        with pytest.raises(InputError, match="is a pipe or a device"):
            save(Embeddings(["a"], np.ones((1, 1))), target, format="text")
    assert (tmp_path / "pipe.vec").is_fifo()


def test_the_words_of_safetensors_are_not_put_over_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(InputError, match="is a pipe or a device"), open_writer(tmp_path / "x.safetensors", 1):
        pass


def test_check_file_explains(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, message in (
        ("missing", "does not exist"),
        (".", "is a directory"),
        ("empty", r"empty \(0 bytes\)"),
    ):
        with pytest.raises(InputError, match=message):
            check_file(tmp_path / name)


def test_a_fingerprint_changes_with_size_time_and_sampled_content(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(4_000_000))
    about, first = path.stat(), file_fingerprint(path)
    assert file_fingerprint(path) == first
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert file_fingerprint(path) != first
    for changed in (b"x" + bytes(3_999_999), bytes(3_999_999) + b"x", bytes(4_000_001)):
        path.write_bytes(changed)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert file_fingerprint(path) != first


def test_an_empty_file_has_a_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert len(file_fingerprint(tmp_path / "empty")) == 64
