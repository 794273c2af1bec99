"""Files of foreign libraries: Parquet, Arrow and Feather, FAISS indexes, tables of SQLite and DuckDB.

C and C++ libraries parse these files. A damaged or crafted file can make them crash, hang or exhaust memory. They
therefore run in a child process (`qwp.spaces.child`), whose limits grow with the size of the file. Whatever ends the
child becomes one InputError.

The user may name a table or columns after the file: ``items.parquet#text,embedding``, ``items.db#table``. Otherwise
they are guessed. A database is written with one new table; `qwp.spaces.stores` writes to existing tables.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError, installed
from qwp.spaces import child
from qwp.spaces.child import Head, Items, ReadingJob
from qwp.spaces.child_readers import VECTOR_NAMES, WORD_NAMES
from qwp.spaces.io.files import atomic_write, scratch_folder
from qwp.spaces.io.line_files import RowNames, sidecar_writer, words_sidecar
from qwp.spaces.io.reading import Reading, Rows, batch_rows, valid_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM, UNPACK
from qwp.spaces.stores import DuckdbStore, SqliteStore

_TYPICAL_ROW_BYTES = 1024
_PIPE_BYTES = 1 << 20
_COPY_BYTES = 1 << 20
_PACKAGES = str(Path(__file__).parents[3])  # the folder of the qwp package
_PROGRAM = (
    "import json, sys; job, descriptor, sys.path[:] = json.loads(sys.argv[1]); "
    "from qwp.spaces import child; child.main(child.ReadingJob(**job), descriptor)"
)
# One thread, because the limit is of processor time. Arrow's default allocator reserves memory that it does not use.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}


def _index_sidecar(path: Path) -> Path:
    """Return the word file of a FAISS index, ``x.faiss.words.txt``; ``x.words.txt`` belongs to ``x.npy``."""
    return path.with_name(f"{path.name}.words.txt")


@dataclass(frozen=True)
class ForeignFormat:
    """Description of a format that the child process reads.

    Attributes:
        name: name in messages.
        extra: extra that installs the library, if it needs one.
        sidecar: returns the word file of a path; None if the format always holds words.
        prefers_own_words: whether words inside the file take precedence over those of the sidecar.
        compression: how much more than other formats this one compresses; see ``ChildLimits.of``.
    """

    name: str
    extra: str | None = None
    sidecar: Callable[[Path], Path] | None = None
    prefers_own_words: bool = True
    compression: int = 1


KINDS = {
    "parquet": ForeignFormat("Parquet file", "arrow", words_sidecar),
    "arrow": ForeignFormat("Arrow file", "arrow", words_sidecar),
    # Product quantization stores one byte for several numbers. The ids of an index stand in for missing words.
    "faiss": ForeignFormat("FAISS index", "faiss", _index_sidecar, prefers_own_words=False, compression=3),
    "sqlite": ForeignFormat("SQLite database"),
    "duckdb": ForeignFormat("DuckDB database", "duckdb"),
}


@dataclass(frozen=True)
class ChildLimits:
    """Resources that reading a file may take.

    Attributes:
        memory: bytes that the child may use in addition to its libraries.
        seconds: processor time of the child.
        patience: total time that the parent waits, as a multiple of `seconds`; other programs share the processor.
        content: total bytes of words and vectors.
        rows: number of rows.
    """

    memory: int
    seconds: int
    patience: int
    content: int
    rows: int

    @classmethod
    def of(cls, size: int, compression: int = 1) -> ChildLimits:
        """Return the limits for a file of `size` bytes."""
        # A small file gets 384 MB and 4 s: parent and child together stay below 1 GB and 5 s. Larger files get 1 s more
        # for each MiB beyond 10 MB.
        seconds = 4 + max(0, size - 10_000_000) // (1 << 20)
        return cls((384 << 20) + 12 * size, seconds, 8, compression * UNPACK.max_bytes(size), UNPACK.max_rows(size))


def read(reading: Reading, source: Source, limits: ChildLimits | None = None) -> Iterator[Rows]:
    """Yield the rows of a file in order."""
    kind = KINDS[reading.format]
    if kind.extra is not None:
        installed(kind.extra, f"reading {source.path} ({kind.name})")
    if kind.sidecar is None and source.spooled:
        raise InputError(f"{source.path} is a pipe, expected a file: a database is not read in order")
    limits = limits or ChildLimits.of(source.size, kind.compression)
    with closing(receive(_job(reading, source, limits), kind.name, limits, reading)) as batches:
        first = next(batches, None)
        if first is None:
            return
        has_words = first[0] is not None
        use_names = kind.sidecar is not None and not (has_words and kind.prefers_own_words)
        sidecar = kind.sidecar(source.path) if kind.sidecar is not None else None
        with RowNames(reading, source, sidecar) if use_names else nullcontext() as names:
            use_own = names is None or (has_words and names.path is None)
            reading.unnamed = reading.unnamed and not use_own
            done = 0
            for words, vectors in chain((first,), batches):
                taken = words if use_own or names is None else names.take(len(vectors))
                yield valid_rows(taken or [], vectors, reading, lambda row, done=done: f"row {done + row}")  # type: ignore[misc]
                done += len(vectors)
            if names is not None:
                names.check_end()


def _job(reading: Reading, source: Source, limits: ChildLimits) -> ReadingJob:
    return ReadingJob(
        kind=reading.format,
        name=str(source.path),
        file="" if source.spooled else str(source.file),
        descriptor=source.raw.fileno(),
        size=source.size,
        part=source.part,
        rows=batch_rows(reading, _TYPICAL_ROW_BYTES),
        memory=limits.memory,
        seconds=limits.seconds,
    )


# --------------------------------------------------------------------------- the child process


def receive(
    job: ReadingJob, what: str, limits: ChildLimits, reading: Reading | None = None
) -> Generator[Items, None, None]:
    """Start a child process and yield the items it sends; closing the generator ends the child.

    what: the kind of file, for messages.
    """
    with _start_child(job) as (process, pipe):
        inbox = _Inbox(pipe, job, what, limits, process)
        expected = rows = content = 0
        while True:
            head = inbox.head()
            if head.kind == child.END:
                return
            if head.kind == child.START:
                expected = head.rows
                continue
            if head.kind != child.ROWS:
                raise _failure(head.kind, inbox.take(head.text_bytes).decode("utf-8", "replace"), job, what)
            rows += head.rows
            content += head.text_bytes + head.numbers_bytes
            if head.dim > MAX_DIM:
                raise InputError(
                    f"{job.name} has vectors of {head.dim} numbers, expected at most {MAX_DIM}: it is damaged"
                )
            if content > limits.content or rows > limits.rows:
                raise UNPACK.bomb(job.name, job.size)
            if reading is not None and reading.expected_rows is None and expected:
                row_bytes = max(1, (head.numbers_bytes + head.text_bytes) // head.rows)
                reading.expected_rows = min(expected, limits.rows, limits.content // row_bytes + 1)
            yield inbox.items(head)


@contextmanager
def _start_child(job: ReadingJob) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the child process of a job and yield it with the descriptor of its frames; kill it at the end."""
    receiving, sending = os.pipe()
    try:
        _enlarge(receiving)
        # The child gets the import paths of this process, and nothing else from the environment or the site.
        paths = [_PACKAGES, *(str(path) for path in sys.path if path)]
        argument = json.dumps([job.to_dict(), sending, paths])
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PROGRAM, argument],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(job.descriptor, sending),
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C reaches this process only, which then ends the child
        )
    except OSError as error:
        os.close(receiving)
        raise InputError(
            f"{job.name} is read in a child process, and none could be started ({error.strerror}): free some "
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
    """Enlarge the buffer of a pipe where the system can, so that the processes wait less for each other."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Inbox:
    """Receives the frames of a child process and explains its failures."""

    def __init__(
        self, pipe: int, job: ReadingJob, what: str, limits: ChildLimits, process: subprocess.Popen[bytes]
    ) -> None:
        self._pipe, self._job, self._what, self._process = pipe, job, what, process
        self._left = float(limits.seconds * limits.patience)
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)

    def head(self) -> Head:
        """Receive the head of the next frame."""
        data = bytes(self.take(child.HEAD.size))
        try:
            return child.unpack_head(data)
        except ValueError as error:
            raise self._invalid() from error

    def items(self, head: Head) -> Items:
        """Receive the words and vectors of a frame."""
        text, numbers = self.take(head.text_bytes), self.take(head.numbers_bytes)
        try:
            words = child.unpack_words(bytes(text), head.rows) if head.text_bytes else None
        except ValueError as error:
            raise self._invalid() from error
        return words, np.frombuffer(numbers, head.dtype).reshape(head.rows, head.dim)

    def take(self, size: int) -> bytearray:
        """Receive the next bytes. Raise an InputError if the child ends or hangs before."""
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
        """Return the error for a child that ended too early."""
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return _too_slow(self._job)
        if code == -signal.SIGKILL:
            return _failure(child.MEMORY, "", self._job, self._what)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return InputError(
            f"{self._job.name} crashes the library that reads it ({name}), expected a complete {self._what}: it is "
            "damaged; copy or save it again"
        )

    def _invalid(self) -> InputError:
        return InputError(
            f"{self._job.name} makes the library that reads it send invalid data, expected a complete {self._what}: it "
            "is damaged; copy or save it again"
        )


def _too_slow(job: ReadingJob) -> InputError:
    return InputError(
        f"{job.name} ({job.size:,} bytes) takes more than {job.seconds} s of processor time, expected one that takes "
        "less: it is damaged or made to keep its reader busy; save its vectors as .npz"
    )


def _failure(kind: bytes, text: str, job: ReadingJob, what: str) -> InputError:
    """Return the error for a failure that the child reported."""
    if kind == child.REFUSED:
        return InputError(text)
    if kind == child.MEMORY:
        return InputError(
            f"{job.name} ({job.size:,} bytes) takes more than {job.memory:,} bytes of memory, expected one that "
            "takes less: it is damaged or made to exhaust memory; save its vectors as .npz"
        )
    return InputError(
        f"{job.name} is a damaged or truncated {what} ({text}), expected a complete one: copy or save it again"
    )


# --------------------------------------------------------------------------- writing


@contextmanager
def open_table(target: Target) -> Iterator[RowWriter]:
    """Return a writer of a Parquet or Arrow file with a text column `word` and a list column `vector`."""
    installed("arrow", f"writing {target.path}")
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.list_(pa.from_numpy_dtype(np.dtype(target.dtype)), target.dim)
    schema = pa.schema([(WORD_NAMES[0], pa.string()), (VECTOR_NAMES[0], kind)])
    with atomic_write(target.path) as file:
        if target.format == "parquet":
            table: Any = pq.ParquetWriter(file, schema, write_page_checksum=True)
        else:
            table = pa.ipc.new_file(file, schema)

        def put(words: list[str], vectors: AnyFloats) -> None:
            numbers = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), target.dim)
            table.write_batch(pa.record_batch([pa.array(words, pa.string()), numbers], schema=schema))

        try:
            writer = RowWriter(target, put)
            yield writer
            writer.finish()
        finally:
            table.close()


@contextmanager
def open_faiss(target: Target) -> Iterator[RowWriter]:
    """Return a writer of a flat index for inner products with a word sidecar; the index is built in memory."""
    installed("faiss", f"writing {target.path}")
    import faiss

    index = faiss.IndexFlatIP(target.dim)
    with atomic_write(target.path) as file, sidecar_writer(target, _index_sidecar(target.path)) as put_words:

        def put(words: list[str], vectors: AnyFloats) -> None:
            put_words(words)
            index.add(vectors)

        writer = RowWriter(target, put)
        yield writer
        writer.finish()
        file.write(faiss.serialize_index(index).tobytes())


@contextmanager
def open_database(target: Target) -> Iterator[RowWriter]:
    """Return a writer of a new SQLite or DuckDB database with the table `vectors`."""
    with atomic_write(target.path) as file, scratch_folder(file) as folder:
        database = folder / "made"
        is_sqlite = target.format == "sqlite"
        store = SqliteStore.create(database) if is_sqlite else DuckdbStore.create(database, target.dim)

        def put(words: list[str], vectors: AnyFloats) -> None:
            store.write([(words, vectors)])

        writer = RowWriter(target, put)
        yield writer
        if len(store) != writer.finish():
            raise InputError(f"words were written twice to {target.path}, expected each once")
        with database.open("rb") as content:
            shutil.copyfileobj(content, file, _COPY_BYTES)
