"""The child process: its limits and its protocol."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces import child
from qwp.spaces.child import HEAD, Head, Items, ReadingJob

# --------------------------------------------------------------------------- the process

JOB = ReadingJob("parquet", "x", "x", 0, 1, None, 10, 1 << 28, 2)


def said(error: BaseException | None) -> tuple[list[bytes], bytes]:
    """Return the kinds of frames of a reader that raises an error after one row, and the text of the last frame."""
    parts: list[bytes] = []

    def read(job: ReadingJob) -> tuple[int, Iterator[Items]]:
        def batches() -> Iterator[Items]:
            yield ["a"], np.zeros((1, 2), "f4")
            if error is not None:
                raise error

        return 1, batches()

    child.serve(read, JOB, lambda data: parts.append(bytes(data)))
    heads = [part for part in parts if len(part) >= child.HEAD.size]
    return [head[:1] for head in heads], heads[-1][child.HEAD.size :]


@pytest.mark.parametrize(
    ("error", "last", "text"),
    [
        (None, child.END, b""),
        (InputError("no"), child.REFUSED, b"no"),
        (MemoryError(), child.MEMORY, b""),
        (RuntimeError("std::bad_alloc"), child.MEMORY, b""),
        (OSError("Out of Memory Error"), child.MEMORY, b""),
        (KeyError("x"), child.DAMAGED, b"builtins.KeyError"),
    ],
)
def test_every_end_of_a_reader_is_reported(error: BaseException | None, last: bytes, text: bytes) -> None:
    assert said(error) == ([child.START, child.ROWS, last], text)


def test_nothing_is_sent_after_the_parent_has_ended() -> None:
    assert said(BrokenPipeError())[0] == [child.START, child.ROWS]


LIMITED = """
import sys
from qwp.spaces import child
from qwp.spaces.child import ReadingJob
child.limit(ReadingJob("x", "x", "x", 0, 1, None, 1, 1 << 26, 1))
if sys.argv[1] == "memory":
    try:
        bytearray(1 << 28)
    except MemoryError:
        sys.exit(7)
while True:
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep to a limit of memory")
@pytest.mark.parametrize(("what", "code"), [("memory", 7), pytest.param("time", -24, marks=pytest.mark.slow)])
def test_limits_are_enforced(what: str, code: int) -> None:
    ran = subprocess.run([sys.executable, "-c", LIMITED, what], capture_output=True, timeout=60, check=False)
    assert ran.returncode == code, ran.stderr


def test_the_memory_watcher_kills_its_process(tmp_path: Path) -> None:
    program = "from qwp.spaces import child; child._watch_memory(1000)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == -9


def test_a_child_imports_little() -> None:
    """Unneeded imports slow down the reading of every file."""
    program = (
        "import sys; from qwp.spaces import child; child.get_reader('sqlite'); "
        "print(sorted({'scipy', 'torch', 'rich', 'typer', 'qwp.spaces.io', 'duckdb', 'pyarrow'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


# --------------------------------------------------------------------------- DataFrames


def sent(words: child.Words, vectors: child.Numbers) -> list[bytes]:
    parts: list[bytes] = []
    child.send_rows(lambda data: parts.append(bytes(data)), words, vectors)
    return parts


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "u1", "i8", ">f4"])
def test_rows_are_restored(kind: str) -> None:
    vectors = np.arange(6).reshape(3, 2).astype(kind)
    words: list[str | None] = ["a", None, "\ud800é日\n"]
    head, numbers = sent(words, vectors)
    found = child.unpack_head(head[: HEAD.size])
    assert (found.rows, found.dim, found.numbers_bytes) == (3, 2, len(numbers))
    assert child.unpack_words(head[HEAD.size :], 3) == words
    assert found.dtype is not None
    np.testing.assert_array_equal(np.frombuffer(numbers, found.dtype).reshape(3, 2), vectors)


def test_many_rows_are_sent_in_several_frames() -> None:
    parts = sent(None, np.zeros((5, 1 << 20), "f4"))
    heads = [child.unpack_head(part) for part in parts[::2]]
    assert [head.rows for head in heads] == [2, 2, 1]
    assert {head.text_bytes for head in heads} == {0}


def test_texts_of_frames_are_limited() -> None:
    parts: list[bytes] = []
    child.send_end(parts.append, child.REFUSED, "x" * 100_000)
    child.send_start(parts.append, 7)
    assert len(parts[0]) == HEAD.size + child.MAX_TEXT_BYTES
    assert child.unpack_head(parts[1]) == Head(child.START, None, 7, 0, 0)


@pytest.mark.parametrize(
    "head",
    [
        (b"?", b"f4", 1, 1, 0),
        (child.ROWS, b"O8", 1, 1, 0),
        (child.ROWS, b"f4", 0, 1, 0),
        (child.END, b"", 0, 0, 9),
        (child.REFUSED, b"", 0, 0, 1 << 40),
    ],
)
def test_other_heads_are_refused(head: tuple[bytes, bytes, int, int, int]) -> None:
    with pytest.raises(ValueError, match="received a frame"):
        child.unpack_head(HEAD.pack(*head))


@pytest.mark.parametrize(
    "data", [b"", np.array([5], "<i4").tobytes() + b"ab", np.array([1], "<i4").tobytes() + b"\xff"]
)
def test_words_of_a_wrong_length_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - raised by NumPy, a codec or this module
        child.unpack_words(data, 1)
