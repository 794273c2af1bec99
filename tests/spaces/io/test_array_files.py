from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save, stream
from qwp.spaces.io.array_files import read_header

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


def stored(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


@given(
    arrays.arrays(
        st.sampled_from(["<f4", ">f8", "<i8", "|u1", "<U3", "|S5"]), arrays.array_shapes(min_dims=0, max_dims=3)
    ),
    st.sampled_from([None, (1, 0), (2, 0), (3, 0)]),
    st.booleans(),
)
def test_numpys_own_headers_are_read_as_numpy_reads_them(
    array: np.ndarray, version: tuple[int, int] | None, fortran: bool
) -> None:
    if fortran:
        array = np.asfortranarray(array)
    data = stored(array, version)
    header = read_header(io.BytesIO(data), "x")
    assert (header.dtype, header.shape) == (array.dtype, array.shape)
    assert header.fortran == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert header.n_bytes + header.data_bytes == len(data)


def with_text(text: str) -> io.BytesIO:
    raw = text.encode("latin-1")
    return io.BytesIO(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw)


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}",
        "{'descr': '|O8x', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').getpid(),)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "[" * 5000,
        "",
    ],
)
def test_other_headers_are_refused_and_nothing_is_evaluated(text: str) -> None:
    with pytest.raises(InputError, match="x is not a NumPy array"):
        read_header(with_text(text), "x")


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", b"PK"])
def test_cut_and_huge_headers_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="x is not a NumPy array"):
        read_header(io.BytesIO(data), "x")
