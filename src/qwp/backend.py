"""The only file that knows which array library is in use.

Algorithms ask `namespace(x)` for the array API of their inputs and stay inside that standard; what the
standard lacks (top-k, segment sums, moving data, threads) is here, once for each library that deserves a fast
path, with a fallback in pure array-API terms for every other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import array_api_compat
import numpy as np
import scipy.sparse
from threadpoolctl import ThreadpoolController

from qwp.errors import InputError

Array: TypeAlias = Any
"""Any array that follows the array API standard."""

DTYPES = ("float32", "float64")

# One block of similarities holds about this many numbers: large enough for an efficient matrix product,
# small enough that a handful of them per thread never shows in the memory of a run.
BLOCK_ELEMENTS = 1 << 22
MIN_BLOCK_ROWS = 64
# A block of about this many numbers stays in the second-level cache through several passes.
CACHE_ELEMENTS = 1 << 17

T = TypeVar("T")
_n_threads: ContextVar[int | None] = ContextVar("qwp_threads", default=None)


def namespace(*arrays: Array) -> Any:
    """The array API namespace that the arrays share."""
    return array_api_compat.array_namespace(*arrays)


def to_numpy(x: Array) -> np.ndarray:
    """The array in host memory as NumPy, without a copy where none is needed."""
    if isinstance(x, np.ndarray):
        return x
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu())
    return np.asarray(np.from_dlpack(x))


def asarray(x: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """`x` as an array of the library and device of `like`; floating data takes the dtype of `like`."""
    xp = namespace(like)
    if dtype is None and np.issubdtype(x.dtype, np.floating):
        dtype = like.dtype
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def device(x: Array) -> Any:
    """The device the array lives on."""
    return array_api_compat.device(x)


def check_dtype(dtype: str) -> str:
    """Return `dtype` if it is one qwp computes in."""
    if dtype not in DTYPES:
        raise InputError(f"dtype={dtype!r} is not known; expected one of {', '.join(DTYPES)}")
    return dtype


def eps(x: Array) -> float:
    """Machine precision of the array's dtype."""
    return float(namespace(x).finfo(x.dtype).eps)


def rng(seed: int, *key: int) -> np.random.Generator:
    """An independent random stream for each (seed, key).

    Every stage and every step has a key of its own, so the draws of one never depend on how many another
    made. That is what lets an interrupted run continue to the same result.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=key))


# --------------------------------------------------------------------------- threads


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


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
    """Limit BLAS and the block loops to `n` threads inside the context (None: all the process may use)."""
    if n is not None and n < 1:
        raise InputError(f"threads={n} should be at least 1")
    token = _n_threads.set(n)
    try:
        with _controller().limit(limits=threads(), user_api="blas"):
            yield
    finally:
        _n_threads.reset(token)


def block_rows(n_columns: int) -> int:
    """How many rows of `n_columns` numbers make one block."""
    return max(MIN_BLOCK_ROWS, BLOCK_ELEMENTS // max(1, n_columns))


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
    with _controller().limit(limits=1, user_api="blas"):
        return list(_pool(workers).map(function, slices))


# --------------------------------------------------------------------------- what the standard lacks


def top_k(x: Array, k: int) -> tuple[Array, Array]:
    """The k largest entries of each row, largest first.

    x: (b, n). Returns values (b, k) and column indices (b, k). k is clamped to n.
    """
    if k < 1:
        raise InputError(f"k={k} should be at least 1")
    k = min(k, x.shape[1])
    if isinstance(x, np.ndarray):
        return _numpy_top_k(x, k)
    if array_api_compat.is_torch_array(x):
        found = x.topk(k, dim=1)
        return found.values, found.indices
    xp = namespace(x)
    order = xp.argsort(x, axis=1, descending=True, stable=True)[:, :k]
    return xp.take_along_axis(x, order, axis=1), order


def _numpy_top_k(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact top-k at about the cost of one pass over `x`.

    The columns are dealt into groups; the k largest entries can only lie in the k groups with the largest
    maxima, and the maxima are one vectorised pass. `np.argpartition` then sees hundreds of candidates, not
    tens of thousands.
    """
    n = x.shape[1]
    group = 32
    if n < 4 * group * k:
        return _partition_top_k(x, np.broadcast_to(np.arange(n), x.shape), k)
    m = n // group
    maxima = x[:, : m * group].reshape(x.shape[0], group, m).max(axis=1)
    best = np.argpartition(maxima, m - k, axis=1)[:, m - k :]
    members = (best[:, :, None] + np.arange(group) * m).reshape(x.shape[0], k * group)
    rest = np.broadcast_to(np.arange(m * group, n), (x.shape[0], n - m * group))
    columns = np.concatenate([members, rest], axis=1)
    return _partition_top_k(np.take_along_axis(x, columns, axis=1), columns, k)


def _partition_top_k(values: np.ndarray, columns: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = values.shape[1]
    if k == 1:
        chosen = values.argmax(axis=1)[:, None]
    else:
        chosen = (
            np.argpartition(values, n - k, axis=1)[:, n - k :] if k < n else np.broadcast_to(np.arange(n), values.shape)
        )
        order = np.argsort(-np.take_along_axis(values, chosen, axis=1), axis=1, kind="stable")
        chosen = np.take_along_axis(chosen, order, axis=1)
    return np.take_along_axis(values, chosen, axis=1), np.take_along_axis(columns, chosen, axis=1)


def contiguous(x: Array) -> Array:
    """The same array laid out row after row, where the library lets one say so."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return x.contiguous() if array_api_compat.is_torch_array(x) else x


def exp_in_place(x: Array) -> Array:
    """exp(x), reusing the memory of `x` where the library allows it."""
    return np.exp(x, out=x) if isinstance(x, np.ndarray) else namespace(x).exp(x)


def segment_sum(values: Array, labels: Array, weights: Array, n_segments: int) -> Array:
    """Weighted sums of rows by label.

    values: (n, d); labels: (n,) integers below `n_segments`; weights: (n,). Returns (n_segments, d).
    """
    if isinstance(values, np.ndarray):
        n = labels.shape[0]
        selector = scipy.sparse.csr_matrix((weights, (labels, np.arange(n))), shape=(n_segments, n))
        return np.asarray(selector @ values)
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        sums = xp.zeros((n_segments, values.shape[1]), dtype=values.dtype, device=device(values))
        return sums.index_add(0, labels, values * weights[:, None])
    rows = [
        xp.sum(
            xp.where(xp.expand_dims(labels == s, axis=1), values * xp.expand_dims(weights, axis=1), 0.0),
            axis=0,
        )
        for s in range(n_segments)
    ]
    return xp.stack(rows)
