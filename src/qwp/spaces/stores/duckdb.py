"""Tables of DuckDB with vectors as arrays (`FLOAT[768]`) or lists; the library is the extra ``duckdb``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError, QwpError, installed
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.limits import bomb, packed_rows, unpacked_bytes

DEFAULT_TABLE = "vectors"
_VECTOR_NAMES = ("vector", "embedding", "vectors", "embeddings", "emb")
_ID_NAMES = ("word", "id", "key", "name", "text", "token")
_SHOWN = 8
_GENERATED = "GENERATED ALWAYS AS"
_FRESH = "qwp_fresh"  # what the rows are called that are being written


class DuckdbStore:
    """A table of a database. table: its name; columns: those of ids and vectors; guessed where they are not given."""

    def __init__(
        self, path: str | PathLike[str], table: str | None = None, *, columns: tuple[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist, expected a database of DuckDB: check the spelling")
        with self._connected() as connection:
            self.table, self._id, self._vector = _layout(connection, self.path, table, columns)

    @classmethod
    def create(cls, path: str | PathLike[str], dim: int, table: str = DEFAULT_TABLE) -> DuckdbStore:
        """A new table with the columns `word` and `vector`, in a database that may be there already."""
        with _opened(Path(path), read_only=False) as connection:
            kinds = f"word VARCHAR PRIMARY KEY, vector FLOAT[{int(dim)}] NOT NULL"
            connection.execute(f"CREATE TABLE {_quoted(table)} ({kinds})")
        return cls(path, table)

    def __len__(self) -> int:
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {_quoted(self.table)}").fetchone()[0])

    def batches(self, size: int) -> Iterator[tuple[list[str], FloatArray]]:
        """All items in the order of their rows: ids as text, and vectors (b, d)."""
        vector, table = _quoted(self._vector), _quoted(self.table)
        select = f"SELECT CAST({_quoted(self._id)} AS VARCHAR), {vector} FROM {table}"
        with self._connected() as connection:
            last = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
            self._check_sizes(connection, 0 if last is None else last + 1)
        width: int | None = None
        # By ranges of row numbers, which DuckDB finds without reading the rows before. Each has its own connection: the
        # same table may be written before the next.
        for begin in range(0, 0 if last is None else last + 1, size):
            with self._connected() as connection:
                rows = [begin, begin + size - 1]
                found = connection.execute(f"{select} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", rows).fetchnumpy()
                ids, vectors = found.values()
            if len(ids):
                width = _checked_width(ids, vectors, width, self.path)
                yield [str(name) for name in ids.tolist()], np.stack(vectors.tolist()).astype(np.float32)

    def _check_sizes(self, connection: Any, rows: int) -> None:
        """Refuse a table that unpacks to far more than its file: columns of equal values take no room in it."""
        size, table = self.path.stat().st_size, _quoted(self.table)
        if rows > packed_rows(size):
            raise bomb(self.path, size)
        sizes = f"max(len({_quoted(self._vector)})), max(strlen(CAST({_quoted(self._id)} AS VARCHAR)))"
        numbers, characters = connection.execute(f"SELECT {sizes} FROM {table}").fetchone()
        if rows * (4 * (numbers or 0) + (characters or 0)) > unpacked_bytes(size):
            raise bomb(self.path, size)

    def write(self, batches: Iterable[tuple[list[str], FloatArray]]) -> int:
        """New vectors of known ids, and new items for others, in one transaction. Other columns stay as they are."""
        # All of it is made before the table is touched: what is read may be this very table.
        found = [(ids, _checked(vectors)) for ids, vectors in batches]
        name, vector, table = _quoted(self._id), _quoted(self._vector), _quoted(self.table)
        with self._connected(read_only=False) as connection:
            connection.execute("BEGIN")
            for ids, vectors in found:
                fresh = {"id": _column(ids), "vector": _column([str(row) for row in vectors.tolist()])}
                connection.register(_FRESH, fresh)
                kind = f"FLOAT[{vectors.shape[1]}]"
                key = f"CAST({table}.{name} AS VARCHAR)"
                connection.execute(
                    f"UPDATE {table} SET {vector} = CAST({_FRESH}.vector AS {kind}) FROM {_FRESH} "
                    f"WHERE {key} = {_FRESH}.id"
                )
                connection.execute(
                    f"INSERT INTO {table} ({name}, {vector}) SELECT id, CAST(vector AS {kind}) FROM {_FRESH} "
                    f"WHERE id NOT IN (SELECT {key} FROM {table})"
                )
                connection.unregister(_FRESH)
            connection.execute("COMMIT")
        return sum(len(ids) for ids, _ in found)

    @contextmanager
    def _connected(self, *, read_only: bool = True) -> Iterator[Any]:
        with _opened(self.path, read_only=read_only) as connection:
            yield connection


@contextmanager
def _opened(path: Path, *, read_only: bool) -> Iterator[Any]:
    """A connection that sees this file and no other; what DuckDB says is an InputError."""
    installed("duckdb", f"a table of DuckDB in {path}")
    import duckdb

    try:
        with closing(duckdb.connect(str(path), read_only=read_only, config={"threads": 1})) as connection:
            connection.execute("SET enable_external_access = false")
            yield connection
    except QwpError:
        raise
    except Exception as error:  # it has many kinds, and not all are its own
        said = str(error).split("\n", 1)[0][:200]
        raise InputError(
            f"{path} cannot be used as a database of DuckDB ({said}): check it, or copy it again"
        ) from error


def _layout(connection: Any, path: Path, table: str | None, columns: tuple[str, str] | None) -> tuple[str, str, str]:
    """The table and its columns of ids and vectors, as named or as far as they can be told."""
    # Those of the system: a database can have functions of these names. Views are none of the tables.
    made = dict(connection.execute("SELECT table_name, sql FROM system.main.duckdb_tables() ORDER BY 1").fetchall())
    tables = list(made)
    shown = ", ".join(map(repr, tables[:_SHOWN])) or "none"
    if table is None and len(tables) != 1:
        raise InputError(
            f"{path} has {len(tables)} tables ({shown}), expected one: name it behind the file, as in {path.name}#table"
        )
    table = tables[0] if table is None else table
    if table not in tables:
        raise InputError(f"{path} has no table {table!r}, expected one of {shown}")
    about = "SELECT column_name, data_type FROM system.main.duckdb_columns() WHERE table_name = ? ORDER BY column_index"
    kinds = dict(connection.execute(about, [table]).fetchall())
    if _GENERATED in (made[table] or "").upper():
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
    vectors = lists if len(lists) == 1 else [name for name in _VECTOR_NAMES if name in lists]
    others = [name for name, kind in kinds.items() if not kind.endswith("]")]
    ids = [name for name in _ID_NAMES if name in others] or others[:1]
    if not vectors or not ids:
        raise InputError(
            f"the table {table} of {path} has the columns {', '.join(kinds)}, expected one of ids and one of FLOAT[n]"
        )
    return table, ids[0], vectors[0]


def _checked_width(ids: Any, vectors: Any, width: int | None, path: Path) -> int:
    for name, vector in zip(ids, vectors, strict=True):
        size = len(vector) if isinstance(vector, np.ndarray) and not np.ma.is_masked(vector) else 0
        width = size if width is None else width
        if size != width or not size:
            raise InputError(
                f"the vector of {str(name)[:60]!r} in {path} has {size} numbers, expected {width or 'some'} in all rows"
            )
    assert width is not None, "there is a row"
    return width


def _column(values: list[str]) -> Any:
    """Texts as DuckDB takes them."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _checked(vectors: FloatArray) -> FloatArray:
    rows = np.asarray(vectors)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"received vectors of shape {rows.shape}, expected finite numbers of shape (n, d)")
    return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
