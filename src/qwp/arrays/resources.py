"""How much of the machine to use: threads, memory, and computations cut into blocks of rows."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from qwp.arrays.namespaces import Array, is_cuda, namespace
from qwp.arrays.operations import contiguous
from qwp.errors import at_least, positive


@dataclass(frozen=True)
class Library:
    """A library with threads: how many it has now, and the function that changes that.

    separate: each Python thread has a number of its own, as in OpenMP.
    """

    threads: int
    change: Callable[[int], object]
    separate: bool = False


class SharedLimit:
    """A limit of some libraries that each Python thread may set for a while.

    The innermost limit of each thread counts, and the lowest of these is in force; in a library with separate numbers,
    that of the thread. When all threads have left, in whatever order, each library has the number that it had before.

    libraries: returns what can be limited now, by name. What is loaded later is limited with the next change.
    """

    def __init__(self, libraries: Callable[[], dict[str, Library]]) -> None:
        self._libraries = libraries
        self._lock = Lock()
        self._limits: dict[object, tuple[int, int]] = {}
        self._before: dict[str, int] = {}

    @contextmanager
    def at(self, limit: int) -> Iterator[None]:
        """Keep the libraries at this number of threads, or at a lower one that another Python thread has set."""
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
        """Set what the limits amount to. A dict keeps its order: the last limit of a thread is its innermost."""
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
    # Libraries that bring a BLAS of their own may be loaded later.
    controllers = _controller_of(*(name in sys.modules for name in ("torch", "faiss", "scipy.linalg"))).lib_controllers
    return {each.filepath: _library(each) for each in controllers if each.user_api == "blas"}


def _library(controller: Any) -> Library:
    # Since 3.8 threadpoolctl lets one Python thread alone change OpenBLAS, until that thread lets go of it, and gives
    # each thread a number of its own where OpenBLAS uses OpenMP.
    let_go = getattr(type(controller), "clear_controlling_thread", None)
    if let_go is None:
        return Library(controller.num_threads, controller.set_num_threads)

    def change(number: int) -> None:
        let_go(force=True)
        controller.set_num_threads(number)
        let_go(force=True)

    return Library(controller.num_threads, change, separate=controller.threading_layer == "openmp")


@lru_cache(maxsize=8)
def _controller_of(*loaded: bool) -> ThreadpoolController:
    return ThreadpoolController()


def _torch() -> dict[str, Library]:
    torch = sys.modules.get("torch")
    return {} if torch is None else {"torch": Library(torch.get_num_threads(), torch.set_num_threads, separate=True)}


BLAS = SharedLimit(_blas)
TORCH = SharedLimit(_torch)


# One block of similarities holds about this many numbers: large enough for an efficient matrix product,
# small enough that a handful of them per thread never shows in the memory of a run.
BLOCK_ELEMENTS = 1 << 23
MIN_BLOCK_ROWS = 64
# A GPU needs more work at a time: 1 GiB of float32.
GPU_BLOCK_ELEMENTS = 1 << 28
# A block is read and written through a few temporary arrays of its size.
_ARRAYS_PER_BLOCK = 4
# A block of about this many numbers stays in the second-level cache through several passes.
CACHE_ELEMENTS = 1 << 17

S = TypeVar("S")
T = TypeVar("T")
_n_threads: ContextVar[int | None] = ContextVar("qwp_threads", default=None)
_max_memory: ContextVar[int | None] = ContextVar("qwp_max_memory", default=None)


@lru_cache(maxsize=4)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="qwp")


def threads() -> int:
    """How many threads array work may use now."""
    chosen = _n_threads.get()
    if chosen is not None:
        return chosen
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@contextmanager
def use_threads(n: int | None) -> Iterator[None]:
    """Limit BLAS and the block loops to `n` threads inside the context (None: all the process may use).

    BLAS has one number for the whole process: while several Python threads are inside such contexts, it uses the lowest
    of their numbers.
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
    """Bound the blocks of the blocked computations inside the context to so many GiB (None: the usual size)."""
    if gigabytes is not None:
        positive(max_memory=gigabytes)
    token = _max_memory.set(None if gigabytes is None else int(gigabytes * 2**30))
    try:
        yield
    finally:
        _max_memory.reset(token)


def block_rows(n_columns: int, like: Array) -> int:
    """How many rows of `n_columns` numbers make one block of a computation on arrays like this one."""
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
    """Into how many blocks of rows to cut (n_rows, n_columns) numbers so that each fits the cache.

    One for libraries other than NumPy, which parallelise a whole array by themselves. More than one is a
    multiple of four, so that few threads share them evenly; it never depends on the number of threads.
    """
    if not isinstance(like, np.ndarray) or n_rows * n_columns <= CACHE_ELEMENTS:
        return 1
    needed = -(-n_rows * n_columns // CACHE_ELEMENTS)
    return min(n_rows, -(-needed // 4) * 4)


def map_blocks(function: Callable[[slice], T], n_rows: int, rows: int, like: Array) -> list[T]:
    """Call `function` on consecutive row slices and return the results in order.

    NumPy blocks run on a thread pool with a single BLAS thread each: the passes around the matrix product
    (top-k, maxima) are single-threaded in NumPy, so two blocks at a time beat one block on two threads.
    """
    slices = [slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows)]
    workers = min(threads(), len(slices))
    if not isinstance(like, np.ndarray) or workers < 2:
        return [function(s) for s in slices]
    results: list[Any] = [None] * len(slices)
    waiting = deque(enumerate(slices))

    def work() -> None:
        # Each thread takes the next block as long as there is one, which costs less than a task for every block.
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
            waiting.clear()  # an error or an interrupt: nobody waits for the rest
            raise
        finally:
            for other in others:
                other.result()
    return results


def turned(x: Array, square: int = 256) -> Array:
    """The transpose of x (n, m) laid out row after row, (m, n): on the host in squares that fit the cache.

    square: their side.
    """
    if not isinstance(x, np.ndarray):
        return contiguous(x.T)
    n, m = x.shape
    found = np.empty((m, n), dtype=x.dtype)

    def block(rows: slice) -> None:
        for start in range(0, n, square):
            found[rows, start : start + square] = x[start : start + square, rows].T

    map_blocks(block, m, square, x)
    return found


def side_by_side(function: Callable[[S], T], items: Sequence[S], like: Array) -> list[T]:
    """`function` of every item at the same time, with one thread for each, where arrays are NumPy's.

    For steps that are too small to be shared: two of them on two threads beat one after the other on both. Each is
    computed with one BLAS thread: on the same machine with the same BLAS the results are the same whatever the number
    of threads.
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


def in_threads(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """`function` of every item, in threads: for work that frees the interpreter, such as hashing."""
    workers = min(threads(), len(items))
    return [function(item) for item in items] if workers < 2 else list(_pool(workers).map(function, items))
