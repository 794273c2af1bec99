from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.spaces.io.formatting import MAX_DIGITS, format_rows

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
usual = st.floats(-8, 8, width=32)
rounded = st.integers(-99999, 99999).map(lambda n: float(np.float32(n / 10_000)))


@given(st.lists(st.one_of(finite, usual, rounded), min_size=1, max_size=60))
def test_shortest_comes_back_and_is_not_longer_than_numpy(values: list[float]) -> None:
    array = np.array([values], dtype=np.float32)
    tokens = format_rows(array, None)[0].split(b" ")
    back = np.array([float(token) for token in tokens]).astype(np.float32)
    assert np.array_equal(back.view(np.uint32), array[0].view(np.uint32))
    for token, value in zip(tokens, array[0], strict=True):
        assert len(token) <= len(np.format_float_positional(value, unique=True, trim="0"))


@given(st.lists(st.one_of(finite, usual, rounded), min_size=1, max_size=60), st.integers(0, MAX_DIGITS))
def test_fixed_digits_are_those_of_python(values: list[float], digits: int) -> None:
    array = np.array([values], dtype=np.float32)
    tokens = format_rows(array, digits)[0].decode().split(" ")
    assert tokens == [f"{float(value):.{digits}f}" for value in array[0]]


def test_known_rows() -> None:
    array = np.array([[0.1, -2.5, 0.0], [1e-9, 123456.0, -0.0]], dtype=np.float32)
    assert format_rows(array, None) == [b"0.1 -2.5 0.0", b"1e-09 123456.0 -0.0"]
    assert format_rows(array, 2) == [b"0.10 -2.50 0.00", b"0.00 123456.00 -0.00"]


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3), (5, 4)])
def test_rows_and_columns(shape: tuple[int, int]) -> None:
    array = (np.arange(shape[0] * shape[1]).reshape(shape) / 8).astype(np.float32)
    rows = [[float(token) for token in row.split(b" ")] for row in format_rows(array, None)]
    assert rows == array.tolist()
