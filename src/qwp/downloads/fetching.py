"""Download a file from its server, continuing interrupted transfers, or import it from a folder of files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from qwp.downloads.catalogue import PAIRS, VECTORS, Item
from qwp.downloads.filters import GZIP, DamagedError, Filter, GzipFilter, PairFilter, TruncatedError, VectorFilter
from qwp.downloads.folders import DownloadRecord, read_record, record_path, write_record
from qwp.downloads.http import (
    FileVersion,
    HttpAnswer,
    HttpConfig,
    RateCheck,
    RefusedError,
    TooSlowError,
    TransientError,
    request_file,
)
from qwp.errors import InputError
from qwp.spaces.io import locks
from qwp.spaces.io.files import atomic_write, check_file

_READ_BYTES = 1 << 20
_MAX_METADATA_BYTES = 1 << 16

# --------------------------------------------------------------------------- partial files


class PartialFile:
    """The first bytes of a file, with metadata in a second file.

    Attributes:
        path: path of the bytes.
        origin: version of the file on its server; None if no bytes have been received.
        size: number of bytes.
    """

    def __init__(self, file: IO[bytes], path: Path, metadata: Path) -> None:
        self._file = file
        self.path = path
        self._metadata = metadata
        self.origin = _read_metadata(metadata)
        self.size = os.fstat(file.fileno()).st_size
        if self.origin is None and self.size:
            self.clear()

    def begin(self, origin: FileVersion) -> None:
        """Clear the file, and begin with a version of a file on a server."""
        self.clear()
        with atomic_write(self._metadata) as file:
            file.write(json.dumps(asdict(origin), indent=2).encode() + b"\n")
        self.origin = origin

    def append(self, data: bytes) -> None:
        """Append bytes."""
        self._file.seek(self.size)
        self._file.write(data)
        self.size += len(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning."""
        self._file.seek(0)
        while piece := self._file.read(_READ_BYTES):
            yield piece

    def clear(self) -> None:
        """Remove all bytes. The metadata goes first: bytes without metadata are ignored."""
        self._metadata.unlink(missing_ok=True)
        self._file.truncate(0)
        self.origin, self.size = None, 0

    def remove(self) -> None:
        """Remove both files."""
        self._metadata.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


@contextmanager
def open_partial(target: Path) -> Iterator[PartialFile]:
    """Open the partial file of a download, in one process at a time."""
    path, metadata = (target.with_name(target.name + ending) for ending in (".part", ".part.json"))
    with open(path, "a+b", buffering=0) as file:
        if locks.lock_file(file, wait=False) is False:
            raise InputError(f"{target} is being downloaded by another process: wait for it, or stop it")
        part = PartialFile(file, path, metadata)
        try:
            yield part
        finally:
            if not part.size:
                with suppress(OSError):
                    part.remove()


