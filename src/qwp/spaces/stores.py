"""Tables of SQLite and DuckDB that hold vectors, and the protocol for stores of other databases.

An adapter for another database is a class with the two methods of `Store`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from qwp.errors import InputError, QwpError, installed, whole
from qwp.spaces.embeddings import Embeddings, FloatArray
from qwp.spaces.limits import UNPACK

__all__ = ["DuckdbStore", "Items", "SqliteStore", "Store", "load", "rewrite"]

Items: TypeAlias = tuple[list[str], FloatArray]
"""Ids and their vectors (b, d)."""
_BATCH = 4096
_TABLE = "vectors"
_ID_COLUMNS = ("word", "id", "key", "name", "text", "token")
_VECTOR_COLUMNS = ("vector", "embedding", "vectors", "embeddings", "emb")
_LISTED = 8  # tables or columns that a message lists


class Store(Protocol):
    """A collection of vectors with ids."""

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in a fixed order, at most `size` at a time: unique ids, and vectors (b, d)."""
        ...

    def write(self, batches: Iterable[Items]) -> int:
        """Store all batches, or none on an error. Known ids get new vectors. Return the number of items."""
        ...


def load(store: Store, *, max_items: int | None = None, name: str = "store") -> Embeddings:
    """Return the first `max_items` items of a store, or all, as Embeddings whose words are the ids."""
    if max_items is not None:
        whole(1, max_items=max_items)
    words: list[str] = []
    parts: list[FloatArray] = []
    for ids, vectors in store.batches(_BATCH):
        room = len(ids) if max_items is None else max_items - len(words)
        words += ids[:room]
        parts.append(np.asarray(vectors)[:room])
        if max_items is not None and len(words) >= max_items:
            break
    if not words:
        raise InputError(f"{name} holds no vector, expected at least one")
    return Embeddings(words, np.concatenate(parts), name=name)


def rewrite(source: Store, target: Store, transform: Callable[[FloatArray], FloatArray], *, batch: int = _BATCH) -> int:
    """Write all vectors of one store, transformed, to another store or to the same. Return the number of items.

    transform: (b, d) -> (b, e), such as ``lambda rows: alignment.transform(rows, "src")``.
    """
    whole(1, batch=batch)
    return target.write((ids, transform(vectors)) for ids, vectors in source.batches(batch))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _finite_rows(vectors: FloatArray) -> FloatArray:
    rows = np.asarray(vectors)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"received vectors of shape {rows.shape}, expected finite numbers of shape (n, d)")
    return rows


# --------------------------------------------------------------------------- SQLite

_VIRTUAL_TABLE = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_MAX_VALUE_BYTES = 10**9  # SQLite's own limit
_READ_ACTIONS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA))
_FUNCTIONS = frozenset(("count", "like"))


@dataclass(frozen=True)
class _SqliteLayout:
    """The table and columns of the items. integer_ids: whether ids are integers."""

    table: str
    id: str
    vector: str
    integer_ids: bool


