"""HTTP requests for files: ranges that continue a download, a minimum transfer rate, redirects that stay protected."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http.client import HTTPException
from typing import Any
from urllib import error, request

from qwp.version import __version__

# Statuses for which another try may succeed. Servers behind a cache return a transient 404.
_TRANSIENT = frozenset({404, 408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_READ_BYTES = 1 << 18


class TransientError(Exception):
    """A missing or incomplete answer, for which another try may succeed. status: that of the answer, if any."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class RefusedError(Exception):
    """An answer that another try would repeat."""


class TooSlowError(Exception):
    """A transfer below the minimum rate."""


@dataclass(frozen=True)
class HttpConfig:
    """Time limits and retries of a download.

    Attributes:
        timeout: seconds without a byte after which a connection is closed.
        min_rate: minimum transfer rate in bytes per second.
        rate_period: seconds over which the rate is averaged, including waits and further connections.
        waits: seconds to wait before each retry.
        sleep: function that waits.
    """

    timeout: float = 30.0
    min_rate: float = 1000.0
    rate_period: float = 60.0
    waits: tuple[float, ...] = (0.5, 1.0, 2.0)
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class FileVersion:
    """Version of a file on a server. length: its size in bytes, if the server reports it."""

    url: str
    etag: str | None
    last_modified: str | None
    length: int | None

    @property
    def validator(self) -> str | None:
        """Value of If-Range for this version; a weak tag does not guarantee identical bytes."""
        return self.etag if self.etag is not None and not self.etag.startswith("W/") else self.last_modified

    def with_length(self, length: int | None) -> FileVersion:
        """Return the same version with another length."""
        return replace(self, length=length)

    def contradicts(self, other: FileVersion) -> bool:
        """Return whether both describe the same version with different lengths."""
        same = self.url == other.url and self.validator is not None and self.validator == other.validator
        return same and None not in (self.length, other.length) and self.length != other.length

    def is_same(self, other: FileVersion) -> bool:
        """Return whether all values that both have are equal."""
        ours, theirs = asdict(self), asdict(other)
        return all(None in (ours[key], theirs[key]) or ours[key] == theirs[key] for key in ours)


@dataclass
class RateCheck:
    """Checks the rate of a transfer, including waits and further connections.

    Args:
        min_rate: minimum number of bytes per second, averaged over each period.
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


@dataclass(frozen=True)
class HttpAnswer:
    """The answer of a server.

    Attributes:
        response: the open response.
        origin: version of the file.
        begin: position of the first byte of the answer within the file.
        total: size of the whole file in bytes, if known.
        rate: counts the received bytes.
    """

    response: Any
    origin: FileVersion
    begin: int
    total: int | None
    rate: RateCheck

    def read(self) -> bytes:
        """Return the next bytes, or none at the end, including a premature one."""
        with _explain_network_errors():
            data = bytes(self.response.read1(_READ_BYTES))
        if data:
            self.rate.received(len(data))
        return data


@contextmanager
def request_file(
    url: str, begin: int, origin: FileVersion | None, timeout: float, rate: RateCheck
) -> Iterator[HttpAnswer | None]:
    """Request a file from byte `begin` on if it is still the version `origin`, and all of it otherwise.

    Yields None if the server has no such range, or answers with another one.

    Args:
        url: address of the file.
        begin: position of the first byte.
        origin: version of which the first bytes are known.
        timeout: seconds without a byte after which the connection is closed.
        rate: counts the received bytes.
    """
    headers = {"User-Agent": f"qwp/{__version__}", "Accept-Encoding": "identity"}
    validator = None if origin is None else origin.validator
    if begin and validator is not None:
        headers |= {"Range": f"bytes={begin}-", "If-Range": validator}
    with _explain_network_errors():
        try:
            response = _opener().open(request.Request(url, headers=headers), timeout=timeout)
        except error.HTTPError as failure:
            failure.close()
            if failure.code != 416:
                raise _status_error(failure.code, failure.reason) from None
            response = None
    try:
        yield None if response is None else _parse_answer(response, url, begin, origin, rate)
    finally:
        if response is not None:
            with suppress(OSError):
                response.close()


def _parse_answer(
    response: Any, url: str, begin: int, origin: FileVersion | None, rate: RateCheck
) -> HttpAnswer | None:
    """Return the answer, or None if it is not the range that was requested."""
    if response.will_close and not response.chunked:
        response.length = None  # read until the server closes the connection, to notice bytes beyond Content-Length
    found = FileVersion(url, response.headers.get("ETag"), response.headers.get("Last-Modified"), None)
    if response.status == 200:
        total = _content_length(response.headers)
        return HttpAnswer(response, found.with_length(total), 0, total, rate)
    part = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range") or "")
    if response.status != 206 or part is None or origin is None:
        return None
    total = None if part[3] == "*" else int(part[3])
    length = _content_length(response.headers)
    promised = int(part[2]) + 1 - int(part[1])
    as_requested = int(part[1]) == begin and promised > 0 and length in (None, promised)
    if not as_requested or not origin.is_same(found.with_length(total)):
        return None
    return HttpAnswer(response, origin, begin, origin.length, rate)


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length") or ""
    return int(text) if re.fullmatch(r"\d{1,18}", text) else None


@contextmanager
def _explain_network_errors() -> Iterator[None]:
    """Turn network errors into TransientErrors."""
    try:
        yield
    except TimeoutError:
        raise TransientError("no answer in time") from None
    except error.URLError as failure:
        raise TransientError(_reason(failure.reason)) from None
    except (OSError, HTTPException) as failure:
        raise TransientError(_reason(failure)) from None


def _reason(failure: object) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, socket.gaierror):
        return "its name cannot be looked up, as without a network"
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    return str(failure) or type(failure).__name__


def _status_error(status: int, reason: str) -> Exception:
    message = f"the server answered {status} {reason}".strip()
    return TransientError(message, status) if status in _TRANSIENT else RefusedError(message)


class _Redirects(request.HTTPRedirectHandler):
    """Follows redirects to http and https, but not from https to http."""

    def redirect_request(self, req: request.Request, *args: Any) -> request.Request | None:
        """Return the next request. args: the answer, its status, reason, headers, and the new address."""
        address = str(args[-1])
        if not address.startswith("https://") and (req.type == "https" or not address.startswith("http://")):
            raise RefusedError(f"the server redirects from {req.full_url} to {address}, which is not protected")
        return super().redirect_request(req, *args)


def _opener() -> request.OpenerDirector:
    """Return an opener for http and https, not for files or ftp, that uses the proxies of the environment."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener
