"""How much of the machine to use: threads, memory, and computations cut into blocks of rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from qwp.arrays.limits import BLAS, TORCH
from qwp.arrays.namespaces import is_cuda, namespace
from qwp.arrays.operations import contiguous
from qwp.arrays.types import Array
from qwp.checks import at_least, positive

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
