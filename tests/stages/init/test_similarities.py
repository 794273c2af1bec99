"""The matrix of similarities of a space, in factors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.stages.init.similarities import similarity_factor
from tests.libraries import as_strict, assert_close, host


def test_a_known_answer() -> None:
    # Orthogonal rows of lengths 3 and 2: they are their own axes, longest first.
    u, s = similarity_factor(np.array([[0.0, 2.0], [3.0, 0.0]]))
    assert_close(s, [3.0, 2.0])
    assert_close(np.abs(host(u)), [[0.0, 1.0], [1.0, 0.0]], atol=1e-12)


@given(n=st.integers(1, 9), d=st.integers(1, 9), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25)
def test_the_factors_are_those_of_the_root_of_the_similarities(n: int, d: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d))
    u, s = (host(factor) for factor in similarity_factor(x))
    assert s.shape == (min(n, d),)
    assert (np.diff(s) <= 0).all()
    assert_close(s, np.linalg.svd(x, compute_uv=False)[: len(s)], rtol=1e-6, atol=1e-9)
    assert_close(u.T @ u, np.eye(len(s)), atol=1e-6)
    k = (u * s) @ u.T
    assert_close(k @ k, x @ x.T, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_directions_without_extent_are_left_out(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((20, 3)) @ np.array([[1.0, 0, 0, 0], [0, 1.0, 1.0, 0], [0, 0, 0, 0]])
    u, s = (host(factor) for factor in similarity_factor(x.astype(dtype)))
    assert (u.shape, s.shape) == ((20, 2), (2,))
    assert u.dtype == s.dtype == dtype


def test_another_library_finds_the_same_factors() -> None:
    x = np.random.default_rng(0).standard_normal((12, 5))
    for found, expected in zip(similarity_factor(as_strict(x)), similarity_factor(x), strict=True):
        assert type(found) is type(as_strict(x))
        assert_close(found, expected, atol=1e-12)
