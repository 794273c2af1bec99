from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, sniff


def test_numpy_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    vectors = np.arange(6.0).reshape(3, 2)
    for save in (np.savez, np.savez_compressed):
        for matrix in (vectors, vectors.astype(np.float16), np.asfortranarray(vectors), vectors.astype(int)):
            for words in (np.array(["a", "bé", "c"]), np.array([b"a", "bé".encode(), b"c"])):
                save(path, words=words, vectors=matrix, other=np.zeros(1))
                found = load(path)
                assert sniff(path) == "npz"
                assert found.words == ["a", "bé", "c"]
                assert found.vectors.dtype == np.float32
                assert np.array_equal(found.vectors, vectors)


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with open_writer(path, 2) as writer:
        writer.write(["a"], np.array([[1, 2]]))
        writer.write(["日本", "c"], np.array([[3, 4], [5, 6]]))
    with np.load(path) as archive:
        assert archive["words"].tolist() == ["a", "日本", "c"]
        assert archive["vectors"].dtype == np.float32
        assert archive["vectors"].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a", "b", "", "d"]), vectors=np.array([[1, 2], [np.inf, 1], [1, 1], [3, 4]]))
    with pytest.raises(InputError, match=r"row 2 of .* holds inf as number 1"):
        load(path)
    found = load(path, errors="skip")
    assert found.words == ["a", "d"]
    assert found.report is not None
    assert found.report.skipped == 2


def test_max_vocab_reads_only_what_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    vectors = np.ones((5, 2))
    vectors[3:] = np.nan
    np.savez(path, words=np.array(["a", "a", "b", "c", "d"]), vectors=vectors)
    found = load(path, max_vocab=2)
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert (found.report.complete, found.report.duplicates) == (False, 1)


def test_float64_is_kept_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a"]), vectors=np.array([[0.1]]))
    assert load(path, dtype="float64").vectors[0, 0] == 0.1
    assert load(path).vectors[0, 0] == np.float32(0.1)


def test_missing_names_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, vocab=np.array(["a"]), matrix=np.ones((1, 2)))
    with pytest.raises(InputError, match="holds matrix, vocab, expected the arrays words and vectors"):
        load(path)


def test_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a", "b"], dtype=object), vectors=np.ones((2, 2)))
    with pytest.raises(InputError, match="pickle"):
        load(path)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (np.array(["a"]), np.ones((2, 2)), "1 words and 2 vectors"),
        (np.array(["a", "b"]), np.ones(2), r"of shape \(2,\), expected real numbers"),
        (np.array([1, 2]), np.ones((2, 2)), "expected strings"),
        (np.array(["a", "b"]), np.ones((2, 2), dtype=complex), "complex128"),
        (np.empty(0, dtype="U1"), np.ones((0, 2)), r"shape \(0, 2\)"),
    ],
)
def test_other_arrays_are_explained(tmp_path: Path, words: np.ndarray, vectors: np.ndarray, message: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=words, vectors=vectors)
    with pytest.raises(InputError, match=message):
        load(path)


def test_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, words=np.array(["a", "b"]), vectors=np.random.default_rng(0).random((2, 500)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(InputError, match="damaged or cut npz"):
        load(path)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(InputError, match="damaged or cut npz"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.npy", b"no array")
        archive.writestr("vectors.npy", b"no array")
    with pytest.raises(InputError, match="is not a NumPy array"):
        load(path)


@pytest.mark.parametrize("word", ["", "a\0", "\ud800"])
def test_words_it_cannot_hold(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="word"), open_writer(tmp_path / "x.npz", 1) as writer:
        writer.write([word], np.ones((1, 1)))
    assert list(tmp_path.iterdir()) == []
