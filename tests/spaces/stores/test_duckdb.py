from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.stores import DuckdbStore, load, rewrite

duckdb: Any = pytest.importorskip("duckdb")
ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A table with numbers for ids and a column of its own."""
    path = tmp_path / "items.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER, title VARCHAR, embedding FLOAT[4])")
        rows = [[10 * i, f"t{i}", row.tolist()] for i, row in enumerate(ROWS)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    return path


def test_a_table_is_read_and_written_back(database: Path) -> None:
    store = DuckdbStore(database)
    assert (len(store), store.table) == (50, "items")
    space = load(store, max_items=20)
    assert space.words[:2] == ["0", "10"]
    np.testing.assert_array_equal(space.vectors, ROWS[:20])
    assert rewrite(store, store, lambda rows: 2 * rows, batch=20) == 50
    again = load(store)
    assert dict(zip(again.words, again.vectors.tolist(), strict=True)) == {
        str(10 * i): row for i, row in enumerate((2 * ROWS).tolist())
    }
    store.write([(["999", "10"], ROWS[:2])])
    assert len(store) == 51
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT title FROM items WHERE id = 20").fetchone() == ("t2",)
    assert "t1" in load(DuckdbStore(database, "items", columns=("title", "embedding")))


def test_an_error_leaves_the_table_as_it_was(database: Path) -> None:
    store = DuckdbStore(database, "items")
    for wrong in (["x"], ROWS[:1]), (["1"], np.full((1, 4), np.inf, np.float32)), (["1"], ROWS[:1, :3]):
        with pytest.raises(InputError):
            store.write([(["0"], 5 * ROWS[:1]), wrong])
    np.testing.assert_array_equal(load(store).vectors, ROWS)


def test_what_cannot_be_told_is_said(database: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no table 'x', expected one of 'items'"):
        DuckdbStore(database, "x")
    with pytest.raises(InputError, match="has no column 'y'"):
        DuckdbStore(database, "items", columns=("id", "y"))
    with pytest.raises(InputError, match="does not exist"):
        DuckdbStore(tmp_path / "nothing.duckdb")
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE plain (x INTEGER)")
    with pytest.raises(InputError, match=r"has 2 tables .* expected one: name it behind the file"):
        DuckdbStore(database)
    with pytest.raises(InputError, match="expected one of ids and one of FLOAT"):
        DuckdbStore(database, "plain")
    (tmp_path / "no.duckdb").write_bytes(b"x" * 5000)
    with pytest.raises(InputError, match="cannot be used as a database of DuckDB"):
        DuckdbStore(tmp_path / "no.duckdb")
