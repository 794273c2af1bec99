"""The data folder: where downloaded files are, and the record of each."""

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
    """Return the data folder: the given one, that of QWP_DATA, or the cache folder of the system."""
    named = given if given is not None else os.environ.get(VARIABLE) or None
    folder = as_path(named) if named is not None else usual_folder(sys.platform, os.environ)
    if os.path.exists(folder) and not folder.is_dir():
        raise InputError(f"{folder} is a file, expected a folder for the data (--data, {VARIABLE})")
    return Path(os.path.abspath(folder))


def usual_folder(platform: str, environment: Mapping[str, str]) -> Path:
    """Return the cache folder of qwp by the convention of a platform."""
    home = _home()
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "qwp" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "qwp"
    named = Path(environment.get("XDG_CACHE_HOME") or "")
    return (named if named.is_absolute() else home / ".cache") / "qwp"  # the XDG specification ignores relative paths


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InputError(f"there is no home folder to keep data in, expected --data DIR or {VARIABLE}") from None


def data_path(name: str, folder: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file that `qwp data download` has downloaded; this function downloads nothing.

    Args:
        name: a language ("en", "crawl:en"), a dictionary ("en-es") or a part of one ("en-es.train", "en-es.test").
        folder: the data folder; by default QWP_DATA or the cache folder of the system.
    """
    if not isinstance(name, str):
        raise InputError(f"received {name!r} ({type(name).__name__}) as a name, expected text such as 'en' or 'en-es'")
    return existing_path(item(name), data_folder(folder))


def existing_path(wanted: Item, folder: Path) -> Path:
    """Return the path of a file in the data folder; raise an InputError if it does not exist."""
    path = folder / wanted.file
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: run `qwp data download {wanted.name}` first{_alternatives(wanted, folder)}"
        )
    return path


def named_vectors(path: Path) -> Path:
    """Return a path if it exists, or else the path of the downloaded vectors of that name, such as `en`."""
    text = str(path)
    if not names_vectors(text) or path.exists():
        return path
    wanted = item(text)
    folder = data_folder()
    if not (folder / wanted.file).is_file():
        raise InputError(
            f"{text} does not exist, and vectors of that name are not in {folder}: expected a file, or run "
            f"`qwp data download {wanted.name}` first{_alternatives(wanted, folder)}"
        )
    return folder / wanted.file


def _alternatives(wanted: Item, folder: Path) -> str:
    """Return a hint at vectors of the same language from another source."""
    if wanted.source.kind != VECTORS:
        return ""
    others = (Item(source, wanted.what) for source in SOURCES.values() if source.kind == VECTORS)
    existing = [other.name for other in others if (folder / other.file).is_file()]
    return f" ({', '.join(existing)} is downloaded)" if existing else ""


_MAX_RECORD_BYTES = 1 << 16


@dataclass(frozen=True)
class DownloadRecord:
    """Record of a downloaded file.

    Attributes:
        name: name in the catalogue.
        url: address of the file.
        entries: number of words or pairs.
        whole: whether the file has all entries of the original.
        bytes: size of the local file.
        sha256: digest of the local file.
        licence: licence of the data.
        cite: publication to cite.
        etag: version of the original on its server.
        last_modified: date of the original on its server.
    """

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
        """Return whether a file is unchanged since its download."""
        return path.stat().st_size == self.bytes and file_sha256(path) == self.sha256


def record_path(target: Path) -> Path:
    """Return the path of the record of a file."""
    return target.with_name(target.name + ".json")


def read_record(target: Path) -> DownloadRecord | None:
    """Return the record of a file; None if it has none, as a user's own file, or an invalid one."""
    try:
        with record_path(target).open("rb") as file:
            record = DownloadRecord(**json.loads(file.read(_MAX_RECORD_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    kinds = {"name": str, "entries": int, "whole": bool, "bytes": int}
    return record if all(type(getattr(record, name)) is kind for name, kind in kinds.items()) else None


def write_record(target: Path, record: DownloadRecord) -> None:
    """Write the record of a file."""
    with atomic_write(record_path(target)) as file:
        file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False).encode() + b"\n")
