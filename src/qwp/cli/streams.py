"""Standard input, output and error, where they may be closed, full or without a reader."""

from __future__ import annotations

import os
import sys

from qwp.errors import QwpError
from qwp.showing.streams import silence as silence
from qwp.showing.streams import stderr as stderr


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
    """Give the numbers of closed streams away, so that no file gets one: what is written to stderr would land in it."""
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
        stderr().flush()
