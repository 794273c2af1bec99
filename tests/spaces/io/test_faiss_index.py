from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save, sniff

faiss: Any = pytest.importorskip("faiss", reason='FAISS is not installed: pip install "qwp[faiss]"')
ROWS = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


def written(folder: Path, index: Any) -> Path:
    faiss.write_index(index, str(folder / "x.faiss"))
    return folder / "x.faiss"


def test_ids_of_an_index_are_its_words(tmp_path: Path) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(8))
    index.add_with_ids(ROWS[:3], np.array([7, 9, 8]))
    path = written(tmp_path, index)
    assert load(path).words == ["7", "9", "8"]
    (tmp_path / "x.faiss.words.txt").write_text("a\nb\nc\n")
    assert load(path).words == ["a", "b", "c"]


def test_what_is_written_is_a_flat_index(tmp_path: Path) -> None:
    save(Embeddings([f"w{i}" for i in range(300)], ROWS), tmp_path / "x.faiss")
    index = faiss.read_index(str(tmp_path / "x.faiss"))
    np.testing.assert_array_equal(index.reconstruct_n(0, 300), ROWS)


def test_rows_without_words_are_numbered_and_damage_is_explained(tmp_path: Path) -> None:
    index = faiss.IndexFlatL2(8)
    index.add(ROWS)
    path = written(tmp_path, index)
    assert sniff(path) == "faiss"
    assert load(path, label="src", max_vocab=2).words == ["src:0", "src:1"]
    path.write_bytes(b"IxZZ" + path.read_bytes()[4:])
    with pytest.raises(InputError, match="damaged or cut index of FAISS"):
        load(path)
