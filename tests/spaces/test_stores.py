from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.stores import DuckdbStore, SqliteStore, load
from tests.libraries import optional_module

duckdb: Any = optional_module("duckdb")
needs_duckdb = pytest.mark.skipif(duckdb is None, reason='not installed: pip install "qwp[duckdb]"')

# --------------------------------------------------------------------------- SQLite

ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with a table of integer ids and a further column, and a second table."""
    path = tmp_path / "items.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT, embedding BLOB)")
        connection.execute("CREATE TABLE other (x)")
        rows = [(10 * i, f"t{i}", row.tobytes()) for i, row in enumerate(ROWS)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    return path


def test_a_table_is_read_and_written_back(database: Path) -> None:
    store = SqliteStore(database, "items")
    assert (len(store), store.table) == (50, "items")
    space = load(store, max_items=20, name="old")
    assert (space.words[:2], space.name, len(space)) == (["0", "10"], "old", 20)
    np.testing.assert_array_equal(space.vectors, ROWS[:20])
    assert store.write((ids, 2 * rows) for ids, rows in store.batches(7)) == 50
    np.testing.assert_array_equal(load(store).vectors, 2 * ROWS)
    store.write([(["999"], ROWS[:1])])
    assert len(store) == 51
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT title FROM items WHERE id = 20").fetchone() == ("t2",)
    assert load(SqliteStore(database, "items", columns=("title", "embedding"))).words[1] == "t1"


def test_an_error_leaves_the_table_unchanged(database: Path) -> None:
    store = SqliteStore(database, "items")
    with pytest.raises(InputError, match="received the id 'x', expected a whole number"):
        store.write([(["0"], 5 * ROWS[:1]), (["x"], ROWS[:1])])
    with pytest.raises(InputError, match="expected finite numbers"):
        store.write([(["0"], 5 * ROWS[:1]), (["0"], np.full((1, 4), np.nan))])
    np.testing.assert_array_equal(load(store).vectors, ROWS)


def test_invalid_tables_are_explained(database: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has 2 tables \('items', 'other'\), expected one: name it after the file"):
        SqliteStore(database)
    with pytest.raises(InputError, match="has no table 'x'"):
        SqliteStore(database, "x")
    with pytest.raises(InputError, match="has no column 'y'"):
        SqliteStore(database, "items", columns=("id", "y"))
    with pytest.raises(InputError, match="does not exist, expected a database"):
        SqliteStore(tmp_path / "nothing.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE items SET embedding = x'00' WHERE id = 10")
    with pytest.raises(InputError, match=r"the vector of '10' in .* has 1 bytes, expected 16"):
        load(SqliteStore(database, "items"))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE items SET embedding = x'000000'")
    with pytest.raises(InputError, match=r"the vectors in .* have 3 bytes, expected float32 numbers"):
        load(SqliteStore(database, "items"))
    with pytest.raises(InputError, match="store holds no vector"):
        load(SqliteStore.create(tmp_path / "new.db"))
    (tmp_path / "no.db").write_bytes(b"SQLite format 3\0" + b"x" * 200)
    with pytest.raises(InputError, match="cannot be used as a database of SQLite"):
        SqliteStore(tmp_path / "no.db")


def test_a_truncated_database_is_refused(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"according to its header: it is truncated"):
        SqliteStore(database, "items")


def test_views_and_functions_are_refused(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE VIEW copies AS SELECT * FROM items")
    store = SqliteStore(database, "items")
    for question in (
        "SELECT id FROM copies",
        "SELECT zeroblob(9)",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i FROM r) SELECT i FROM r",
    ):
        with (
            pytest.raises(InputError, match="takes its rows from a view or an expression"),
            store._connect() as connection,
        ):
            connection.execute(question).fetchone()


def test_virtual_tables_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE items USING fts5(embedding)")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no virtual tables")
    with pytest.raises(
        InputError, match="is a virtual table of an extension, expected an ordinary one: copy its vectors"
    ):
        SqliteStore(tmp_path / "x.db")


# --------------------------------------------------------------------------- DuckDB

DUCKDB_ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


@pytest.fixture
def duckdb_database(tmp_path: Path) -> Path:
    """A database with a table of integer ids and a further column."""
    path = tmp_path / "items.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER, title VARCHAR, embedding FLOAT[4])")
        rows = [[10 * i, f"t{i}", row.tolist()] for i, row in enumerate(DUCKDB_ROWS)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    return path


@needs_duckdb
def test_a_duckdb_table_is_read_and_written_back(duckdb_database: Path) -> None:
    store = DuckdbStore(duckdb_database)
    assert (len(store), store.table) == (50, "items")
    space = load(store, max_items=20)
    assert space.words[:2] == ["0", "10"]
    np.testing.assert_array_equal(space.vectors, DUCKDB_ROWS[:20])
    assert store.write((ids, 2 * rows) for ids, rows in store.batches(20)) == 50
    again = load(store)
    assert dict(zip(again.words, again.vectors.tolist(), strict=True)) == {
        str(10 * i): row for i, row in enumerate((2 * DUCKDB_ROWS).tolist())
    }
    store.write([(["999", "10"], DUCKDB_ROWS[:2])])
    assert len(store) == 51
    with duckdb.connect(str(duckdb_database), read_only=True) as connection:
        assert connection.execute("SELECT title FROM items WHERE id = 20").fetchone() == ("t2",)
    assert "t1" in load(DuckdbStore(duckdb_database, "items", columns=("title", "embedding")))


@needs_duckdb
def test_an_error_leaves_a_duckdb_table_unchanged(duckdb_database: Path) -> None:
    store = DuckdbStore(duckdb_database, "items")
    for wrong in (["x"], DUCKDB_ROWS[:1]), (["1"], np.full((1, 4), np.inf, np.float32)), (["1"], DUCKDB_ROWS[:1, :3]):
        with pytest.raises(InputError):
            store.write([(["0"], 5 * DUCKDB_ROWS[:1]), wrong])
    np.testing.assert_array_equal(load(store).vectors, DUCKDB_ROWS)


@needs_duckdb
def test_invalid_duckdb_tables_are_explained(duckdb_database: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no table 'x', expected one of 'items'"):
        DuckdbStore(duckdb_database, "x")
    with pytest.raises(InputError, match="has no column 'y'"):
        DuckdbStore(duckdb_database, "items", columns=("id", "y"))
    with pytest.raises(InputError, match="does not exist"):
        DuckdbStore(tmp_path / "nothing.duckdb")
    with duckdb.connect(str(duckdb_database)) as connection:
        connection.execute("CREATE TABLE plain (x INTEGER)")
    with pytest.raises(InputError, match=r"has 2 tables .* expected one: name it after the file"):
        DuckdbStore(duckdb_database)
    with pytest.raises(InputError, match="expected one of ids and one of FLOAT"):
        DuckdbStore(duckdb_database, "plain")
    (tmp_path / "no.duckdb").write_bytes(b"x" * 5000)
    with pytest.raises(InputError, match="cannot be used as a database of DuckDB"):
        DuckdbStore(tmp_path / "no.duckdb")
