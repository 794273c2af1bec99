from __future__ import annotations

import threading
import time
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from qwp import backend
from qwp.errors import InputError

Floats = npt.NDArray[np.float64]

# --------------------------------------------------------------------------- top_k


def check_top_k(x: Any, k: int) -> None:
    """Values are those of a full sort, and the indices are different columns that hold them."""
    values, columns = backend.top_k(x, k)
    values, columns, x = backend.to_numpy(values), backend.to_numpy(columns), backend.to_numpy(x)
    k = min(k, x.shape[1])
    assert values.shape == columns.shape == (x.shape[0], k)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(x, columns, axis=1), values)
    assert all(len(set(row)) == k for row in columns.tolist())


@given(
    n=st.integers(1, 700),
    rows=st.integers(1, 4),
    k=st.integers(1, 12),
    levels=st.sampled_from([1, 2, 5, 10**6]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=200)
def test_top_k_is_exact(n: int, rows: int, k: int, levels: int, dtype: str, seed: int) -> None:
    # Few levels make ties; the shift makes negative numbers; 128 * k columns and more take the grouped path.
    drawn = np.random.default_rng(seed).integers(levels, size=(rows, n))
    check_top_k((drawn - levels / 2).astype(dtype), k)


@pytest.mark.parametrize("n", [127, 128, 129, 159, 160, 1279, 1280, 1281, 1311, 5000])
@pytest.mark.parametrize("k", [1, 2, 10])
def test_top_k_around_the_grouping_threshold(n: int, k: int) -> None:
    rng = np.random.default_rng(n * 100 + k)
    check_top_k(rng.standard_normal((7, n)), k)
    check_top_k(-np.abs(rng.standard_normal((3, n))), k)


@pytest.mark.parametrize("where", ["first", "last", "one group"])
def test_top_k_when_the_best_lie_together(where: str) -> None:
    # Worst cases for the groups: all of the best in the tail left over, or in one group.
    n, k = 32 * 50 + 9, 9
    x = np.random.default_rng(0).random((2, n))
    columns = {"first": np.arange(k), "last": np.arange(n - k, n), "one group": 7 + 50 * np.arange(k)}[where]
    x[:, columns] = 10 + np.arange(k)
    values, found = backend.top_k(x, k)
    np.testing.assert_array_equal(found, np.tile(columns[::-1], (2, 1)))
    np.testing.assert_array_equal(values[0], 10 + np.arange(k)[::-1])


def test_top_k_takes_everything_and_is_clamped() -> None:
    x = np.array([[3.0, 1.0, 2.0], [-1.0, -1.0, 5.0]])
    check_top_k(x, 3)
    check_top_k(x, 99)
    check_top_k(np.zeros((2, 500)), 500)


@pytest.mark.parametrize("k", [0, -1])
def test_top_k_wants_at_least_one(k: int) -> None:
    for x in (np.zeros((2, 5)), array_api_strict.zeros((2, 5))):
        with pytest.raises(InputError, match=f"k={k} should be at least 1"):
            backend.top_k(x, k)


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


@pytest.mark.parametrize("k", [1, 3, 20, 30])
def test_top_k_in_another_library(k: int) -> None:
    x = np.random.default_rng(3).integers(8, size=(4, 20)).astype(float)
    check_top_k(array_api_strict.asarray(x), k)


# --------------------------------------------------------------------------- segment_sum


def slow_segment_sum(values: Floats, labels: Any, weights: Floats, n_segments: int) -> Floats:
    out = np.zeros((n_segments, values.shape[1]))
    for row, label, weight in zip(values, labels, weights, strict=True):
        out[label] += weight * row
    return out


@given(n=st.integers(1, 40), d=st.integers(1, 4), n_segments=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_segment_sum_against_a_loop(n: int, d: int, n_segments: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.standard_normal((n, d)), rng.random(n)
    labels = rng.integers(n_segments, size=n)  # some segments stay empty
    expected = slow_segment_sum(values, labels, weights, n_segments)
    found = backend.segment_sum(values, labels, weights, n_segments)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    strict = array_api_strict.asarray
    again = backend.segment_sum(strict(values), strict(labels), strict(weights), n_segments)
    np.testing.assert_allclose(backend.to_numpy(again), expected, atol=1e-12)


def test_segment_sum_keeps_float32() -> None:
    values = np.ones((4, 2), dtype=np.float32)
    found = backend.segment_sum(values, np.array([0, 0, 2, 2]), np.ones(4, dtype=np.float32), 3)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[2, 2], [0, 0], [2, 2]])


# --------------------------------------------------------------------------- threads and blocks


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_use_threads_limits_and_restores() -> None:
    before, blas_before = backend.threads(), blas_threads()
    assert before >= 1
    with backend.use_threads(1):
        assert backend.threads() == 1
        assert blas_threads() == {1}
        with backend.use_threads(2):
            assert backend.threads() == 2
        assert backend.threads() == 1
        assert blas_threads() == {1}
        with backend.use_threads(None):
            assert backend.threads() == before
    assert backend.threads() == before
    assert blas_threads() == blas_before


def test_use_threads_restores_after_an_error() -> None:
    before, blas_before = backend.threads(), blas_threads()
    with pytest.raises(RuntimeError), backend.use_threads(1):
        raise RuntimeError
    assert backend.threads() == before
    assert blas_threads() == blas_before


@pytest.mark.parametrize("n", [0, -3])
def test_use_threads_wants_at_least_one(n: int) -> None:
    with pytest.raises(InputError, match=f"threads={n} should be at least 1"), backend.use_threads(n):
        pass


@pytest.mark.parametrize("n_threads", [1, 3])
def test_map_blocks_keeps_the_order(n_threads: int) -> None:
    # The early blocks are the slow ones: results in order of completion would come out reversed.
    def work(rows: slice) -> tuple[int, int]:
        time.sleep(0.01 * (5 - rows.start // 4))
        return rows.start, rows.stop

    with backend.use_threads(n_threads):
        found = backend.map_blocks(work, 18, 4, np.zeros(1))
    assert found == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 18)]


def test_map_blocks_runs_numpy_blocks_on_several_threads_with_one_blas_thread() -> None:
    # Passing the barrier takes two threads at once.
    barrier = threading.Barrier(2, timeout=20)

    def work(rows: slice) -> set[int]:
        barrier.wait()
        return blas_threads()

    with backend.use_threads(2):
        assert backend.map_blocks(work, 2, 1, np.zeros(1)) == [{1}, {1}]


def test_map_blocks_stays_on_this_thread_for_other_libraries() -> None:
    def work(rows: slice) -> int:
        return threading.get_ident()

    with backend.use_threads(4):
        idents = backend.map_blocks(work, 8, 1, array_api_strict.zeros(1))
    assert set(idents) == {threading.get_ident()}


def test_map_blocks_passes_errors_on() -> None:
    def work(rows: slice) -> int:
        if rows.start == 2:
            raise InputError("block two")
        return int(rows.start)

    with backend.use_threads(2), pytest.raises(InputError, match="block two"):
        backend.map_blocks(work, 6, 2, np.zeros(1))


@given(n_rows=st.integers(0, 50), rows=st.integers(1, 60))
@settings(deadline=None, max_examples=40)
def test_map_blocks_covers_every_row_once(n_rows: int, rows: int) -> None:
    blocks = backend.map_blocks(lambda s: list(range(n_rows))[s], n_rows, rows, np.zeros(1))
    assert [i for block in blocks for i in block] == list(range(n_rows))
    assert all(1 <= len(block) <= rows for block in blocks)


def test_block_rows_is_bounded_both_ways() -> None:
    assert backend.block_rows(1 << 30) == backend.MIN_BLOCK_ROWS
    assert backend.block_rows(0) == backend.BLOCK_ELEMENTS
    n = 20_000
    assert backend.block_rows(n) * n <= backend.BLOCK_ELEMENTS < (backend.block_rows(n) + 1) * n


# --------------------------------------------------------------------------- the rest


def test_rng_is_reproducible_and_its_streams_differ() -> None:
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    draws = {(seed, key): tuple(backend.rng(seed, *key).integers(2**63, size=4)) for seed in (0, 1) for key in keys}
    assert len(set(draws.values())) == len(draws)
    for (seed, key), expected in draws.items():
        assert tuple(backend.rng(seed, *key).integers(2**63, size=4)) == expected


def test_rng_streams_are_uncorrelated() -> None:
    draws = np.stack([backend.rng(5, stage, step).standard_normal(4000) for stage in (0, 1) for step in range(4)])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_move_between_libraries(dtype: str) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    assert backend.to_numpy(x) is x
    moved = backend.asarray(np.arange(3.0), like=array_api_strict.asarray(x))
    assert backend.namespace(moved) is array_api_strict
    assert backend.to_numpy(moved).dtype == x.dtype
    np.testing.assert_array_equal(backend.to_numpy(array_api_strict.asarray(x)), x)


def test_asarray_leaves_integers_alone() -> None:
    like = np.zeros(1, dtype=np.float32)
    assert backend.asarray(np.arange(3), like).dtype == np.arange(3).dtype
    assert backend.asarray(np.arange(3.0), like).dtype == np.float32
    assert backend.asarray(np.arange(3), like, dtype=np.float64).dtype == np.float64


def test_check_dtype() -> None:
    assert backend.check_dtype("float32") == "float32"
    with pytest.raises(InputError, match=r"'float16' is not known; expected one of float32, float64"):
        backend.check_dtype("float16")


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_eps(xp: Any) -> None:
    assert backend.eps(xp.zeros(1, dtype=xp.float32)) == np.finfo(np.float32).eps
    assert backend.eps(xp.zeros(1, dtype=xp.float64)) == np.finfo(np.float64).eps
