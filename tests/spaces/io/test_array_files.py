from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save, stream

ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", "i1", "u1", "<i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_kind_of_number_is_read(tmp_path: Path, kind: str, order: str) -> None:
    rows = (10 * ROWS).astype(kind)
    np.save(tmp_path / "x.npy", np.asarray(rows, order=order))  # type: ignore[call-overload]
    found = load(tmp_path / "x.npy", max_vocab=20)
    np.testing.assert_array_equal(found.vectors, rows[:20].astype(np.float32))
    assert np.array_equal(np.concatenate([b.vectors for b in stream(tmp_path / "x.npy", batch=7)]), rows.astype("f4"))


def test_bfloat16_is_read_as_two_bytes_of_a_float32(tmp_path: Path) -> None:
    bits = ROWS.astype(np.float32).view(np.uint32) >> 16
    np.save(tmp_path / "x.npy", bits.astype(np.uint16).view("V2"))
    found = load(tmp_path / "x.npy").vectors
    np.testing.assert_array_equal(found.view(np.uint32), bits << 16)
    np.testing.assert_allclose(found, ROWS, rtol=1 / 128)


def test_float16_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    space = Embeddings([f"w{i}" for i in range(30)], ROWS.astype(np.float32))
    save(space, tmp_path / "x.npy", dtype="float16")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), ROWS.astype(np.float32).astype(np.float16))
    assert load(tmp_path / "x.npy").words == space.words
    with pytest.raises(InputError, match=r"the vector of 'a' .* is not finite as float16"):
        save(Embeddings(["a"], np.array([[1e5]], np.float32)), tmp_path / "y.npy", dtype="float16")
    assert not (tmp_path / "y.npy").exists()
    with pytest.raises(InputError, match="received dtype='float16' for text, which holds float32"):
        save(space, tmp_path / "x.vec", dtype="float16")
    with pytest.raises(InputError, match="expected 'float32' or 'float16'"):
        save(space, tmp_path / "x.npy", dtype="int8")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"of shape \(3,\), expected real numbers"),
        (np.zeros((2, 0)), "expected real numbers"),
        (np.zeros((2, 2), complex), "is an array of complex128"),
        (np.array([["a"]]), "is an array of <U1"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.npy")


def test_a_cut_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(InputError, match="it was cut; copy or save it again"):
        load(tmp_path / "x.npy")
