"""Files that C and C++ libraries parse, read in a child process with limits.

A damaged or crafted file can make such a library crash, hang or fill the memory. Here it takes down a child process,
and the user gets one InputError. The child (`qwp.spaces.foreign`) may use memory and processor time in proportion to
the size of the file. It sends words and arrays through a pipe, and the parent checks every size before it makes room.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.foreign import frames
from qwp.spaces.foreign.frames import Head, Items, Job
from qwp.spaces.io.beside import Names
from qwp.spaces.io.reading import Reading, Rows, batch_rows, valid_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.limits import MAX_DIM, bomb, packed_rows, unpacked_bytes

_LIKELY_ROW_BYTES = 1024
_PIPE_BYTES = 1 << 20
_SMALL_BYTES = 10_000_000
_PACKAGES = str(Path(__file__).parents[3])  # the folder of this package
_PROGRAM = (
    "import json, sys; job, descriptor, sys.path[:] = json.loads(sys.argv[1]); "
    "from qwp.spaces.foreign import child, frames; child.main(frames.Job(**job), descriptor)"
)
# One thread: the limit is of processor time. The pool of Arrow's own allocators reserves memory that it does not use.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True)
class Limits:
    """What reading a file may take.

    Attributes:
        memory: bytes that the child may use beyond its libraries.
        seconds: processor time of the child.
        patience: how many times as long the parent waits for the child in all, for processors that others use as well.
        content: bytes that the words and vectors may have.
        rows: how many rows there may be.
    """

    memory: int
    seconds: int
    patience: int
    content: int
    rows: int

    @classmethod
    def of(cls, size: int, ratio: int = 1) -> Limits:
        """The limits for a file of this many bytes. ratio: how many times further than others its format packs."""
        content = ratio * unpacked_bytes(size)
        beyond = max(0, size - _SMALL_BYTES)
        # A small file gets a floor: 384 MB and 4 s keep parent and child together within 1 GB and 5 s.
        return cls((384 << 20) + 12 * size, 4 + beyond // (1 << 20), 8, content, packed_rows(size))


@dataclass(frozen=True)
class Kind:
    """A format that is read in a child.

    what: its name in messages. words_file: where the words of its rows may be; None if it always has words. own_words:
    whether words in the file count before those beside it. ratio: see ``Limits.of``.
    """

    what: str
    words_file: Callable[[Path], Path] | None = None
    own_words: bool = True
    ratio: int = 1


def read(reading: Reading, source: Source, kind: Kind, limits: Limits | None = None) -> Iterator[Rows]:
    """The rows of a file, in order."""
    limits = limits or Limits.of(source.size, kind.ratio)
    with closing(received(_job(reading, source, limits), kind.what, limits, reading)) as batches:
        first = next(batches, None)
        has_words = first is not None and first[0] is not None
        use_names = kind.words_file is not None and not (has_words and kind.own_words)
        beside = kind.words_file(source.path) if kind.words_file is not None else None
        with Names(reading, source, beside) if use_names else nullcontext() as names:
            numbered = names is None or (has_words and names.path is None)
            reading.unnamed = reading.unnamed and not numbered
            done = 0
            for words, vectors in _chain(first, batches):
                taken = words if numbered or names is None else names.take(len(vectors))
                yield valid_rows(taken or [], vectors, reading, lambda row, done=done: f"row {done + row}")  # type: ignore[misc]
                done += len(vectors)
            if names is not None:
                names.check_end()


def _chain(first: Items | None, rest: Iterator[Items]) -> Iterator[Items]:
    if first is not None:
        yield first
    yield from rest


def _job(reading: Reading, source: Source, limits: Limits) -> Job:
    return Job(
        kind=reading.format,
        name=str(source.path),
        file="" if source.spooled else str(source.file),
        descriptor=source.raw.fileno(),
        size=source.size,
        part=source.part,
        rows=batch_rows(reading, _LIKELY_ROW_BYTES),
        memory=limits.memory,
        seconds=limits.seconds,
    )


# --------------------------------------------------------------------------- the child process


def received(job: Job, what: str, limits: Limits, reading: Reading | None = None) -> Generator[Items, None, None]:
    """What a child sends about a file; the child ends with this generator. what: the kind of file, for messages."""
    with _child(job) as (process, pipe):
        inbox = _Inbox(pipe, job, what, limits, process)
        expected = rows = content = 0
        while True:
            head = inbox.head()
            if head.kind == frames.END:
                return
            if head.kind == frames.START:
                expected = head.rows
                continue
            if head.kind != frames.ROWS:
                raise _failure(head.kind, inbox.take(head.text_bytes).decode("utf-8", "replace"), job, what)
            rows += head.rows
            content += head.text_bytes + head.numbers_bytes
            if head.dim > MAX_DIM:
                raise InputError(
                    f"{job.name} has vectors of {head.dim} numbers, expected at most {MAX_DIM}: it is damaged"
                )
            if content > limits.content or rows > limits.rows:
                raise bomb(job.name, job.size)
            if reading is not None and reading.expected_rows is None and expected:
                row_bytes = max(1, (head.numbers_bytes + head.text_bytes) // head.rows)
                reading.expected_rows = min(expected, limits.rows, limits.content // row_bytes + 1)
            yield inbox.items(head)


@contextmanager
def _child(job: Job) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that does a job, and the descriptor from which its frames come. It is killed when the block ends."""
    receiving, sending = os.pipe()
    try:
        _enlarge(receiving)
        # The paths on which this process found its modules, and no other setting of the environment or of the site.
        paths = [_PACKAGES, *(str(path) for path in sys.path if path)]
        argument = json.dumps([job.to_dict(), sending, paths])
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PROGRAM, argument],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(job.descriptor, sending),
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C reaches this process, which ends the other
        )
    except OSError as error:
        os.close(receiving)
        raise InputError(
            f"{job.name} is read by a process of its own, and none could be started ({error.strerror}): free some "
            "memory or processes"
        ) from error
    finally:
        os.close(sending)
    try:
        yield process, receiving
    finally:
        os.close(receiving)
        with suppress(OSError):
            process.kill()
        process.wait()


