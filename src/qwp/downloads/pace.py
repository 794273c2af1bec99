"""Limit how slow a transfer may be: a server that sends a byte now and then is given up."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib import request


class TooSlowError(Exception):
    """The transfer was slower than its limit."""


@dataclass
class Pace:
    """Count the bytes of a transfer, including headers and further connections.

    Args:
        min_rate: bytes per second that have to arrive, averaged over each period.
        period: seconds over which the rate is averaged.
        clock: returns the time in seconds.
    """

    min_rate: float
    period: float
    clock: Callable[[], float] = time.monotonic
    _begin: float = field(init=False)
    _bytes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._begin = self.clock()

    def received(self, size: int) -> None:
        """Count `size` bytes. Raise a TooSlowError at the end of a period in which too few arrived."""
        self._bytes += size
        now = self.clock()
        if now - self._begin < self.period:
            return
        arrived, elapsed = self._bytes, now - self._begin
        self._begin, self._bytes = now, 0
        if arrived < self.min_rate * self.period:
            raise TooSlowError(
                f"{arrived:,} bytes came in {elapsed:,.0f} s, less than {self.min_rate:,.0f} bytes per second"
            )


class PacedHandler(request.AbstractHTTPHandler):
    """Open http and https addresses, with every byte of an answer counted."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    http_request = https_request = request.AbstractHTTPHandler.do_request_

    def http_open(self, req: request.Request) -> HTTPResponse:
        """Send an http request."""
        return self.do_open(self._connector(HTTPConnection), req)

    def https_open(self, req: request.Request) -> HTTPResponse:
        """Send an https request."""
        return self.do_open(self._connector(HTTPSConnection), req)

    def _connector(self, kind: type[HTTPConnection]) -> Any:
        def connect(host: str, **options: Any) -> HTTPConnection:
            connection = kind(host, **options)
            connection.response_class = self._response  # type: ignore[assignment]
            return connection

        return connect

    def _response(self, sock: Any, *args: Any, **options: Any) -> HTTPResponse:
        return HTTPResponse(_PacedSocket(sock, self._pace), *args, **options)  # type: ignore[arg-type]


class _PacedSocket:
    """As much of a socket as HTTPResponse uses."""

    def __init__(self, sock: Any, pace: Pace) -> None:
        self._sock = sock
        self._pace = pace

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what the socket receives as a file."""
        return io.BufferedReader(_PacedReader(self._sock.makefile(mode, buffering=0), self._pace))


class _PacedReader(io.RawIOBase):
    def __init__(self, raw: Any, pace: Pace) -> None:
        self._raw = raw
        self._pace = pace

    def readable(self) -> bool:
        """Return True: this is what a server sends."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what has come, and count it."""
        size = int(self._raw.readinto(buffer) or 0)
        if size:
            self._pace.received(size)
        return size

    def close(self) -> None:
        """Close the file of the socket too."""
        self._raw.close()
        super().close()
