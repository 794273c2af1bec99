"""Writing files that are complete or not there; ``check_file`` is the counterpart for reading."""

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
from qwp.spaces.io.sources import check_file

try:
    import fcntl
except ImportError:  # Windows: nobody can tell whether a temporary file is in use, so its age decides
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_file", "check_folder", "file_sha256", "replacing", "scratch_folder"]

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_LONG_NAME = 200  # bytes; file systems end at 255, and a temporary name is longer than its target's
_STALE_SECONDS = 24 * 3600.0
_SPECIAL_FOLDERS = ("/dev", "/dev/fd", "/proc")
_BLOCK_BYTES = 1 << 20


def file_sha256(path: Path) -> str:
    """Of the content of a file, read in blocks."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()


def check_folder(path: Path) -> None:
    """Raise an InputError unless a file of this name can be put into its folder."""
    mode = _mode(path)
    folder = path.parent.is_dir()
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory, expected the name of a file to write: add a file name")
    if not folder:
        raise InputError(f"the folder {path.parent} does not exist, expected a folder to write into: create it first")
    if (mode is not None and not stat.S_ISREG(mode)) or _in_special_folder(path):
        raise InputError(
            f"{path} is a pipe or a device, expected the name of a regular file: a file appears under its name when it "
            "is complete, so write one and copy it there"
        )


def _mode(path: Path) -> int | None:
    """What kind of thing is there; None for nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a file"
        raise InputError(f"{path} cannot be written ({reason}), expected the name of a file to write") from error


def _in_special_folder(path: Path) -> bool:
    # /dev/stdout can lead to a regular file; it is still not a name that a file may take.
    folder = os.path.abspath(path.parent)
    return folder in _SPECIAL_FOLDERS or folder.startswith("/proc/")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary file under a temporary name beside path, renamed to path when the block ends well.

    On any exception, KeyboardInterrupt among them, the temporary file is removed and an older file of that
    name stays as it was. What a killed process left behind is removed by the next one that writes the same
    file: a temporary file in use is locked.
    """
    check_folder(path)
    _remove_stale(path)
    temporary, handle = _create(path)
    try:
        with handle:
            yield handle
            if not handle.closed:
                handle.flush()
            if fcntl is not None:
                temporary.replace(path)  # before the lock goes with the handle
        if fcntl is None:
            temporary.replace(path)  # where an open file cannot be renamed
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
    """A folder beside a file of ``replacing``, for what is built of several files; it is removed at the end.

    What a killed process left behind is removed together with the temporary file, by the next ``replacing``.
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
    """A new temporary file for this target, locked where that is possible."""
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
        _lock(handle, wait=True)
        if _is_at(handle, temporary):
            return temporary, handle
        handle.close()  # another process took it for stale in the moment before it was locked


def _prefix(path: Path) -> str:
    name = path.name
    if len(os.fsencode(name)) > _LONG_NAME:
        name = name[:20] + hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f".{name}."


def _remove_stale(path: Path) -> None:
    """Remove temporary files of this target that no process holds any more."""
    prefix = _prefix(path)
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            middle = entry.name[len(prefix) : -len(".tmp")]
            ours = entry.name.startswith(prefix) and entry.name.endswith(".tmp") and len(middle) == 8
            if ours and entry.is_file(follow_symlinks=False):
                _remove_if_stale(path.with_name(entry.name))


def _remove_if_stale(temporary: Path) -> None:
    with suppress(OSError):  # not ours to remove, or gone
        flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(temporary, flags), "r+b") as handle:
            locked = _lock(handle, wait=False)
            old = time.time() - os.fstat(handle.fileno()).st_mtime > _STALE_SECONDS
            if locked or (locked is None and old):
                shutil.rmtree(_folder_of(temporary), ignore_errors=True)
                temporary.unlink()


def _lock(handle: IO[bytes], *, wait: bool) -> bool | None:
    """Mark a file as in use until it is closed: True, False if another process has; None if it cannot be done."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _is_at(handle: IO[bytes], path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(handle.fileno())
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
