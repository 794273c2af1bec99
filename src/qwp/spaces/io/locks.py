"""Locks on folders and open files: one writer at a time, and readers that wait for it.

The file `.lock` in a folder exists while a process writes to the folder. The operating system releases a lock when its
process ends. A killed process leaves an empty lock file, which the next writer takes over and removes. The locks are
advisory: other programs can ignore them.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from qwp.errors import InputError

LOCK_FILE = ".lock"
MOST_SECONDS = 600.0
"""Time that one writer waits for another: enough to save the largest spaces on a slow disk."""
FILE_LOCKS = sys.platform != "win32"
"""Whether `lock_file` can lock open files."""
_PAUSE_SECONDS = 0.02
# Errors of file systems without locks. Files there are still written atomically, but two writers at the same moment
# could remove each other's files.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int, *, shared: bool) -> None:
        """Lock an open file, or raise BlockingIOError. Windows has no shared locks, so readers take turns."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from error

    def lock_file(file: IO[bytes], *, wait: bool) -> bool | None:
        """Return None: an open file cannot be locked and renamed on Windows."""
        return None

else:
    import fcntl

    def _take(handle: int, *, shared: bool) -> None:
        """Lock an open file, or raise BlockingIOError."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    def lock_file(file: IO[bytes], *, wait: bool) -> bool | None:
        """Lock an open file until it is closed. Return False if another process has it, None without locks."""
        if not FILE_LOCKS:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return None
        return True


@contextmanager
def exclusive(folder: Path, seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Hold the write lock of a folder. Raise an InputError if another writer holds it for longer than `seconds`."""
    path = folder / LOCK_FILE
    handle = _wait(path, seconds)
    try:
        yield
    finally:
        # Removed before it is released: processes that wait for this file notice that and create a new one. Windows
        # cannot remove an open file; leaving it there is harmless.
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _wait(path: Path, seconds: float) -> int:
    """Return the lock file, open and locked."""
    begin = time.monotonic()
    while (handle := _try(path)) is None:
        if time.monotonic() - begin > seconds:
            raise InputError(f"another process is writing into {path.parent}: wait until it has finished")
        time.sleep(_PAUSE_SECONDS)
    return handle


def _try(path: Path) -> int | None:
    """Return the lock file, open and locked, or None while another process has it."""
    try:
        # Links are not followed: the creator of a folder must not choose which file is opened for writing.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if sys.platform == "win32" and isinstance(error, PermissionError) and path.exists():
            return None  # it is being removed
        raise
    try:
        _take(handle, shared=False)
        # Between the two steps, the file may have been removed and created again.
        if os.path.samestat(os.fstat(handle), path.lstat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


@contextmanager
def shared(folder: Path, seconds: float = MOST_SECONDS) -> Iterator[bool]:
    """Hold the read lock of a folder, after waiting for a writer. Yield False if there is no lock file.

    No lock file is created, so that reading does not change a folder.
    """
    handle = _wait_shared(folder / LOCK_FILE, seconds)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _wait_shared(path: Path, seconds: float) -> int | None:
    """Return the lock file, open and locked for reading; None if it does not exist or cannot be locked."""
    begin = time.monotonic()
    while time.monotonic() - begin <= seconds:
        try:
            # Opening a pipe of that name must not block.
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            handle = os.open(path, flags)
        except OSError:
            return None
        try:
            _take(handle, shared=True)
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        except FileNotFoundError:
            pass  # removed in the meantime: try again
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                return None
            raise
        os.close(handle)
    return None


def held(folder: Path) -> bool:
    """Return whether a process is writing to a folder, or was killed while writing."""
    return (folder / LOCK_FILE).exists()
