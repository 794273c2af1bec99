"""Copies of databases with other vectors: ids, other columns, other tables and indexes stay as they are."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.io.files import atomic_write
from qwp.spaces.io.sources import split_part
from qwp.spaces.stores import DuckdbStore, Items, SqliteStore, connect_duckdb, finite_rows, quoted, text_column

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
