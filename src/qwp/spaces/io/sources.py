"""Input files, opened once.

A pipe gives its bytes to the first who asks. So an input is opened one time, by ``opened``, and everything that
wants to look at it (telling gzip, telling the format, reading) goes through the same ``Source``. What comes through
a pipe is first copied into a nameless temporary file.
"""

from __future__ import annotations

import errno
import gzip
import os
import select
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from qwp.errors import InputError
from qwp.spaces.limits import bomb, packed_rows, unpacked_bytes

HEAD_BYTES = 1 << 17  # enough to tell the format, and for any word
_GZIP_MAGIC = b"\x1f\x8b"
_COPY_BYTES = 1 << 22
_RESERVED_BYTES = 256 << 20  # of the disk, left to others when a pipe is copied
_WRITER_SECONDS = 5.0
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Readable(Protocol):
    """Something that gives up to size bytes, none at its end."""

    def read(self, size: int, /) -> bytes: ...


def located(path: Path) -> tuple[Path, str | None]:
    """A file, and the part of it that is meant: of "store.db#words" the table words, unless a file has this name."""
    before, mark, part = str(path).rpartition("#")
    if not mark or not before or not part or path.exists() or not Path(before).is_file():
        return path, None
    return Path(before), part


class Source:
    """One input file.

    Attributes:
        path: as its user named it.
        part: what of the file is meant, where its name says so.
        raw: the bytes as they are stored; seekable.
        size: how many there are.
        spooled: whether they came through a pipe, so that nothing can lie beside them.
        owned: whether the file is closed with this object.
    """

    def __init__(
        self, path: Path, raw: IO[bytes], *, spooled: bool = False, owned: bool = True, part: str | None = None
    ) -> None:
        self.path = path
        self.part = part
        self.raw = raw
        self.spooled = spooled
        self.owned = owned
        self.size = raw.seek(0, os.SEEK_END)
        raw.seek(0)

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A stream that is never started has nobody else to close its file.
        self.close()

    def close(self) -> None:
        """Close the file; again does nothing."""
        if self.owned:
            self.raw.close()

    @property
    def file(self) -> Path:
        """The file on the disk, for libraries that open it themselves."""
        return located(self.path)[0]

    @cached_property
    def packed(self) -> bool:
        """Whether the content is gzip-compressed, whatever the name says."""
        self.raw.seek(0)
        return read_up_to(self.raw, len(_GZIP_MAGIC)) == _GZIP_MAGIC

    @cached_property
    def head(self) -> bytes:
        """The first HEAD_BYTES of the unpacked content."""
        with self.plain() as handle:
            return read_up_to(handle, HEAD_BYTES)

    @property
    def max_rows(self) -> int | None:
        """How many rows may be kept; None when the size of the file already says so."""
        return packed_rows(self.size) if self.packed else None

    @property
    def likely_bytes(self) -> int:
        """A guess at the unpacked size: text of numbers is rarely packed further than to an eighth."""
        return self.size * 8 if self.packed else self.size

    @contextmanager
    def plain(self) -> Iterator[Readable]:
        """The unpacked content from its beginning; damaged compression becomes an InputError."""
        packed = self.packed
        self.raw.seek(0)
        if not packed:
            yield self.raw
            return
        try:
            with gzip.GzipFile(fileobj=self.raw, mode="rb") as unpacked:
                yield _Bounded(unpacked, self)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = "it ends too early" if isinstance(error, EOFError) else "its content is not what was packed"
            raise InputError(
                f"{self.path} is a damaged or cut gzip file ({what}), expected a complete one: copy or download it"
            ) from error

    def read_at(self, offset: int, size: int) -> bytes:
        """Stored bytes from some place; fewer only at the end of the file."""
        self.raw.seek(offset)
        return read_up_to(self.raw, size)


class _Bounded:
    """Counts what is unpacked, and stops where no honest file gets."""

    def __init__(self, unpacked: gzip.GzipFile, source: Source) -> None:
        self._unpacked = unpacked
        self._source = source
        self._left = unpacked_bytes(source.size)

    def read(self, size: int, /) -> bytes:
        data = self._unpacked.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise bomb(self._source.path, self._source.size)
        return data


