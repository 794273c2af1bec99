"""Saved results: folders that are written atomically and validated when they are read.

A folder contains an index, `alignment.json` or `multi.json`, and a folder `parts-...` with the vectors and maps. The
index lists the parts with their hashes; the vectors may be left out. A save writes the new parts, then replaces the
index in one step, then removes the old parts. A save that is interrupted before that step leaves the earlier result
unchanged.

Two earlier formats are still read. Results of qwp 0.1 (schema 1) have no parts folder and no hashes. Schemas 1 and 2
have other names (`upgraded`).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from qwp.errors import InputError
from qwp.judging.verdict import VERDICTS
from qwp.results import schema
from qwp.results.provenance import PROVENANCE
from qwp.results.schema import HASH, Anything, Flag, Int, ListOf, MapOf, Number, Optional, Record, Text
from qwp.spaces.io import locks
from qwp.spaces.io.files import file_sha256
from qwp.spaces.normalization import STEPS

SCHEMA = 3
ALIGNMENT, SEVERAL, ALL_PAIRS = INDEXES = ("alignment.json", "multi.json", "all-pairs.json")
"""The indexes of one alignment, of several languages in one space, and of every two of several languages."""
MAPS_FILE = "maps.safetensors"
LOOKUPS = "lookup-*.safetensors"
"""Sidecar files with lookups and refits."""
EXPLORED = "explorer-*.safetensors"
"""Sidecar files of the explorer."""
VECTOR_FILES = ("src.safetensors", "src.json", "tgt.safetensors", "tgt.json")
PART_FILES = (*VECTOR_FILES, MAPS_FILE)
SUBWORD_FILES = ("src.subwords.safetensors", "tgt.subwords.safetensors")
"""Subword tables of fastText models, for words outside the vocabulary, unless they are large."""
LARGE_FILES = ("src.safetensors", "tgt.safetensors", *SUBWORD_FILES)
"""Files with vectors: `check="size"` memory-maps them and does not hash them."""
# Schema 1 has the parts in the folder of the index.
_FLAT_FILES = {name: "alignment.safetensors" if name == MAPS_FILE else name for name in PART_FILES}
_PARTS_NAME = "parts-[0-9a-f]{16}"
_PARTS = Record(
    {
        "folder": Text(pattern=_PARTS_NAME),
        "files": MapOf(Record({"sha256": HASH, "bytes": Int()}), name=Text(choices=(*PART_FILES, *SUBWORD_FILES))),
    }
)
AGAIN = "align again, or copy the folder again from where it is complete"
ATTEMPTS = 10
"""How often `read` tries again if another result is saved meanwhile."""

T = TypeVar("T")


# --------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Part:
    """A file of a saved result, with the hash and size in its index; None in schema 1."""

    path: Path
    sha256: str | None = None
    size: int | None = None

    def check(self, *, content: bool) -> None:
        """Raise an InputError if the file is missing or has another size, or, with `content`, another hash."""
        try:
            if not self.path.is_file():
                raise InputError(f"{self.path} is missing: {AGAIN}")
            size = self.path.stat().st_size
            if self.size is not None and size != self.size:
                raise InputError(f"{self.path} has {size:,} bytes, {self.size:,} were saved: {AGAIN}")
            if content and self.sha256 is not None and file_sha256(self.path) != self.sha256:
                raise InputError(f"{self.path} has changed since it was saved (its sha256 differs): {AGAIN}")
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror or error}): {AGAIN}") from error


@dataclass(frozen=True)
class Stored:
    """The index of a saved result.

    Attributes:
        path: of the index.
        schema: its number.
        content: everything but the schema, the hash and the parts, under the names of the present schema.
        sha256: of the index; None in schema 1.
        parts: the files of the result by name.
    """

    path: Path
    schema: int
    content: dict[str, Any]
    sha256: str | None
    parts: Mapping[str, Part]

    def check_parts(self, *, content: bool) -> tuple[Part, ...]:
        """Raise an InputError for parts that are missing or have changed; return the parts that were not hashed.

        content: whether the vectors are hashed. Words, maps and means always are.
        """
        unhashed = () if content else tuple(part for name, part in self.parts.items() if name in LARGE_FILES)
        for part in self.parts.values():
            part.check(content=part not in unhashed)
        return unhashed


def read_stored(folder: Path, name: str, kinds: Mapping[int, Record]) -> Stored:
    """Read the index of a saved result, without its parts. kinds: of its content, by schema number."""
    path = folder / name
    if not path.exists():
        raise InputError(
            f"{folder} {_without(folder, name)}; expected a folder written by `qwp align --out`: check its name"
        )
    found = schema.read_object(path, AGAIN)
    number = found.pop("schema", None)
    if type(number) is not int or number not in kinds:
        readable = " and ".join(", ".join(map(str, sorted(kinds))).rsplit(", ", 1))
        raise InputError(
            f"{path} has schema {schema.shown(number)}, this version of qwp reads {readable}: "
            "install the version that wrote it, or align again"
        )
    if number == 1:
        own, parts = None, {part: Part(folder / file) for part, file in _FLAT_FILES.items()}
    else:
        own = found.pop("sha256", None)
        if own != schema.digest({"schema": number, **found}):
            raise InputError(f"{path} is damaged, or was edited (its hash does not match): {AGAIN}")
        parts = _named_parts(path, found.pop("parts", None))
    found = upgraded(found) if number < SCHEMA else found
    _refuse(path, kinds[number].problem(found, ""))
    return Stored(path, number, found, own, parts if name == ALIGNMENT else {})


# Names in schemas 1 and 2, and their present names.
_QUALITY_NAMES = {
    "runs": "null_runs",
    "found_again": "null_hits",
    "held_out_random": "null",
    "deviation": "null_deviation",
    "partners": "counterparts",
}
_PROVENANCE_NAMES = {"starts": "candidates", "start_used": "initializer"}
_CANDIDATE_NAMES = {"start": "initializer", "ratio": "score", "refined_ratio": "rescore"}
_RECORD_NAMES = {"start": "initializer"}
_SCALE_NAMES = {"real": "succeeded"}
_STAGE_NAMES = {"start": "initialize", "bank": "coresets"}


def upgraded(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an index of schema 1 or 2 under the names of the present schema.

    The content is not validated yet: any JSON value may be anywhere.
    """
    provenance = _renamed(content.get("provenance"), _PROVENANCE_NAMES)
    if isinstance(provenance, dict):
        renamed = {
            "candidates": _each(provenance.get("candidates"), lambda one: _renamed(one, _CANDIDATE_NAMES)),
            "seconds": _renamed(provenance.get("seconds"), _STAGE_NAMES),
        }
        provenance = {name: renamed.get(name, value) for name, value in provenance.items()}
    found = {
        "provenance": provenance,
        "quality": _upgraded_quality(content.get("quality")),
        "history": _each(content.get("history"), _upgraded_record),
    }
    return {name: found.get(name, value) for name, value in content.items()}


