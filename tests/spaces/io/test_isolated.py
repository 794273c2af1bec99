"""A child process that reads a file: what ends it, and that it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.foreign import frames
from qwp.spaces.io import isolated, load, save, stream
from qwp.spaces.io.isolated import Limits
from tests.spaces.foreign.jobs import job

LIMITS = Limits(memory=1 << 28, seconds=5, patience=8, content=1 << 26, rows=1000)
WORDS = [f"w{i}" for i in range(50)]
SPACE = Embeddings(WORDS, np.arange(200, dtype=np.float32).reshape(50, 4))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    save(SPACE, tmp_path / "x.db")
    return tmp_path / "x.db"


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program in the place of Python, which does as a broken child does."""

    def put(body: str) -> None:
        program = tmp_path / "python"
        lines = [
            f"#!{sys.executable}",
            "import json, os, resource, signal, struct, sys, time",
            "pipe = json.loads(sys.argv[-1])[1]",
            "head = lambda kind, number=b'', rows=0, dim=0, text=0: "
            "os.write(pipe, struct.pack('<c2s3Q', kind, number, rows, dim, text))",
        ]
        program.write_text("\n".join([*lines, body, ""]))
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))

    return put


def children() -> set[str]:
    """The processes that this one has started and not waited for."""
    found: set[str] = set()
    for thread in os.listdir("/proc/self/task"):
        found |= set(Path(f"/proc/self/task/{thread}/children").read_text().split())
    return found


def received(path: Path, limits: Limits = LIMITS) -> list[tuple[int, int]]:
    """The shapes of all batches."""
    asked = replace(job(path, "sqlite", rows=20), memory=limits.memory, seconds=limits.seconds)
    with closing(isolated.received(asked, "database", limits)) as batches:
        return [vectors.shape for _, vectors in batches]


def test_rows_come_in_batches(database: Path) -> None:
    assert received(database) == [(20, 4), (20, 4), (10, 4)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os.abort()", r"makes the library that reads it crash \(SIGABRT\), expected a complete database"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"crash \(SIGSEGV\)"),
        ("sys.exit(3)", r"crash \(exit code 3\)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "takes more than 268,435,456 bytes of memory"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "takes more than 5 s of processor time"),
        ("os.write(pipe, b'x' * 100)", "send nonsense, expected a complete database"),
        ("head(b'R', b'f4', 1, 1 << 19)", "has vectors of 524288 numbers, expected at most 262144"),
        ("head(b'R', b'f4', 1 << 60, 4)", "unpacks to more than"),
        ("head(b'R', b'f4', 1001, 1)", "unpacks to more than"),
        ("head(b'R', b'f4', 1, 1, 1 << 50)", "unpacks to more than"),
        ("head(b'R', b'f4', 2, 1, 9); os.write(pipe, bytes(17))", "send nonsense"),
        ("head(b'D', text=5); os.write(pipe, b'a.Err')", r"is a damaged or cut database \(a.Err\)"),
        ("head(b'M')", "takes more than 268,435,456 bytes of memory"),
        ("head(b'X', text=2); os.write(pipe, b'no')", "^no$"),
    ],
)
def test_whatever_a_child_does_is_one_error(database: Path, play: Any, body: str, message: str) -> None:
    play(body)
    before = children()
    with pytest.raises(InputError, match=message):
        received(database)
    assert children() == before


def test_a_child_that_hangs_is_given_up(database: Path, play: Any) -> None:
    play("time.sleep(600)")
    with pytest.raises(InputError, match="takes more than 0 s of processor time"):
        received(database, replace(LIMITS, seconds=0))


def test_without_a_program_there_is_an_explanation(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(database.parent / "none"))
    with pytest.raises(InputError, match="none could be started"):
        load(database)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list processes")
def test_the_child_ends_with_the_reading(database: Path, play: Any) -> None:
    play(f"head(b'R', b'f4', 1, 4, 5); os.write(pipe, {frames.packed_words(['w'])!r} + bytes(16)); time.sleep(600)")
    before, files = children(), len(os.listdir("/proc/self/fd"))
    for end in ("stop", "interrupt"):
        batches = stream(database, batch=1)
        next(batches)
        assert len(children() - before) == 1
        if end == "stop":
            assert isinstance(batches, Iterator)
            batches.close()  # type: ignore[attr-defined]
        else:
            threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                next(batches)
        assert children() == before
        assert len(os.listdir("/proc/self/fd")) == files


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    save(SPACE, tmp_path / "x.parquet")
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "x.parquet").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    found = load(tmp_path / "pipe")
    writer.join()
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, SPACE.vectors)


def test_limits_grow_with_the_file() -> None:
    small, large = Limits.of(100), Limits.of(10**9)
    assert (small.seconds, large.seconds) == (4, 4 + 990_000_000 // (1 << 20))
    assert small.memory < 400 << 20 < 12 * 10**9 < large.memory
    assert Limits.of(10**9, ratio=3).content == 3 * large.content


def test_a_job_is_plain_data(database: Path) -> None:
    asked = job(database, "sqlite")
    os.close(asked.descriptor)
    assert frames.Job(**json.loads(json.dumps(asked.to_dict()))) == asked