def _enlarge(pipe: int) -> None:
    """A larger buffer, where the system has one: the two processes wait less for each other."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Inbox:
    """Takes frames from a child, and explains its end."""

    def __init__(self, pipe: int, job: Job, what: str, limits: Limits, process: subprocess.Popen[bytes]) -> None:
        self._pipe, self._job, self._what, self._process = pipe, job, what, process
        self._left = float(limits.seconds * limits.patience)
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)

    def head(self) -> Head:
        """The head of the next frame."""
        data = bytes(self.take(frames.HEAD.size))
        try:
            return frames.unpacked_head(data)
        except ValueError as error:
            raise self._broken() from error

    def items(self, head: Head) -> Items:
        """The words and vectors of a frame."""
        text, numbers = self.take(head.text_bytes), self.take(head.numbers_bytes)
        try:
            words = frames.unpacked_words(bytes(text), head.rows) if head.text_bytes else None
        except ValueError as error:
            raise self._broken() from error
        return words, np.frombuffer(numbers, head.dtype).reshape(head.rows, head.dim)

    def take(self, size: int) -> bytearray:
        """The next bytes; an InputError if the child ends or hangs before."""
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            self._wait()
            count = os.readv(self._pipe, [rest])
            if count == 0:
                raise self._ended()
            rest = rest[count:]
        return data

    def _wait(self) -> None:
        begin = time.monotonic()
        if not self._poll.poll(1000 * max(0.0, self._left)):
            raise _too_slow(self._job)
        self._left -= time.monotonic() - begin

    def _ended(self) -> InputError:
        """Why the child sends no more."""
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return _too_slow(self._job)
        if code == -signal.SIGKILL:
            return _failure(frames.MEMORY, "", self._job, self._what)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return InputError(
            f"{self._job.name} makes the library that reads it crash ({name}), expected a complete {self._what}: it is "
            "damaged; copy or save it again"
        )

    def _broken(self) -> InputError:
        return InputError(
            f"{self._job.name} makes the library that reads it send nonsense, expected a complete {self._what}: it is "
            "damaged; copy or save it again"
        )


def _too_slow(job: Job) -> InputError:
    return InputError(
        f"{job.name} ({job.size:,} bytes) takes more than {job.seconds} s of processor time, expected one that takes "
        "less: it is damaged or made to keep its reader busy; save its vectors as .npz"
    )


def _failure(kind: bytes, text: str, job: Job, what: str) -> InputError:
    """What a child says of its file."""
    if kind == frames.REFUSED:
        return InputError(text)
    if kind == frames.MEMORY:
        return InputError(
            f"{job.name} ({job.size:,} bytes) takes more than {job.memory:,} bytes of memory, expected one that "
            "takes less: it is damaged or made to fill the memory; save its vectors as .npz"
        )
    return InputError(f"{job.name} is a damaged or cut {what} ({text}), expected a complete one: copy or save it again")
