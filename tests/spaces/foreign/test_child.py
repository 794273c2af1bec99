"""What a child process says to its parent, and how it limits itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.foreign import child, frames
from qwp.spaces.foreign.frames import Items, Job

JOB = Job("parquet", "x", "x", 0, 1, None, 10, 1 << 28, 2)


def said(error: BaseException | None) -> tuple[list[bytes], bytes]:
    """The kinds of the frames that a reader causes which raises this after one row, and the text of the last."""
    parts: list[bytes] = []

    def read(job: Job) -> tuple[int, Iterator[Items]]:
        def batches() -> Iterator[Items]:
            yield ["a"], np.zeros((1, 2), "f4")
            if error is not None:
                raise error

        return 1, batches()

    child.serve(read, JOB, lambda data: parts.append(bytes(data)))
    heads = [part for part in parts if len(part) >= frames.HEAD.size]
    return [head[:1] for head in heads], heads[-1][frames.HEAD.size :]


@pytest.mark.parametrize(
    ("error", "last", "text"),
    [
        (None, frames.END, b""),
        (InputError("no"), frames.REFUSED, b"no"),
        (MemoryError(), frames.MEMORY, b""),
        (RuntimeError("std::bad_alloc"), frames.MEMORY, b""),
        (OSError("Out of Memory Error"), frames.MEMORY, b""),
        (KeyError("x"), frames.DAMAGED, b"builtins.KeyError"),
    ],
)
def test_every_end_is_said(error: BaseException | None, last: bytes, text: bytes) -> None:
    assert said(error) == ([frames.START, frames.ROWS, last], text)


def test_nothing_is_said_to_a_parent_that_has_gone() -> None:
    assert said(BrokenPipeError())[0] == [frames.START, frames.ROWS]


LIMITED = """
import sys
from qwp.spaces.foreign import child
from qwp.spaces.foreign.frames import Job
child.limit(Job("x", "x", "x", 0, 1, None, 1, 1 << 26, 1))
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
def test_limits_are_kept(what: str, code: int) -> None:
    ran = subprocess.run([sys.executable, "-c", LIMITED, what], capture_output=True, timeout=60, check=False)
    assert ran.returncode == code, ran.stderr


def test_a_watched_process_ends(tmp_path: Path) -> None:
    program = "from qwp.spaces.foreign import child; child._watch(1000)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == -9


def test_a_child_imports_little() -> None:
    """What is slow to import, or not needed, makes every file slower to read."""
    program = (
        "import sys; from qwp.spaces.foreign import child; child.reader('sqlite'); "
        "print(sorted({'scipy', 'torch', 'rich', 'typer', 'qwp.spaces.io', 'duckdb', 'pyarrow'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
