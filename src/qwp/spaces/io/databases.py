"""Tables of SQLite and DuckDB that hold vectors: ``items.db#table``.

One that is written is new and has one table; `qwp.spaces.stores` writes into tables that are there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import replacing
from qwp.spaces.io.reading import Reading, Rows, batch_rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.stores.duckdb import DuckdbStore
from qwp.spaces.stores.sqlite import SqliteStore

_LIKELY_BYTES = 1024
_COPY_BYTES = 1 << 20


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The items of a table, in the order of its rows."""
    if source.spooled:
        raise InputError(f"{source.path} is a pipe, expected a file: a database is not read in order")
    table, *columns = (source.part or "").split(",")
    if len(columns) not in (0, 2):
        raise InputError(f"{source.path} names {len(columns)} columns, expected #TABLE or #TABLE,IDS,VECTORS")
    named = (columns[0], columns[1]) if columns else None
    kind: type[SqliteStore | DuckdbStore] = SqliteStore if reading.format == "sqlite" else DuckdbStore
    store = kind(source.file, table or None, columns=named)
    done = 0
    for ids, vectors in store.batches(batch_rows(reading, _LIKELY_BYTES)):
        yield sound_rows(ids, vectors, reading, lambda row, done=done: f"row {done + row}")  # type: ignore[misc]
        done += len(ids)


def open_sqlite(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer of a new database of SQLite with one table, `vectors`."""
    return _open_rows(target, SqliteStore.create)


def open_duckdb(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer of a new database of DuckDB with one table, `vectors`."""
    return _open_rows(target, lambda path: DuckdbStore.create(path, target.dim))


@contextmanager
def _open_rows(target: Target, create: Callable[[Path], SqliteStore | DuckdbStore]) -> Iterator[RowWriter]:
    prefix = f".{target.path.name[:20]}."
    with replacing(target.path) as file, tempfile.TemporaryDirectory(dir=target.path.parent, prefix=prefix) as folder:
        made = Path(folder) / "made"
        store = create(made)

        def put(words: list[str], vectors: FloatArray) -> None:
            store.write([(words, vectors)])

        writer = RowWriter(target, put)
        yield writer
        if len(store) != writer.finish():
            raise InputError(f"words were written twice to {target.path}, expected each once")
        with made.open("rb") as content:
            shutil.copyfileobj(content, file, _COPY_BYTES)
