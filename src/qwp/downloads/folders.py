"""Where downloaded files are: the folder that the system has for such things, or the one that is named."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from qwp.downloads.catalogue import SOURCES, VECTORS, Item, item, names_vectors
from qwp.errors import InputError
from qwp.spaces.io.arguments import as_path
from qwp.spaces.io.files import atomic_write, file_sha256

VARIABLE = "QWP_DATA"


def data_folder(given: str | PathLike[str] | None = None) -> Path:
    """The folder of the data: the one given, that of QWP_DATA, or that of the system."""
    named = given if given is not None else os.environ.get(VARIABLE) or None
    folder = as_path(named) if named is not None else usual_folder(sys.platform, os.environ)
    if os.path.exists(folder) and not folder.is_dir():
        raise InputError(f"{folder} is a file, expected a folder for the data (--data, {VARIABLE})")
    return Path(os.path.abspath(folder))


def usual_folder(platform: str, environment: Mapping[str, str]) -> Path:
    """The folder for caches of this program by the convention of a platform."""
    home = _home()
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "qwp" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "qwp"
    named = Path(environment.get("XDG_CACHE_HOME") or "")
    return (named if named.is_absolute() else home / ".cache") / "qwp"  # a relative one is to be ignored


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InputError(f"there is no home folder to keep data in, expected --data DIR or {VARIABLE}") from None


def data_path(name: str, folder: str | PathLike[str] | None = None) -> Path:
    """The path of a file that `qwp data download` has fetched; nothing is fetched here.

    name: a language ("en", "crawl:en"), a dictionary ("en-es") or a part of one ("en-es.train", "en-es.test").
    folder: where data is kept, if not in QWP_DATA or the usual place.
    """
    if not isinstance(name, str):
        raise InputError(f"received {name!r} ({type(name).__name__}) as a name, expected text such as 'en' or 'en-es'")
    return found(item(name), data_folder(folder))


def found(wanted: Item, folder: Path) -> Path:
    """The path of a file that is there."""
    path = folder / wanted.file
    if not path.is_file():
        raise InputError(f"{path} is not there; `qwp data download {wanted.name}` gets it{_others(wanted, folder)}")
    return path


def named_vectors(path: Path) -> Path:
    """A path as it is if something is there; otherwise the downloaded vectors of that name, such as `en`."""
    text = str(path)
    if not names_vectors(text) or path.exists():
        return path
    wanted = item(text)
    folder = data_folder()
    if not (folder / wanted.file).is_file():
        raise InputError(
            f"{text} does not exist, and vectors of that name are not in {folder}: expected a file, or run "
            f"`qwp data download {wanted.name}` first{_others(wanted, folder)}"
        )
    return folder / wanted.file


def _others(wanted: Item, folder: Path) -> str:
    """A hint at the same language from elsewhere."""
    if wanted.source.kind != VECTORS:
        return ""
    others = (Item(source, wanted.what) for source in SOURCES.values() if source.kind == VECTORS)
    there = [other.name for other in others if (folder / other.file).is_file()]
    return f" ({', '.join(there)} is there)" if there else ""


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
    with atomic_write(record_path(target)) as file:
        file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False).encode() + b"\n")
