from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = ["a", "b", "ç", "d"]
LISTS = ROWS.tolist()


def written(folder: Path, name: str, **columns: Any) -> Path:
    table = pa.table(columns)
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, path)
    return path


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
    found = load(written(tmp_path, name, item=WORDS, **numbers), max_vocab=3)
    assert found.words == WORDS[:3]
    np.testing.assert_array_equal(found.vectors, ROWS[:3])


def test_columns_are_named_behind_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path, "x.parquet", title=WORDS, other=WORDS[::-1], one=LISTS, two=(2 * ROWS).tolist(), n=[9, 8, 7, 6]
    )
    with pytest.raises(InputError, match=r"2 columns that could hold the words .*x.parquet#word,vector"):
        load(path)
    found = load(f"{path}#other,two")
    assert found.words == WORDS[::-1]
    np.testing.assert_array_equal(found.vectors, 2 * ROWS)
    assert found.report is not None
    assert found.report.path == f"{path}#other,two"
    assert load(f"{path}#n,one").words == ["9", "8", "7", "6"]
    for part, message in (
        ("nothing,one", "has no column 'nothing'"),
        ("one", "needs the names"),
        ("one,two", "expected text"),
    ):
        with pytest.raises(InputError, match=message):
            load(f"{path}#{part}")


def test_usual_names_decide(tmp_path: Path) -> None:
    path = written(tmp_path, "x.arrow", note=WORDS[::-1], text=WORDS, embedding=LISTS, other=(2 * ROWS).tolist())
    found = load(path)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, ROWS)


def test_tables_without_words_are_numbered(tmp_path: Path) -> None:
    path = written(tmp_path, "x.parquet", v=LISTS)
    assert load(path).words == ["x:0", "x:1", "x:2", "x:3"]
    (tmp_path / "x.words.txt").write_text("a\nb\nc\nd\n")
    assert load(path).words == ["a", "b", "c", "d"]


def test_rows_without_words_or_vectors_are_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, "x.parquet", word=["a", None, "c", "d"], v=[LISTS[0], LISTS[1], None, LISTS[3]])
    with pytest.raises(InputError, match=r"row 1 of .* has no word"):
        load(path)
    assert load(path, errors="skip").words == ["a", "d"]
    uneven = written(tmp_path, "y.parquet", word=["a", "b"], v=[[1.0, 2.0], [3.0]])
    with pytest.raises(InputError, match=r"row 1 of .* has 1 numbers, expected 2 as in the rows before it"):
        load(uneven)


def test_tables_of_other_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has the columns word \(string\), expected one of lists of numbers"):
        load(written(tmp_path, "x.parquet", word=WORDS))


def test_damage_is_explained(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow"):
        save(Embeddings(WORDS, ROWS), tmp_path / name)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-20])
        with pytest.raises(InputError, match=r"is a damaged or cut (Parquet|Arrow) file"):
            load(tmp_path / name)


def test_without_the_library_there_is_an_explanation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(Embeddings(WORDS, ROWS), tmp_path / "x.parquet")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'needs pyarrow, which is not installed: pip install "qwp\[arrow\]"'):
        load(tmp_path / "x.parquet")
