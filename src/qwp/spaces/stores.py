"""Tables of SQLite and DuckDB that hold vectors, and the protocol for stores of other databases.

An adapter for another database is a class with the two methods of `Store`.
"""

from __future__ import annotations

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from qwp.errors import InputError, QwpError, installed, whole
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.limits import UNPACK

if TYPE_CHECKING:  # the child process starts faster without arrays
    from qwp.arrays import AnyFloats

__all__ = ["DuckdbStore", "Items", "ReadableStore", "SqliteStore", "Store", "load"]

Items: TypeAlias = "tuple[list[str], AnyFloats]"
"""Ids and their vectors (b, d)."""
_BATCH = 4096
_TABLE = "vectors"
_ID_COLUMNS = ("word", "id", "key", "name", "text", "token")
_VECTOR_COLUMNS = ("vector", "embedding", "vectors", "embeddings", "emb")
_LISTED = 8  # tables or columns that a message lists


class ReadableStore(Protocol):
    """A collection of vectors with ids."""

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in a fixed order, at most `size` at a time: unique ids, and vectors (b, d)."""
        ...


class Store(ReadableStore, Protocol):
    """A collection of vectors with ids that can be changed."""

    def write(self, batches: Iterable[Items]) -> int:
        """Store all batches, or none on an error. Known ids get new vectors. Return the number of items."""
        ...


def load(store: ReadableStore, *, max_items: int | None = None, name: str = "store") -> Embeddings:
    """Return the first `max_items` items of a store, or all, as Embeddings whose words are the ids."""
    if max_items is not None:
        whole(1, max_items=max_items)
    words: list[str] = []
    parts: list[AnyFloats] = []
    for ids, vectors in store.batches(_BATCH):
        room = len(ids) if max_items is None else max_items - len(words)
        words += ids[:room]
        parts.append(np.asarray(vectors)[:room])
        if max_items is not None and len(words) >= max_items:
            break
    if not words:
        raise InputError(f"{name} holds no vector, expected at least one")
    return Embeddings(words, np.concatenate(parts), name=name)


@dataclass(frozen=True)
class _Layout:
    """The table and columns of the items. integer_ids: whether ids are integers."""

    table: str
    id: str
    vector: str
    integer_ids: bool = False


class _TableStore(ABC):
    """A table of a database file.

    Args:
        path: the database.
        table: name of the table; needed if the database has several.
        columns: id and vector columns; guessed from their names and types by default.
    """

    database: ClassVar[str]

    def __init__(
        self, path: str | PathLike[str], table: str | None = None, *, columns: tuple[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist, expected a database of {self.database}: check the spelling")
        with self._connect() as connection:
            self._layout = self._find_layout(connection, table, columns)

    @property
    def table(self) -> str:
        """Name of the table."""
        return self._layout.table

    @property
    def columns(self) -> tuple[str, str, str]:
        """Names of the table, of its ids and of its vectors."""
        return self._layout.table, self._layout.id, self._layout.vector

    @property
    def identity(self) -> str:
        """A digest of the table that is the same if the file is unchanged."""
        about = self.path.stat()
        return repr((str(self.path), self.columns, about.st_size, about.st_mtime_ns))

    def __len__(self) -> int:
        with self._connect() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {quoted(self.table)}").fetchone()[0])

    @abstractmethod
    def _connect(self, *, writable: bool = False) -> AbstractContextManager[Any]:
        """Open a connection that reads stored values only, and turn errors of the database into InputErrors."""

    @abstractmethod
    def _find_layout(self, connection: Any, table: str | None, columns: tuple[str, str] | None) -> _Layout:
        """Return the table and columns that the user named, or guess them."""

    def _find_table(self, tables: list[str], table: str | None, known: Container[str]) -> str:
        """Return the named table, one of `known`, or the only one of `tables`."""
        listed = ", ".join(map(repr, tables[:_LISTED])) or "none"
        if table is None and len(tables) != 1:
            raise InputError(
                f"{self.path} has {len(tables)} tables ({listed}), expected one: name it after the file, as in "
                f"{self.path.name}#{tables[0] if tables else 'table'}"
            )
        table = tables[0] if table is None else table
        if table not in known:
            raise InputError(f"{self.path} has no table {table!r}, expected one of {listed}")
        return table

    def _check_columns(self, table: str, columns: tuple[str, str], known: Iterable[str]) -> None:
        listed = list(known)
        missing = [name for name in columns if name not in listed]
        if missing:
            raise InputError(
                f"the table {table} of {self.path} has no column {missing[0]!r}; it has {', '.join(listed)}"
            )

    def _check_sizes(self, ids: Iterable[object], sizes: Iterable[int], width: int | None, unit: str) -> int | None:
        """Raise an InputError unless all vectors have one size, and return it. width: size of earlier vectors."""
        for name, size in zip(ids, sizes, strict=True):
            width = size if width is None else width
            if size != width or not size:
                raise InputError(
                    f"the vector of {str(name)[:60]!r} in {self.path} has {size} {unit}, expected {width or 'some'} in "
                    "all rows"
                )
        return width


def _preferred(candidates: list[str], usual: tuple[str, ...]) -> list[str]:
    """Return the candidates with a usual name, in order of preference."""
    return [name for name in usual if name in candidates]


def quoted(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def finite_rows(vectors: AnyFloats) -> AnyFloats:
    """Return vectors (n, d), or raise an InputError for another shape or infinite numbers."""
    rows = np.asarray(vectors)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"received vectors of shape {rows.shape}, expected finite numbers of shape (n, d)")
    return rows


# --------------------------------------------------------------------------- SQLite

_VIRTUAL_TABLE = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_MAX_VALUE_BYTES = 10**9  # SQLite's own limit
_READ_ACTIONS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA))
_FUNCTIONS = frozenset(("count", "like"))


class SqliteStore(_TableStore):
    """A table of an SQLite database with vectors as float32 blobs, the form that sqlite-vec takes.

    Virtual tables of extensions (`vec0`) are refused, because not every Python build can load extensions.
    """

    database = "SQLite"

    @classmethod
    def create(cls, path: str | PathLike[str], table: str = _TABLE) -> SqliteStore:
        """Create a table with the columns `word` and `vector`, in a new or existing database."""
        with closing(sqlite3.connect(path)) as connection, _explain_sqlite_errors(Path(path)), connection:
            connection.execute(f"CREATE TABLE {quoted(table)} (word TEXT PRIMARY KEY NOT NULL, vector BLOB NOT NULL)")
        return cls(path, table)

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in row order: ids as text, and vectors (b, d)."""
        layout = self._layout
        select = f"SELECT {quoted(layout.id)}, {quoted(layout.vector)} FROM {quoted(layout.table)} WHERE rowid = ?"
        with self._connect() as connection:
            # Row numbers are read first: items that are rewritten during the iteration are yielded once.
            budget = _ByteBudget(self.path)
            rows = budget.rows(connection.execute(f"SELECT rowid FROM {quoted(layout.table)} ORDER BY rowid"))
            width: int | None = None
            for begin in range(0, len(rows), size):
                found = (connection.execute(select, (row,)).fetchone() for row in rows[begin : begin + size])
                items = [budget.item(item) for item in found if item is not None]
                sizes = [len(blob) if isinstance(blob, bytes) else 0 for _, blob in items]
                width = self._check_sizes((name for name, _ in items), sizes, width, "bytes")
                if width is not None and width % 4:
                    raise InputError(f"the vectors in {self.path} have {width} bytes, expected float32 numbers")
                vectors = np.frombuffer(b"".join(blob for _, blob in items), dtype="<f4")
                if items:
                    yield [str(name) for name, _ in items], vectors.reshape(len(items), -1)

    def write(self, batches: Iterable[Items]) -> int:
        """Update the vectors of known ids and insert other items, in one transaction, leaving other columns alone."""
        layout = self._layout
        table, name, vector = (quoted(part) for part in (layout.table, layout.id, layout.vector))
        done = 0
        with self._connect(writable=True) as connection, connection:
            for ids, vectors in batches:
                blobs = (row.tobytes() for row in finite_rows(vectors).astype("<f4"))
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

    def _find_layout(self, connection: Any, table: str | None, columns: tuple[str, str] | None) -> _Layout:
        definitions = dict(
            connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        )
        virtual = [name for name, sql in definitions.items() if _VIRTUAL_TABLE.match(sql or "")]
        # Extensions store the content of a virtual table in shadow tables, whose names begin with its name.
        own = [name for name in definitions if not any(name.startswith(f"{each}_") for each in virtual)]
        table = self._find_table(own, table, definitions)
        if table in virtual:
            raise InputError(
                f"{table} of {self.path} is a virtual table of an extension, expected an ordinary one: copy its "
                f"vectors, as by CREATE TABLE items AS SELECT rowid AS id, embedding FROM {table}"
            )
        info = connection.execute(f"PRAGMA table_info({quoted(table)})")
        kinds = {name: str(kind).upper() for _, name, kind, *_ in info}
        if columns is not None:
            self._check_columns(table, columns, [*kinds, "rowid"])
            id, vector = columns
        else:
            blobs = [name for name, kind in kinds.items() if kind in ("BLOB", "")]
            vectors = blobs if len(blobs) == 1 else _preferred(blobs, _VECTOR_COLUMNS)
            if not vectors:
                raise InputError(
                    f"{len(blobs)} columns could hold vectors (BLOB) in the table {table} of {self.path} "
                    f"(of {', '.join(list(kinds)[:_LISTED])}), expected one"
                )
            vector = vectors[0]
            others = [name for name, kind in kinds.items() if name != vector and kind not in ("BLOB", "REAL", "")]
            id = [*_preferred(others, _ID_COLUMNS), *others, "rowid"][0]
        return _Layout(table, id, vector, integer_ids=id == "rowid" or "INT" in kinds[id])

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


