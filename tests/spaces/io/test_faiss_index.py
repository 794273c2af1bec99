from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save, sniff
from qwp.spaces.io.faiss_index import _reconstructed
from qwp.spaces.io.sources import opened

faiss: Any = pytest.importorskip("faiss", reason='FAISS is not installed: pip install "qwp[faiss]"')
ROWS = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


def written(folder: Path, index: Any) -> Path:
    faiss.write_index(index, str(folder / "x.faiss"))
    return folder / "x.faiss"


@pytest.mark.parametrize("kind", ["Flat", "HNSW8,Flat", "IVF4,Flat", "SQfp16"])
def test_vectors_are_given_back(tmp_path: Path, kind: str) -> None:
    index = faiss.index_factory(8, kind)
    index.train(ROWS)
    index.add(ROWS)
    path = written(tmp_path, index)
    assert sniff(path) == "faiss"
    found = load(path, label="src")
    assert found.words[:2] == ["src:0", "src:1"]
    np.testing.assert_allclose(found.vectors, ROWS, atol=2e-3 if kind == "SQfp16" else 0)


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


def test_damage_and_indexes_without_vectors_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, faiss.IndexFlatL2(8))
    with opened(path) as source, pytest.raises(InputError, match="cannot give back its vectors, expected one that can"):
        _reconstructed(faiss, faiss.IndexFlatL2(8), 0, 5, source)
    with pytest.raises(InputError, match="is an index of 0 vectors of 8 numbers"):
        load(written(tmp_path, faiss.IndexFlatL2(8)))
    path = written(tmp_path, faiss.IndexFlatL2(8))
    content = path.read_bytes()
    for damaged, message in (
        (content[:20], "is a cut index of FAISS"),
        (content[:8] + b"\xff\xff\xff\x7f" + content[12:], "which its .* bytes cannot hold"),
        (content[:4] + bytes(4) + content[8:], "of 0 numbers, which its .* bytes cannot hold"),
        (b"IxZZ" + content[4:], "damaged or cut index of FAISS"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=message):
            load(path)
