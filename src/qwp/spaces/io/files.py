"""Files in general: opening (gzip told by content), explaining what cannot be opened, writing atomically."""

from __future__ import annotations

import gzip
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from qwp.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"


def check_file(path: Path) -> None:
    """Raise an InputError unless the path is a file that can be opened and holds something."""
    if path.is_dir():
        raise InputError(f"{path} is a directory, expected a file: name the file inside it")
    if not path.exists():
        raise InputError(f"{path} does not exist, expected a file: check the spelling and the folder")
    try:
        with path.open("rb") as handle:
            empty = not handle.read(1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}), expected a readable file") from error
    if empty:
        raise InputError(f"{path} is empty (0 bytes), expected data: copy or download it again")


def is_gzip(path: Path) -> bool:
    """Whether the content is gzip-compressed, whatever the name says."""
    with path.open("rb") as handle:
        return handle.read(2) == GZIP_MAGIC


@contextmanager
def open_plain(path: Path) -> Iterator[IO[bytes]]:
    """Open for reading, through gzip if the content is; damaged compression becomes an InputError."""
    if not is_gzip(path):
        with path.open("rb", buffering=0) as raw:
            yield raw
        return
    try:
        with gzip.open(path, "rb") as packed:
            yield cast(IO[bytes], packed)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} is a damaged or cut gzip file ({error}), expected a complete one: copy or download it again"
        ) from error


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of the (uncompressed) content, at most size of them."""
    with open_plain(path) as handle:
        return read_up_to(handle, size)


def read_up_to(handle: IO[bytes], size: int) -> bytes:
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


def check_folder(path: Path) -> None:
    """Raise an InputError unless a file of this name can be put into its folder."""
    if path.is_dir():
        raise InputError(f"{path} is a directory, expected the name of a file to write: add a file name")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist, expected a folder to write into: create it first")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary file under a temporary name beside path, renamed to path when the block ends well.

    On any exception, KeyboardInterrupt among them, the temporary file is removed and an older file of that
    name stays as it was.
    """
    check_folder(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with _create(temporary) as handle:
            yield handle
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create(path: Path) -> IO[bytes]:
    try:
        return path.open("x+b")
    except OSError as error:
        raise InputError(
            f"no file can be written in {path.parent} ({error.strerror}), expected a folder with write permission"
        ) from error
