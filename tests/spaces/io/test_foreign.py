"""Files of foreign libraries: the child process, its failures, and each format."""

from __future__ import annotations

import json
import os
import signal
import subprocess
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
from qwp.spaces import child
from qwp.spaces.io import foreign, load, open_writer, save, sniff, stream
from qwp.spaces.io.foreign import ChildLimits
from tests.libraries import optional_module
from tests.spaces.arrow_files import LISTS, ROWS, WORDS, write_table
from tests.spaces.jobs import job

pa: Any = optional_module("pyarrow")
pq: Any = optional_module("pyarrow.parquet")
needs_arrow = pytest.mark.skipif(pa is None, reason='not installed: pip install "qwp[arrow]"')
faiss: Any = optional_module("faiss")
needs_faiss = pytest.mark.skipif(faiss is None, reason='not installed: pip install "qwp[faiss]"')

# --------------------------------------------------------------------------- the child process

LIMITS = ChildLimits(memory=1 << 28, seconds=5, patience=8, content=1 << 26, rows=1000)
NAMES = [f"w{i}" for i in range(50)]
SPACE = Embeddings(NAMES, np.arange(200, dtype=np.float32).reshape(50, 4))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    save(SPACE, tmp_path / "x.db")
    return tmp_path / "x.db"


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that replaces the Python interpreter by a program that behaves like a broken child."""

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
    """Return the child processes that have not been waited for."""
    found: set[str] = set()
    for thread in os.listdir("/proc/self/task"):
        found |= set(Path(f"/proc/self/task/{thread}/children").read_text().split())
    return found


def received(path: Path, limits: ChildLimits = LIMITS) -> list[tuple[int, int]]:
    """Return the shapes of all batches."""
    asked = replace(job(path, "sqlite", rows=20), memory=limits.memory, seconds=limits.seconds)
    with closing(foreign.receive(asked, "SQLite database", limits)) as batches:
        return [vectors.shape for _, vectors in batches]


def test_rows_come_in_batches(database: Path) -> None:
    assert received(database) == [(20, 4), (20, 4), (10, 4)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os.abort()", r"crashes the library that reads it \(SIGABRT\), expected a complete SQLite database"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"reads it \(SIGSEGV\)"),
        ("sys.exit(3)", r"reads it \(exit code 3\)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "takes more than 268,435,456 bytes of memory"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "takes more than 5 s of processor time"),
        ("os.write(pipe, b'x' * 100)", "send invalid data, expected a complete SQLite database"),
        ("head(b'R', b'f4', 1, 1 << 19)", "has vectors of 524288 numbers, expected at most 262144"),
        ("head(b'R', b'f4', 1 << 60, 4)", "unpacks to more than"),
        ("head(b'R', b'f4', 1001, 1)", "unpacks to more than"),
        ("head(b'R', b'f4', 1, 1, 1 << 50)", "unpacks to more than"),
        ("head(b'R', b'f4', 2, 1, 9); os.write(pipe, bytes(17))", "send invalid data"),
        ("head(b'D', text=5); os.write(pipe, b'a.Err')", r"is a damaged or truncated SQLite database \(a.Err\)"),
        ("head(b'M')", "takes more than 268,435,456 bytes of memory"),
        ("head(b'X', text=2); os.write(pipe, b'no')", "^no$"),
    ],
)
def test_every_failure_of_the_child_is_one_input_error(database: Path, play: Any, body: str, message: str) -> None:
    play(body)
    before = children()
    with pytest.raises(InputError, match=message):
        received(database)
    assert children() == before


def test_a_hanging_child_is_killed(database: Path, play: Any) -> None:
    play("time.sleep(600)")
    with pytest.raises(InputError, match="takes more than 0 s of processor time"):
        received(database, replace(LIMITS, seconds=0))


def test_a_child_that_cannot_start_is_explained(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(database.parent / "none"))
    with pytest.raises(InputError, match="none could be started"):
        load(database)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list processes")
def test_the_child_ends_with_the_reading(database: Path, play: Any) -> None:
    play(f"head(b'R', b'f4', 1, 4, 5); os.write(pipe, {child.pack_words(['w'])!r} + bytes(16)); time.sleep(600)")
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
    assert found.words == NAMES
    np.testing.assert_array_equal(found.vectors, SPACE.vectors)


def test_limits_grow_with_the_file() -> None:
    small, large = ChildLimits.of(100), ChildLimits.of(10**9)
    assert (small.seconds, large.seconds) == (4, 4 + 990_000_000 // (1 << 20))
    assert small.memory < 400 << 20 < 12 * 10**9 < large.memory
    assert ChildLimits.of(10**9, compression=3).content == 3 * large.content


def test_jobs_are_plain_data(database: Path) -> None:
    asked = job(database, "sqlite")
    os.close(asked.descriptor)
    assert child.ReadingJob(**json.loads(json.dumps(asked.to_dict()))) == asked


# --------------------------------------------------------------------------- Parquet and Arrow


@needs_arrow
def test_named_columns_are_read_and_reported(tmp_path: Path) -> None:
    path = write_table(tmp_path, "x.parquet", title=WORDS, other=WORDS[::-1], one=LISTS, two=(2 * ROWS).tolist())
    found = load(f"{path}#other,two", max_vocab=3)
    assert found.words == WORDS[:0:-1]
    np.testing.assert_array_equal(found.vectors, 2 * ROWS[:3])
    assert found.report is not None
    assert (found.report.path, found.report.complete) == (f"{path}#other,two", False)


@needs_arrow
def test_tables_without_words_are_numbered(tmp_path: Path) -> None:
    path = write_table(tmp_path, "x.parquet", v=LISTS)
    assert load(path).words == ["x:0", "x:1", "x:2", "x:3"]
    (tmp_path / "x.words.txt").write_text("a\nb\nc\nd\n")
    assert load(path).words == ["a", "b", "c", "d"]


@needs_arrow
def test_rows_without_words_or_vectors_count_as_damaged(tmp_path: Path) -> None:
    path = write_table(tmp_path, "x.parquet", word=["a", None, "c", "d"], v=[LISTS[0], LISTS[1], None, LISTS[3]])
    with pytest.raises(InputError, match=r"row 1 of .* has no word"):
        load(path)
    assert load(path, errors="skip").words == ["a", "d"]


@needs_arrow
def test_damage_is_explained(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow"):
        save(Embeddings(WORDS, ROWS), tmp_path / name)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-20])
        with pytest.raises(InputError, match=r"is a damaged or truncated (Parquet|Arrow) file"):
            load(tmp_path / name)


@needs_arrow
def test_a_missing_library_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(Embeddings(WORDS, ROWS), tmp_path / "x.parquet")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'needs pyarrow, which is not installed: pip install "qwp\[arrow\]"'):
        load(tmp_path / "x.parquet")


# --------------------------------------------------------------------------- FAISS

INDEX_ROWS = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


def write_index(folder: Path, index: Any) -> Path:
    faiss.write_index(index, str(folder / "x.faiss"))
    return folder / "x.faiss"


@needs_faiss
def test_ids_of_an_index_are_its_words(tmp_path: Path) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(8))
    index.add_with_ids(INDEX_ROWS[:3], np.array([7, 9, 8]))
    path = write_index(tmp_path, index)
    assert load(path).words == ["7", "9", "8"]
    (tmp_path / "x.faiss.words.txt").write_text("a\nb\nc\n")
    assert load(path).words == ["a", "b", "c"]


@needs_faiss
def test_writers_create_a_flat_index(tmp_path: Path) -> None:
    save(Embeddings([f"w{i}" for i in range(300)], INDEX_ROWS), tmp_path / "x.faiss")
    index = faiss.read_index(str(tmp_path / "x.faiss"))
    np.testing.assert_array_equal(index.reconstruct_n(0, 300), INDEX_ROWS)


@needs_faiss
def test_rows_without_words_are_numbered_and_damage_is_explained(tmp_path: Path) -> None:
    index = faiss.IndexFlatL2(8)
    index.add(INDEX_ROWS)
    path = write_index(tmp_path, index)
    assert sniff(path) == "faiss"
    assert load(path, label="src", max_vocab=2).words == ["src:0", "src:1"]
    path.write_bytes(b"IxZZ" + path.read_bytes()[4:])
    with pytest.raises(InputError, match="damaged or truncated FAISS index"):
        load(path)


# --------------------------------------------------------------------------- SQLite and DuckDB

DATABASE_ROWS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
DATABASE_SPACE = Embeddings([f"w{i}" for i in range(39)] + ["a'b\"c\0\n"], DATABASE_ROWS)


@pytest.mark.parametrize("name", ["x.db", "x.duckdb"])
def test_a_database_is_written_and_read_again(tmp_path: Path, name: str) -> None:
    if name == "x.duckdb":
        pytest.importorskip("duckdb")
    space = DATABASE_SPACE if name == "x.db" else Embeddings([*DATABASE_SPACE.words[:-1], "a'b\"c\n"], DATABASE_ROWS)
    save(space, tmp_path / name)
    assert sniff(tmp_path / name) == name.replace("x.", "").replace("db", "sqlite", name == "x.db")
    found = load(f"{tmp_path / name}#vectors,word,vector")
    assert found.words == space.words
    np.testing.assert_array_equal(found.vectors, DATABASE_ROWS)
    assert load(tmp_path / name, max_vocab=3).words == ["w0", "w1", "w2"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_duplicate_words_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="words were written twice"),
        open_writer(tmp_path / "x.db", 3) as writer,
    ):
        writer.write(["a", "a"], DATABASE_ROWS[:2])
    assert list(tmp_path.iterdir()) == []


WRITE = """
import sys, time
import numpy as np
from qwp.spaces.io import open_writer
with open_writer(sys.argv[1], 2) as writer:
    writer.write(["a"], np.ones((1, 2)))
    print("ready", flush=True)
    time.sleep(600)
"""


def test_the_next_writer_removes_the_folder_of_a_killed_one(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    command = [sys.executable, "-c", WRITE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        left = set(tmp_path.iterdir())
        save(DATABASE_SPACE, path)  # while the other process is writing
        assert set(tmp_path.iterdir()) == left | {path}
        writer.kill()
    assert len(left) == 2
    save(DATABASE_SPACE, path)
    assert list(tmp_path.iterdir()) == [path]