def _upgraded_quality(quality: Any) -> Any:
    """Return the verdict under the names of the present schema."""
    renamed = _renamed(quality, _QUALITY_NAMES)
    estimate = renamed.get("estimate") if isinstance(renamed, dict) else None
    if isinstance(estimate, dict) and "scale" in estimate:
        renamed["estimate"] = {**estimate, "scale": _renamed(estimate["scale"], _SCALE_NAMES)}
    return renamed


def _upgraded_record(record: Any) -> Any:
    """Return a record of the history under the names of the present schema."""
    renamed = _renamed(record, _RECORD_NAMES)
    stage = renamed.get("stage") if isinstance(renamed, dict) else None
    return {**renamed, "stage": _STAGE_NAMES[stage]} if isinstance(stage, str) and stage in _STAGE_NAMES else renamed


def _renamed(values: Any, names: Mapping[str, str]) -> Any:
    """Return an object under other names; any other value as it is."""
    return {names.get(name, name): value for name, value in values.items()} if isinstance(values, dict) else values


def _each(values: Any, change: Callable[[Any], Any]) -> Any:
    return [change(value) for value in values] if isinstance(values, list) else values


def _without(folder: Path, name: str) -> str:
    """Describe a folder without this index."""
    if not folder.is_dir():
        return "is a file" if folder.exists() else "does not exist"
    others = {
        ALIGNMENT: ("one alignment", "qwp.Alignment.load"),
        SEVERAL: ("several languages in folders of their own", "qwp.MultiAlignment.load"),
        ALL_PAIRS: ("pairs of languages in folders of their own", "qwp.AllPairs.load"),
    }
    hints = [
        f" but {other}, {holds}, which {loader} reads"
        for other, (holds, loader) in others.items()
        if other != name and (folder / other).exists()
    ]
    return f"holds no {name}{''.join(hints[:1])}"


def _named_parts(path: Path, found: Any) -> dict[str, Part]:
    """Return the parts that an index lists; indexes of several alignments have none."""
    if path.name != ALIGNMENT:
        _refuse(path, None if found is None else "parts is not known")
        return {}
    _refuse(path, _PARTS.problem(found, "parts"))
    # Either all vectors were saved, or none.
    needed = PART_FILES if any(name in found["files"] for name in VECTOR_FILES) else (MAPS_FILE,)
    for name in needed:
        _refuse(path, None if name in found["files"] else f"parts.files.{name} is missing")
    folder = path.parent / found["folder"]
    return {name: Part(folder / name, about["sha256"], about["bytes"]) for name, about in found["files"].items()}


