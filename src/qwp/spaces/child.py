"""The child process in which C and C++ libraries parse files, and its protocol.

A damaged or crafted file can make such a library crash, hang or exhaust memory. The child limits its own memory and
processor time, so that only the child fails. It sends rows through a pipe in frames: a head of fixed size, then plain
bytes. The parent (`qwp.spaces.io.foreign`) checks every size in a head before it allocates memory. Neither side
evaluates or unpickles a frame.

This module does not import `qwp.spaces.io`, which halves the start time of the child.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from qwp.errors import QwpError

try:
    import resource
except ImportError:  # Windows has no resource limits
    resource = None  # type: ignore[assignment]

HEAD = struct.Struct("<c2s3Q")
"""Kind of frame, type of number, rows, numbers per row, bytes of the words or of a message."""
START, ROWS, END = b"S", b"R", b"E"
REFUSED, DAMAGED, MEMORY = b"X", b"D", b"M"
"""Kinds of frame for a failure: an InputError with its message, another exception with its name, out of memory."""
MAX_TEXT_BYTES = 1 << 12
_NUMBER_TYPES = frozenset((b"f2", b"f4", b"f8", b"i1", b"i2", b"i4", b"i8", b"u1", b"u2", b"u4", b"u8"))
_FRAME_BYTES = 1 << 23  # vectors per frame, rounded to whole rows
_LENGTH = np.dtype("<i4")

Words: TypeAlias = "list[str | None] | None"
Numbers: TypeAlias = npt.NDArray[Any]
Items: TypeAlias = tuple[Words, Numbers]
"""Words with their vectors (b, d). Words are None for a file without words; a word is None if it is not text."""


@dataclass(frozen=True)
class ReadingJob:
    """A file to read in a child process, and the limits of that process.

    Attributes:
        kind: format of the file.
        name: file name as the user gave it, for messages.
        file: path of the file; empty for content that came through a pipe.
        descriptor: descriptor of the open file.
        size: bytes of the file.
        part: part of the file that the user selected, such as a table.
        rows: maximum number of rows to read at a time.
        memory: bytes the process may use in addition to its libraries.
        seconds: processor time of the process.
    """

    kind: str
    name: str
    file: str
    descriptor: int
    size: int
    part: str | None
    rows: int
    memory: int
    seconds: int

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain JSON types."""
        return asdict(self)


Reader = Callable[[ReadingJob], tuple[int, Iterator[Items]]]
"""Returns the number of rows of a file (0 if unknown) and an iterator over its items."""
LIBRARIES: dict[str, str] = {
    "parquet": "pyarrow.parquet",
    "arrow": "pyarrow",
    "faiss": "faiss",
    "sqlite": "sqlite3",
    "duckdb": "duckdb",
}
"""The library that parses each format. `qwp.spaces.child_readers` has a function for each."""


# --------------------------------------------------------------------------- the process


def get_reader(kind: str) -> Reader:
    """Import the library of a format and return the function that reads it."""
    importlib.import_module(LIBRARIES[kind])
    reader: Reader = getattr(importlib.import_module("qwp.spaces.child_readers"), kind)
    return reader


def main(job: ReadingJob, descriptor: int) -> None:
    """Read a file and send its rows to a pipe."""
    with open(descriptor, "wb", buffering=0) as pipe:
        read = get_reader(job.kind)
        limit(job)
        serve(read, job, lambda data: write_all(pipe, data))
    os._exit(0)  # skip the exit handlers of the libraries


def serve(read: Reader, job: ReadingJob, send: Callable[[Any], None]) -> None:
    """Send the rows of a file, or the reason why it cannot be read."""
    try:
        rows, batches = read(job)
        send_start(send, rows)
        for words, vectors in batches:
            send_rows(send, words, vectors)
        send_end(send)
    except QwpError as error:
        send_end(send, REFUSED, str(error))
    except MemoryError:  # pyarrow.ArrowMemoryError is a subclass
        send_end(send, MEMORY)
    except (BrokenPipeError, KeyboardInterrupt):  # the parent has ended
        return
    except Exception as error:
        if "memory" in str(error).lower() or "bad_alloc" in str(error):
            send_end(send, MEMORY)
        else:
            send_end(send, DAMAGED, f"{type(error).__module__}.{type(error).__name__}")