@contextmanager
def failures_explained(path: Path, what: str) -> Iterator[None]:
    """Failures of the disk or of memory while a file is read, as an InputError; what: "words: pass max_vocab="."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory, expected fewer {what}") from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}), expected a readable file: copy it again"
        ) from error


def read_up_to(handle: Readable, size: int) -> bytes:
    """Exactly size bytes, fewer only at the end of the file (raw files and gzip may return less per call)."""
    data = handle.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (data := handle.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def check_file(path: Path) -> None:
    """Raise an InputError unless the path names something that can be read; a pipe is not opened."""
    file = located(path)[0]
    mode, size = _status(file)
    if stat.S_ISREG(mode):
        if size == 0:
            opened(path).close()  # some files have content and no size: those of /proc
        elif not os.access(file, os.R_OK):
            raise InputError(f"{path} cannot be read (Permission denied), expected a readable file")


def opened(path: Path, patience: float = _WRITER_SECONDS) -> Source:
    """Open an input for reading.

    A regular file is read where it is. The content of a pipe is copied once, in full, into a temporary file without a
    name. Devices are refused: some of them never end.

    patience: seconds to wait for somebody to open a pipe for writing.
    """
    file, part = located(path)
    _status(file)
    try:
        descriptor = os.open(file, _OPEN_FLAGS)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}), expected a readable file") from error
    raw = os.fdopen(descriptor, "rb", buffering=0)
    try:
        status = os.fstat(descriptor)
        _refuse_mode(path, status.st_mode)
        if stat.S_ISREG(status.st_mode) and status.st_size > 0:
            return Source(path, raw, part=part)
        first = _await_writer(descriptor, path, patience) if stat.S_ISFIFO(status.st_mode) else b""
        with raw:
            return _spooled(path, raw, first)
    except OSError as error:
        raw.close()
        raise InputError(f"{path} cannot be read ({error.strerror}), expected a readable file") from error
    except BaseException:
        raw.close()
        raise


def _status(path: Path) -> tuple[int, int]:
    """Kind and size of what the path names, if it is something that can be read."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist, expected a file: check the spelling and the folder") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a file"
        raise InputError(f"{path} cannot be read ({reason}), expected a readable file") from error
    _refuse_mode(path, status.st_mode)
    return status.st_mode, status.st_size


def _refuse_mode(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory, expected a file: name the file inside it")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a device (a terminal, a disk or an endless stream)"
        raise InputError(f"{path} is {kind}, expected a file or a pipe: save its content to a file and name that")


def _await_writer(descriptor: int, path: Path, patience: float) -> bytes:
    """Wait a few seconds for somebody to write to a pipe, and from then on as long as they need.

    Returns:
        what had to be read to find out: at most one byte.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    first = b""
    if not poll.poll(patience * 1000):
        # Without a writer the pipe is at its end; with a silent one there is nothing to read yet.
        with suppress(BlockingIOError):
            first = os.read(descriptor, 1)
            if not first:
                raise InputError(
                    f"{path} is a pipe that nobody opened for writing within {patience:g} seconds, expected one "
                    "that some program writes to: start that program first, or name a file"
                )
    os.set_blocking(descriptor, True)
    return first


def _spooled(path: Path, raw: IO[bytes], first: bytes) -> Source:
    """A copy of what was read and of everything that can be read, in a nameless temporary file."""
    copy: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the Source closes it
    try:
        data = first or raw.read(_COPY_BYTES)
        while data:
            if shutil.disk_usage(tempfile.gettempdir()).free < _RESERVED_BYTES + len(data):
                raise _no_room(path)
            _write_all(copy, data)
            data = raw.read(_COPY_BYTES)
        source = Source(path, copy, spooled=True)
        if source.size == 0:
            raise InputError(f"{path} is empty (0 bytes), expected data: copy or download it again")
    except BaseException as error:
        copy.close()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _no_room(path) from error
        raise
    return source


def _write_all(file: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _no_room(path: Path) -> InputError:
    return InputError(
        f"{path} is a pipe whose content does not fit into {tempfile.gettempdir()}, expected less data than there is "
        "room on that disk: set TMPDIR to a folder with more room, or save it to a file and name that"
    )
