"""What is known of a file that is here: NAME.json beside it says what it is, and whether it is still as it came."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from qwp.spaces.io.files import file_sha256, replacing

_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Record:
    """One file. entries: words or pairs; whole: nothing was cut off; sha256: of the file as it is here."""

    name: str
    url: str
    entries: int
    whole: bool
    bytes: int
    sha256: str
    licence: str
    cite: str
    etag: str | None = None
    last_modified: str | None = None

    def describes(self, path: Path) -> bool:
        """Whether the file is as it came."""
        return path.stat().st_size == self.bytes and file_sha256(path) == self.sha256


def record_path(target: Path) -> Path:
    """Where the record of a file is."""
    return target.with_name(target.name + ".json")


def read_record(target: Path) -> Record | None:
    """The record of a file; None for one that was put there by hand, or whose record makes no sense."""
    try:
        with record_path(target).open("rb") as file:
            found = Record(**json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    kinds = {"entries": int, "whole": bool, "bytes": int}
    right = all(type(getattr(found, name)) is kind for name, kind in kinds.items())
    return found if right and isinstance(found.name, str) else None


def write_record(target: Path, record: Record) -> None:
    """Put the record beside its file."""
    with replacing(record_path(target)) as file:
        file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False).encode() + b"\n")
