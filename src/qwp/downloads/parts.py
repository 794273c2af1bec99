"""What has come of a file that is not complete: the first bytes as the server sent them, and which file they are of.

They lie beside the file as NAME.part and NAME.part.json. Compressed bytes are kept compressed: where they are continued
they are unpacked again from their beginning, and any number of words can be cut from them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from qwp.errors import InputError
from qwp.spaces.io.files import replacing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

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
        with replacing(self._notes) as file:
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
        if not _locked(file):
            raise InputError(f"{target} is being fetched by another process: wait for it, or stop it")
        part = Part(file, path, notes)
        try:
            yield part
        finally:
            if not part.size:
                with suppress(OSError):
                    part.remove()


def _locked(file: IO[bytes]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


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
