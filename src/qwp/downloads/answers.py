"""Asking a server for a file, or for the rest of one. Only http and https, never from https back to http."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib import error, request

from qwp.downloads.pace import Pace, PacedHandler
from qwp.downloads.parts import Origin
from qwp.version import __version__

# The same question again may be answered otherwise. 404 is among them: servers behind a cache say it in passing.
_IN_PASSING = frozenset({404, 408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_READ_BYTES = 1 << 18


class BrokenOffError(Exception):
    """No answer, or not all of one: to be tried again. status: what the server said, if it did."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class RefusedError(Exception):
    """An answer that will stay the same."""


@dataclass(frozen=True)
class Answer:
    """What a server has begun to send. begin: the place of its first byte in the file; total: bytes of all of it."""

    response: Any
    origin: Origin
    begin: int
    total: int | None

    def read(self) -> bytes:
        """What has come; nothing at the end, also where it came too early."""
        with _failures_told():
            return bytes(self.response.read1(_READ_BYTES))


@contextmanager
def asked(url: str, begin: int, origin: Origin | None, timeout: float, pace: Pace) -> Iterator[Answer | None]:
    """The file from byte `begin` on, if it is still the one that `origin` is about, or else all of it.

    None: the server has nothing from there on, or something else than was asked for. timeout: seconds without a byte;
    pace: counts what comes, and raises a TooSlowError.
    """
    headers = {"User-Agent": f"qwp/{__version__}", "Accept-Encoding": "identity"}
    validator = None if origin is None else origin.validator
    if begin and validator is not None:
        headers |= {"Range": f"bytes={begin}-", "If-Range": validator}
    with _failures_told():
        try:
            response = _opener(pace).open(request.Request(url, headers=headers), timeout=timeout)
        except error.HTTPError as failure:
            failure.close()
            if failure.code != 416:
                raise _told(failure.code, failure.reason) from None
            response = None
    try:
        yield None if response is None else _understood(response, url, begin, origin)
    finally:
        if response is not None:
            with suppress(OSError):
                response.close()


def _understood(response: Any, url: str, begin: int, origin: Origin | None) -> Answer | None:
    _read_to_the_end(response)
    found = Origin(url, response.headers.get("ETag"), response.headers.get("Last-Modified"), None)
    if response.status == 200:
        total = _length(response.headers)
        return Answer(response, found.sized(total), 0, total)
    part = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range") or "")
    if response.status != 206 or part is None or origin is None:
        return None
    total = None if part[3] == "*" else int(part[3])
    rest = _length(response.headers)
    promised = int(part[2]) + 1 - int(part[1])
    right = int(part[1]) == begin and promised > 0 and rest in (None, promised) and origin.is_same(found.sized(total))
    return Answer(response, origin, begin, origin.length) if right else None


def _read_to_the_end(response: Any) -> None:
    """Read until the server closes the connection, so that bytes beyond Content-Length are noticed."""
    if response.will_close and not response.chunked:
        response.length = None


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length") or ""
    return int(text) if re.fullmatch(r"\d{1,18}", text) else None


@contextmanager
def _failures_told() -> Iterator[None]:
    """What goes wrong between here and the server, in words."""
    try:
        yield
    except TimeoutError:
        raise BrokenOffError("no answer in time") from None
    except error.URLError as failure:
        raise BrokenOffError(_reason(failure.reason)) from None
    except (OSError, HTTPException) as failure:
        raise BrokenOffError(_reason(failure)) from None


def _reason(failure: object) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, socket.gaierror):
        return "its name cannot be looked up, as without a network"
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    return str(failure) or type(failure).__name__


def _told(status: int, reason: str) -> Exception:
    words = f"the server answered {status} {reason}".strip()
    return BrokenOffError(words, status) if status in _IN_PASSING else RefusedError(words)


class _Redirects(request.HTTPRedirectHandler):
    """Redirections, as long as they keep to what was asked for."""

    def redirect_request(self, req: request.Request, *args: Any) -> request.Request | None:
        """The next question. args: the answer, its status, its reason, its headers, the new address."""
        address = str(args[-1])
        if not address.startswith("https://") and (req.type == "https" or not address.startswith("http://")):
            raise RefusedError(f"the server leads from {req.full_url} to {address}, which is not protected")
        return super().redirect_request(req, *args)


def _opener(pace: Pace) -> request.OpenerDirector:
    """One that knows neither files nor ftp; the proxies of the environment are used."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        PacedHandler(pace),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener
