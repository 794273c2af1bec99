"""Vectors that gensim pickled, and pickles that are something else."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, sniff
from tests.spaces import fasttext_models

models: Any = pytest.importorskip("gensim.models")
ROWS = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
WORDS = [f"wörd{i}" for i in range(50)]


@pytest.fixture
def keyed() -> Any:
    made = models.KeyedVectors(6)
    made.add_vectors(WORDS, ROWS)
    return made


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("apart", [False, True])
def test_what_gensim_saved_is_read(tmp_path: Path, keyed: Any, protocol: int, apart: bool) -> None:
    path = tmp_path / "x.kv"
    keyed.save(str(path), pickle_protocol=protocol, **({"separately": ["vectors"], "sep_limit": 0} if apart else {}))
    assert (tmp_path / "x.kv.vectors.npy").exists() == apart
    assert sniff(path) == "keyed-vectors"
    found = load(path, max_vocab=40)
    assert found.words == WORDS[:40]
    np.testing.assert_array_equal(found.vectors, ROWS[:40])


def test_subwords_come_with_the_vectors_of_a_fasttext_model(tmp_path: Path) -> None:
    wv = fasttext_models.trained().wv
    wv.save(str(tmp_path / "x.kv"))
    found = load(tmp_path / "x.kv")
    assert found.words == wv.index_to_key
    np.testing.assert_allclose(found.vectors, wv.vectors, atol=1e-6)
    np.testing.assert_allclose(found["zzz"], wv["zzz"], atol=1e-6)


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)


def test_nothing_that_a_pickle_names_is_run(tmp_path: Path, keyed: Any) -> None:
    for number, content in enumerate(
        (
            pickle.dumps(Evil(tmp_path / "done"), protocol=4),
            pickle.dumps({"index_to_key": ["a"], "vectors": Evil(tmp_path / "done")}, protocol=2),
        )
    ):
        path = tmp_path / f"{number}.kv"
        path.write_bytes(content)
        with pytest.raises(
            InputError, match=r"it holds (posix|nt)\.system, which is no part of vectors, and a pickle can"
        ):
            load(path)
    assert not (tmp_path / "done").exists()


def test_models_and_other_objects_are_refused_with_a_way_out(tmp_path: Path) -> None:
    model = models.Word2Vec([["a", "b"]] * 5, vector_size=2, min_count=1)
    model.save(str(tmp_path / "m.kv"))
    with pytest.raises(InputError, match=r"Word2Vec, which is no part of .*save_word2vec_format\(path, binary=True\)"):
        load(tmp_path / "m.kv")
    for content, message in (({"a": 1}, "it holds no KeyedVectors"), (np.float64, "numpy.float64, which is no part")):
        (tmp_path / "x.kv").write_bytes(pickle.dumps(content, protocol=4))
        with pytest.raises(InputError, match=message):
            load(tmp_path / "x.kv")


def test_damage_is_explained(tmp_path: Path, keyed: Any) -> None:
    path = tmp_path / "x.kv"
    keyed.save(str(path))
    content = path.read_bytes()
    path.write_bytes(content[:200])
    with pytest.raises(InputError, match="is a damaged or cut pickle of gensim"):
        load(path)
    path.write_bytes(content.replace(b"index_to_key", b"index_to_kex"))
    with pytest.raises(InputError, match="has no list of words, as those of gensim 3"):
        load(path)
    path.write_bytes(content.replace(b"f4", b"O8"))
    with pytest.raises(InputError, match="an array in it does not hold numbers"):
        load(path)


def test_pickles_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"asks for keyed-vectors, which is only read, .* Alignment\.to_keyed_vectors"):
        open_writer(tmp_path / "x.kv", 2)
