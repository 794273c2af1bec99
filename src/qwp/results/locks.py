"""One writer at a time in a folder, and readers that wait for it. Other programs are not kept out.

The lock is the file `.lock`, which is there while somebody writes. The system frees it when its holder ends, however
that happens: what a killed process leaves is an empty file that the next writer takes over and removes.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qwp.errors import InputError

LOCK_FILE = ".lock"
MOST_SECONDS = 600.0
"""So long one writer waits for another: time enough to save the largest spaces on a slow disk."""
_PAUSE_SECONDS = 0.02
# File systems that have no locks. What is written there is complete or not there all the same; only two that write at
# the same moment could remove each other's files.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int, *, shared: bool) -> None:
        """Lock an open file, or raise BlockingIOError. There is no lock to be shared here: readers take turns."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from error

else:
    import fcntl

    def _take(handle: int, *, shared: bool) -> None:
        """Lock an open file, or raise BlockingIOError."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise


@contextmanager
def exclusive(folder: Path, seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Be the only writer in a folder. seconds: how long to wait for another one, before an InputError."""
    path = folder / LOCK_FILE
    handle = _wait(path, seconds)
    try:
        yield
    finally:
        # Removed while it is held: whoever waits for this file sees that it is gone and makes a new one. Where an open
        # file cannot be removed, it stays, which harms nobody.
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _wait(path: Path, seconds: float) -> int:
    """The lock file, open and ours."""
    begin = time.monotonic()
    while (handle := _try(path)) is None:
        if time.monotonic() - begin > seconds:
            raise InputError(f"another process is writing into {path.parent}: wait until it has finished")
        time.sleep(_PAUSE_SECONDS)
    return handle


def _try(path: Path) -> int | None:
    """The lock file, open and ours; None while somebody else has it."""
    try:
        # A link is not followed: who made the folder has no say in which file is opened for writing.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if sys.platform == "win32" and isinstance(error, PermissionError) and path.exists():
            return None  # being removed
        raise
    try:
        _take(handle, shared=False)
        # The file may have been removed, and a new one made, between the two steps.
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
    """Wait until nobody writes, and keep writers waiting. False where there was no lock to take in so many seconds.

    Nothing is created: a folder that is only read stays as it is.
    """
    handle = _wait_shared(folder / LOCK_FILE, seconds)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _wait_shared(path: Path, seconds: float) -> int | None:
    """The lock file, open and shared; None where there is none, or it cannot be locked."""
    begin = time.monotonic()
    while time.monotonic() - begin <= seconds:
        try:
            # A pipe of that name must not block.
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
            pass  # removed in the meantime: look again
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                return None
            raise
        os.close(handle)
    return None


def held(folder: Path) -> bool:
    """Whether somebody writes into a folder, or was killed while doing so."""
    return (folder / LOCK_FILE).exists()
