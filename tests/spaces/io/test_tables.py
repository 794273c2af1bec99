from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save
from tests.spaces.arrow_files import LISTS, ROWS, WORDS, written

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


def test_a_part_is_read_and_reported(tmp_path: Path) -> None:
    path = written(tmp_path, "x.parquet", title=WORDS, other=WORDS[::-1], one=LISTS, two=(2 * ROWS).tolist())
    found = load(f"{path}#other,two", max_vocab=3)
    assert found.words == WORDS[:0:-1]
    np.testing.assert_array_equal(found.vectors, 2 * ROWS[:3])
    assert found.report is not None
    assert (found.report.path, found.report.complete) == (f"{path}#other,two", False)


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
