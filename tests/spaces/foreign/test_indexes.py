from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from tests.spaces.foreign.jobs import items

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
    words, vectors = items(written(tmp_path, index), "faiss", rows=70)
    assert words is None
    np.testing.assert_allclose(vectors, ROWS, atol=2e-3 if kind == "SQfp16" else 0)


def test_ids_come_with_the_vectors(tmp_path: Path) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(8))
    index.add_with_ids(ROWS[:3], np.array([7, 9, 8]))
    assert items(written(tmp_path, index), "faiss", rows=2)[0] == ["7", "9", "8"]


def test_damage_and_indexes_without_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is an index of 0 vectors of 8 numbers"):
        items(written(tmp_path, faiss.IndexFlatL2(8)), "faiss")
    index = faiss.index_factory(8, "IVF4,Flat")
    index.train(ROWS)
    index.add_with_ids(ROWS[:3], np.array([7, 9, 8]))
    with pytest.raises(InputError, match="cannot give back its vectors, expected one that can"):
        items(written(tmp_path, index), "faiss")
    path = written(tmp_path, faiss.IndexFlatL2(8))
    content = path.read_bytes()
    for damaged, message in (
        (content[:20], "is a cut index of FAISS"),
        (content[:8] + b"\xff\xff\xff\x7f" + content[12:], "which its .* bytes cannot hold"),
        (content[:4] + bytes(4) + content[8:], "of 0 numbers, which its .* bytes cannot hold"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=message):
            items(path, "faiss")
