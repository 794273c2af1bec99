from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
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

from qwp import arrays
from qwp.arrays import Place
from qwp.errors import InputError

Floats = npt.NDArray[np.float64]

# --------------------------------------------------------------------------- top_k


def check_top_k(x: Any, k: int) -> None:
    """Values are those of a full sort, and the indices are different columns that hold them."""
    values, columns = arrays.top_k(x, k)
    values, columns, x = arrays.to_numpy(values), arrays.to_numpy(columns), arrays.to_numpy(x)
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
    values, found = arrays.top_k(x, k)
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
    found = arrays.segment_sum(values, labels, weights, n_segments)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    strict = array_api_strict.asarray
    again = arrays.segment_sum(strict(values), strict(labels), strict(weights), n_segments)
    np.testing.assert_allclose(arrays.to_numpy(again), expected, atol=1e-12)


def test_segment_sum_keeps_float32() -> None:
    values = np.ones((4, 2), dtype=np.float32)
    found = arrays.segment_sum(values, np.array([0, 0, 2, 2]), np.ones(4, dtype=np.float32), 3)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[2, 2], [0, 0], [2, 2]])


# --------------------------------------------------------------------------- threads and blocks


def blas_threads() -> set[int]:
    """Threads of the BLAS that NumPy uses; libraries that other tests load may bring one of their own."""
    found = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    of_numpy = [pool for pool in found if "numpy" in pool["filepath"]]
    return {pool["num_threads"] for pool in of_numpy or found}


def test_use_threads_limits_and_restores() -> None:
    before, blas_before = arrays.threads(), blas_threads()
    assert before >= 1
    with arrays.use_threads(1):
        assert arrays.threads() == 1
        assert blas_threads() == {1}
        with arrays.use_threads(2):
            assert arrays.threads() == 2
        assert arrays.threads() == 1
        assert blas_threads() == {1}
        with arrays.use_threads(None):
            assert arrays.threads() == before
    assert arrays.threads() == before
    assert blas_threads() == blas_before


def test_use_threads_restores_after_an_error() -> None:
    before, blas_before = arrays.threads(), blas_threads()
    with pytest.raises(RuntimeError), arrays.use_threads(1):
        raise RuntimeError
    assert arrays.threads() == before
    assert blas_threads() == blas_before


@pytest.mark.parametrize("n", [0, -3])
def test_use_threads_wants_at_least_one(n: int) -> None:
    with pytest.raises(InputError, match=f"threads={n} should be at least 1"), arrays.use_threads(n):
        pass


@pytest.mark.parametrize("n_threads", [1, 3])
def test_map_blocks_keeps_the_order(n_threads: int) -> None:
    # The early blocks are the slow ones: results in order of completion would come out reversed.
    def work(rows: slice) -> tuple[int, int]:
        time.sleep(0.01 * (5 - rows.start // 4))
        return rows.start, rows.stop

    with arrays.use_threads(n_threads):
        found = arrays.map_blocks(work, 18, 4, np.zeros(1))
    assert found == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 18)]


def test_map_blocks_runs_numpy_blocks_on_several_threads_with_one_blas_thread() -> None:
    # Passing the barrier takes two threads at once.
    barrier = threading.Barrier(2, timeout=20)

    def work(rows: slice) -> set[int]:
        barrier.wait()
        return blas_threads()

    with arrays.use_threads(2):
        assert arrays.map_blocks(work, 2, 1, np.zeros(1)) == [{1}, {1}]


def test_map_blocks_stays_on_this_thread_for_other_libraries() -> None:
    def work(rows: slice) -> int:
        return threading.get_ident()

    with arrays.use_threads(4):
        idents = arrays.map_blocks(work, 8, 1, array_api_strict.zeros(1))
    assert set(idents) == {threading.get_ident()}


def test_map_blocks_passes_errors_on() -> None:
    def work(rows: slice) -> int:
        if rows.start == 2:
            raise InputError("block two")
        return int(rows.start)

    with arrays.use_threads(2), pytest.raises(InputError, match="block two"):
        arrays.map_blocks(work, 6, 2, np.zeros(1))


@given(n_rows=st.integers(0, 50), rows=st.integers(1, 60))
@settings(deadline=None, max_examples=40)
def test_map_blocks_covers_every_row_once(n_rows: int, rows: int) -> None:
    blocks = arrays.map_blocks(lambda s: list(range(n_rows))[s], n_rows, rows, np.zeros(1))
    assert [i for block in blocks for i in block] == list(range(n_rows))
    assert all(1 <= len(block) <= rows for block in blocks)


