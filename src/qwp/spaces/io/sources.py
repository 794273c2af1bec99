"""Input files, opened once.

Bytes of a pipe can be read only once. So `open_source` opens an input one time, and everything that inspects it (gzip
detection, format detection, reading) shares one `Source`. The content of a pipe is first copied to an unnamed temporary
file.
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
from qwp.spaces.child import write_all
from qwp.spaces.limits import UNPACK, UnpackLimits

HEAD_BYTES = 1 << 17  # enough to detect the format, and for any word
_GZIP_MAGIC = b"\x1f\x8b"
_COPY_BYTES = 1 << 22
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Readable(Protocol):
    """An object that returns up to `size` bytes, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


def split_part(path: Path) -> tuple[Path, str | None]:
    """Split "store.db#words" into the file and the table `words`, unless a file has the full name."""
    before, mark, part = str(path).rpartition("#")
    if not mark or not before or not part or path.exists() or not Path(before).is_file():
        return path, None
    return Path(before), part


class Source:
    """An open input file.

    Attributes:
        path: path as the user gave it.
        part: part of the file that the path selects, such as a table; None for all of it.
        raw: the stored bytes; seekable.
        size: number of stored bytes.
        spooled: whether the bytes came through a pipe, so that the file cannot have a sidecar.
        owned: whether closing this object closes the file.
        limits: limits on what a compressed file may unpack to.
    """

    def __init__(
        self,
        path: Path,
        raw: IO[bytes],
        *,
        spooled: bool = False,
        owned: bool = True,
        part: str | None = None,
        limits: UnpackLimits = UNPACK,
    ) -> None:
        self.path = path
        self.part = part
        self.raw = raw
        self.spooled = spooled
        self.owned = owned
        self.limits = limits
        self.size = raw.seek(0, os.SEEK_END)
        raw.seek(0)

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A stream that is never started does not close its file otherwise.
        self.close()

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self.owned:
            self.raw.close()

    @property
    def file(self) -> Path:
        """Path on the disk, for libraries that open files themselves."""
        return split_part(self.path)[0]

    @cached_property
    def packed(self) -> bool:
        """Whether the content is gzip-compressed, whatever the suffix."""
        self.raw.seek(0)
        return read_up_to(self.raw, len(_GZIP_MAGIC)) == _GZIP_MAGIC

    @cached_property
    def head(self) -> bytes:
        """First HEAD_BYTES of the unpacked content."""
        with self.plain() as handle:
            return read_up_to(handle, HEAD_BYTES)

    @property
    def max_rows(self) -> int | None:
        """Maximum number of rows of a compressed file; None for an uncompressed one, which its size limits."""
        return self.limits.max_rows(self.size) if self.packed else None

    @property
    def likely_bytes(self) -> int:
        """Estimate of the unpacked size: text of numbers rarely compresses to less than an eighth."""
        return self.size * 8 if self.packed else self.size

    def bomb(self) -> InputError:
        """Return the error for a compressed file beyond its limits."""
        return self.limits.bomb(self.path, self.size)

    @contextmanager
    def plain(self) -> Iterator[Readable]:
        """Open the unpacked content from its beginning; damaged compression becomes an InputError."""
        packed = self.packed
        self.raw.seek(0)
        if not packed:
            yield self.raw
            return
        try:
            with gzip.GzipFile(fileobj=self.raw, mode="rb") as unpacked:
                yield _Bounded(unpacked, self)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = "it ends too early" if isinstance(error, EOFError) else "its checksum or structure is wrong"
            raise InputError(
                f"{self.path} is a damaged or truncated gzip file ({what}), expected a complete one: copy or download "
                "it again"
            ) from error

    def read_at(self, offset: int, size: int) -> bytes:
        """Read stored bytes at an offset; fewer than `size` only at the end of the file."""
        self.raw.seek(offset)
        return read_up_to(self.raw, size)


