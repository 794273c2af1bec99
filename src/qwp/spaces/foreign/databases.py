"""Tables of SQLite and DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

from qwp.errors import InputError
from qwp.spaces.foreign.frames import Items, Job
from qwp.spaces.stores.duckdb import DuckdbStore
from qwp.spaces.stores.sqlite import SqliteStore


def sqlite(job: Job) -> tuple[int, Iterator[Items]]:
    """The items of a table of SQLite."""
    table, columns = _named(job)
    store = SqliteStore(job.file, table, columns=columns)
    return len(store), _items(store, job.rows)


def duckdb(job: Job) -> tuple[int, Iterator[Items]]:
    """The items of a table of DuckDB."""
    table, columns = _named(job)
    store = DuckdbStore(job.file, table, columns=columns)
    # Every batch opens the database anew, which takes longer than reading one of this size.
    return len(store), _items(store, 4 * job.rows)


def _items(store: SqliteStore | DuckdbStore, rows: int) -> Iterator[Items]:
    for ids, vectors in store.batches(rows):
        yield list(ids), vectors


def _named(job: Job) -> tuple[str | None, tuple[str, str] | None]:
    """The table, and the columns of ids and vectors, as the user named them."""
    table, *columns = (job.part or "").split(",")
    if len(columns) not in (0, 2):
        raise InputError(f"{job.name} names {len(columns)} columns, expected #TABLE or #TABLE,IDS,VECTORS")
    return table or None, (columns[0], columns[1]) if columns else None
