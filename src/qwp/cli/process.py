"""Being told to stop by the system: unwind as after Ctrl-C, so that nothing unfinished is left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from qwp.errors import QwpError
from qwp.showing.terminal import safe_stderr as safe_stderr
from qwp.showing.terminal import silence as silence

# Ending a session (kill, a job scheduler, a shutdown) and losing the terminal. Python itself raises KeyboardInterrupt
# for Ctrl-C. Windows has no SIGHUP.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """The system told this process to stop. code: the exit code that says so."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class Received:
    """code: the exit code of the signal that came, None as long as none has. done: the work is over, only note them."""

    code: int | None = None
    done: bool = False


@contextmanager
def unwinding() -> Iterator[Received]:
    """Raise `Terminated` where a signal comes, once. For the command line alone: a library leaves signals to others."""
    received = Received()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # A signal that is ignored (nohup) stays so.
    caught = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def stop(number: int, _: FrameType | None) -> None:
        # Systems send several signals in a row: those that follow must not stop the tidying up.
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
    """Make the standard streams usable, whatever they were started with. Raises an OutputError without stdout."""
    _occupy_numbers()
    # Closed streams are None in Python. Nothing is read from one, and nobody reads the other.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (open as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode shows an escape for a character it lacks; it must not stop the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        raise OutputError("it is closed")


def _occupy_numbers() -> None:
    """Give the numbers of closed streams away, so that no file gets one: what is written to stderr
    would land in it."""
    if sys.platform != "win32":
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(number, True)
        os.close(number)


def flush() -> None:
    """Write what is still held back. Raises a BrokenPipeError or an OutputError for stdout; stderr is not worth one."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror or str(error)) from error
    finally:
        safe_stderr().flush()