def test_block_rows_is_bounded_both_ways() -> None:
    like = np.zeros(1)
    assert arrays.block_rows(1 << 30, like) == arrays.MIN_BLOCK_ROWS
    assert arrays.block_rows(0, like) == arrays.BLOCK_ELEMENTS
    n = 20_000
    assert arrays.block_rows(n, like) * n <= arrays.BLOCK_ELEMENTS < (arrays.block_rows(n, like) + 1) * n


def test_block_rows_obeys_use_memory() -> None:
    n, usual = 1000, arrays.block_rows(1000, np.zeros(1))
    with arrays.use_threads(2), arrays.use_memory(0.125):
        # Two threads at a time and a few arrays a block: the numbers of all of them stay within the limit.
        rows = arrays.block_rows(n, np.zeros(1))
        assert 0 < rows * n * 8 * 2 < 2**27
        assert rows < usual
        assert arrays.block_rows(n, np.zeros(1, dtype="float32")) == pytest.approx(2 * rows, abs=2)
        assert arrays.block_rows(n, array_api_strict.zeros(1)) == pytest.approx(2 * rows, abs=2)
        assert arrays.block_rows(1 << 40, np.zeros(1)) == 1
        with arrays.use_memory(None):
            assert arrays.block_rows(n, np.zeros(1)) == usual
        assert arrays.block_rows(n, np.zeros(1)) == rows
    with arrays.use_memory(1000.0):
        assert arrays.block_rows(n, np.zeros(1)) == usual
    assert arrays.block_rows(n, np.zeros(1)) == usual


@pytest.mark.parametrize("gigabytes", [0.0, -1.0, float("nan")])
def test_use_memory_wants_some(gigabytes: float) -> None:
    message = f"max_memory={gigabytes} GiB should be positive"
    with pytest.raises(InputError, match=message), arrays.use_memory(gigabytes):
        pass


@pytest.mark.parametrize("n_threads", [1, 3])
def test_in_threads_keeps_the_order(n_threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.01 * (5 - item))
        return item * item

    with arrays.use_threads(n_threads):
        assert arrays.in_threads(work, range(6)) == [0, 1, 4, 9, 16, 25]
        assert arrays.in_threads(work, []) == []


def test_in_threads_passes_errors_on() -> None:
    def work(item: int) -> int:
        if item == 2:
            raise InputError("item two")
        return item

    with arrays.use_threads(2), pytest.raises(InputError, match="item two"):
        arrays.in_threads(work, range(4))


@pytest.mark.parametrize("times", [0, 1, 7])
def test_repeated_runs_the_step_so_many_times(library: Any, times: int) -> None:
    count = library(np.zeros(1))

    def step() -> None:
        count[0] += 1

    with arrays.Repeated(step, count) as repeated:
        repeated.run(times)
        assert int(count[0]) == times
        repeated.run(2)
    assert int(count[0]) == times + 2


# --------------------------------------------------------------------------- where to compute


def test_places_on_the_cpu() -> None:
    assert arrays.choose_place("cpu") == arrays.choose_place("cpu", "numpy") == Place("numpy", "cpu")
    assert arrays.choose_place("auto", "numpy") == Place("numpy", "cpu")
    x = np.ones((2, 3))
    assert Place("numpy", "cpu").put(x, "float64") is x
    assert Place("numpy", "cpu").put(x, "float32").dtype == np.float32
    assert str(Place("numpy", "cpu")) == "numpy"


def test_torch_on_the_cpu_is_a_place() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    place = arrays.choose_place("cpu", "torch")
    assert place == Place("torch", "cpu")
    assert str(place) == f"torch {torch.__version__} cpu"
    moved = place.put(np.ones((2, 3)), "float32")
    assert (moved.dtype, moved.device.type) == (torch.float32, "cpu")
    assert not arrays.is_cuda(moved)
    arrays.wait_for(moved)


@pytest.mark.parametrize("device", ["gpu", "", "cpu:0", "auto:1", "cuda:x", "cuda:-1"])
def test_an_unknown_device_is_refused(device: str) -> None:
    with pytest.raises(InputError, match=rf"device '{device}' is not known; expected auto, cpu, cuda or cuda:0"):
        arrays.choose_place(device)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(InputError, match=r"backend 'jax' is not known; expected one of auto, numpy, torch"):
        arrays.choose_place("cpu", "jax")


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_numpy_does_not_run_on_cuda(device: str) -> None:
    with pytest.raises(InputError, match=f"device '{device}' needs torch, but backend 'numpy' was asked for"):
        arrays.choose_place(device, "numpy")


