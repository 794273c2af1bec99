from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.migration.sources import FileItems, MemoryItems, all_ids, as_source, known_pairs, vectors_of
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.stores import SqliteStore

ROWS = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
WORDS = list("abcdef")


def test_files_stores_and_arrays_are_read_alike(tmp_path: Path) -> None:
    space = Embeddings(WORDS, ROWS)
    io.save(space, tmp_path / "x.npz")
    store = SqliteStore.create(tmp_path / "x.db")
    store.write([(WORDS, ROWS)])
    for given in (tmp_path / "x.npz", space, store):
        source = as_source(given, "src", {})
        assert all_ids(source) == WORDS
        rows, vectors = vectors_of(source, ["e", "b", "none"])
        assert rows == {"b": 0, "e": 1}
        np.testing.assert_array_equal(vectors, ROWS[[1, 4]])


def test_a_changed_file_has_another_identity(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, ROWS)
    source = as_source(path, "tgt", {})
    assert isinstance(source, FileItems)
    before = source.identity
    assert source.identity == before
    assert not source.unnamed
    assert all_ids(source)[0] == "tgt:0"
    assert source.unnamed
    np.save(path, 2 * ROWS)
    assert source.identity != before
    memory = as_source(ROWS, "src", {})
    assert isinstance(memory, MemoryItems)
    assert memory.identity == Embeddings([f"src:{row}" for row in range(6)], ROWS).sha256()


def test_pairs_are_the_given_ones_or_the_ids_in_common() -> None:
    assert known_pairs(["a", "b"], ["b", "c"], None) == [("b", "b")]
    assert known_pairs(["a", "b"], ["b", "c"], [("a", "c"), ("x", "c")]) == [("a", "c")]
    assert known_pairs(["src:0", "src:1"], ["tgt:0"], [("1", "0")]) == [("src:1", "tgt:0")]
    with pytest.raises(InputError, match="no given pair names an id"):
        known_pairs(["a"], ["b"], [("x", "y")])


def test_an_empty_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no vector"):
        all_ids(SqliteStore.create(tmp_path / "x.db"))
