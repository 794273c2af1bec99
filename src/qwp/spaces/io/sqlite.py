"""Databases of SQLite with vectors as blobs, those of sqlite-vec among them: ``items.db#table``.

One that is written is new and has one table; `qwp.spaces.stores` writes into tables that are there.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import replacing
from qwp.spaces.io.reading import Reading, Rows, batch_rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.stores.sqlite import DEFAULT_TABLE, SqliteStore

_LIKELY_BYTES = 4096
_COPY_BYTES = 1 << 20


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The items of a table, in the order of its rows."""
    if source.spooled:
        raise InputError(f"{source.path} is a pipe, expected a file: a database is not read in order")
    table, *columns = (source.part or "").split(",")
    if len(columns) not in (0, 2):
        raise InputError(f"{source.path} names {len(columns)} columns, expected #TABLE or #TABLE,IDS,VECTORS")
    named = (columns[0], columns[1]) if columns else None
    store = SqliteStore(source.file, table or None, columns=named)
    done = 0
    for ids, vectors in store.batches(batch_rows(reading, _LIKELY_BYTES)):
        yield sound_rows(ids, vectors, reading, lambda row, done=done: f"row {done + row}")  # type: ignore[misc]
        done += len(ids)


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer of a new database with one table, `vectors`."""
    with (
        replacing(target.path) as file,
        tempfile.TemporaryDirectory(dir=target.path.parent, prefix=f".{target.path.name[:20]}.") as folder,
    ):
        made = Path(folder) / "made.db"
        SqliteStore.create(made)
        with closing(sqlite3.connect(made)) as connection:

            def put(words: list[str], vectors: FloatArray) -> None:
                rows = zip(words, (row.tobytes() for row in vectors.astype("<f4", copy=False)), strict=True)
                try:
                    connection.executemany(f"INSERT INTO {DEFAULT_TABLE} VALUES (?, ?)", rows)
                except sqlite3.IntegrityError as error:
                    raise InputError(
                        f"a word was written twice to {target.path}, expected each once ({error})"
                    ) from error

            writer = RowWriter(target, put)
            yield writer
            writer.finish()
            connection.commit()
        with made.open("rb") as content:
            shutil.copyfileobj(content, file, _COPY_BYTES)
