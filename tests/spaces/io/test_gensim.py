"""Files exchanged with gensim, both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import load, open_writer, save

models = pytest.importorskip("gensim.models")

VECTORS = (np.random.default_rng(0).normal(size=(60, 5)) * 10.0 ** np.arange(-6, 4, 2)).astype(np.float32)
WORDS = [f"wörd{i}\u00a0日" for i in range(60)]


@pytest.mark.parametrize("name", ["x.vec", "x.vec.gz", "x.bin", "x.bin.gz"])
@pytest.mark.parametrize("known", [True, False])
def test_gensim_reads_files_of_qwp(tmp_path: Path, name: str, known: bool) -> None:
    path = tmp_path / name
    with open_writer(path, 5, count=60 if known else None) as writer:
        writer.write(WORDS, VECTORS)
    theirs = models.KeyedVectors.load_word2vec_format(str(path), binary=".bin" in name)
    assert theirs.index_to_key == WORDS
    assert np.array_equal(theirs.vectors, VECTORS)


def test_gensim_reads_files_of_qwp_without_a_header(tmp_path: Path) -> None:
    save(Embeddings(WORDS, VECTORS), tmp_path / "x.glove")
    theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / "x.glove"), no_header=True)
    assert theirs.index_to_key == WORDS
    assert np.array_equal(theirs.vectors, VECTORS)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x.vec", True),
        ("x.vec", False),
        ("x.vec.gz", True),
        ("x.vec.gz", False),
        ("x.bin", True),
        ("x.bin.gz", True),
    ],
)
def test_qwp_reads_files_of_gensim(tmp_path: Path, name: str, header: bool) -> None:
    theirs = models.KeyedVectors(5)
    theirs.add_vectors(WORDS, VECTORS)
    theirs.save_word2vec_format(str(tmp_path / name), binary=".bin" in name, write_header=header)
    found = load(tmp_path / name)
    assert found.words == WORDS
    assert np.array_equal(found.vectors, VECTORS)
