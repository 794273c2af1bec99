"""Tables of SQLite that hold vectors as blobs of float32, the form in which sqlite-vec takes them.

Nothing but Python is needed. Virtual tables of extensions (`vec0`) are refused: not every Python can load these.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray

DEFAULT_TABLE = "vectors"
_VECTOR_NAMES = ("vector", "embedding", "vectors", "embeddings", "emb")
_ID_NAMES = ("word", "id", "key", "name", "text", "token")
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_SHOWN = 8
_MAX_VALUE_BYTES = 10**9  # the limit of SQLite itself
_READ_ACTIONS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA))
_FUNCTIONS = frozenset(("count", "like"))


@dataclass(frozen=True)
class _Layout:
    """Where the items of a table are. whole_ids: ids are numbers."""

    table: str
    id: str
    vector: str
    whole_ids: bool


class SqliteStore:
    """A table of a database. table: its name; columns: those of ids and vectors; guessed where they are not given."""

    def __init__(
        self, path: str | PathLike[str], table: str | None = None, *, columns: tuple[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist, expected a database of SQLite: check the spelling")
        with self._connected() as connection:
            self._layout = _layout(connection, self.path, table, columns)

    @classmethod
    def create(cls, path: str | PathLike[str], table: str = DEFAULT_TABLE) -> SqliteStore:
        """A new table with the columns `word` and `vector`, in a database that may be there already."""
        with closing(sqlite3.connect(path)) as connection, _explained(Path(path)), connection:
            connection.execute(f"CREATE TABLE {_quoted(table)} (word TEXT PRIMARY KEY NOT NULL, vector BLOB NOT NULL)")
        return cls(path, table)

    @property
    def table(self) -> str:
        """The name of the table."""
        return self._layout.table

    def __len__(self) -> int:
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {_quoted(self.table)}").fetchone()[0])

    def batches(self, size: int) -> Iterator[tuple[list[str], FloatArray]]:
        """All items in the order of their rows: ids as text, and vectors (b, d)."""
        layout = self._layout
        select = f"SELECT {_quoted(layout.id)}, {_quoted(layout.vector)} FROM {_quoted(layout.table)} WHERE rowid = ?"
        with self._connected() as connection:
            # The rows are known before the first is given: writing them back meanwhile gives none of them twice.
            budget = _Budget(self.path)
            rows = budget.rows(connection.execute(f"SELECT rowid FROM {_quoted(layout.table)} ORDER BY rowid"))
            width: int | None = None
            for begin in range(0, len(rows), size):
                found = (connection.execute(select, (row,)).fetchone() for row in rows[begin : begin + size])
                items = [budget.item(item) for item in found if item is not None]
                width = _checked_width(items, width, self.path)
                vectors = np.frombuffer(b"".join(blob for _, blob in items), dtype="<f4")
                if items:
                    yield [str(name) for name, _ in items], vectors.reshape(len(items), -1)

    def write(self, batches: Iterable[tuple[list[str], FloatArray]]) -> int:
        """New vectors of known ids, and new items for others, in one transaction. Other columns stay as they are."""
        layout = self._layout
        table, name, vector = (_quoted(part) for part in (layout.table, layout.id, layout.vector))
        done = 0
        with self._connected(writable=True) as connection, connection:
            for ids, vectors in batches:
                for id, row in zip(ids, self._packed(vectors), strict=True):
                    key = self._key(id)
                    updated = connection.execute(f"UPDATE {table} SET {vector} = ? WHERE {name} = ?", (row, key))
                    if updated.rowcount < 1:
                        connection.execute(f"INSERT INTO {table} ({name}, {vector}) VALUES (?, ?)", (key, row))
                done += len(ids)
        return done

    def _packed(self, vectors: FloatArray) -> Iterator[bytes]:
        rows = np.asarray(vectors)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise InputError(f"received vectors of shape {rows.shape}, expected finite numbers of shape (n, d)")
        return (row.tobytes() for row in rows.astype("<f4"))

    def _key(self, id: str) -> str | int:
        if not self._layout.whole_ids:
            return id
        try:
            return int(id)
        except ValueError:
            raise InputError(
                f"received the id {id!r}, expected a whole number, as {self.table} of {self.path} has"
            ) from None

    @contextmanager
    def _connected(self, *, writable: bool = False) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode={'rw' if writable else 'ro'}"
        with _explained(self.path), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            if not writable:
                _protect(connection, self.path)
            yield connection


class _Budget:
    """What a database can hold: its values lie in the file as they are, so together they are not larger than it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = self._bytes = _size(path)

    def rows(self, found: Iterable[tuple[int]]) -> list[int]:
        """The numbers of all rows."""
        rows = [row for (row,) in islice(found, self._bytes)]
        if len(rows) == self._bytes:
            raise self._damaged()
        return rows

    def item(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        """An id with its vector; an InputError once there are more than the file can hold."""
        self._left -= sum(len(value) for value in item if isinstance(value, (str, bytes)))
        if self._left < 0:
            raise self._damaged()
        return item

    def _damaged(self) -> InputError:
        return InputError(
            f"{self._path} has {self._bytes:,} bytes and gives more: its pages refer to each other; copy it again"
        )


def _size(path: Path) -> int:
    """Bytes of a database, those that wait in its log among them."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _protect(connection: sqlite3.Connection, path: Path) -> None:
    """Let a connection read plain tables and nothing else: a view or an expression can compute without end."""
    connection.execute("PRAGMA cell_size_check = ON")
    if hasattr(connection, "setlimit"):  # Python 3.11
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_size(path), _MAX_VALUE_BYTES))
    connection.set_authorizer(_authorized)
    # SQLite takes the rest of a page that was cut off for zeros.
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    if pages * page_bytes > _size(path):
        raise InputError(
            f"{path} has {_size(path):,} bytes, expected {pages * page_bytes:,} as its head says: it was cut"
        )


def _authorized(action: int, first: str | None, second: str | None, database: str | None, within: str | None) -> int:
    """within: the view or trigger that does this."""
    known = action in _READ_ACTIONS or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
    return sqlite3.SQLITE_OK if known and within is None else sqlite3.SQLITE_DENY


def _layout(connection: sqlite3.Connection, path: Path, table: str | None, columns: tuple[str, str] | None) -> _Layout:
    """The table and its columns, as named or as far as they can be told."""
    made = dict(
        connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    )
    virtual = [name for name, sql in made.items() if _VIRTUAL.match(sql or "")]
    # What an extension keeps for its own tables is not meant.
    own = [name for name in made if not any(name.startswith(f"{each}_") for each in virtual)]
    if table is None:
        if len(own) != 1:
            raise InputError(
                f"{path} has {len(own)} tables ({', '.join(map(repr, own[:_SHOWN]))}), expected one: name it behind "
                f"the file, as in {path.name}#{own[0] if own else 'table'}"
            )
        table = own[0]
    if table not in made:
        raise InputError(
            f"{path} has no table {table!r}, expected one of {', '.join(map(repr, own[:_SHOWN])) or 'none'}"
        )
    if table in virtual:
        raise InputError(
            f"{table} of {path} is a virtual table of an extension, expected an ordinary one: copy its vectors, as by "
            f"CREATE TABLE items AS SELECT rowid AS id, embedding FROM {table}"
        )
    return _plain_layout(connection, table, path, columns)


def _plain_layout(connection: sqlite3.Connection, table: str, path: Path, columns: tuple[str, str] | None) -> _Layout:
    about = {
        name: str(kind).upper() for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({_quoted(table)})")
    }
    if columns is not None:
        missing = [name for name in columns if name not in about and name != "rowid"]
        if missing:
            raise InputError(f"the table {table} of {path} has no column {missing[0]!r}; it has {', '.join(about)}")
        id, vector = columns
    else:
        blobs = [name for name, kind in about.items() if kind in ("BLOB", "")]
        vector = _one_of(blobs, _VECTOR_NAMES, f"vectors (BLOB) in the table {table} of {path}", list(about))
        others = [name for name in about if name != vector and about[name] not in ("BLOB", "REAL", "")]
        named = [name for name in _ID_NAMES if name in others] or others[:1]
        id = named[0] if named else "rowid"
    return _Layout(table, id, vector, whole_ids=id == "rowid" or "INT" in about[id])


def _one_of(found: list[str], usual: tuple[str, ...], what: str, columns: list[str]) -> str:
    named = found if len(found) == 1 else [name for name in usual if name in found]
    if not named:
        raise InputError(f"{len(found)} columns could hold {what} (of {', '.join(columns[:_SHOWN])}), expected one")
    return named[0]


def _checked_width(items: list[tuple[object, object]], width: int | None, path: Path) -> int | None:
    for name, blob in items:
        size = len(blob) if isinstance(blob, bytes) else None
        width = size if width is None else width
        if size is None or size != width or size % 4 or not size:
            raise InputError(
                f"the vector of {str(name)[:60]!r} in {path} has {size} bytes, expected {width or 'some'}: float32 "
                "numbers, as many in every row"
            )
    return width


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What SQLite says, as an InputError."""
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
