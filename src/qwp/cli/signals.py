"""Being told to stop by the system: unwind as after Ctrl-C, so that nothing unfinished is left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
