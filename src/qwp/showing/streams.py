"""Standard error where writing never fails: what is told there must not stop the work."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, cast


def silence(stream: Any) -> None:
    """Let a stream that cannot be written lead nowhere: what Python still holds for it must not raise again at exit."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # not a file: nothing is held back for it
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _Unfailing:
    """A stream whose failures stop nothing: where nobody can be told, the work still goes on."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or give up on the stream."""
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        """Flush, or give up on the stream."""
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stderr() -> IO[str]:
    """Standard error, where writing never fails."""
    # While a bar is shown rich stands in for the stream; asking it to write would come back here.
    return cast("IO[str]", _Unfailing(getattr(sys.stderr, "rich_proxied_file", sys.stderr)))
