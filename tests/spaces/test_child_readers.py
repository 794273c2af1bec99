from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import save
from tests.libraries import optional_module
from tests.spaces.arrow_files import LISTS, ROWS, WORDS, write_table
from tests.spaces.jobs import items

pa: Any = optional_module("pyarrow")
pq: Any = optional_module("pyarrow.parquet")
needs_arrow = pytest.mark.skipif(pa is None, reason='not installed: pip install "qwp[arrow]"')
faiss: Any = optional_module("faiss")
needs_faiss = pytest.mark.skipif(faiss is None, reason='not installed: pip install "qwp[faiss]"')

# --------------------------------------------------------------------------- Parquet and Arrow

KINDS = {"x.parquet": "parquet", "x.feather": "arrow"}


@needs_arrow
@pytest.mark.parametrize("name", ["x.parquet", "x.feather"])
@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "columns", "whole", "half"])
def test_columns_are_guessed(tmp_path: Path, name: str, kind: str) -> None:
    numbers: dict[str, Any] = {
        "list": {"v": pa.array(LISTS, pa.list_(pa.float64()))},
        "large_list": {"v": pa.array(LISTS, pa.large_list(pa.float32()))},
        "fixed": {"v": pa.array(LISTS, pa.list_(pa.float32(), 3)), "count": [1, 2, 3, 4]},
        "columns": {f"d{i}": ROWS[:, i] for i in range(3)},
        "whole": {"v": pa.array(ROWS.astype(int).tolist(), pa.list_(pa.int8()))},
        "half": {"v": pa.array(list(ROWS.astype(np.float16)), pa.list_(pa.float16()))},
    }[kind]
    words, vectors = items(write_table(tmp_path, name, item=WORDS, **numbers), KINDS[name], rows=3)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, ROWS)


@needs_arrow
def test_columns_are_named_after_the_file(tmp_path: Path) -> None:
    path = write_table(
        tmp_path, "x.parquet", title=WORDS, other=WORDS[::-1], one=LISTS, two=(2 * ROWS).tolist(), n=[9, 8, 7, 6]
    )
    with pytest.raises(InputError, match=r"2 columns that could hold the words .*x.parquet#word,vector"):
        items(path, "parquet")
    words, vectors = items(path, "parquet", "other,two")
    assert words == WORDS[::-1]
    np.testing.assert_array_equal(vectors, 2 * ROWS)
    assert items(path, "parquet", "n,one")[0] == ["9", "8", "7", "6"]
    for part, message in (
        ("nothing,one", "has no column 'nothing'"),
        ("one", "needs the names"),
        ("one,two", "expected text"),
    ):
        with pytest.raises(InputError, match=message):
            items(path, "parquet", part)


@needs_arrow
def test_usual_names_of_columns_are_preferred(tmp_path: Path) -> None:
    path = write_table(tmp_path, "x.arrow", note=WORDS[::-1], text=WORDS, embedding=LISTS, other=(2 * ROWS).tolist())
    words, vectors = items(path, "arrow")
    assert words == WORDS
    np.testing.assert_array_equal(vectors, ROWS)


@needs_arrow
def test_missing_words_and_vectors_become_empty_and_nan(tmp_path: Path) -> None:
    path = write_table(tmp_path, "x.parquet", word=["a", None, "c", "d"], v=[LISTS[0], LISTS[1], None, LISTS[3]])
    words, vectors = items(path, "parquet")
    assert words == ["a", "", "c", "d"]
    assert np.isnan(vectors).any(axis=1).tolist() == [False, False, True, False]
    uneven = write_table(tmp_path, "y.parquet", word=["a", "b"], v=[[1.0, 2.0], [3.0]])
    with pytest.raises(InputError, match=r"row 1 of .* has 1 numbers, expected 2 as in the rows before it"):
        items(uneven, "parquet")


@needs_arrow
def test_page_checksums_detect_a_changed_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    save(Embeddings(WORDS, ROWS), path)
    content = bytearray(path.read_bytes())
    content[content.find(ROWS[3].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        items(path, "parquet")


@needs_arrow
def test_tables_without_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has the columns word \(string\), expected one list column"):
        items(write_table(tmp_path, "x.parquet", word=WORDS), "parquet")


# --------------------------------------------------------------------------- FAISS

INDEX_ROWS = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


def write_index(folder: Path, index: Any) -> Path:
    faiss.write_index(index, str(folder / "x.faiss"))
    return folder / "x.faiss"


@needs_faiss
@pytest.mark.parametrize("kind", ["Flat", "HNSW8,Flat", "IVF4,Flat", "SQfp16"])
def test_vectors_of_an_index_are_returned(tmp_path: Path, kind: str) -> None:
    index = faiss.index_factory(8, kind)
    index.train(INDEX_ROWS)
    index.add(INDEX_ROWS)
    words, vectors = items(write_index(tmp_path, index), "faiss", rows=70)
    assert words is None
    np.testing.assert_allclose(vectors, INDEX_ROWS, atol=2e-3 if kind == "SQfp16" else 0)


@needs_faiss
def test_ids_come_with_the_vectors(tmp_path: Path) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(8))
    index.add_with_ids(INDEX_ROWS[:3], np.array([7, 9, 8]))
    assert items(write_index(tmp_path, index), "faiss", rows=2)[0] == ["7", "9", "8"]


@needs_faiss
def test_damage_and_indexes_without_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is an index of 0 vectors of 8 numbers"):
        items(write_index(tmp_path, faiss.IndexFlatL2(8)), "faiss")
    index = faiss.index_factory(8, "IVF4,Flat")
    index.train(INDEX_ROWS)
    index.add_with_ids(INDEX_ROWS[:3], np.array([7, 9, 8]))
    with pytest.raises(InputError, match="cannot return its vectors, expected one that can"):
        items(write_index(tmp_path, index), "faiss")
    path = write_index(tmp_path, faiss.IndexFlatL2(8))
    content = path.read_bytes()
    for damaged, message in (
        (content[:20], "is a truncated FAISS index"),
        (content[:8] + b"\xff\xff\xff\x7f" + content[12:], "which its .* bytes cannot hold"),
        (content[:4] + bytes(4) + content[8:], "of 0 numbers, which its .* bytes cannot hold"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=message):
            items(path, "faiss")


# --------------------------------------------------------------------------- SQLite and DuckDB

PAIRS = np.arange(12, dtype=np.float32).reshape(6, 2)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_tables_and_columns_are_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE t (word TEXT, other TEXT, vector BLOB)")
            rows = [(f"w{i}", f"o{i}", row.tobytes()) for i, row in enumerate(PAIRS)]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t (word VARCHAR, other VARCHAR, vector FLOAT[2])")
            connection.executemany(
                "INSERT INTO t VALUES (?, ?, ?)",
                [[f"w{i}", f"o{i}", row.tolist()] for i, row in enumerate(PAIRS)],
            )
    words, vectors = items(path, kind, rows=4)
    assert words == [f"w{i}" for i in range(6)]
    np.testing.assert_array_equal(vectors, PAIRS)
    assert (items(path, kind, "t,other,vector")[0] or [])[:2] == ["o0", "o1"]
    for part, message in (("t,word", "names 1 columns, expected #TABLE"), ("u", "has no table 'u'")):
        with pytest.raises(InputError, match=message):
            items(path, kind, part)
