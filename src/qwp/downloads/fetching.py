"""Getting a file: from its server, continued where it was broken off, or out of a folder of files at hand."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import IO, Any
from urllib import error, request

from qwp.downloads.catalogue import PAIRS, VECTORS, Item
from qwp.downloads.cutting import GZIP, Cut, DamagedError, PairCut, ShortError, Unpacked, VectorCut
from qwp.downloads.folders import Record, read_record, record_path, write_record
from qwp.errors import InputError
from qwp.spaces.io import locks
from qwp.spaces.io.files import atomic_write, check_file
from qwp.version import __version__

# The same question again may be answered otherwise. 404 is among them: servers behind a cache say it in passing.
_IN_PASSING = frozenset({404, 408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_ANSWER_BYTES = 1 << 18


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
            return bytes(self.response.read1(_ANSWER_BYTES))


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


_READ_BYTES = 1 << 20
_MOST_NOTES = 1 << 16


@dataclass(frozen=True)
class Origin:
    """What tells one state of a file on a server from another. length: its bytes, if the server says."""

    url: str
    etag: str | None
    last_modified: str | None
    length: int | None

    @property
    def validator(self) -> str | None:
        """By which a server knows whether the file is still the same; a weak tag does not speak for every byte."""
        return self.etag if self.etag is not None and not self.etag.startswith("W/") else self.last_modified

    def sized(self, length: int | None) -> Origin:
        """The same with a length."""
        return replace(self, length=length)

    def contradicts(self, other: Origin) -> bool:
        """Whether both are about the same state of a file, and give it different lengths."""
        same = self.url == other.url and self.validator is not None and self.validator == other.validator
        return same and None not in (self.length, other.length) and self.length != other.length

    def is_same(self, other: Origin) -> bool:
        """Whether nothing that both say differs."""
        ours, theirs = asdict(self), asdict(other)
        return all(None in (ours[key], theirs[key]) or ours[key] == theirs[key] for key in ours)


class Part:
    """The first bytes of a file. size: how many; origin: of which file, None for none."""

    def __init__(self, file: IO[bytes], path: Path, notes: Path) -> None:
        self._file = file
        self.path = path
        self._notes = notes
        self.origin = _read_notes(notes)
        self.size = os.fstat(file.fileno()).st_size
        if self.origin is None and self.size:
            self.clear()

    def begin(self, origin: Origin) -> None:
        """Forget what is there, for another file, or the same from its beginning."""
        self.clear()
        with atomic_write(self._notes) as file:
            file.write(json.dumps(asdict(origin), indent=2).encode() + b"\n")
        self.origin = origin

    def append(self, data: bytes) -> None:
        """The next bytes."""
        self._file.seek(self.size)
        self._file.write(data)
        self.size += len(data)

    def pieces(self) -> Iterator[bytes]:
        """What is there, from the beginning."""
        self._file.seek(0)
        while piece := self._file.read(_READ_BYTES):
            yield piece

    def clear(self) -> None:
        """Forget what is there. The notes go first: bytes without notes are of no file."""
        self._notes.unlink(missing_ok=True)
        self._file.truncate(0)
        self.origin, self.size = None, 0

    def remove(self) -> None:
        """Leave nothing behind."""
        self._notes.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


@contextmanager
def opened_part(target: Path) -> Iterator[Part]:
    """What has come of this file so far, for one process at a time."""
    path, notes = (target.with_name(target.name + ending) for ending in (".part", ".part.json"))
    with open(path, "a+b", buffering=0) as file:
        if locks.lock_file(file, wait=False) is False:
            raise InputError(f"{target} is being fetched by another process: wait for it, or stop it")
        part = Part(file, path, notes)
        try:
            yield part
        finally:
            if not part.size:
                with suppress(OSError):
                    part.remove()


def _read_notes(path: Path) -> Origin | None:
    """The notes beside a part; None where they are missing or no longer make sense."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_NOTES))
        origin = Origin(**found)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (origin.url, origin.etag or "", origin.last_modified or "")
    return origin if all(isinstance(text, str) for text in texts) and _is_length(origin.length) else None


def _is_length(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)


@dataclass(frozen=True)
class HttpConfig:
    """Time limits of a download.

    Attributes:
        timeout: seconds without a byte after which a connection is given up.
        min_rate: bytes per second that have to arrive; slower transfers are given up.
        rate_period: seconds over which that rate is averaged, waits and further connections included.
        waits: seconds before each further try.
        sleep: waits for that many seconds.
    """

    timeout: float = 30.0
    min_rate: float = 1000.0
    rate_period: float = 60.0
    waits: tuple[float, ...] = (0.5, 1.0, 2.0)
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Listener:
    """Who is told: of remarks, and of words (or pairs) so far, how many it will be, and bytes so far."""

    note: Callable[[str], None] = lambda text: None
    progress: Callable[[int, int | None, int], None] = lambda entries, total, size: None


