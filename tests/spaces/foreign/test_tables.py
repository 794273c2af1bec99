from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import save
from tests.spaces.arrow_files import LISTS, ROWS, WORDS, written
from tests.spaces.foreign.jobs import items

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")
KINDS = {"x.parquet": "parquet", "x.feather": "arrow"}


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
    words, vectors = items(written(tmp_path, name, item=WORDS, **numbers), KINDS[name], rows=3)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, ROWS)


def test_columns_are_named_behind_the_file(tmp_path: Path) -> None:
    path = written(
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


def test_usual_names_decide(tmp_path: Path) -> None:
    path = written(tmp_path, "x.arrow", note=WORDS[::-1], text=WORDS, embedding=LISTS, other=(2 * ROWS).tolist())
    words, vectors = items(path, "arrow")
    assert words == WORDS
    np.testing.assert_array_equal(vectors, ROWS)


def test_rows_without_words_or_vectors_are_marked(tmp_path: Path) -> None:
    path = written(tmp_path, "x.parquet", word=["a", None, "c", "d"], v=[LISTS[0], LISTS[1], None, LISTS[3]])
    words, vectors = items(path, "parquet")
    assert words == ["a", "", "c", "d"]
    assert np.isnan(vectors).any(axis=1).tolist() == [False, False, True, False]
    uneven = written(tmp_path, "y.parquet", word=["a", "b"], v=[[1.0, 2.0], [3.0]])
    with pytest.raises(InputError, match=r"row 1 of .* has 1 numbers, expected 2 as in the rows before it"):
        items(uneven, "parquet")


def test_a_changed_byte_is_found_by_the_checksums_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    save(Embeddings(WORDS, ROWS), path)
    content = bytearray(path.read_bytes())
    content[content.find(ROWS[3].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        items(path, "parquet")


def test_tables_of_other_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has the columns word \(string\), expected one of lists of numbers"):
        items(written(tmp_path, "x.parquet", word=WORDS), "parquet")
