"""Signals and standard streams of the process.

A signal that ends the process unwinds the stack like Ctrl-C, so that commands can remove unfinished files.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from qwp.errors import QwpError
from qwp.showing import terminal

# SIGTERM: kill, a job scheduler, a shutdown. SIGHUP: the terminal was closed; Windows has none. Python itself raises
# KeyboardInterrupt for Ctrl-C.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """The process received a signal that ends it. code: the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class Received:
    """Signals received so far.

    code: the exit code of the first signal, None before it. done: do not interrupt any more.
    """

    code: int | None = None
    done: bool = False


@contextmanager
def unwinding() -> Iterator[Received]:
    """Raise `Terminated` at the first signal. Only the command line uses it: a library leaves signals alone."""
    received = Received()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # An ignored signal (nohup) stays ignored.
    caught = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def stop(number: int, _: FrameType | None) -> None:
        # Systems send several signals in a row: the later ones must not interrupt the clean-up.
        for each in caught:
            signal.signal(each, signal.SIG_IGN)
        error = Terminated(number)
        received.code = error.code
        if not received.done:
            raise error

    for number in caught:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        for number in caught:
            signal.signal(number, before[number])


class OutputError(QwpError):
    """Standard output cannot be written."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"standard output cannot be written ({why}), expected an open stream with room: redirect it to a file on "
            "another disk, or to /dev/null"
        )


def prepare() -> None:
    """Make the standard streams usable. Raises an OutputError if stdout is closed."""
    _occupy_numbers()
    # Python represents closed streams by None.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (open as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode shows escapes instead of raising an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        raise OutputError("it is closed")


def _occupy_numbers() -> None:
    """Open /dev/null under the numbers of closed streams, so that no file of the program gets one of them."""
    if sys.platform != "win32":
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(number, True)
        os.close(number)


def flush() -> None:
    """Flush the streams. Raises a BrokenPipeError or an OutputError for stdout, but ignores errors of stderr."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror or str(error)) from error
    finally:
        terminal.safe_stderr().flush()