class DuckdbStore(_TableStore):
    """A table of a DuckDB database with vectors as arrays (`FLOAT[768]`) or lists; needs the extra ``duckdb``."""

    database = "DuckDB"

    @classmethod
    def create(cls, path: str | PathLike[str], dim: int, table: str = _TABLE) -> DuckdbStore:
        """Create a table with the columns `word` and `vector`, in a new or existing database."""
        with connect_duckdb(Path(path), read_only=False) as connection:
            columns = f"word VARCHAR PRIMARY KEY, vector FLOAT[{int(dim)}] NOT NULL"
            connection.execute(f"CREATE TABLE {quoted(table)} ({columns})")
        return cls(path, table)

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in row order: ids as text, and vectors (b, d)."""
        layout = self._layout
        vector, table = quoted(layout.vector), quoted(layout.table)
        select = f"SELECT CAST({quoted(layout.id)} AS VARCHAR), {vector} FROM {table}"
        with self._connect() as connection:
            last = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
            self._check_unpacked_size(connection, 0 if last is None else last + 1)
        width: int | None = None
        # DuckDB finds a range of row numbers without reading the rows before it. Each range has a connection of its
        # own, because the caller may write to the same table in between.
        for begin in range(0, 0 if last is None else last + 1, size):
            with self._connect() as connection:
                rows = [begin, begin + size - 1]
                found = connection.execute(f"{select} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", rows).fetchnumpy()
                ids, vectors = found.values()
            if len(ids):
                present = (isinstance(each, np.ndarray) and not np.ma.is_masked(each) for each in vectors)
                sizes = [len(each) if ok else 0 for each, ok in zip(vectors, present, strict=True)]
                width = self._check_sizes(ids, sizes, width, "numbers")
                yield [str(name) for name in ids.tolist()], np.stack(vectors.tolist()).astype(np.float32)

    def _check_unpacked_size(self, connection: Any, rows: int) -> None:
        """Refuse a table that unpacks to far more than its file: columns of equal values compress to nothing."""
        size, layout = self.path.stat().st_size, self._layout
        if rows > UNPACK.max_rows(size):
            raise UNPACK.bomb(self.path, size)
        sizes = f"max(len({quoted(layout.vector)})), max(strlen(CAST({quoted(layout.id)} AS VARCHAR)))"
        numbers, characters = connection.execute(f"SELECT {sizes} FROM {quoted(layout.table)}").fetchone()
        if rows * (4 * (numbers or 0) + (characters or 0)) > UNPACK.max_bytes(size):
            raise UNPACK.bomb(self.path, size)

    def write(self, batches: Iterable[Items]) -> int:
        """Update the vectors of known ids and insert other items, in one transaction, leaving other columns alone."""
        # All batches are computed before the transaction begins: they may be read from this table.
        computed = [(ids, finite_rows(vectors)) for ids, vectors in batches]
        layout = self._layout
        table, name, vector = (quoted(part) for part in (layout.table, layout.id, layout.vector))
        with self._connect(writable=True) as connection:
            connection.execute("BEGIN")
            for ids, vectors in computed:
                rows = {"id": text_column(ids), "vector": text_column([str(row) for row in vectors.tolist()])}
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

    def _connect(self, *, writable: bool = False) -> AbstractContextManager[Any]:
        return connect_duckdb(self.path, read_only=not writable)

    def _find_layout(self, connection: Any, table: str | None, columns: tuple[str, str] | None) -> _Layout:
        # Qualified names: a database can define functions of the same names. duckdb_tables() lists no views.
        select = "SELECT table_name, sql FROM system.main.duckdb_tables() ORDER BY 1"
        definitions = dict(connection.execute(select).fetchall())
        table = self._find_table(list(definitions), table, definitions)
        select = "SELECT column_name, data_type FROM system.main.duckdb_columns() WHERE table_name = ?"
        kinds = dict(connection.execute(f"{select} ORDER BY column_index", [table]).fetchall())
        if _GENERATED in (definitions[table] or "").upper():
            raise InputError(
                f"the table {table} of {self.path} has generated columns, which compute when they are read; expected a "
                "table of stored values: copy it, as by CREATE TABLE items AS SELECT word, vector FROM " + table
            )
        if columns is not None:
            self._check_columns(table, columns, kinds)
            return _Layout(table, *columns)
        lists = [name for name, kind in kinds.items() if kind.endswith("]") and kind.startswith(("FLOAT[", "DOUBLE["))]
        vectors = lists if len(lists) == 1 else _preferred(lists, _VECTOR_COLUMNS)
        others = [name for name, kind in kinds.items() if not kind.endswith("]")]
        ids = _preferred(others, _ID_COLUMNS) or others[:1]
        if not vectors or not ids:
            raise InputError(
                f"the table {table} of {self.path} has the columns {', '.join(kinds)}, expected one of ids and one of "
                "FLOAT[n]"
            )
        return _Layout(table, ids[0], vectors[0])


@contextmanager
def connect_duckdb(path: Path, *, read_only: bool = True) -> Iterator[Any]:
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


def text_column(values: list[str]) -> Any:
    """Return strings as a NumPy array of objects, which DuckDB can query."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
