"""Conversion of all vectors of a source: resumable, in bounded memory, and complete or not there at all."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from qwp.errors import InputError, whole
from qwp.migration.adapter import Adapter
from qwp.migration.sources import BATCH, FileItems, Source
from qwp.spaces import io
from qwp.spaces.io import formats, locks
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.io.sources import split_part
from qwp.spaces.stores import (
    DuckdbStore,
    Items,
    ReadableStore,
    SqliteStore,
    Store,
    connect_duckdb,
    finite_rows,
    quoted,
    text_column,
)
from qwp.spaces.vector_databases import FolderStore
from qwp.version import __version__

# --------------------------------------------------------------------------- databases

# A copy of a database has other vectors; ids, other columns, other tables and indexes stay as they are.
TABLES: Mapping[str, type[SqliteStore] | type[DuckdbStore]] = {"sqlite": SqliteStore, "duckdb": DuckdbStore}
"""The stores of file formats that hold more than ids and vectors."""
_NEW, _ROWS = "qwp_new_vector", "qwp_new_rows"


def table_of(path: Path, format: str) -> SqliteStore | DuckdbStore:
    """Return the table that a path such as items.db#table,id,vector names. format: a key of TABLES."""
    file, part = split_part(path)
    table, *columns = (part or "").split(",")
    return TABLES[format](file, table or None, columns=(columns[0], columns[1]) if len(columns) == 2 else None)


def copy_table(store: SqliteStore | DuckdbStore, out: Path, batches: Iterable[Items]) -> int:
    """Write a copy of the database of a table whose vectors are replaced. Return the number of items.

    batches: new vectors of all items of the table.
    """
    copy = _copy_sqlite if isinstance(store, SqliteStore) else _copy_duckdb
    with atomic_write(out) as file:
        return copy(store, Path(file.name), batches)


def _copy_sqlite(store: SqliteStore | DuckdbStore, out: Path, batches: Iterable[Items]) -> int:
    table, name, vector = map(quoted, store.columns)
    address = f"{store.path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(out)) as target:
        source.backup(target)
        # The copy is renamed when it is complete, so it needs no journal.
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA trusted_schema = OFF")
        select = f"SELECT CAST({name} AS TEXT), rowid FROM {table} ORDER BY rowid"
        rows = _unique(target.execute(select).fetchall(), store)
        update = f"UPDATE {table} SET {vector} = ? WHERE rowid = ?"
        for ids, vectors in _all_items(batches, rows, store):
            blobs = (row.tobytes() for row in finite_rows(vectors).astype("<f4"))
            target.executemany(update, zip(blobs, (rows[id] for id in ids), strict=True))
        target.commit()
    return len(rows)


def _copy_duckdb(store: SqliteStore | DuckdbStore, out: Path, batches: Iterable[Items]) -> int:
    log = store.path.with_name(f"{store.path.name}.wal")
    if log.exists():
        raise InputError(f"{log} has changes that are not yet in {store.path}; close the programs that use it first")
    shutil.copyfile(store.path, out)
    table, name, vector = map(quoted, store.columns)
    with connect_duckdb(out, read_only=False) as target:
        key = f"CAST({table}.{name} AS VARCHAR)"
        rows = _unique(target.execute(f"SELECT {key}, rowid FROM {table}").fetchall(), store)
        dim = 0
        for ids, vectors in _all_items(batches, rows, store):
            if not dim:
                dim = int(vectors.shape[1])
                target.execute(f"ALTER TABLE {table} ADD COLUMN {_NEW} FLOAT[{dim}]")
            new = {"id": text_column(ids), "vector": text_column([str(row) for row in finite_rows(vectors).tolist()])}
            target.register(_ROWS, new)
            value = f"CAST({_ROWS}.vector AS FLOAT[{dim}])"
            target.execute(f"UPDATE {table} SET {_NEW} = {value} FROM {_ROWS} WHERE {key} = {_ROWS}.id")
            target.unregister(_ROWS)
        target.execute(f"ALTER TABLE {table} DROP COLUMN {vector}")
        target.execute(f"ALTER TABLE {table} RENAME COLUMN {_NEW} TO {vector}")
    return len(rows)


def _unique(found: list[tuple[str, int]], store: SqliteStore | DuckdbStore) -> dict[str, int]:
    """Return the row of each id; ids must not be repeated, or only one of them would get a new vector."""
    rows = dict(found)
    if len(rows) != len(found):
        raise InputError(
            f"{len(found) - len(rows):,} ids of the table {store.table} of {store.path} are repeated, expected unique "
            "ids: name another column, as in items.db#table,id,vector"
        )
    return rows


def _all_items(batches: Iterable[Items], rows: Mapping[str, int], store: SqliteStore | DuckdbStore) -> Iterator[Items]:
    """Yield the batches, and raise an InputError unless they hold exactly the items of the table."""
    done = 0
    for ids, vectors in batches:
        if any(id not in rows for id in ids):
            break
        done += len(ids)
        yield ids, np.asarray(vectors)
    if done != len(rows):
        raise InputError(
            f"the table {store.table} of {store.path} has {len(rows):,} items, {done:,} of which were converted: it "
            "changed in the meantime, or has rows without a vector; start again"
        )


_ADAPTER, _PLAN, _PROGRESS, _IDS, _VECTORS, _LOCK = (
    *("adapter.npz", "plan.json", "progress.json", "ids.jsonl", "vectors.f32", "lock"),
)
_FILES = frozenset((_ADAPTER, _PLAN, _PROGRESS, _IDS, _VECTORS, _LOCK))
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
        elif self.out.exists() and self.fitted() is None:
            raise self._exists()
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
        """Remove what an unfinished conversion left, even if an earlier removal was interrupted."""
        if not self.folder.exists():
            return
        # Files that are written have a temporary name that begins with a dot.
        others = [path.name for path in self.folder.iterdir() if path.name not in _FILES and path.name[0] != "."]
        if others:
            raise InputError(
                f"{self.folder} holds {others[0]}, expected nothing but an unfinished conversion: move it, or choose "
                "another name"
            )
        shutil.rmtree(self.folder)

    def run(self, adapter: Adapter, progress: Callable[[int], None] | None = None) -> int:
        """Convert the rest of the items, write the file, and return the number of items."""
        with self._locked():
            before = self._progress()["rows"]
            rows = self._convert(adapter, progress)
            if self._folder_store is None or not self.out.exists():
                self._write(adapter.dims[1], rows)
            elif rows != before:
                raise self._exists()
            # Otherwise an earlier run wrote the folder, and was interrupted before it removed the partial files.
        self.discard()
        return rows

    def _exists(self) -> InputError:
        return InputError(f"{self.out} exists, expected the name of a new folder, or of a vector file")

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
