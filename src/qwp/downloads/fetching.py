"""Getting a file: from its server, continued where it was broken off, or out of a folder of files at hand."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from qwp.downloads.answers import Answer, BrokenOffError, RefusedError, asked
from qwp.downloads.catalogue import PAIRS, VECTORS, Item
from qwp.downloads.cutting import GZIP, Cut, DamagedError, PairCut, ShortError, Unpacked, VectorCut
from qwp.downloads.pace import Pace, TooSlowError
from qwp.downloads.parts import Origin, Part, opened_part
from qwp.downloads.records import Record, read_record, record_path, write_record
from qwp.errors import InputError
from qwp.spaces.io.files import check_file, replacing

_READ_BYTES = 1 << 20


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
        with replacing(target) as out:
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
    with given.open("rb") as file, replacing(target) as out:
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