class SqliteStore:
    """A table of an SQLite database with vectors as float32 blobs, the form that sqlite-vec takes.

    Virtual tables of extensions (`vec0`) are refused, because not every Python build can load extensions.

    Args:
        path: the database.
        table: name of the table; needed if the database has several.
        columns: id and vector columns; guessed from their names and types by default.
    """

    def __init__(
        self, path: str | PathLike[str], table: str | None = None, *, columns: tuple[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist, expected a database of SQLite: check the spelling")
        with self._connect() as connection:
            self._layout = _sqlite_layout(connection, self.path, table, columns)

    @classmethod
    def create(cls, path: str | PathLike[str], table: str = _TABLE) -> SqliteStore:
        """Create a table with the columns `word` and `vector`, in a new or existing database."""
        with closing(sqlite3.connect(path)) as connection, _explain_sqlite_errors(Path(path)), connection:
            connection.execute(f"CREATE TABLE {_quoted(table)} (word TEXT PRIMARY KEY NOT NULL, vector BLOB NOT NULL)")
        return cls(path, table)

    @property
    def table(self) -> str:
        """Name of the table."""
        return self._layout.table

    def __len__(self) -> int:
        with self._connect() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {_quoted(self.table)}").fetchone()[0])

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in row order: ids as text, and vectors (b, d)."""
        layout = self._layout
        select = f"SELECT {_quoted(layout.id)}, {_quoted(layout.vector)} FROM {_quoted(layout.table)} WHERE rowid = ?"
        with self._connect() as connection:
            # Row numbers are read first: items that are rewritten during the iteration are yielded once.
            budget = _ByteBudget(self.path)
            rows = budget.rows(connection.execute(f"SELECT rowid FROM {_quoted(layout.table)} ORDER BY rowid"))
            width: int | None = None
            for begin in range(0, len(rows), size):
                found = (connection.execute(select, (row,)).fetchone() for row in rows[begin : begin + size])
                items = [budget.item(item) for item in found if item is not None]
                width = _check_blobs(items, width, self.path)
                vectors = np.frombuffer(b"".join(blob for _, blob in items), dtype="<f4")
                if items:
                    yield [str(name) for name, _ in items], vectors.reshape(len(items), -1)

    def write(self, batches: Iterable[Items]) -> int:
        """Update the vectors of known ids and insert other items, in one transaction, leaving other columns alone."""
        layout = self._layout
        table, name, vector = (_quoted(part) for part in (layout.table, layout.id, layout.vector))
        done = 0
        with self._connect(writable=True) as connection, connection:
            for ids, vectors in batches:
                blobs = (row.tobytes() for row in _finite_rows(vectors).astype("<f4"))
                for id, blob in zip(ids, blobs, strict=True):
                    key = self._key(id)
                    updated = connection.execute(f"UPDATE {table} SET {vector} = ? WHERE {name} = ?", (blob, key))
                    if updated.rowcount < 1:
                        connection.execute(f"INSERT INTO {table} ({name}, {vector}) VALUES (?, ?)", (key, blob))
                done += len(ids)
        return done

    def _key(self, id: str) -> str | int:
        if not self._layout.integer_ids:
            return id
        try:
            return int(id)
        except ValueError:
            raise InputError(
                f"received the id {id!r}, expected a whole number, as {self.table} of {self.path} has"
            ) from None

    @contextmanager
    def _connect(self, *, writable: bool = False) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode={'rw' if writable else 'ro'}"
        with _explain_sqlite_errors(self.path), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            if not writable:
                _restrict(connection, self.path)
            yield connection


class _ByteBudget:
    """Bounds what a database may return: it stores values uncompressed, so they cannot exceed its size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = self._bytes = _database_bytes(path)

    def rows(self, found: Iterable[tuple[int]]) -> list[int]:
        """Return all row numbers."""
        rows = [row for (row,) in islice(found, self._bytes)]
        if len(rows) == self._bytes:
            raise self._damaged()
        return rows

    def item(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return an id with its vector; raise an InputError once the total exceeds the size of the file."""
        self._left -= sum(len(value) for value in item if isinstance(value, (str, bytes)))
        if self._left < 0:
            raise self._damaged()
        return item

    def _damaged(self) -> InputError:
        return InputError(
            f"{self._path} has {self._bytes:,} bytes and returns more: its pages form a cycle; copy it again"
        )


def _database_bytes(path: Path) -> int:
    """Return the size of a database with its write-ahead log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _restrict(connection: sqlite3.Connection, path: Path) -> None:
    """Restrict a connection to plain tables: a view or an expression could compute without end."""
    connection.execute("PRAGMA cell_size_check = ON")
    if hasattr(connection, "setlimit"):  # Python 3.11
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_database_bytes(path), _MAX_VALUE_BYTES))
    connection.set_authorizer(_authorize)
    # SQLite reads the missing part of a truncated page as zeros.
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    if pages * page_bytes > _database_bytes(path):
        raise InputError(
            f"{path} has {_database_bytes(path):,} bytes, expected {pages * page_bytes:,} according to its header: "
            "it is truncated; copy it again"
        )


def _authorize(action: int, first: str | None, second: str | None, database: str | None, within: str | None) -> int:
    """Allow reading tables. within: the view or trigger that performs the action."""
    known = action in _READ_ACTIONS or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
    return sqlite3.SQLITE_OK if known and within is None else sqlite3.SQLITE_DENY


def _sqlite_layout(
    connection: sqlite3.Connection, path: Path, table: str | None, columns: tuple[str, str] | None
) -> _SqliteLayout:
    """Return the table and columns that the user named, or guess them."""
    definitions = dict(
        connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    )
    virtual = [name for name, sql in definitions.items() if _VIRTUAL_TABLE.match(sql or "")]
    # Extensions store the content of a virtual table in shadow tables, whose names begin with its name.
    own = [name for name in definitions if not any(name.startswith(f"{each}_") for each in virtual)]
    if table is None:
        if len(own) != 1:
            raise InputError(
                f"{path} has {len(own)} tables ({', '.join(map(repr, own[:_LISTED]))}), expected one: name it after "
                f"the file, as in {path.name}#{own[0] if own else 'table'}"
            )
        table = own[0]
    if table not in definitions:
        raise InputError(
            f"{path} has no table {table!r}, expected one of {', '.join(map(repr, own[:_LISTED])) or 'none'}"
        )
    if table in virtual:
        raise InputError(
            f"{table} of {path} is a virtual table of an extension, expected an ordinary one: copy its vectors, as by "
            f"CREATE TABLE items AS SELECT rowid AS id, embedding FROM {table}"
        )
    return _sqlite_columns(connection, table, path, columns)


def _sqlite_columns(
    connection: sqlite3.Connection, table: str, path: Path, columns: tuple[str, str] | None
) -> _SqliteLayout:
    kinds = {
        name: str(kind).upper() for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({_quoted(table)})")
    }
    if columns is not None:
        missing = [name for name in columns if name not in kinds and name != "rowid"]
        if missing:
            raise InputError(f"the table {table} of {path} has no column {missing[0]!r}; it has {', '.join(kinds)}")
        id, vector = columns
    else:
        blobs = [name for name, kind in kinds.items() if kind in ("BLOB", "")]
        named = blobs if len(blobs) == 1 else [name for name in _VECTOR_COLUMNS if name in blobs]
        if not named:
            raise InputError(
                f"{len(blobs)} columns could hold vectors (BLOB) in the table {table} of {path} "
                f"(of {', '.join(list(kinds)[:_LISTED])}), expected one"
            )
        vector = named[0]
        others = [name for name in kinds if name != vector and kinds[name] not in ("BLOB", "REAL", "")]
        ids = [name for name in _ID_COLUMNS if name in others] or others[:1]
        id = ids[0] if ids else "rowid"
    return _SqliteLayout(table, id, vector, integer_ids=id == "rowid" or "INT" in kinds[id])


def _check_blobs(items: list[tuple[object, object]], width: int | None, path: Path) -> int | None:
    for name, blob in items:
        size = len(blob) if isinstance(blob, bytes) else None
        width = size if width is None else width
        if size is None or size != width or size % 4 or not size:
            raise InputError(
                f"the vector of {str(name)[:60]!r} in {path} has {size} bytes, expected {width or 'some'}: float32 "
                "numbers, the same number in every row"
            )
    return width


@contextmanager
def _explain_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into InputErrors."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        if any(word in str(error) for word in ("prohibited", "not authorized")):
            raise InputError(
                f"{path} takes its rows from a view or an expression ({error}), expected an ordinary table: copy them, "
                "as by CREATE TABLE items AS SELECT word, vector FROM my_view"
            ) from error
        raise InputError(
            f"{path} cannot be used as a database of SQLite ({error}): check it, or copy it again"
        ) from error


# --------------------------------------------------------------------------- DuckDB

_GENERATED = "GENERATED ALWAYS AS"
_NEW_ROWS = "qwp_new_rows"  # the view of the rows that `write` inserts


class DuckdbStore:
    """A table of a DuckDB database with vectors as arrays (`FLOAT[768]`) or lists; needs the extra ``duckdb``.

    Args:
        path: the database.
        table: name of the table; needed if the database has several.
        columns: id and vector columns; guessed from their names and types by default.
    """

    def __init__(
        self, path: str | PathLike[str], table: str | None = None, *, columns: tuple[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist, expected a database of DuckDB: check the spelling")
        with _connect_duckdb(self.path) as connection:
            self.table, self._id, self._vector = _duckdb_layout(connection, self.path, table, columns)

    @classmethod
    def create(cls, path: str | PathLike[str], dim: int, table: str = _TABLE) -> DuckdbStore:
        """Create a table with the columns `word` and `vector`, in a new or existing database."""
        with _connect_duckdb(Path(path), read_only=False) as connection:
            columns = f"word VARCHAR PRIMARY KEY, vector FLOAT[{int(dim)}] NOT NULL"
            connection.execute(f"CREATE TABLE {_quoted(table)} ({columns})")
        return cls(path, table)

    def __len__(self) -> int:
        with _connect_duckdb(self.path) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {_quoted(self.table)}").fetchone()[0])

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in row order: ids as text, and vectors (b, d)."""
        vector, table = _quoted(self._vector), _quoted(self.table)
        select = f"SELECT CAST({_quoted(self._id)} AS VARCHAR), {vector} FROM {table}"
        with _connect_duckdb(self.path) as connection:
            last = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
            self._check_unpacked_size(connection, 0 if last is None else last + 1)
        width: int | None = None
        # DuckDB finds a range of row numbers without reading the rows before it. Each range has a connection of its
        # own, because the caller may write to the same table in between.
        for begin in range(0, 0 if last is None else last + 1, size):
            with _connect_duckdb(self.path) as connection:
                rows = [begin, begin + size - 1]
                found = connection.execute(f"{select} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", rows).fetchnumpy()
                ids, vectors = found.values()
            if len(ids):
                width = _check_arrays(ids, vectors, width, self.path)
                yield [str(name) for name in ids.tolist()], np.stack(vectors.tolist()).astype(np.float32)

    def _check_unpacked_size(self, connection: Any, rows: int) -> None:
        """Refuse a table that unpacks to far more than its file: columns of equal values compress to nothing."""
        size, table = self.path.stat().st_size, _quoted(self.table)
        if rows > UNPACK.max_rows(size):
            raise UNPACK.bomb(self.path, size)
        sizes = f"max(len({_quoted(self._vector)})), max(strlen(CAST({_quoted(self._id)} AS VARCHAR)))"
        numbers, characters = connection.execute(f"SELECT {sizes} FROM {table}").fetchone()
        if rows * (4 * (numbers or 0) + (characters or 0)) > UNPACK.max_bytes(size):
            raise UNPACK.bomb(self.path, size)

    def write(self, batches: Iterable[Items]) -> int:
        """Update the vectors of known ids and insert other items, in one transaction, leaving other columns alone."""
        # All batches are computed before the transaction begins: they may be read from this table.
        computed = [(ids, _finite_rows(vectors)) for ids, vectors in batches]
        name, vector, table = _quoted(self._id), _quoted(self._vector), _quoted(self.table)
        with _connect_duckdb(self.path, read_only=False) as connection:
            connection.execute("BEGIN")
            for ids, vectors in computed:
                rows = {"id": _text_column(ids), "vector": _text_column([str(row) for row in vectors.tolist()])}
                connection.register(_NEW_ROWS, rows)
                kind = f"FLOAT[{vectors.shape[1]}]"
                key = f"CAST({table}.{name} AS VARCHAR)"
                connection.execute(
                    f"UPDATE {table} SET {vector} = CAST({_NEW_ROWS}.vector AS {kind}) FROM {_NEW_ROWS} "
                    f"WHERE {key} = {_NEW_ROWS}.id"
                )
                connection.execute(
                    f"INSERT INTO {table} ({name}, {vector}) SELECT id, CAST(vector AS {kind}) FROM {_NEW_ROWS} "
                    f"WHERE id NOT IN (SELECT {key} FROM {table})"
                )
                connection.unregister(_NEW_ROWS)
            connection.execute("COMMIT")
        return sum(len(ids) for ids, _ in computed)


@contextmanager
def _connect_duckdb(path: Path, *, read_only: bool = True) -> Iterator[Any]:
    """Open a connection that can access no other file, and turn errors of DuckDB into InputErrors."""
    installed("duckdb", f"a table of DuckDB in {path}")
    import duckdb

    try:
        with closing(duckdb.connect(str(path), read_only=read_only, config={"threads": 1})) as connection:
            connection.execute("SET enable_external_access = false")
            yield connection
    except QwpError:
        raise
    except Exception as error:  # duckdb raises exceptions of other libraries too
        reason = str(error).split("\n", 1)[0][:200]
        raise InputError(
            f"{path} cannot be used as a database of DuckDB ({reason}): check it, or copy it again"
        ) from error


def _duckdb_layout(
    connection: Any, path: Path, table: str | None, columns: tuple[str, str] | None
) -> tuple[str, str, str]:
    """Return the table, its id column and its vector column, as named by the user or guessed."""
    # Qualified names: a database can define functions of the same names. duckdb_tables() lists no views.
    definitions = dict(
        connection.execute("SELECT table_name, sql FROM system.main.duckdb_tables() ORDER BY 1").fetchall()
    )
    tables = list(definitions)
    listed = ", ".join(map(repr, tables[:_LISTED])) or "none"
    if table is None and len(tables) != 1:
        raise InputError(
            f"{path} has {len(tables)} tables ({listed}), expected one: name it after the file, as in {path.name}#table"
        )
    table = tables[0] if table is None else table
    if table not in tables:
        raise InputError(f"{path} has no table {table!r}, expected one of {listed}")
    about = "SELECT column_name, data_type FROM system.main.duckdb_columns() WHERE table_name = ? ORDER BY column_index"
    kinds = dict(connection.execute(about, [table]).fetchall())
    if _GENERATED in (definitions[table] or "").upper():
        raise InputError(
            f"the table {table} of {path} has generated columns, which compute when they are read; expected a table of "
            "stored values: copy it, as by CREATE TABLE items AS SELECT word, vector FROM " + table
        )
    if columns is not None:
        missing = [name for name in columns if name not in kinds]
        if missing:
            raise InputError(f"the table {table} of {path} has no column {missing[0]!r}; it has {', '.join(kinds)}")
        return table, *columns
    lists = [name for name, kind in kinds.items() if kind.endswith("]") and kind.startswith(("FLOAT[", "DOUBLE["))]
    vectors = lists if len(lists) == 1 else [name for name in _VECTOR_COLUMNS if name in lists]
    others = [name for name, kind in kinds.items() if not kind.endswith("]")]
    ids = [name for name in _ID_COLUMNS if name in others] or others[:1]
    if not vectors or not ids:
        raise InputError(
            f"the table {table} of {path} has the columns {', '.join(kinds)}, expected one of ids and one of FLOAT[n]"
        )
    return table, ids[0], vectors[0]


def _check_arrays(ids: Any, vectors: Any, width: int | None, path: Path) -> int:
    for name, vector in zip(ids, vectors, strict=True):
        size = len(vector) if isinstance(vector, np.ndarray) and not np.ma.is_masked(vector) else 0
        width = size if width is None else width
        if size != width or not size:
            raise InputError(
                f"the vector of {str(name)[:60]!r} in {path} has {size} numbers, expected {width or 'some'} in all rows"
            )
    assert width is not None, "there is a row"
    return width


def _text_column(values: list[str]) -> Any:
    """Return strings as a NumPy array of objects, which DuckDB can query."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
