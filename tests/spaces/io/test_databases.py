from __future__ import annotations

import subprocess
import sys
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
    found = load(f"{tmp_path / name}#vectors,word,vector")
    assert found.words == space.words
    np.testing.assert_array_equal(found.vectors, ROWS)
    assert load(tmp_path / name, max_vocab=3).words == ["w0", "w1", "w2"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_words_that_come_twice_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="words were written twice"),
        open_writer(tmp_path / "x.db", 3) as writer,
    ):
        writer.write(["a", "a"], ROWS[:2])
    assert list(tmp_path.iterdir()) == []


WRITE = """
import sys, time
import numpy as np
from qwp.spaces.io import open_writer
with open_writer(sys.argv[1], 2) as writer:
    writer.write(["a"], np.ones((1, 2)))
    print("ready", flush=True)
    time.sleep(600)
"""


def test_the_folder_of_a_killed_writer_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    command = [sys.executable, "-c", WRITE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        left = set(tmp_path.iterdir())
        save(SPACE, path)  # while the other one is at work
        assert set(tmp_path.iterdir()) == left | {path}
        writer.kill()
    assert len(left) == 2
    save(SPACE, path)
    assert list(tmp_path.iterdir()) == [path]