def _read_metadata(path: Path) -> FileVersion | None:
    """Return the metadata of a partial file; None if it is missing or invalid."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MAX_METADATA_BYTES))
        origin = FileVersion(**found)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (origin.url, origin.etag or "", origin.last_modified or "")
    return origin if all(isinstance(text, str) for text in texts) and _is_length(origin.length) else None


def _is_length(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)


@dataclass(frozen=True)
class Listener:
    """Callbacks of a download.

    Attributes:
        note: receives messages about retries.
        progress: receives the number of words or pairs so far, their total if known, and the bytes so far.
    """

    note: Callable[[str], None] = lambda text: None
    progress: Callable[[int, int | None, int], None] = lambda entries, total, size: None


# --------------------------------------------------------------------------- local files


@dataclass(frozen=True)
class LocalFile:
    """A file in the data folder.

    Attributes:
        item: what it is.
        path: where it is.
        record: its record; None for a file that the user put there.
        fetched: whether it was downloaded or imported just now.
    """

    item: Item
    path: Path
    record: DownloadRecord | None
    fetched: bool


def find_local(
    item: Item, folder: Path, max_words: int, note: Callable[[str], None] = lambda text: None
) -> LocalFile | None:
    """Return the file if it is in the folder, unchanged and with enough words; a user's own file is not checked.

    note: receives the reason why an existing file is not used.
    """
    path = folder / item.file
    if not path.is_file():
        return None
    record = read_record(path)
    if record is not None and item.source.kind == VECTORS and record.entries < max_words and not record.whole:
        note(f"{item.name}: {path} has {record.entries:,} words, {max_words:,} are needed")
        return None
    if record is not None and not record.describes(path):
        note(f"{item.name}: {path} has changed since its download")
        return None
    return LocalFile(item, path, record, fetched=False)


def download(
    item: Item,
    folder: Path,
    *,
    max_words: int,
    base: str | None = None,
    config: HttpConfig | None = None,
    listener: Listener | None = None,
) -> LocalFile:
    """Download a file from its server into the folder, continuing an interrupted download.

    Args:
        item: the file.
        folder: the data folder.
        max_words: number of words of vectors to keep; the connection is closed after them.
        base: address of a mirror with the same paths.
        config: time limits and retries.
        listener: callbacks.
    """
    target = _target(item, folder)
    with open_partial(target) as part:
        with atomic_write(target) as out:
            result = Download(item, out, max_words)
            config = config or HttpConfig()
            Transfer(item, item.url(base), target, part, result, config, listener or Listener()).run()
            record_path(target).unlink(missing_ok=True)
        record = result.record(item.url(base), part.origin)
        write_record(target, record)
        part.remove()
    return LocalFile(item, target, record, fetched=True)


def import_file(
    item: Item, folder: Path, files: Path, *, max_words: int, listener: Listener | None = None
) -> LocalFile:
    """Copy a file from a folder of published files, shortened like a download. files: that folder."""
    given = _published_file(item, files)
    target = _target(item, folder)
    if target.exists() and target.samefile(given):
        raise InputError(f"{given} is the file to write, expected one in another folder with --from")
    listener = listener or Listener()
    with given.open("rb") as file, atomic_write(target) as out:
        result = Download(item, out, max_words, packed=file.read(2) == GZIP)
        file.seek(0)
        content = result.content
        try:
            while not content.done and (data := file.read(_READ_BYTES)):
                content.feed(data)
                listener.progress(content.entries, content.total, file.tell())
            if not content.done:
                content.end(complete=True)
        except (DamagedError, TruncatedError) as error:
            raise InputError(f"{given}: {error}; expected an unchanged copy of {item.url()}") from None
        record_path(target).unlink(missing_ok=True)
    record = result.record(item.url(), None)
    write_record(target, record)
    return LocalFile(item, target, record, fetched=True)


def _target(item: Item, folder: Path) -> Path:
    """Return the path of a file in the data folder, and create its folder."""
    target = folder / item.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{target.parent} cannot be created ({error.strerror}), expected a folder for data: name another with "
            "--data or QWP_DATA"
        ) from error
    return target


def _published_file(item: Item, files: Path) -> Path:
    """Return the file with the name of the server in a folder, compressed or not."""
    plain = item.original.removesuffix(".gz")
    names = list(dict.fromkeys((item.original, plain, plain + ".gz")))[: 1 if item.source.kind == PAIRS else 3]
    for name in names:
        if (files / name).exists():
            check_file(files / name)
            return files / name
    raise InputError(f"{files} has no {' or '.join(names)}, expected the file of {item.url()} there for {item.name}")


# --------------------------------------------------------------------------- transfers


class Download:
    """The file that a download writes.

    Attributes:
        content: filter that writes the file.
    """

    content: Filter

    def __init__(self, item: Item, out: IO[bytes], max_words: int, *, packed: bool | None = None) -> None:
        self._item = item
        self._out = out
        self._max_words = max_words
        self._packed = item.original.endswith(".gz") if packed is None else packed
        self.restart()

    def restart(self) -> None:
        """Begin the file again."""
        self._out.seek(0)
        self._out.truncate()
        self._hash = hashlib.sha256()
        if self._item.source.kind == PAIRS:
            self.content = PairFilter(self._write, self._item.pairs)
            return
        kind = GzipFilter if self._packed else VectorFilter
        self.content = kind(self._write, self._max_words)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._hash.update(data)
        self._size = self._out.tell()

    def record(self, url: str, origin: FileVersion | None) -> DownloadRecord:
        """Return the record of the finished file."""
        return DownloadRecord(
            self._item.name,
            url,
            self.content.entries,
            self.content.whole,
            self._size,
            self._hash.hexdigest(),
            self._item.source.licence,
            self._item.source.cite,
            None if origin is None else origin.etag,
            None if origin is None else origin.last_modified,
        )


@dataclass
class Transfer:
    """A download in progress, with retries.

    Attributes:
        item: the file.
        url: its address.
        target: its path in the data folder.
        part: its received bytes.
        result: the file to write.
        config: time limits and retries.
        listener: callbacks.
        furthest: maximum number of bytes received so far.
        damages: number of times that the received bytes were wrong.
    """

    item: Item
    url: str
    target: Path
    part: PartialFile
    result: Download
    config: HttpConfig
    listener: Listener
    furthest: int = 0
    damages: int = 0
    rate: RateCheck = field(init=False)

    def __post_init__(self) -> None:
        self.rate = RateCheck(self.config.min_rate, self.config.rate_period)

    def run(self) -> None:
        """Transfer the file. Raise an InputError if that fails after all retries."""
        failures = 0
        while True:
            before = self.furthest
            try:
                if not self._use_partial():
                    self._request()
                return
            except (TransientError, TooSlowError) as problem:
                # Retries are unlimited as long as bytes arrive: servers may close long connections.
                advanced = self.furthest > before and not isinstance(problem, TooSlowError)
                failures = 1 if advanced else failures + 1
                if failures > len(self.config.waits):
                    raise self._failed(problem) from None
                self._wait(str(problem), self.config.waits[failures - 1])
            except DamagedError as problem:
                self.part.clear()
                self.damages += 1
                if self.damages > 1:
                    raise self._damaged(str(problem)) from None
                self._wait(f"{problem}; from the beginning", self.config.waits[0] if self.config.waits else 0.0)
            except RefusedError as problem:
                raise InputError(f"{self.url} was refused: {problem}. {self._manual_copy()}") from None

    def _use_partial(self) -> bool:
        """Begin with the bytes of an earlier transfer. Return whether they are sufficient."""
        self.result.restart()
        if self.part.origin is not None and self.part.origin.url != self.url:
            self.part.clear()
        for data in self.part.pieces():
            self.result.content.feed(data)
            if self.result.content.done:
                return True
        self.furthest = max(self.furthest, self.part.size)
        origin = self.part.origin
        if origin is None or self.part.size == 0 or self.part.size != origin.length:
            return False
        self._check_end()
        return True

    def _request(self) -> None:
        """Send one request and read the answer."""
        begin = self.part.size
        with request_file(self.url, begin, self.part.origin, self.config.timeout, self.rate) as answer:
            if answer is None:
                self.part.clear()
                raise TransientError("the server does not continue the file at the requested position")
            if answer.begin != begin or answer.begin == 0:
                if begin:
                    self.listener.note(f"{self.item.name}: the server sends the file from its beginning")
                self._check_length(answer.origin)
                self.part.begin(answer.origin)
                self.result.restart()
            elif begin:
                self.listener.note(f"{self.item.name}: continued after {_megabytes(begin)}")
            self._read(answer)

    def _check_length(self, origin: FileVersion) -> None:
        """Refuse a length that differs from an earlier one of the same version of the file."""
        before = self.part.origin
        if before is not None and before.contradicts(origin):
            self.part.clear()
            raise self._damaged(f"the server reports {origin.length:,} bytes, and reported {before.length:,} before")

    def _read(self, answer: HttpAnswer) -> None:
        content = self.result.content
        while not content.done and (data := answer.read()):
            self.part.append(data)
            self.furthest = max(self.furthest, self.part.size)
            content.feed(data)
            self.listener.progress(content.entries, content.total, self.part.size)
        if content.done:
            return
        if answer.total is not None and self.part.size < answer.total:
            raise TransientError(f"the connection ended after {self.part.size:,} of {answer.total:,} bytes")
        self._check_end()

    def _check_end(self) -> None:
        """Check the content once all bytes have been received, as far as their number is known."""
        origin = self.part.origin
        complete = origin is not None and origin.length is not None
        if complete and origin is not None and self.part.size != origin.length:
            raise DamagedError(f"it has {self.part.size:,} bytes, and the server reports {origin.length:,}")
        try:
            self.result.content.end(complete=complete)
        except TruncatedError as problem:
            if complete:
                raise DamagedError(str(problem)) from None
            raise TransientError(str(problem)) from None

    def _wait(self, problem: str, seconds: float) -> None:
        self.listener.note(f"{self.item.name}: {problem}; trying again in {seconds:g} s")
        self.config.sleep(seconds)

    def _damaged(self, problem: str) -> InputError:
        return InputError(
            f"{self.url} has unexpected content: {problem}. All of it was discarded; try later, or open the address "
            "in a browser to see what the server sends"
        )

    def _failed(self, problem: TransientError | TooSlowError) -> InputError:
        if isinstance(problem, TransientError) and problem.status == 404:
            hint = f"check the name {self.item.name}, {self.item.source.page} lists all files. {self._manual_copy()}"
            return InputError(f"{self.url} does not exist: {problem}; {hint}")
        if self.part.size:
            return InputError(
                f"{self.url} was interrupted ({problem}). {_megabytes(self.part.size)} of it are stored: the same "
                f"command continues. {self._manual_copy()}"
            )
        return InputError(f"{self.url} cannot be downloaded: {problem}. {self._manual_copy()}")

    def _manual_copy(self) -> str:
        return (
            f"A copy of {self.item.original} from elsewhere can be used by `qwp data download {self.item.name} --from "
            f"FOLDER`, or put there as {self.target}{' (unpacked)' if self.item.original.endswith('.gz') else ''}"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
