from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, save, sniff

ROWS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
SPACE = Embeddings([f"w{i}" for i in range(39)] + ["a'b\"c\0\n"], ROWS)


@pytest.mark.parametrize("name", ["x.db", "x.duckdb"])
def test_a_database_is_written_and_read_again(tmp_path: Path, name: str) -> None:
    if name == "x.duckdb":
        pytest.importorskip("duckdb")
    space = SPACE if name == "x.db" else Embeddings([*SPACE.words[:-1], "a'b\"c\n"], ROWS)
    save(space, tmp_path / name)
    assert sniff(tmp_path / name) == name.replace("x.", "").replace("db", "sqlite", name == "x.db")
    for path in (f"{tmp_path / name}", f"{tmp_path / name}#vectors", f"{tmp_path / name}#vectors,word,vector"):
        found = load(path)
        assert found.words == space.words
        np.testing.assert_array_equal(found.vectors, ROWS)
    assert load(tmp_path / name, max_vocab=3).words == ["w0", "w1", "w2"]
    with pytest.raises(InputError, match="names 1 columns, expected #TABLE or #TABLE,IDS,VECTORS"):
        load(f"{tmp_path / name}#vectors,word")
    with pytest.raises(InputError, match="has no table 'other'"):
        load(f"{tmp_path / name}#other")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_words_that_come_twice_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="words were written twice"),
        open_writer(tmp_path / "x.db", 3) as writer,
    ):
        writer.write(["a", "a"], ROWS[:2])
    assert list(tmp_path.iterdir()) == []
