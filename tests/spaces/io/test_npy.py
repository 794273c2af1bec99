"""Headers of NumPy arrays, read without evaluating them."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qwp.errors import InputError
from qwp.spaces.io.npy import read_header


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
