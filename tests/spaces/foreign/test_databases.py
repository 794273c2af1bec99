from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from tests.spaces.foreign.jobs import items

ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_tables_and_columns_are_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE t (word TEXT, other TEXT, vector BLOB)")
            rows = [(f"w{i}", f"o{i}", row.tobytes()) for i, row in enumerate(ROWS)]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t (word VARCHAR, other VARCHAR, vector FLOAT[2])")
            connection.executemany(
                "INSERT INTO t VALUES (?, ?, ?)", [[f"w{i}", f"o{i}", row.tolist()] for i, row in enumerate(ROWS)]
            )
    words, vectors = items(path, kind, rows=4)
    assert words == [f"w{i}" for i in range(6)]
    np.testing.assert_array_equal(vectors, ROWS)
    assert (items(path, kind, "t,other,vector")[0] or [])[:2] == ["o0", "o1"]
    for part, message in (("t,word", "names 1 columns, expected #TABLE"), ("u", "has no table 'u'")):
        with pytest.raises(InputError, match=message):
            items(path, kind, part)