@dataclass(frozen=True)
class Held:
    """A file that is here. record: None for one that was put there by hand; fetched: whether it came just now."""

    item: Item
    path: Path
    record: Record | None
    fetched: bool


def held(item: Item, folder: Path, max_words: int, note: Callable[[str], None] = lambda text: None) -> Held | None:
    """The file, if it is here as it came and has as many words as are wanted; one put there by hand is not judged."""
    path = folder / item.file
    if not path.is_file():
        return None
    record = read_record(path)
    if record is not None and item.source.kind == VECTORS and record.entries < max_words and not record.whole:
        note(f"{item.name}: {path} has {record.entries:,} words, {max_words:,} are wanted")
        return None
    if record is not None and not record.describes(path):
        note(f"{item.name}: {path} is no longer as it came")
        return None
    return Held(item, path, record, fetched=False)


def download(
    item: Item,
    folder: Path,
    *,
    max_words: int,
    base: str | None = None,
    config: HttpConfig | None = None,
    listener: Listener | None = None,
) -> Held:
    """Fetch a file from its server into the folder; what an earlier try has left is continued.

    max_words: how many words of vectors are kept; the connection is closed when they are there.
    """
    target = _made_room(item, folder)
    with opened_part(target) as part:
        with atomic_write(target) as out:
            landing = Landing(item, out, max_words)
            config = config or HttpConfig()
            Fetch(item, item.url(base), target, part, landing, config, listener or Listener()).run()
            record_path(target).unlink(missing_ok=True)
        record = landing.record(item.url(base), part)
        write_record(target, record)
        part.remove()
    return Held(item, target, record, fetched=True)


def take(item: Item, folder: Path, files: Path, *, max_words: int, listener: Listener | None = None) -> Held:
    """Copy a file out of a folder of files as their publishers have them, cut as a download is."""
    given = _at_hand(item, files)
    target = _made_room(item, folder)
    if target.exists() and target.samefile(given):
        raise InputError(f"{given} is the file to write, expected one in another folder with --from")
    listener = listener or Listener()
    with given.open("rb") as file, atomic_write(target) as out:
        landing = Landing(item, out, max_words, packed=file.read(2) == GZIP)
        file.seek(0)
        try:
            while not landing.cut.done and (data := file.read(_READ_BYTES)):
                landing.cut.feed(data)
                listener.progress(landing.cut.entries, landing.cut.total, file.tell())
            if not landing.cut.done:
                landing.cut.end(complete=True)
        except (DamagedError, ShortError) as error:
            raise InputError(f"{given}: {error}; expected the file of {item.url()} as it is there") from None
        record_path(target).unlink(missing_ok=True)
    record = landing.record(item.url(), None)
    write_record(target, record)
    return Held(item, target, record, fetched=True)


def _made_room(item: Item, folder: Path) -> Path:
    target = folder / item.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{target.parent} cannot be made ({error.strerror}), expected a folder to keep data in: name another with "
            "--data or QWP_DATA"
        ) from error
    return target


def _at_hand(item: Item, files: Path) -> Path:
    """The file in a folder, under the name that it has on its server, compressed or not."""
    plain = item.original.removesuffix(".gz")
    names = list(dict.fromkeys((item.original, plain, plain + ".gz")))[: 1 if item.source.kind == PAIRS else 3]
    for name in names:
        if (files / name).exists():
            check_file(files / name)
            return files / name
    raise InputError(f"{files} has no {' or '.join(names)}, expected the file of {item.url()} there for {item.name}")


class Landing:
    """The file that is being made. cut: what is written to it."""

    cut: Cut

    def __init__(self, item: Item, out: IO[bytes], max_words: int, *, packed: bool | None = None) -> None:
        self._item = item
        self._out = out
        self._max_words = max_words
        self._packed = item.original.endswith(".gz") if packed is None else packed
        self.again()

    def again(self) -> None:
        """From the beginning."""
        self._out.seek(0)
        self._out.truncate()
        self._hash = hashlib.sha256()
        if self._item.source.kind == PAIRS:
            self.cut = PairCut(self._write, self._item.pairs)
            return
        cut = VectorCut(self._write, self._max_words)
        self.cut = Unpacked(cut) if self._packed else cut

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._hash.update(data)
        self._size = self._out.tell()

    def record(self, url: str, part: Part | None) -> Record:
        """What is to be known of the file."""
        origin = None if part is None else part.origin
        return Record(
            self._item.name,
            url,
            self.cut.entries,
            self.cut.whole,
            self._size,
            self._hash.hexdigest(),
            self._item.source.licence,
            self._item.source.cite,
            None if origin is None else origin.etag,
            None if origin is None else origin.last_modified,
        )


