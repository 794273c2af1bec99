"""Operations beyond the standard: against loops and full sorts, in every library."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.arrays import Floats
from qwp.errors import InputError
from tests.libraries import as_strict, assert_close, assert_same, host


def check_top_k(x: Any, k: int) -> None:
    """Assert that values equal those of a full sort, at distinct columns."""
    values, columns = arrays.top_k(x, k)
    values, columns, x = arrays.to_numpy(values), arrays.to_numpy(columns), arrays.to_numpy(x)
    k = min(k, x.shape[1])
    assert values.shape == columns.shape == (x.shape[0], k)
    assert_same(values, -np.sort(-x, axis=1)[:, :k])
    assert_same(np.take_along_axis(x, columns, axis=1), values)
    assert all(len(set(row)) == k for row in columns.tolist())


@given(
    n=st.integers(1, 700),
    rows=st.integers(1, 4),
    k=st.integers(1, 12),
    levels=st.sampled_from([1, 2, 5, 10**6]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_top_k_is_exact(n: int, rows: int, k: int, levels: int, dtype: str, seed: int) -> None:
    # Few levels make ties; the shift makes negative numbers; 128 * k columns and more take the grouped path.
    drawn = np.random.default_rng(seed).integers(levels, size=(rows, n))
    check_top_k((drawn - levels / 2).astype(dtype), k)


@pytest.mark.parametrize("k", [1, 2, 10])
def test_top_k_around_the_grouping_threshold(k: int) -> None:
    rng = np.random.default_rng(k)
    for n in (127, 128, 129, 159, 160, 1279, 1280, 1281, 1311, 5000):
        check_top_k(rng.standard_normal((7, n)), k)
        check_top_k(-np.abs(rng.standard_normal((3, n))), k)


@pytest.mark.parametrize("where", ["first", "last", "one group"])
def test_top_k_when_the_best_lie_together(where: str) -> None:
    # Worst cases for the groups: all of the largest in the remainder, or in one group.
    n, k = 32 * 50 + 9, 9
    x = np.random.default_rng(0).random((2, n))
    columns = {"first": np.arange(k), "last": np.arange(n - k, n), "one group": 7 + 50 * np.arange(k)}[where]
    x[:, columns] = 10 + np.arange(k)
    values, found = arrays.top_k(x, k)
    assert_same(found, np.tile(columns[::-1], (2, 1)))
    assert_same(values[0], 10 + np.arange(k)[::-1])


def test_top_k_takes_everything_and_is_clamped() -> None:
    x = np.array([[3.0, 1.0, 2.0], [-1.0, -1.0, 5.0]])
    check_top_k(x, 3)
    check_top_k(x, 99)
    check_top_k(np.zeros((2, 500)), 500)


@pytest.mark.parametrize("k", [0, -1])
def test_top_k_wants_at_least_one(k: int) -> None:
    for x in (np.zeros((2, 5)), as_strict(np.zeros((2, 5)))):
        with pytest.raises(InputError, match=f"k={k} should be at least 1"):
            arrays.top_k(x, k)


def test_top_k_with_infinities() -> None:
    x = np.random.default_rng(1).standard_normal((3, 600))
    x[:, ::7] = -np.inf
    x[1, 5] = np.inf
    x[2] = -np.inf
    for k in (1, 4, 600):
        check_top_k(x, k)


def test_top_k_of_a_view_that_is_not_contiguous() -> None:
    x = np.random.default_rng(2).standard_normal((600, 10))
    check_top_k(x.T, 3)
    check_top_k(x.T[::2, ::-1], 3)


def test_top_k_in_another_library() -> None:
    x = np.random.default_rng(3).integers(8, size=(4, 20)).astype(float)
    for k in (1, 3, 20, 30):
        check_top_k(as_strict(x), k)


def slow_segment_sum(values: Floats, labels: Any, weights: Floats, n_segments: int) -> Floats:
    out = np.zeros((n_segments, values.shape[1]))
    for row, label, weight in zip(values, labels, weights, strict=True):
        out[label] += weight * row
    return out


@given(n=st.integers(1, 40), d=st.integers(1, 4), n_segments=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_segment_sum_against_a_loop(n: int, d: int, n_segments: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.standard_normal((n, d)), rng.random(n)
    labels = rng.integers(n_segments, size=n)  # some segments stay empty
    expected = slow_segment_sum(values, labels, weights, n_segments)
    found = arrays.segment_sum(values, labels, weights, n_segments)
    assert_close(found, expected, atol=1e-12)
    strict = as_strict
    again = arrays.segment_sum(strict(values), strict(labels), strict(weights), n_segments)
    assert_close(arrays.to_numpy(again), expected, atol=1e-12)


def test_segment_sum_keeps_float32() -> None:
    values = np.ones((4, 2), dtype=np.float32)
    found = arrays.segment_sum(values, np.array([0, 0, 2, 2]), np.ones(4, dtype=np.float32), 3)
    assert found.dtype == np.float32
    assert_same(found, [[2, 2], [0, 0], [2, 2]])


@pytest.mark.parametrize("k", [1, 3, 10])
def test_top_k_on_torch_is_exact(k: int) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    # Few levels make ties, which leave the indices open. From 64 * k columns on, the grouped path is taken.
    for n, levels in product((5, 63, 64, 65, 640, 643, 3000), (2, 10**6)):
        x = np.random.default_rng(n + k).integers(levels, size=(4, n)) - levels / 2
        on_torch = arrays.choose_device("cpu", "torch").put(x, "float64")
        check_top_k(on_torch, k)
        assert_same(arrays.to_numpy(arrays.top_k(on_torch, k)[0]), arrays.top_k(x, k)[0])


@pytest.mark.parametrize("where", ["first", "last", "one group"])
def test_top_k_on_torch_when_the_best_lie_together(where: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    n, k = 16 * 50 + 9, 9
    x = np.random.default_rng(0).random((2, n))
    columns = {"first": np.arange(k), "last": np.arange(n - k, n), "one group": 7 + 50 * np.arange(k)}[where]
    x[:, columns] = 10 + np.arange(k)
    _, found = arrays.top_k(arrays.choose_device("cpu", "torch").put(x, "float64"), k)
    assert_same(arrays.to_numpy(found), np.tile(columns[::-1], (2, 1)))


def test_first_above_is_the_first_column_that_exceeds_the_target(library: Any) -> None:
    running = np.array([[1.0, 2.0, 2.0, 3.0]] * 6)
    target = np.array([0.0, 1.0, 1.5, 2.0, 2.5, 9.0])
    assert_same(arrays.to_numpy(arrays.first_above(library(running), library(target))), [0, 1, 1, 3, 3, 3])


def test_first_above_against_a_loop(library: Any) -> None:
    rng = np.random.default_rng(4)
    running = np.cumsum(rng.integers(3, size=(50, 30)), axis=1).astype(float)
    target = rng.integers(60, size=50).astype(float)
    expected = [next((j for j, r in enumerate(row) if r > t), 29) for row, t in zip(running, target, strict=True)]
    assert_same(arrays.to_numpy(arrays.first_above(library(running), library(target))), expected)


def test_in_place_operations_write_into_their_argument(library: Any) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal((3, 3)) for _ in range(3))
    out = library(np.zeros((3, 3)))
    assert arrays.matmul_into(out, library(a), library(b)) is out
    assert_close(arrays.to_numpy(out), a @ b, atol=1e-14)
    arrays.minimum_into(out, library(c))
    assert_close(arrays.to_numpy(out), np.minimum(a @ b, c), atol=1e-14)
    assert arrays.exp_in_place(out) is out
    assert_close(arrays.to_numpy(out), np.exp(np.minimum(a @ b, c)), atol=1e-14)
    arrays.put_row(out, arrays.asarray(np.array([1]), out), library(c[0]))
    assert_same(arrays.to_numpy(out)[1], c[0])
    assert_close(arrays.to_numpy(out)[2], np.exp(np.minimum(a @ b, c))[2], atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_affine_product(library: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(shape) for _ in range(3))
    given = [library(x) for x in (c, a, b)]
    found = arrays.affine_product(*given, alpha=-0.5, beta=3.0)
    assert_close(arrays.to_numpy(found), 3.0 * c - 0.5 * (a @ b), atol=1e-13)
    for before, after in zip((c, a, b), given, strict=True):
        assert_same(arrays.to_numpy(after), before)


def test_run_sums(library: Any) -> None:
    a, b = np.arange(12.0).reshape(2, 6), np.full((2, 6), 2.0)
    found = arrays.run_sums(library(a), library(b), 3)
    assert_same(arrays.to_numpy(found), [[6, 24], [42, 60]])


def test_segment_sum_in_every_library(library: Any) -> None:
    rng = np.random.default_rng(7)
    values, weights, labels = rng.standard_normal((30, 3)), rng.random(30), rng.integers(5, size=30)
    made = library(values)
    found = arrays.segment_sum(made, arrays.asarray(labels, made), library(weights), 6)
    assert_close(arrays.to_numpy(found), slow_segment_sum(values, labels, weights, 6), atol=1e-12)


def test_unit_rows_have_length_one_and_zero_rows_stay(library: Any) -> None:
    found = arrays.to_numpy(arrays.unit(library(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0], [1e-200, 0.0]]))))
    # The squares of the last row underflow, so it counts as a zero row.
    assert_same(found, [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0], [1e-200, 0.0]])


def test_unit_keeps_float32() -> None:
    assert arrays.unit(np.ones((2, 3), dtype=np.float32)).dtype == np.float32


def test_contiguous() -> None:
    x = np.arange(6.0).reshape(2, 3).T
    found = host(arrays.contiguous(x))
    assert found.flags.c_contiguous
    assert_same(found, x)
    assert arrays.contiguous(as_strict(np.ones((2, 3))).T).shape == (3, 2)


@pytest.mark.parametrize("of_library", [np.asarray, as_strict])
def test_eigenvectors_are_numpy_arrays(of_library: Any) -> None:
    half = np.random.default_rng(0).standard_normal((5, 5))
    values, vectors = arrays.eigh_to_host(of_library(half @ half.T))
    assert isinstance(vectors, np.ndarray)
    assert np.abs((vectors * values) @ vectors.T - half @ half.T).max() < 1e-12
    assert (np.diff(values) > 0).all()
