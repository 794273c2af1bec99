"""Writing files atomically: a file is complete or does not exist; `check_file` is the counterpart for reading."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from qwp.errors import InputError
from qwp.spaces.io import locks
from qwp.spaces.io.sources import check_file

__all__ = ["atomic_write", "check_file", "check_folder", "file_fingerprint", "file_sha256", "scratch_folder"]

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_LONG_NAME = 200  # bytes; file systems allow 255, and a temporary name is longer than its target
_STALE_SECONDS = 24 * 3600.0
_SPECIAL_FOLDERS = ("/dev", "/dev/fd", "/proc")
_BLOCK_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 16


def file_sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def file_fingerprint(path: Path, samples: int = 16) -> str:
    """Return a digest of the size, the modification time and some blocks of a file.

    It recognises an unchanged file of any size in milliseconds. Another digest does not mean other content.
    """
    about = path.stat()
    digest = hashlib.sha256(f"{about.st_size} {about.st_mtime_ns}".encode())
    last = max(0, about.st_size - _SAMPLE_BYTES)
    with path.open("rb") as file:
        for offset in sorted({last * number // (samples - 1) for number in range(samples)}):
            file.seek(offset)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def check_folder(path: Path) -> None:
    """Raise an InputError unless a file of this name can be created in its folder."""
    mode = _mode(path)
    folder = path.parent.is_dir()
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory, expected the name of a file to write: add a file name")
    if not folder:
        raise InputError(f"the folder {path.parent} does not exist, expected a folder to write into: create it first")
    if (mode is not None and not stat.S_ISREG(mode)) or _in_special_folder(path):
        raise InputError(
            f"{path} is a pipe or a device, expected the name of a regular file, because a file appears under its name "
            "when it is complete: write a regular file and copy it there"
        )


def _mode(path: Path) -> int | None:
    """Return the mode of what the path names; None if it does not exist."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid file name"
        raise InputError(f"{path} cannot be written ({reason}), expected the name of a file to write") from error


def _in_special_folder(path: Path) -> bool:
    # /dev/stdout can point to a regular file, but it cannot be replaced by one.
    folder = os.path.abspath(path.parent)
    return folder in _SPECIAL_FOLDERS or folder.startswith("/proc/")


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file under a temporary name in the same folder, and rename it to `path` when the block succeeds.

    On any exception, including KeyboardInterrupt, the temporary file is removed and an existing file stays unchanged.
    Temporary files are locked while in use. The next writer of the same file removes those of killed processes.
    """
    check_folder(path)
    _remove_stale(path)
    temporary, handle = _create(path)
    try:
        with handle:
            yield handle
            if not handle.closed:
                handle.flush()
            if locks.FILE_LOCKS:
                temporary.replace(path)  # before closing the file releases the lock
        if not locks.FILE_LOCKS:
            temporary.replace(path)  # Windows cannot rename an open file
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None and error.errno in _DISK_ERRORS:
            raise InputError(
                f"{path} could not be written ({error.strerror}), expected a disk with room for it: free some space or "
                "write elsewhere; nothing was left behind"
            ) from error
        raise


@contextmanager
def scratch_folder(file: IO[bytes]) -> Iterator[Path]:
    """Create a folder next to the temporary file of ``atomic_write``, and remove it at the end.

    The folder of a killed process is removed together with its temporary file.
    """
    folder = _folder_of(Path(file.name))
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(temporary: Path) -> Path:
    return temporary.with_name(f"{temporary.name}.d")


def _create(path: Path) -> tuple[Path, IO[bytes]]:
    """Create a temporary file for a target, locked if the file system supports locks."""
    while True:
        temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.tmp")
        try:
            handle = temporary.open("x+b")
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                f"no file can be written in {path.parent} ({error.strerror}), expected a folder with write permission"
            ) from error
        locks.lock_file(handle, wait=True)
        if _is_at(handle, temporary):
            return temporary, handle
        handle.close()  # another process removed it as stale before it was locked


def _prefix(path: Path) -> str:
    name = path.name
    if len(os.fsencode(name)) > _LONG_NAME:
        name = name[:20] + hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f".{name}."


def _remove_stale(path: Path) -> None:
    """Remove temporary files of a target that no process uses any more."""
    prefix = _prefix(path)
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            middle = entry.name[len(prefix) : -len(".tmp")]
            ours = entry.name.startswith(prefix) and entry.name.endswith(".tmp") and len(middle) == 8
            if ours and entry.is_file(follow_symlinks=False):
                _remove_if_stale(path.with_name(entry.name))


def _remove_if_stale(temporary: Path) -> None:
    with suppress(OSError):  # no permission, or removed already
        flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(temporary, flags), "r+b") as handle:
            locked = locks.lock_file(handle, wait=False)
            old = time.time() - os.fstat(handle.fileno()).st_mtime > _STALE_SECONDS
            if locked or (locked is None and old):
                shutil.rmtree(_folder_of(temporary), ignore_errors=True)
                temporary.unlink()


def _is_at(handle: IO[bytes], path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(handle.fileno())
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