class _Bounded:
    """Unpacked content up to the limit of its source."""

    def __init__(self, unpacked: gzip.GzipFile, source: Source) -> None:
        self._unpacked = unpacked
        self._source = source
        self._left = source.limits.max_bytes(source.size)

    def read(self, size: int, /) -> bytes:
        data = self._unpacked.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise self._source.bomb()
        return data


@contextmanager
def explain_failures(path: Path, what: str) -> Iterator[None]:
    """Turn failures of disk or memory into an InputError. what: the content, such as "words: pass max_vocab="."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory, expected fewer {what}") from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}), expected a readable file: copy it again"
        ) from error


def read_up_to(handle: Readable, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end of the file; raw files and gzip may return less per call."""
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
    """Raise an InputError unless the path names a readable file or a pipe; a pipe is not opened."""
    file = split_part(path)[0]
    mode, size = _status(file)
    if stat.S_ISREG(mode):
        if size == 0:
            open_source(path).close()  # files of /proc have content and size 0
        elif not os.access(file, os.R_OK):
            raise InputError(f"{path} cannot be read (Permission denied), expected a readable file")


def open_source(
    path: Path, *, patience: float = 5.0, reserved: int = 256 << 20, limits: UnpackLimits = UNPACK
) -> Source:
    """Open an input for reading.

    A regular file is read in place. The content of a pipe is copied once, in full, to an unnamed temporary file.
    Devices are refused, because some of them never end.

    Args:
        path: the input, possibly with a part: "store.db#words".
        patience: seconds to wait for a writer of a pipe.
        reserved: bytes of disk space left to other programs when a pipe is copied.
        limits: limits on what a compressed file may unpack to.
    """
    file, part = split_part(path)
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
            return Source(path, raw, part=part, limits=limits)
        first = _await_writer(descriptor, path, patience) if stat.S_ISFIFO(status.st_mode) else b""
        with raw:
            return _spool(path, raw, first, reserved, limits)
    except OSError as error:
        raw.close()
        raise InputError(f"{path} cannot be read ({error.strerror}), expected a readable file") from error
    except BaseException:
        raw.close()
        raise


def _status(path: Path) -> tuple[int, int]:
    """Return mode and size of a readable file or pipe."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist, expected a file: check the spelling and the folder") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid file name"
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
    """Wait until a program writes to a pipe, and switch the pipe to blocking reads.

    Returns:
        the bytes that had to be read to detect the writer, at most one.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    first = b""
    if not poll.poll(patience * 1000):
        # Without a writer the pipe is at its end; with a writer that has written nothing, reading would block.
        with suppress(BlockingIOError):
            first = os.read(descriptor, 1)
            if not first:
                raise InputError(
                    f"{path} is a pipe that no process opened for writing within {patience:g} seconds, expected one "
                    "that some program writes to: start that program first, or name a file"
                )
    os.set_blocking(descriptor, True)
    return first


def _spool(path: Path, raw: IO[bytes], first: bytes, reserved: int, limits: UnpackLimits) -> Source:
    """Copy all remaining bytes, after `first`, to an unnamed temporary file."""
    copy: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the Source closes it
    try:
        data = first or raw.read(_COPY_BYTES)
        while data:
            if shutil.disk_usage(tempfile.gettempdir()).free < reserved + len(data):
                raise _no_room(path)
            write_all(copy, data)
            data = raw.read(_COPY_BYTES)
        source = Source(path, copy, spooled=True, limits=limits)
        if source.size == 0:
            raise InputError(f"{path} is empty (0 bytes), expected data: copy or download it again")
    except BaseException as error:
        copy.close()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _no_room(path) from error
        raise
    return source


def _no_room(path: Path) -> InputError:
    return InputError(
        f"{path} is a pipe whose content does not fit into {tempfile.gettempdir()}, expected less data than there is "
        "room on that disk: set TMPDIR to a folder with more room, or save it to a file and name that"
    )