@dataclass
class Fetch:
    """One download in progress. furthest: the most bytes that were ever there; damages: how often they were wrong."""

    item: Item
    url: str
    target: Path
    part: Part
    landing: Landing
    config: HttpConfig
    listener: Listener
    furthest: int = 0
    damages: int = 0
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.config.min_rate, self.config.rate_period)

    def run(self) -> None:
        """Fetch until all is there. Raises an InputError where that cannot be."""
        failures = 0
        while True:
            before = self.furthest
            try:
                if self._continued() or self._attempt():
                    return
            except (BrokenOffError, TooSlowError) as problem:
                # As long as more comes each time it goes on: servers may close long connections.
                advanced = self.furthest > before and not isinstance(problem, TooSlowError)
                failures = 1 if advanced else failures + 1
                if failures > len(self.config.waits):
                    raise self._given_up(problem) from None
                self._wait(str(problem), self.config.waits[failures - 1])
            except DamagedError as problem:
                self.part.clear()
                self.damages += 1
                if self.damages > 1:
                    raise self._damaged(str(problem)) from None
                self._wait(f"{problem}; from the beginning", self.config.waits[0] if self.config.waits else 0.0)
            except RefusedError as problem:
                raise InputError(f"{self.url} was refused: {problem}. {self._by_hand()}") from None

    def _continued(self) -> bool:
        """Begin with what is there already. Returns whether that is enough."""
        self.landing.again()
        if self.part.origin is not None and self.part.origin.url != self.url:
            self.part.clear()
        for data in self.part.pieces():
            self.landing.cut.feed(data)
            if self.landing.cut.done:
                return True
        self.furthest = max(self.furthest, self.part.size)
        origin = self.part.origin
        return origin is not None and self.part.size > 0 and self.part.size == origin.length and self._ended()

    def _attempt(self) -> bool:
        """Ask the server once. Always True; what goes wrong is an error."""
        begin = self.part.size
        with asked(self.url, begin, self.part.origin, self.config.timeout, self.pace) as answer:
            if answer is None:
                self.part.clear()
                raise BrokenOffError("the server does not continue the file where it was asked to")
            if answer.begin != begin or answer.begin == 0:
                if begin:
                    self.listener.note(f"{self.item.name}: the server sends the file from its beginning")
                self._check_length(answer.origin)
                self.part.begin(answer.origin)
                self.landing.again()
            elif begin:
                self.listener.note(f"{self.item.name}: continued after {_megabytes(begin)}")
            return self._read(answer)

    def _check_length(self, origin: Origin) -> None:
        """Refuse a length that differs from what the server said before of the same state of the file."""
        before = self.part.origin
        if before is not None and before.contradicts(origin):
            self.part.clear()
            raise self._damaged(f"the server says that it has {origin.length:,} bytes, and said {before.length:,}")

    def _read(self, answer: Answer) -> bool:
        cut = self.landing.cut
        while not cut.done and (data := answer.read()):
            self.part.append(data)
            self.furthest = max(self.furthest, self.part.size)
            cut.feed(data)
            self.listener.progress(cut.entries, cut.total, self.part.size)
        if cut.done:
            return True
        if answer.total is not None and self.part.size < answer.total:
            raise BrokenOffError(f"the connection ended after {self.part.size:,} of {answer.total:,} bytes")
        return self._ended()

    def _ended(self) -> bool:
        """All bytes are there, as far as anyone knows."""
        origin = self.part.origin
        complete = origin is not None and origin.length is not None
        if complete and origin is not None and self.part.size != origin.length:
            raise DamagedError(f"it has {self.part.size:,} bytes, and the server says {origin.length:,}")
        try:
            self.landing.cut.end(complete=complete)
        except ShortError as problem:
            if complete:
                raise DamagedError(str(problem)) from None
            raise BrokenOffError(str(problem)) from None
        return True

    def _wait(self, problem: str, seconds: float) -> None:
        self.listener.note(f"{self.item.name}: {problem}; trying again in {seconds:g} s")
        self.config.sleep(seconds)

    def _damaged(self, problem: str) -> InputError:
        return InputError(
            f"{self.url} is not what it should be: {problem}. Nothing of it was kept; try later, or open the address "
            "in a browser to see what the server says"
        )

    def _given_up(self, problem: BrokenOffError | TooSlowError) -> InputError:
        if isinstance(problem, BrokenOffError) and problem.status == 404:
            hint = f"check the name {self.item.name}, {self.item.source.page} says what there is. {self._by_hand()}"
            return InputError(f"{self.url} is not there: {problem}; {hint}")
        if self.part.size:
            return InputError(
                f"{self.url} broke off ({problem}). {_megabytes(self.part.size)} of it are kept: the same command "
                f"continues. {self._by_hand()}"
            )
        return InputError(f"{self.url} cannot be fetched: {problem}. {self._by_hand()}")

    def _by_hand(self) -> str:
        return (
            f"A copy of {self.item.original} from elsewhere can be used by `qwp data download {self.item.name} --from "
            f"FOLDER`, or put there as {self.target}{' (unpacked)' if self.item.original.endswith('.gz') else ''}"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
