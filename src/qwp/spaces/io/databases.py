"""Tables of SQLite and DuckDB that hold vectors: ``items.db#table``.

One that is written is new and has one table; `qwp.spaces.stores` writes into tables that are there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from qwp.errors import InputError, installed
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io import isolated
from qwp.spaces.io.files import replacing, scratch_folder
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.stores.duckdb import DuckdbStore
from qwp.spaces.stores.sqlite import SqliteStore

_COPY_BYTES = 1 << 20


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The items of a table, in the order of its rows."""
    if source.spooled:
        raise InputError(f"{source.path} is a pipe, expected a file: a database is not read in order")
    if reading.format == "duckdb":
        installed("duckdb", f"a table of DuckDB in {source.path}")
    yield from isolated.read(reading, source, isolated.Kind("database"))


def open_sqlite(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer of a new database of SQLite with one table, `vectors`."""
    return _open_rows(target, SqliteStore.create)


def open_duckdb(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer of a new database of DuckDB with one table, `vectors`."""
    return _open_rows(target, lambda path: DuckdbStore.create(path, target.dim))


@contextmanager
def _open_rows(target: Target, create: Callable[[Path], SqliteStore | DuckdbStore]) -> Iterator[RowWriter]:
    with replacing(target.path) as file, scratch_folder(file) as folder:
        made = folder / "made"
        store = create(made)

        def put(words: list[str], vectors: FloatArray) -> None:
            store.write([(words, vectors)])

        writer = RowWriter(target, put)
        yield writer
        if len(store) != writer.finish():
            raise InputError(f"words were written twice to {target.path}, expected each once")
        with made.open("rb") as content:
            shutil.copyfileobj(content, file, _COPY_BYTES)
