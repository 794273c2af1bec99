from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.migration.adapter import fit
from qwp.migration.convert import copy_table, rewrite, table_of
from qwp.migration.run import migrate
from qwp.spaces.stores import DuckdbStore, SqliteStore, load
from tests.libraries import optional_module
from tests.migration.problems import encoders

MODELS = encoders(300)
duckdb: Any = optional_module("duckdb")
sqlite_vec: Any = optional_module("sqlite_vec")
needs_duckdb = pytest.mark.skipif(duckdb is None, reason='not installed: pip install "qwp[duckdb]"')


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with integer ids, titles, an index and a second table."""
    path = tmp_path / "items.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE items (id INTEGER, title TEXT, embedding BLOB)")
        connection.execute("CREATE INDEX titles ON items (title)")
        connection.execute("CREATE TABLE other (x)")
        rows = [(10 * i, f"t{i}", row.tobytes()) for i, row in enumerate(MODELS.old)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO other VALUES ('kept')")
    return path


def new_vectors() -> tuple[list[str], np.ndarray]:
    return [str(10 * i) for i in range(200)], MODELS.new[:200]


def test_a_migrated_database_keeps_everything_but_the_vectors(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    done = migrate(f"{database}#items", new_vectors(), out=tmp_path / "new.db")
    assert done.items == 300
    assert database.read_bytes() == before
    store = SqliteStore(tmp_path / "new.db", "items")
    assert MODELS.recall(load(store).vectors, MODELS.new) > 0.9
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("SELECT title FROM items WHERE id = 20").fetchone() == ("t2",)
        assert connection.execute("SELECT x FROM other").fetchone() == ("kept",)
        assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchone() == ("titles",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(sqlite_vec is None, reason="not installed: pip install sqlite-vec")
def test_sqlite_vec_searches_a_migrated_table(database: Path, tmp_path: Path) -> None:
    migrate(f"{database}#items", new_vectors(), out=tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        if not hasattr(connection, "enable_load_extension"):
            pytest.skip("this Python cannot load extensions of SQLite")
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        nearest = "SELECT id FROM items ORDER BY vec_distance_cosine(embedding, ?) LIMIT 1"
        found = [connection.execute(nearest, (query.tobytes(),)).fetchone()[0] for query in MODELS.new[:50]]
    assert np.mean(np.asarray(found) == 10 * np.arange(50)) > 0.9


def test_tables_that_do_not_fit_are_refused(database: Path, tmp_path: Path) -> None:
    store = table_of(Path(f"{database}#items"), "sqlite")
    ids, vectors = new_vectors()
    with pytest.raises(InputError, match="has 300 items, 200 of which were converted"):
        copy_table(store, tmp_path / "new.db", [(ids, vectors)])
    with pytest.raises(InputError, match="has 300 items, 0 of which were converted"):
        copy_table(store, tmp_path / "new.db", [(["x"], vectors[:1])])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE items SET id = 0 WHERE id = 10")
    with pytest.raises(InputError, match=r"1 ids of the table items of .* are repeated"):
        copy_table(store, tmp_path / "new.db", [(ids, vectors)])
    assert [path.name for path in tmp_path.iterdir()] == ["items.db"]


@needs_duckdb
def test_a_migrated_duckdb_database_keeps_everything_but_the_vectors(tmp_path: Path) -> None:
    path = tmp_path / "items.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, title VARCHAR, embedding FLOAT[24])")
        rows = [[10 * i, f"t{i}", row.tolist()] for i, row in enumerate(MODELS.old)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    done = migrate(path, new_vectors(), out=tmp_path / "new.duckdb")
    assert done.items == 300
    space = load(DuckdbStore(tmp_path / "new.duckdb"))
    assert space.words[:2] == ["0", "10"]
    assert MODELS.recall(space.vectors, MODELS.new) > 0.9
    with duckdb.connect(str(tmp_path / "new.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT title FROM items WHERE id = 20").fetchone() == ("t2",)
    assert load(DuckdbStore(path)).dim == 24


TEXTS = encoders(200)


@pytest.fixture
def old(tmp_path: Path) -> SqliteStore:
    store = SqliteStore.create(tmp_path / "items.db", "old")
    store.write([(TEXTS.ids, TEXTS.old)])
    return store


def test_queries_of_the_new_model_find_the_rewritten_store(old: SqliteStore, tmp_path: Path) -> None:
    new = SqliteStore.create(tmp_path / "items.db", "new")
    assert rewrite(old, new, fit("orthogonal", TEXTS.old[:100], TEXTS.new[:100]), batch=64) == 200
    assert load(new).words == TEXTS.ids
    assert TEXTS.recall(load(new).vectors, TEXTS.new) > 0.9


def test_other_maps_are_refused(old: SqliteStore) -> None:
    with pytest.raises(InputError, match=r"received function to convert a store with, expected an Adapter"):
        rewrite(old, old, cast(Any, lambda rows: rows))