@pytest.mark.parametrize(
    ("device", "library", "what"),
    [("cpu", "torch", "backend 'torch'"), ("auto", "torch", "backend 'torch'"), ("cuda", "auto", "device 'cuda'")],
)
def test_torch_that_is_missing_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, device: str, library: str, what: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf'{what} needs torch, which is not installed: pip install "qwp\[torch\]"'):
        arrays.choose_place(device, library)
    assert arrays.choose_place() == Place("numpy", "cpu")


@pytest.mark.parametrize(("found", "device"), [(0, "cuda"), (0, "cuda:0"), (2, "cuda:2")])
def test_a_cuda_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch, found: int, device: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(backend, "_cuda_devices", lambda: found)
    with pytest.raises(InputError, match=f"device '{device}' is not there: torch sees {found} CUDA devices; use"):
        arrays.choose_place(device)


def test_auto_takes_a_cuda_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(backend, "_cuda_devices", lambda: 2)
    assert arrays.choose_place() == arrays.choose_place("cuda") == Place("torch", "cuda:0")
    assert arrays.choose_place("cuda:1") == Place("torch", "cuda:1")
    assert arrays.choose_place("auto", "numpy") == arrays.choose_place("cpu") == Place("numpy", "cpu")


def test_auto_without_cuda_is_numpy_and_does_not_load_torch() -> None:
    if any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")):
        pytest.skip("a CUDA driver is here")
    program = (
        "import sys, numpy, qwp\n"
        "x = numpy.random.default_rng(0).standard_normal((60, 4))\n"
        "found = qwp.align(x, x, coreset_size=20, bank_size=2, epochs=1, steps=2)\n"
        "assert found.provenance.backend == 'numpy', found.provenance.backend\n"
        "assert 'torch' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr


# --------------------------------------------------------------------------- small operations of every library


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def library(request: pytest.FixtureRequest) -> Any:
    """A function that makes a float64 array of each library; torch only where it is installed."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
        return lambda x: arrays.choose_place("cpu", "torch").put(x.copy(), "float64")
    return (lambda x: x.copy()) if request.param == "numpy" else array_api_strict.asarray


@pytest.mark.parametrize("n", [5, 63, 64, 65, 640, 643, 3000])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("levels", [2, 10**6])
def test_top_k_on_torch_is_exact(n: int, k: int, levels: int) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    # Few levels make ties: only the values are then decided. 64 * k columns and more take the grouped path.
    x = np.random.default_rng(n + k).integers(levels, size=(4, n)) - levels / 2
    on_torch = arrays.choose_place("cpu", "torch").put(x, "float64")
    check_top_k(on_torch, k)
    np.testing.assert_array_equal(arrays.to_numpy(arrays.top_k(on_torch, k)[0]), arrays.top_k(x, k)[0])


@pytest.mark.parametrize("where", ["first", "last", "one group"])
def test_top_k_on_torch_when_the_best_lie_together(where: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    n, k = 16 * 50 + 9, 9
    x = np.random.default_rng(0).random((2, n))
    columns = {"first": np.arange(k), "last": np.arange(n - k, n), "one group": 7 + 50 * np.arange(k)}[where]
    x[:, columns] = 10 + np.arange(k)
    _, found = arrays.top_k(arrays.choose_place("cpu", "torch").put(x, "float64"), k)
    np.testing.assert_array_equal(arrays.to_numpy(found), np.tile(columns[::-1], (2, 1)))


def test_first_above_is_the_first_column_that_exceeds_the_target(library: Any) -> None:
    running = np.array([[1.0, 2.0, 2.0, 3.0]] * 6)
    target = np.array([0.0, 1.0, 1.5, 2.0, 2.5, 9.0])
    np.testing.assert_array_equal(
        arrays.to_numpy(arrays.first_above(library(running), library(target))), [0, 1, 1, 3, 3, 3]
    )


def test_first_above_against_a_loop(library: Any) -> None:
    rng = np.random.default_rng(4)
    running = np.cumsum(rng.integers(3, size=(50, 30)), axis=1).astype(float)
    target = rng.integers(60, size=50).astype(float)
    expected = [next((j for j, r in enumerate(row) if r > t), 29) for row, t in zip(running, target, strict=True)]
    np.testing.assert_array_equal(arrays.to_numpy(arrays.first_above(library(running), library(target))), expected)


def test_in_place_operations_write_where_they_are_told(library: Any) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal((3, 3)) for _ in range(3))
    out = library(np.zeros((3, 3)))
    assert arrays.matmul_into(out, library(a), library(b)) is out
    np.testing.assert_allclose(arrays.to_numpy(out), a @ b, atol=1e-14)
    arrays.minimum_into(out, library(c))
    np.testing.assert_allclose(arrays.to_numpy(out), np.minimum(a @ b, c), atol=1e-14)
    assert arrays.exp_in_place(out) is out
    np.testing.assert_allclose(arrays.to_numpy(out), np.exp(np.minimum(a @ b, c)), atol=1e-14)
    arrays.put_row(out, arrays.asarray(np.array([1]), out), library(c[0]))
    np.testing.assert_array_equal(arrays.to_numpy(out)[1], c[0])
    np.testing.assert_allclose(arrays.to_numpy(out)[2], np.exp(np.minimum(a @ b, c))[2], atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_affine_product(library: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(shape) for _ in range(3))
    given = [library(x) for x in (c, a, b)]
    found = arrays.affine_product(*given, alpha=-0.5, beta=3.0)
    np.testing.assert_allclose(arrays.to_numpy(found), 3.0 * c - 0.5 * (a @ b), atol=1e-13)
    for before, after in zip((c, a, b), given, strict=True):
        np.testing.assert_array_equal(arrays.to_numpy(after), before)


def test_run_sums(library: Any) -> None:
    a, b = np.arange(12.0).reshape(2, 6), np.full((2, 6), 2.0)
    found = arrays.run_sums(library(a), library(b), 3)
    np.testing.assert_array_equal(arrays.to_numpy(found), [[6, 24], [42, 60]])


def test_segment_sum_in_every_library(library: Any) -> None:
    rng = np.random.default_rng(7)
    values, weights, labels = rng.standard_normal((30, 3)), rng.random(30), rng.integers(5, size=30)
    made = library(values)
    found = arrays.segment_sum(made, arrays.asarray(labels, made), library(weights), 6)
    np.testing.assert_allclose(arrays.to_numpy(found), slow_segment_sum(values, labels, weights, 6), atol=1e-12)


def test_poisson_numbers_are_the_same_in_every_library(library: Any) -> None:
    like = library(np.zeros(1))
    found = arrays.poisson(arrays.rng(1), 2.5, (200, 100), like)
    assert found.dtype == like.dtype
    np.testing.assert_array_equal(arrays.to_numpy(found), arrays.rng(1).poisson(2.5, (200, 100)))


# --------------------------------------------------------------------------- the rest


def test_rng_is_reproducible_and_its_streams_differ() -> None:
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    draws = {(seed, key): tuple(arrays.rng(seed, *key).integers(2**63, size=4)) for seed in (0, 1) for key in keys}
    assert len(set(draws.values())) == len(draws)
    for (seed, key), expected in draws.items():
        assert tuple(arrays.rng(seed, *key).integers(2**63, size=4)) == expected


def test_rng_streams_are_uncorrelated() -> None:
    draws = np.stack([arrays.rng(5, stage, step).standard_normal(4000) for stage in (0, 1) for step in range(4)])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_move_between_libraries(dtype: str) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    assert arrays.to_numpy(x) is x
    moved = arrays.asarray(np.arange(3.0), like=array_api_strict.asarray(x))
    assert arrays.namespace(moved) is array_api_strict
    assert arrays.to_numpy(moved).dtype == x.dtype
    np.testing.assert_array_equal(arrays.to_numpy(array_api_strict.asarray(x)), x)


def test_asarray_leaves_integers_alone() -> None:
    like = np.zeros(1, dtype=np.float32)
    assert arrays.asarray(np.arange(3), like).dtype == np.arange(3).dtype
    assert arrays.asarray(np.arange(3.0), like).dtype == np.float32
    assert arrays.asarray(np.arange(3), like, dtype=np.float64).dtype == np.float64


def test_check_dtype() -> None:
    assert arrays.check_dtype("float32") == "float32"
    with pytest.raises(InputError, match=r"'float16' is not known; expected one of float32, float64"):
        arrays.check_dtype("float16")


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_eps(xp: Any) -> None:
    assert arrays.eps(xp.zeros(1, dtype=xp.float32)) == np.finfo(np.float32).eps
    assert arrays.eps(xp.zeros(1, dtype=xp.float64)) == np.finfo(np.float64).eps