def write_all(file: IO[bytes], data: Any) -> None:
    """Write all bytes to an unbuffered file, which may take fewer at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def limit(job: ReadingJob) -> None:
    """Limit memory and processor time of this process, as far as the operating system supports it."""
    if resource is None:
        return
    _set_limit("RLIMIT_CORE", 0, 0)
    _set_limit("RLIMIT_CPU", job.seconds, job.seconds + 1)
    used = _data_bytes()
    if used is None:
        # macOS does not enforce memory limits: a thread checks the memory in use.
        threading.Thread(target=_watch_memory, args=(_peak_bytes() + job.memory,), daemon=True).start()
    else:
        # RLIMIT_AS would not work: libraries reserve far more address space than they use.
        _set_limit("RLIMIT_DATA", used + job.memory, used + job.memory)


def _set_limit(name: str, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(getattr(resource, name), (soft, hard))
    except (AttributeError, OSError, ValueError):  # a lower limit is already in force, or the limit does not exist
        return


def _data_bytes() -> int | None:
    """Return the memory that counts towards RLIMIT_DATA; None if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    except (OSError, StopIteration, ValueError):
        return None


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _watch_memory(most: int, interval: float = 0.05) -> None:
    """Kill this process once its peak memory exceeds `most` bytes, checked every `interval` seconds."""
    while _peak_bytes() <= most:
        time.sleep(interval)
    os.kill(os.getpid(), 9)


# --------------------------------------------------------------------------- the protocol


@dataclass(frozen=True)
class Head:
    """The validated head of a frame."""

    kind: bytes
    dtype: np.dtype[Any] | None
    rows: int
    dim: int
    text_bytes: int

    @property
    def numbers_bytes(self) -> int:
        """Bytes of the vectors that follow the words."""
        return 0 if self.dtype is None else self.rows * self.dim * self.dtype.itemsize


def unpack_head(data: bytes) -> Head:
    """Return the head of a frame. Raise a ValueError for one that no child sends."""
    kind, number, rows, dim, text_bytes = HEAD.unpack(data)
    if kind == ROWS and number in _NUMBER_TYPES and rows and dim:
        return Head(kind, np.dtype(f"<{number.decode()}"), rows, dim, text_bytes)
    if kind in (START, END) and not text_bytes:
        return Head(kind, None, rows, 0, 0)
    if kind in (REFUSED, DAMAGED, MEMORY) and text_bytes <= MAX_TEXT_BYTES:
        return Head(kind, None, 0, 0, text_bytes)
    raise ValueError(f"received a frame {data!r}")


def send_start(send: Callable[[bytes], object], rows: int) -> None:
    """Send the expected number of rows, 0 if unknown."""
    send(HEAD.pack(START, b"", rows, 0, 0))


def send_end(send: Callable[[bytes], object], kind: bytes = END, text: str = "") -> None:
    """Send the end of the file, or the reason why it cannot be read on."""
    data = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES]
    send(HEAD.pack(kind, b"", 0, 0, len(data)) + data)


def send_rows(send: Callable[[bytes], object], words: Words, vectors: Numbers) -> None:
    """Send rows in frames of a few megabytes."""
    kind = np.dtype(vectors.dtype).newbyteorder("<")
    step = max(1, _FRAME_BYTES // max(1, vectors.shape[1] * kind.itemsize))
    for begin in range(0, len(vectors), step):
        block = np.ascontiguousarray(vectors[begin : begin + step], dtype=kind)
        text = b"" if words is None else pack_words(words[begin : begin + step])
        send(HEAD.pack(ROWS, kind.str[1:].encode(), *block.shape, len(text)) + text)
        send(memoryview(block).cast("B"))  # type: ignore[arg-type]


def pack_words(words: Sequence[str | None]) -> bytes:
    """Encode words as their lengths in characters (-1 for None), followed by all texts."""
    lengths = np.array([-1 if word is None else len(word) for word in words], dtype=_LENGTH)
    return lengths.tobytes() + "".join(word or "" for word in words).encode("utf-8", "surrogatepass")


def unpack_words(data: bytes, count: int) -> list[str | None]:
    """Decode `count` words. Raise a ValueError if the data holds another number of characters."""
    lengths = np.frombuffer(data, _LENGTH, count)
    text = data[count * _LENGTH.itemsize :].decode("utf-8", "surrogatepass")
    ends = np.maximum(lengths, 0).cumsum(dtype=np.int64)
    if count and ends[-1] != len(text):
        raise ValueError("received words of another length")
    words: list[str | None] = []
    begin = 0
    for length, end in zip(lengths.tolist(), ends.tolist(), strict=True):
        words.append(None if length < 0 else text[begin:end])
        begin = end
    return words
