"""Conversion of all vectors of a source: resumable, in bounded memory, and complete or not there at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from qwp.errors import InputError, whole
from qwp.migration.adapter import Adapter
from qwp.migration.copies import TABLES, copy_table, table_of
from qwp.migration.sources import BATCH, FileItems, Source
from qwp.spaces import io
from qwp.spaces.io import formats, locks
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.io.sources import split_part
from qwp.spaces.stores import DuckdbStore, Items, ReadableStore, SqliteStore, Store
from qwp.spaces.vector_databases import FolderStore
from qwp.version import __version__

_ADAPTER, _PLAN, _PROGRESS, _IDS, _VECTORS, _LOCK = (
    *("adapter.npz", "plan.json", "progress.json", "ids.jsonl", "vectors.f32", "lock"),
)
Fitted: TypeAlias = "tuple[Adapter, dict[str, Any]]"


def rewrite(source: ReadableStore, target: Store, adapter: Adapter, *, batch: int = BATCH) -> int:
    """Write all vectors of a store, converted, to another store. Return the number of items.

    adapter: from the model of the source to that of the target, such as `Adapter.of_alignment(alignment)`. The maps of
    an alignment are refused, because they can lead into a space that neither model shares.
    """
    whole(1, batch=batch)
    if not isinstance(adapter, Adapter):
        raise InputError(
            f"received {type(adapter).__name__} to convert a store with, expected an Adapter: "
            "Adapter.of_alignment(alignment) makes one whose vectors queries of the new model find"
        )
    return target.write((ids, adapter(vectors)) for ids, vectors in source.batches(batch))


@dataclass(frozen=True)
class Conversion:
    """The conversion of a source into a file.

    Finished batches are kept in the folder `OUT.partial` beside the file, with the adapter and the report. The same
    conversion, started again after an interrupt, continues there. The file is written at the end and then renamed.

    Attributes:
        old: what to convert.
        new: what the adapter was fitted to.
        out: the file to write.
        settings: what else distinguishes this conversion from others.
        writing: arguments of `open_writer`.
    """

    old: Source
    new: Source
    out: Path
    settings: Mapping[str, Any]
    writing: Mapping[str, Any]
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self._folder_store is None:
            check_folder(self.out)
            io.open_writer(self.out, 1, **self.writing)  # it checks now, and opens the file when entered
        elif self.out.exists():
            raise InputError(f"{self.out} exists, expected the name of a new folder, or of a vector file")
        for source in (self.old, self.new):
            path = getattr(source, "path", None)
            if path is not None and self.out.exists() and self.out.samefile(split_part(Path(path))[0]):
                raise InputError(f"{self.out}, to be written, is one of the files to read; expected another name")

    @property
    def folder(self) -> Path:
        """The folder of an unfinished conversion."""
        return self.out.with_name(f"{self.out.name}.partial")

    def fitted(self) -> Fitted | None:
        """Return the adapter and the report of an interrupted run of the same conversion, or None."""
        identity = self._identity()
        try:
            plan = json.loads((self.folder / _PLAN).read_text("utf-8"))
            if identity is None or plan["identity"] != identity:
                return None
            return Adapter.load(self.folder / _ADAPTER), plan["report"]
        except (OSError, ValueError, KeyError):
            return None

    def begin(self, adapter: Adapter, report: Mapping[str, Any]) -> None:
        """Start a new conversion, in place of an unfinished one."""
        self.discard()
        self.folder.mkdir()
        adapter.save(self.folder / _ADAPTER)
        with atomic_write(self.folder / _PLAN) as file:
            file.write(json.dumps({"identity": self._identity(), "report": report}).encode())

    def discard(self) -> None:
        """Remove what an unfinished conversion left."""
        if self.folder.exists() and (self.folder / _ADAPTER).exists():
            shutil.rmtree(self.folder)

    def run(self, adapter: Adapter, progress: Callable[[int], None] | None = None) -> int:
        """Convert the rest of the items, write the file, and return the number of items."""
        with self._locked():
            rows = self._convert(adapter, progress)
            self._write(adapter.dims[1], rows)
        self.discard()
        return rows

    def _identity(self) -> list[Any] | None:
        """Return what distinguishes this conversion from others, as JSON; None if a source cannot be recognised."""
        sources = [getattr(source, "identity", None) for source in (self.old, self.new)]
        if None in sources:
            return None
        identity = [__version__, *sources, dict(self.settings), dict(self.writing), self.batch]
        found: list[Any] = json.loads(json.dumps(identity, default=str))
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / _LOCK).open("a+b") as handle:
            if locks.lock_file(handle, wait=False) is False:
                raise InputError(f"another process is writing {self.out}; wait for it, or choose another name")
            yield

    def _convert(self, adapter: Adapter, progress: Callable[[int], None] | None) -> int:
        """Append converted batches to the partial files. Return the number of items."""
        done = self._progress()
        rows = 0
        with (self.folder / _VECTORS).open("ab") as vectors, (self.folder / _IDS).open("ab") as ids:
            vectors.truncate(done["vectors"])
            ids.truncate(done["ids"])
            for names, batch in self.old.batches(self.batch):
                rows += len(names)
                if rows <= done["rows"]:
                    continue
                vectors.write(adapter(batch).astype("<f4").tobytes())
                ids.write(json.dumps(names).encode() + b"\n")
                for file in (vectors, ids):
                    file.flush()
                    os.fsync(file.fileno())
                self._save_progress({"rows": rows, "vectors": vectors.tell(), "ids": ids.tell()})
                if progress is not None:
                    progress(rows)
        return rows

    def _progress(self) -> dict[str, int]:
        try:
            found: dict[str, int] = json.loads((self.folder / _PROGRESS).read_text("utf-8"))
        except FileNotFoundError:
            return {"rows": 0, "vectors": 0, "ids": 0}
        return found

    def _save_progress(self, done: Mapping[str, int]) -> None:
        with atomic_write(self.folder / _PROGRESS) as file:
            file.write(json.dumps(done).encode())

    def _converted(self, dim: int) -> Iterator[Items]:
        """Yield the converted items."""
        with (self.folder / _IDS).open("rb") as lines, (self.folder / _VECTORS).open("rb") as vectors:
            for line in lines:
                names = json.loads(line)
                found = np.frombuffer(vectors.read(4 * dim * len(names)), dtype="<f4")
                yield names, found.reshape(len(names), dim)

    @property
    def _folder_store(self) -> FolderStore | None:
        """The store whose other content is copied into a new folder; None if a file is to be written."""
        known = self.out.suffix in {suffix for each in formats.FORMATS.values() for suffix in each.suffixes}
        return self.old if isinstance(self.old, FolderStore) and not known and not self.writing.get("format") else None

    @property
    def _table(self) -> SqliteStore | DuckdbStore | None:
        """The table whose other content is copied into a new database; None if vectors alone are to be written."""
        format = formats.for_writing(self.out, self.writing.get("format"))[0].name
        if isinstance(self.old, FileItems) and format in TABLES and self.old.format == format:
            return table_of(self.old.path, format)
        return self.old if format in TABLES and isinstance(self.old, TABLES[format]) else None

    def _write(self, dim: int, rows: int) -> None:
        """Write the file from the converted items."""
        if self._folder_store is not None:
            self._folder_store.copy_with(self.out, self._converted(dim))
            return
        table = self._table
        if table is not None:
            copy_table(table, self.out, self._converted(dim))
            return
        named = not (isinstance(self.old, FileItems) and self.old.unnamed)
        with io.open_writer(self.out, dim, count=rows, words=named, **self.writing) as writer:
            for names, vectors in self._converted(dim):
                writer.write(names, vectors)
