"""Threads, memory and blocks of rows."""

from __future__ import annotations

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from qwp import arrays
from qwp.arrays.resources import BLAS, MIN_BLOCK_ROWS, Library, LRUCache, SharedLimit
from qwp.errors import InputError
from tests.libraries import as_strict, assert_same


def blas_threads() -> set[int]:
    """Return the threads of the BLAS of NumPy; other libraries may have loaded another one."""
    found = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    of_numpy = [pool for pool in found if "numpy" in pool["filepath"]]
    return {pool["num_threads"] for pool in of_numpy or found}


def test_use_threads_limits_and_restores() -> None:
    before, blas_before = arrays.threads(), blas_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with arrays.use_threads(1):
        assert arrays.threads() == 1
        assert blas_threads() == {1}
        with arrays.use_threads(2):
            assert arrays.threads() == 2
        assert arrays.threads() == 1
        assert blas_threads() == {1}
        with arrays.use_threads(None):
            assert arrays.threads() == cores
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
    # The early blocks are slow, so results in the order of completion would be reversed.
    def work(rows: slice) -> tuple[int, int]:
        time.sleep(0.003 * (5 - rows.start // 4))
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
        idents = arrays.map_blocks(work, 8, 1, as_strict(np.zeros(1)))
    assert set(idents) == {threading.get_ident()}


def test_map_blocks_passes_errors_on() -> None:
    def work(rows: slice) -> int:
        if rows.start == 2:
            raise InputError("block two")
        return int(rows.start)

    with arrays.use_threads(2), pytest.raises(InputError, match="block two"):
        arrays.map_blocks(work, 6, 2, np.zeros(1))


@given(n_rows=st.integers(0, 50), rows=st.integers(1, 60))
@settings(max_examples=40)
def test_map_blocks_covers_every_row_once(n_rows: int, rows: int) -> None:
    blocks = arrays.map_blocks(lambda s: list(range(n_rows))[s], n_rows, rows, np.zeros(1))
    assert [i for block in blocks for i in block] == list(range(n_rows))
    assert all(1 <= len(block) <= rows for block in blocks)


def test_block_rows_is_bounded_both_ways() -> None:
    like = np.zeros(1)
    assert arrays.block_rows(1 << 30, like) == MIN_BLOCK_ROWS
    assert arrays.block_rows(0, like) == arrays.BLOCK_ELEMENTS
    n = 20_000
    assert arrays.block_rows(n, like) * n <= arrays.BLOCK_ELEMENTS < (arrays.block_rows(n, like) + 1) * n


def test_block_rows_obeys_use_memory() -> None:
    n, usual = 1000, arrays.block_rows(1000, np.zeros(1))
    with arrays.use_threads(2), arrays.use_memory(0.125):
        # The arrays of the blocks of two threads are within the limit.
        rows = arrays.block_rows(n, np.zeros(1))
        assert 0 < rows * n * 8 * 2 < 2**27
        assert rows < usual
        assert arrays.block_rows(n, np.zeros(1, dtype="float32")) == pytest.approx(2 * rows, abs=2)
        assert arrays.block_rows(n, as_strict(np.zeros(1))) == pytest.approx(2 * rows, abs=2)
        assert arrays.block_rows(1 << 40, np.zeros(1)) == 1
        with arrays.use_memory(None):
            assert arrays.block_rows(n, np.zeros(1)) == usual
        assert arrays.block_rows(n, np.zeros(1)) == rows
    with arrays.use_memory(1000.0):
        assert arrays.block_rows(n, np.zeros(1)) == usual
    assert arrays.block_rows(n, np.zeros(1)) == usual


@pytest.mark.parametrize("gigabytes", [0.0, -1.0, float("nan")])
def test_use_memory_wants_some(gigabytes: float) -> None:
    message = f"max_memory={gigabytes} should be positive and finite"
    with pytest.raises(InputError, match=message), arrays.use_memory(gigabytes):
        pass


@pytest.mark.parametrize("n_threads", [1, 3])
def test_thread_map_keeps_the_order(n_threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.003 * (5 - item))
        return item * item

    with arrays.use_threads(n_threads):
        assert arrays.thread_map(work, range(6)) == [0, 1, 4, 9, 16, 25]
        assert arrays.thread_map(work, []) == []


def test_thread_map_passes_errors_on() -> None:
    def work(item: int) -> int:
        if item == 2:
            raise InputError("item two")
        return item

    with arrays.use_threads(2), pytest.raises(InputError, match="item two"):
        arrays.thread_map(work, range(4))


def test_the_cut_into_blocks_depends_on_sizes_only() -> None:
    x = np.zeros((1, 1))
    for n, size in ((5000, 1), (5000, 32), (20_000, 32), (7, 100_000)):
        with arrays.use_threads(1):
            one = arrays.cache_blocks(n, size, x)
        with arrays.use_threads(3):
            assert arrays.cache_blocks(n, size, x) == one
        assert 1 <= one <= n
        assert one == 1 or -(-n // one) * size <= arrays.CACHE_ELEMENTS or one == n
        assert arrays.cache_blocks(n, size, as_strict(np.zeros(1))) == 1


@given(n=st.integers(0, 12), m=st.integers(0, 12), square=st.integers(1, 5), workers=st.integers(1, 3))
@settings(max_examples=40)
def test_a_transpose_is_laid_out_row_after_row(n: int, m: int, square: int, workers: int) -> None:
    x = np.arange(float(n * m)).reshape(n, m)
    with arrays.use_threads(workers):
        found = arrays.transposed(x, square)
    assert isinstance(found, np.ndarray)
    assert found.flags.c_contiguous
    assert_same(found, x.T)
    assert_same(arrays.transposed(as_strict(x)), x.T)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_parallel_map_each_has_one_thread(workers: int) -> None:
    before = blas_threads()
    # Passing the barrier takes two threads at once.
    barrier = threading.Barrier(min(2, workers), timeout=20)

    def seen(item: int) -> tuple[int, int, set[int], int]:
        if item < 2:
            barrier.wait()
        return item, arrays.threads(), blas_threads(), threading.get_ident()

    with arrays.use_threads(workers):
        found = arrays.parallel_map(seen, range(4), np.zeros(1))
        assert arrays.threads() == workers
    assert [item for item, *_ in found] == [0, 1, 2, 3]
    assert all(count == 1 and blas == {1} for _, count, blas, _ in found)
    assert (len({ident for *_, ident in found}) > 1) is (workers > 1)
    assert blas_threads() == before
    # Other libraries have their own threads.
    barrier = threading.Barrier(1)
    assert arrays.parallel_map(seen, (0,), as_strict(np.zeros(1)))[0][1:3] == (arrays.threads(), before)


def test_parallel_map_raises_errors_and_restores_the_threads() -> None:
    before = blas_threads()
    with arrays.use_threads(2), pytest.raises(ZeroDivisionError):
        arrays.parallel_map(lambda item: 1 // item, (1, 0), np.zeros(1))
    assert blas_threads() == before


def test_parallel_map_keeps_the_bound_on_memory() -> None:
    like = np.zeros(1, dtype=np.float32)
    with arrays.use_threads(2), arrays.use_memory(1e-6):
        rows = arrays.parallel_map(lambda _: arrays.block_rows(10, like), (0, 1), like)
    assert max(rows) < arrays.block_rows(10, like)


class Fake:
    """A stand-in for a library with a thread pool."""

    def __init__(self, number: int = 8) -> None:
        self.number = number
        self.changes = 0

    def set(self, number: int) -> None:
        self.number = number
        self.changes += 1


class Inside:
    """A Python thread that stays in a limit until it is released."""

    def __init__(self, limit: SharedLimit, number: int) -> None:
        self._entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(limit, number))
        self._thread.start()
        assert self._entered.wait(20)

    def _run(self, limit: SharedLimit, number: int) -> None:
        with limit.at(number):
            self._entered.set()
            self._leave.wait(20)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def library() -> Fake:
    return Fake()


@pytest.fixture
def limit(library: Fake) -> SharedLimit:
    return SharedLimit(lambda: {"one": Library(library.number, library.set)})


def test_the_innermost_limit_of_a_thread_is_in_force(library: Fake, limit: SharedLimit) -> None:
    with limit.at(2):
        with limit.at(4):
            assert library.number == 4
        assert library.number == 2
        with limit.at(2):
            assert library.number == 2
    assert library.number == 8
    assert library.changes == 4  # nothing is set to what it is


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_threads_may_leave_in_any_order(library: Fake, limit: SharedLimit, order: tuple[int, ...]) -> None:
    inside = {number: Inside(limit, number) for number in (3, 1, 2)}
    assert library.number == 1
    for number in order:
        inside.pop(number).leave()
        assert library.number == min(inside, default=8)


def test_contexts_of_one_thread_may_be_left_in_any_order(library: Fake, limit: SharedLimit) -> None:
    outer, inner = limit.at(3), limit.at(5)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert library.number == 5
    inner.__exit__(None, None, None)
    assert library.number == 8


def test_limits_of_many_threads_restore_the_original_size(library: Fake, limit: SharedLimit) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            with ExitStack() as stack:
                for number in (rng.randint(1, 6) for _ in range(rng.randint(1, 3))):
                    stack.enter_context(limit.at(number))
                    if library.number > number:
                        wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert library.number == 8


def test_a_library_that_is_loaded_later_is_restored_as_well() -> None:
    libraries = {"one": Fake(8)}
    limit = SharedLimit(lambda: {name: Library(each.number, each.set) for name, each in libraries.items()})
    with limit.at(2):
        libraries["two"] = Fake(5)
        with limit.at(1):
            assert [each.number for each in libraries.values()] == [1, 1]
        assert [each.number for each in libraries.values()] == [2, 2]
    assert [each.number for each in libraries.values()] == [8, 5]


def test_numbers_of_separate_threads_do_not_mix() -> None:
    numbers: dict[int, int] = {}

    def change(number: int) -> None:
        numbers[threading.get_ident()] = number

    limit = SharedLimit(lambda: {"one": Library(numbers.get(threading.get_ident(), 8), change, separate=True)})
    inside, leave, found = threading.Event(), threading.Event(), []

    def other() -> None:
        with limit.at(1):
            inside.set()
            leave.wait(20)
            found.append(numbers[threading.get_ident()])
        found.append(numbers[threading.get_ident()])

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(20)
    with limit.at(3):
        assert numbers[threading.get_ident()] == 3
        leave.set()
        thread.join(20)
        assert numbers[threading.get_ident()] == 3
    assert numbers[threading.get_ident()] == 8
    assert found == [1, 8]


def test_an_error_inside_restores(library: Fake, limit: SharedLimit) -> None:
    with pytest.raises(ZeroDivisionError), limit.at(1):
        _ = 1 / 0
    assert library.number == 8


def test_blas_keeps_its_threads_when_several_python_threads_compute() -> None:
    before = blas_threads()
    with BLAS.at(1):  # threadpoolctl lets the thread that has changed OpenBLAS first keep it
        pass
    entered, leave = threading.Barrier(3, timeout=20), threading.Event()

    def compute(number: int) -> None:
        with arrays.use_threads(number):
            entered.wait()
            leave.wait(20)
            for _ in range(5):
                arrays.parallel_map(lambda item: np.eye(3) * item, (1, 2), np.zeros(1))
                arrays.map_blocks(lambda rows: rows.start, 4, 1, np.zeros(1))

    threads = [threading.Thread(target=compute, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    entered.wait()
    assert blas_threads() == {1}
    leave.set()
    for thread in threads:
        thread.join(30)
    assert blas_threads() == before
    with BLAS.at(1):
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_cache_keeps_the_most_recently_used_keys() -> None:
    cache: LRUCache[str, int] = LRUCache(3)
    for number, key in enumerate("abc"):
        cache.add(key, number)
    assert cache.get("a") == 0
    cache.add("d", 3)
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]
    cache.clear()
    assert cache.get("a") is None


def test_cache_keeps_the_first_value_of_a_key() -> None:
    cache: LRUCache[str, list[int]] = LRUCache(2)
    first = cache.add("a", [])
    assert cache.add("a", [1]) is first
    assert cache.get("a") is first


def test_cache_is_thread_safe() -> None:
    cache: LRUCache[str, dict[int, int]] = LRUCache(4)

    def work(number: int) -> bool:
        # More keys than the cache holds: each thread evicts those of the others.
        for step in range(500):
            key = f"key {(number + step) % 6}"
            cache.add(key, {})[number] = step
            found = cache.get(key)
            if found is not None and not isinstance(found, dict):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert sum(cache.get(f"key {number}") is not None for number in range(6)) == 4