def _refuse(path: Path, problem: str | None) -> None:
    if problem is not None:
        raise InputError(f"{path} is damaged ({problem}): {AGAIN}")


def read(folder: Path, name: str, build: Callable[[], T]) -> T:
    """Return what `build` makes of a folder, while no other process writes it.

    `build` is called again if another result was saved meanwhile and removed the files it was reading.
    """
    for attempt in range(ATTEMPTS):
        with locks.shared(folder) as locked:
            before = _state(folder, name)
            try:
                return build()
            except (InputError, OSError) as error:
                replaced = _state(folder, name) != before or (not locked and locks.held(folder))
                if replaced and attempt < ATTEMPTS - 1:
                    continue
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{folder} cannot be read ({error}): {AGAIN}") from error
    raise AssertionError("the last attempt returns or raises")


def _state(folder: Path, name: str) -> list[tuple[str, int, int, int]]:
    """Return what distinguishes one save from the next: the identity of the index files."""
    found = []
    for path in (folder / name, *(sorted(folder.glob(f"*/{ALIGNMENT}")) if name != ALIGNMENT else ())):
        with suppress(OSError):
            stat = path.stat()
            found.append((str(path), stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return found


# --------------------------------------------------------------------------- writing


def write(folder: Path, content: Mapping[str, Any], fill: Callable[[Path], None]) -> None:
    """Save an alignment. content: of the index; fill: writes the parts into a folder."""
    with writing(folder) as target:
        target.put(fill)
        target.stage(ALIGNMENT, content)
        target.commit()


@contextmanager
def writing(folder: Path) -> Iterator[Writing]:
    """Begin a save with exclusive access to a folder. If the block fails, its parts are removed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected the name of a folder to save into")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locks.exclusive(folder):
            remove_temporary(folder)
            target = Writing(folder)
            try:
                yield target
            except BaseException:
                target.drop()
                raise
            target.remove_older()
    except BaseException:
        if is_new:
            with suppress(OSError):  # not empty: another process uses it
                folder.rmdir()
        raise


class Writing:
    """A save in progress: `put` the parts, `stage` the index, `commit`. See `writing`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts: dict[str, Any] | None = None
        self._index: tuple[Path, Path] | None = None
        self._uncommitted: list[Path] = []
        self._flat: list[Path] = []

    def put(self, fill: Callable[[Path], None]) -> None:
        """Write parts that no index refers to yet."""
        name = f"parts-{secrets.token_hex(8)}"
        temporary, final = self.folder / f".{name}.tmp", self.folder / name
        self._uncommitted += [temporary, final]
        temporary.mkdir()
        fill(temporary)
        files = {}
        for path in sorted(temporary.iterdir()):
            _sync(path)
            files[path.name] = {"sha256": file_sha256(path), "bytes": path.stat().st_size}
        _sync(temporary)
        temporary.rename(final)
        self._parts = {"folder": name, "files": files}

    def stage(self, name: str, content: Mapping[str, Any]) -> str:
        """Write the index under a temporary name and return its hash."""
        index: dict[str, Any] = {"schema": SCHEMA, **content}
        if self._parts is not None:
            index["parts"] = self._parts
        index["sha256"] = schema.digest(index)
        temporary = self.folder / f".{name}.{secrets.token_hex(4)}.tmp"
        self._uncommitted.append(temporary)
        temporary.write_bytes(json.dumps(index, indent=1, allow_nan=False).encode("ascii") + b"\n")
        _sync(temporary)
        _sync(self.folder)
        self._index = temporary, self.folder / name
        self._flat = _flat_files(self.folder)
        found: str = index["sha256"]
        return found

    def commit(self) -> None:
        """Make the staged index and its parts the result, in one step."""
        assert self._index is not None, "the index was staged"
        temporary, final = self._index
        temporary.replace(final)

    def drop(self) -> None:
        """Remove the new parts, unless they are the result: an interrupt may come right after `commit`."""
        if self._parts is not None and _parts_in_use(self.folder) == self._parts["folder"]:
            return
        for path in self._uncommitted:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                path.unlink()

    def remove_older(self) -> None:
        """Remove the files of earlier results, and no others."""
        assert self._index is not None, "the index was staged"
        # A folder has one index. If it has two, a save was interrupted here.
        for name in {*INDEXES} - {self._index[1].name}:
            (self.folder / name).unlink(missing_ok=True)
        _sync(self.folder)
        kept = None if self._parts is None else self._parts["folder"]
        for path in self.folder.iterdir():
            if re.fullmatch(_PARTS_NAME, path.name) and path.name != kept and not path.is_symlink():
                for name in (*PART_FILES, *SUBWORD_FILES):
                    with suppress(OSError):
                        (path / name).unlink()
                with suppress(OSError):  # it contains a file that qwp did not write
                    path.rmdir()
        for path in (*self._flat, *self.folder.glob(LOOKUPS), *self.folder.glob(EXPLORED)):
            with suppress(OSError):
                path.unlink()


def _parts_in_use(folder: Path) -> str | None:
    """Return the parts folder of the present alignment."""
    try:
        found = schema.read_object(folder / ALIGNMENT, AGAIN).get("parts")
    except InputError:
        return None
    return found.get("folder") if isinstance(found, dict) else None


def _flat_files(folder: Path) -> list[Path]:
    """Return the parts of a result of schema 1."""
    try:
        is_flat = schema.read_object(folder / ALIGNMENT, AGAIN).get("schema") == 1
    except InputError:
        return []
    return [folder / name for name in _FLAT_FILES.values()] if is_flat else []


def remove_temporary(folder: Path, *names: str) -> None:
    """Remove the temporary parts and indexes of killed processes, and temporary files for further names.

    The caller must hold the lock of the folder, so that no other process is using these files.
    """
    files = "|".join(re.escape(name) for name in (*INDEXES, *names))
    for path in folder.iterdir():
        if re.fullmatch(rf"\.{_PARTS_NAME}\.tmp", path.name):
            shutil.rmtree(path, ignore_errors=True)
        elif re.fullmatch(rf"\.({files})\.[0-9a-f]+\.tmp", path.name):
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush a file or a folder to the disk: a rename must not get there before the content."""
    try:
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except PermissionError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        os.close(handle)


_AGREEMENT = Record({"pairs": Int(), "share": Number(), "mean_csls": Number()})
_SHARE = Record({"p1": Number(), "low": Number(), "high": Number()})
_SCALE = Record(
    {
        "agreement": Number(),
        "dimensions": Int(),
        "lead": Number(),
        "lead_spread": Number(),
        "back_lead": Number(),
        "back_lead_spread": Number(),
        "succeeded": Flag(),
        "words": Int(),
    },
    optional=frozenset({"words"}),
)
_ESTIMATE = Record(
    {
        "overall": _SHARE,
        "bands": ListOf(Record({"first": Int(), "last": Int(), "share": _SHARE}), most=100),
        "scale": _SCALE,
        "n_words": Int(),
    }
)
_MEASURED = Record(
    {
        "hits": Int(),
        "words": Int(),
        "low": Number(),
        "high": Number(),
        "chance": Number(),
        "p_value": Number(),
        "held_out": Flag(),
    }
)
_COUNTERPARTS = Record({"src": Number(), "tgt": Number(), "few": Flag()}, optional=frozenset({"few"}))
_QUALITY = Record(
    {
        "verdict": Text(choices=VERDICTS),
        "explanation": Text(),
        "ratio": Number(),
        "n_words": Int(),
        "fitted": _AGREEMENT,
        "random": _AGREEMENT,
        "held_out": _AGREEMENT,
        "null": _AGREEMENT,
        "null_runs": Int(),
        "thorough": Flag(),
        "null_hits": Int(),
        "null_deviation": Optional(Number()),
        "z": Optional(Number()),
        "estimate": Optional(_ESTIMATE),
        "counterparts": Optional(_COUNTERPARTS),
        "null_exceedances": Optional(Int()),
        "measured": Optional(_MEASURED),
        "outside_calibration": ListOf(Text(), most=10),
        "p_value": Optional(Number()),
        "statistic": Optional(Number()),
        "interval": Optional(ListOf(Number(), most=2)),
        "null_data": Optional(Record({"fits": Int(), "exceedances": Int(), "p_value": Number()})),
    },
    optional=frozenset(
        {
            *("null_runs", "thorough", "null_hits", "null_deviation", "z", "estimate", "counterparts"),
            *("null_exceedances", "measured", "outside_calibration", "p_value", "statistic", "interval", "null_data"),
        }
    ),
)
_STEPS = ListOf(Text(choices=STEPS), most=100)
CONTENT = Record(
    {
        "provenance": PROVENANCE,
        "normalization": Record({"src": _STEPS, "tgt": _STEPS}),
        "quality": _QUALITY,
        "history": ListOf(MapOf(Anything())),
    }
)


def read_alignment_index(folder: Path) -> Stored:
    """Read and validate the index of a saved alignment, without its vectors."""
    return read_stored(folder, ALIGNMENT, {1: CONTENT, 2: CONTENT, SCHEMA: CONTENT})
