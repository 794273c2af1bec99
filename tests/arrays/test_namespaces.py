"""Arrays of several libraries, and conversions between them."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

from qwp import arrays
from tests.libraries import as_strict, assert_same


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_move_between_libraries(dtype: str) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    assert arrays.to_numpy(x) is x
    moved = arrays.asarray(np.arange(3.0), like=as_strict(x))
    library: Any = arrays.namespace(moved)
    assert library is array_api_strict
    assert arrays.to_numpy(moved).dtype == x.dtype
    assert_same(arrays.to_numpy(as_strict(x)), x)


def test_asarray_leaves_integers_alone() -> None:
    like = np.zeros(1, dtype=np.float32)
    assert arrays.asarray(np.arange(3), like).dtype == np.arange(3).dtype
    assert arrays.asarray(np.arange(3.0), like).dtype == np.float32
    assert arrays.asarray(np.arange(3), like, dtype=np.float64).dtype == np.float64


def test_numbers_are_read_at_once_whatever_their_types(library: Any) -> None:
    x = library(np.array([3.0, -1.5]))
    xp = arrays.namespace(x)
    values = xp.max(x), xp.astype(xp.min(x), xp.float32), xp.any(x > 2)
    assert arrays.to_floats(*values) == (3.0, -1.5, 1.0)
    assert arrays.to_floats(values[1]) == (-1.5,)
    assert np.isnan(arrays.to_floats(xp.min(x) * np.nan, xp.max(x))[0])


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_eps(xp: Any) -> None:
    assert arrays.eps(xp.zeros(1, dtype=xp.float32)) == np.finfo(np.float32).eps
    assert arrays.eps(xp.zeros(1, dtype=xp.float64)) == np.finfo(np.float64).eps


def test_the_namespace_is_that_of_the_arrays(library: Any) -> None:
    x = library(np.ones((2, 2)))
    xp = arrays.namespace(x, x)
    assert type(xp.ones((2, 2))) is type(x)
    assert_same(arrays.to_numpy(xp.sum(x, axis=0)), [2.0, 2.0])
    with pytest.raises(TypeError):
        arrays.namespace("no array")  # type: ignore[arg-type]


def test_cpu_arrays_are_not_on_cuda(library: Any) -> None:
    x = library(np.ones(3))
    assert not arrays.is_cuda(x)
    arrays.synchronize(x)
    there = arrays.asarray(np.arange(3.0), x)
    assert arrays.device(there) == arrays.device(x)
