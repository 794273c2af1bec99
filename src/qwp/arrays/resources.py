"""Limits of threads and memory, computations in blocks of rows, and a cache of bounded size."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any, Generic, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from qwp.arrays.namespaces import Array, is_cuda, namespace
from qwp.arrays.operations import contiguous
from qwp.errors import at_least, positive


@dataclass(frozen=True)
class Library:
    """The thread pool of a native library: its size now, and the function that changes it.

    separate: each Python thread has its own size, as in OpenMP.
    """

    threads: int
    change: Callable[[int], object]
    separate: bool = False


class SharedLimit:
    """A limit on the thread pools of native libraries, which each Python thread may set for a while.

    The innermost limit of each Python thread counts, and the lowest of these limits applies. A library with separate
    sizes has the limit of the Python thread. When all Python threads have left, each library has its original size.

    libraries: returns the libraries that are loaded, by name. Later ones are limited at the next change.
    """

    def __init__(self, libraries: Callable[[], dict[str, Library]]) -> None:
        self._libraries = libraries
        self._lock = Lock()
        self._limits: dict[object, tuple[int, int]] = {}
        self._before: dict[str, int] = {}

    @contextmanager
    def at(self, limit: int) -> Iterator[None]:
        """Limit the libraries to this number of threads, or to a lower limit of another Python thread."""
        token, me = object(), get_ident()
        with self._lock:
            self._limits[token] = me, limit
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                del self._limits[token]
                self._apply()

    def _apply(self) -> None:
        """Apply the limits. Dicts are ordered, so the last limit of a Python thread is its innermost."""
        innermost = dict(self._limits.values())
        own, lowest = innermost.get(get_ident()), min(innermost.values(), default=None)
        for name, library in self._libraries().items():
            before, wanted = self._before.setdefault(name, library.threads), own if library.separate else lowest
            number = before if wanted is None else wanted
            if library.threads != number:
                library.change(number)
        if not innermost:
            self._before.clear()


def _blas() -> dict[str, Library]:
    # Libraries with a BLAS of their own may be loaded later.
    controllers = _controller_of(*(name in sys.modules for name in ("torch", "faiss", "scipy.linalg"))).lib_controllers
    return {each.filepath: _library(each) for each in controllers if each.user_api == "blas"}


def _library(controller: Any) -> Library:
    # From threadpoolctl 3.8 on, one Python thread controls OpenBLAS until it releases the control; with OpenMP each
    # thread has its own size.
    release = getattr(type(controller), "clear_controlling_thread", None)
    if release is None:
        return Library(controller.num_threads, controller.set_num_threads)

    def change(number: int) -> None:
        release(force=True)
        controller.set_num_threads(number)
        release(force=True)

    return Library(controller.num_threads, change, separate=controller.threading_layer == "openmp")


@lru_cache(maxsize=8)
def _controller_of(*loaded: bool) -> ThreadpoolController:
    return ThreadpoolController()


def _torch() -> dict[str, Library]:
    torch = sys.modules.get("torch")
    return {} if torch is None else {"torch": Library(torch.get_num_threads(), torch.set_num_threads, separate=True)}


BLAS = SharedLimit(_blas)
TORCH = SharedLimit(_torch)


# Numbers in a block of similarities: enough for an efficient matrix product, and a few per thread are negligible in the
# memory of a run.
BLOCK_ELEMENTS = 1 << 23
MIN_BLOCK_ROWS = 64
# Numbers in a block on a GPU, which needs more work at a time: 1 GiB of float32.
GPU_BLOCK_ELEMENTS = 1 << 28
# Temporary arrays of the size of a block, for the limit of the memory.
_ARRAYS_PER_BLOCK = 4
# Numbers in a block that fits the second-level cache.
CACHE_ELEMENTS = 1 << 17

S = TypeVar("S")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
_n_threads: ContextVar[int | None] = ContextVar("qwp_threads", default=None)
_max_memory: ContextVar[int | None] = ContextVar("qwp_max_memory", default=None)


@lru_cache(maxsize=4)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="qwp")


def threads() -> int:
    """Return the number of threads that array operations may use."""
    chosen = _n_threads.get()
    if chosen is not None:
        return chosen
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@contextmanager
def use_threads(n: int | None) -> Iterator[None]:
    """Limit BLAS and block loops to n threads in the context. None: all threads that the process may use.

    BLAS has one limit for the whole process: the lowest of all Python threads in such a context.
    """
    if n is not None:
        at_least(1, threads=n)
    token = _n_threads.set(n)
    try:
        with TORCH.at(threads()), BLAS.at(threads()):
            yield
    finally:
        _n_threads.reset(token)


@contextmanager
def use_memory(gigabytes: float | None) -> Iterator[None]:
    """Limit the memory of blocks in the context. gigabytes: in GiB, None for the default size of blocks."""
    if gigabytes is not None:
        positive(max_memory=gigabytes)
    token = _max_memory.set(None if gigabytes is None else int(gigabytes * 2**30))
    try:
        yield
    finally:
        _max_memory.reset(token)


def block_rows(n_columns: int, like: Array) -> int:
    """Return the number of rows of `n_columns` numbers in a block of a computation on arrays like this one."""
    elements = GPU_BLOCK_ELEMENTS if is_cuda(like) else BLOCK_ELEMENTS
    rows = max(MIN_BLOCK_ROWS, elements // max(1, n_columns))
    limit = _max_memory.get()
    if limit is None:
        return rows
    at_a_time = threads() if isinstance(like, np.ndarray) else 1
    bytes_each = namespace(like).finfo(like.dtype).bits // 8
    allowed = limit // (_ARRAYS_PER_BLOCK * at_a_time * bytes_each)
    return int(max(1, min(rows, allowed // max(1, n_columns))))


def cache_blocks(n_rows: int, n_columns: int, like: Array) -> int:
    """Return the number of blocks of rows of (n_rows, n_columns) numbers such that each fits the cache.

    Other libraries than NumPy parallelise whole arrays and get one block. Several blocks are a multiple of four, which
    few threads share evenly. The number never depends on the number of threads.
    """
    if not isinstance(like, np.ndarray) or n_rows * n_columns <= CACHE_ELEMENTS:
        return 1
    needed = -(-n_rows * n_columns // CACHE_ELEMENTS)
    return min(n_rows, -(-needed // 4) * 4)


def map_blocks(function: Callable[[slice], T], n_rows: int, rows: int, like: Array) -> list[T]:
    """Call `function` on consecutive slices of rows and return the results in order.

    Blocks of NumPy run on a thread pool with one BLAS thread each. The passes around a matrix product (top-k, maxima)
    are single-threaded in NumPy, so two blocks on one thread each are faster than one block on two threads.
    """
    slices = [slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows)]
    workers = min(threads(), len(slices))
    if not isinstance(like, np.ndarray) or workers < 2:
        return [function(s) for s in slices]
    results: list[Any] = [None] * len(slices)
    waiting = deque(enumerate(slices))

    def work() -> None:
        # Threads take blocks from a queue, which costs less than a task for each block.
        while waiting:
            try:
                i, rows = waiting.popleft()
            except IndexError:
                return
            results[i] = function(rows)

    with BLAS.at(1):
        others = [_pool(workers - 1).submit(work) for _ in range(workers - 1)]
        try:
            work()
        except BaseException:
            waiting.clear()  # an error or an interrupt: skip the other blocks
            raise
        finally:
            for other in others:
                other.result()
    return results


def transposed(x: Array, square: int = 256) -> Array:
    """Return the transpose of x (n, m) in C order, (m, n). square: side of the tiles that NumPy copies."""
    if not isinstance(x, np.ndarray):
        return contiguous(x.T)
    n, m = x.shape
    found = np.empty((m, n), dtype=x.dtype)

    def block(rows: slice) -> None:
        for start in range(0, n, square):
            found[rows, start : start + square] = x[start : start + square, rows].T

    map_blocks(block, m, square, x)
    return found


def parallel_map(function: Callable[[S], T], items: Sequence[S], like: Array) -> list[T]:
    """Return `function` of every item, computed in parallel with one thread for each if the arrays are NumPy's.

    Small computations are faster in parallel than one after the other on several threads. Each uses one BLAS thread,
    so on one machine the results do not depend on the number of threads.
    """
    workers = min(threads(), len(items))
    if not isinstance(like, np.ndarray):
        return [function(item) for item in items]

    def alone(item: S) -> T:
        _n_threads.set(1)
        return function(item)

    with BLAS.at(1):
        if workers < 2:
            return [copy_context().run(alone, item) for item in items]
        begun = [_pool(workers).submit(copy_context().run, alone, item) for item in items]
        return [each.result() for each in begun]


def thread_map(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return `function` of every item, computed in threads. For work that releases the GIL, such as hashing."""
    workers = min(threads(), len(items))
    return [function(item) for item in items] if workers < 2 else list(_pool(workers).map(function, items))


class LRUCache(Generic[K, T]):
    """A thread-safe cache that drops the least recently used values when it is full.

    Two threads that need the same value at the same time both compute it; the first to add it wins.

    Args:
        max_size: size of all values together.
        size: returns the size of a value; by default each counts as 1.
        min_items: number of values that stay whatever their size.
    """

    def __init__(self, max_size: int, size: Callable[[T], int] = lambda value: 1, min_items: int = 0) -> None:
        self._max_size, self._size, self._min_items = max_size, size, min_items
        self._lock = Lock()
        self._values: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: K, value: T) -> T:
        """Add a value unless the key has one; return the value of the key, even if it is too large to stay."""
        with self._lock:
            found = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self._min_items and sum(map(self._size, self._values.values())) > self._max_size:
                self._values.popitem(last=False)
            return found

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()
