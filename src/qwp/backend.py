"""The only file that knows which array library is in use.

Algorithms ask `namespace(x)` for the array API of their inputs and stay inside that standard; what the
standard lacks (top-k, segment sums, moving data, threads) is here, once for each library that deserves a fast
path, with a fallback in pure array-API terms for every other.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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
BACKENDS = ("auto", "numpy", "torch")

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
    if isinstance(dtype, str):
        dtype = getattr(xp, dtype)
    elif dtype is None and np.issubdtype(x.dtype, np.floating):
        dtype = like.dtype
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def device(x: Array) -> Any:
    """The device the array lives on."""
    return array_api_compat.device(x)


# --------------------------------------------------------------------------- where to compute


@dataclass(frozen=True)
class Place:
    """The array library and the device a computation runs on: ("numpy", "cpu"), ("torch", "cuda:0"), ..."""

    library: str
    device: str

    def put(self, x: np.ndarray, dtype: str) -> Array:
        """`x` here, in the given precision; no copy where none is needed."""
        host = np.asarray(x, dtype=check_dtype(dtype))
        if self.library == "numpy":
            return host
        import torch

        return torch.asarray(host, device=self.device)

    def __str__(self) -> str:
        if self.library == "numpy":
            return "numpy"
        import torch

        if self.device == "cpu":
            return f"torch {torch.__version__} cpu"
        return f"torch {torch.__version__} {self.device} ({torch.cuda.get_device_name(self.device)})"


HOST = Place("numpy", "cpu")


def choose_place(device: str = "auto", library: str = "auto") -> Place:
    """Where to compute: a device (auto, cpu, cuda, cuda:1) and a library (auto, numpy, torch).

    auto takes a CUDA device if torch is installed and sees one, else NumPy on the CPU.
    """
    if library not in BACKENDS:
        raise InputError(f"backend {library!r} is not known; expected one of {', '.join(BACKENDS)}")
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
        raise InputError(f"device {device!r} is not known; expected auto, cpu, cuda or cuda:0, cuda:1, ...")
    if kind == "cuda" and library == "numpy":
        raise InputError(f"device {device!r} needs torch, but backend 'numpy' was asked for: leave one of them out")
    if kind == "auto":
        kind = "cuda" if library != "numpy" and _cuda_devices() else "cpu"
    if kind == "cpu":
        if library == "torch":
            require_torch("backend 'torch'")
        return Place("torch" if library == "torch" else "numpy", "cpu")
    require_torch(f"device {device!r}")
    index, found = int(number or 0), _cuda_devices()
    if index >= found:
        raise InputError(f"device {device!r} is not there: torch sees {found} CUDA devices; use device 'cpu' or 'auto'")
    return Place("torch", f"cuda:{index}")


def require_torch(what: str) -> None:
    """Refuse to go on without torch. what: what needs it."""
    if importlib.util.find_spec("torch") is None:
        raise InputError(f'{what} needs torch, which is not installed: pip install "qwp[torch]"')


def _cuda_devices() -> int:
    """How many CUDA devices torch sees. Does not load torch (seconds) where the system shows no driver."""
    if importlib.util.find_spec("torch") is None:
        return 0
    drivers = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
    if sys.platform == "linux" and not any(os.path.exists(path) for path in drivers):
        return 0
    import torch

    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def is_cuda(x: Array) -> bool:
    """Whether the array lives on a CUDA device, where reading a value makes the host wait."""
    return array_api_compat.is_torch_array(x) and bool(x.is_cuda)


def wait_for(x: Array) -> None:
    """Wait until the device of `x` has done all it was told: before a clock is read."""
    if is_cuda(x):
        import torch

        torch.cuda.synchronize(x.device)


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


def _controller() -> ThreadpoolController:
    # Libraries that bring a BLAS of their own may be loaded later.
    return _controller_of(*(name in sys.modules for name in ("torch", "faiss", "scipy.linalg")))


@lru_cache(maxsize=8)
def _controller_of(*loaded: bool) -> ThreadpoolController:
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
    torch = sys.modules.get("torch")
    torch_threads = torch.get_num_threads() if torch is not None else 1
    try:
        if torch is not None:
            torch.set_num_threads(threads())
        with _controller().limit(limits=threads(), user_api="blas"):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(torch_threads)
        _n_threads.reset(token)


@contextmanager
def use_memory(gigabytes: float | None) -> Iterator[None]:
    """Bound the blocks of the blocked computations inside the context to so many GiB (None: the usual size)."""
    if gigabytes is not None and not gigabytes > 0:
        raise InputError(f"max_memory={gigabytes} GiB should be positive")
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

    with _controller().limit(limits=1, user_api="blas"):
        others = [_pool(workers - 1).submit(work) for _ in range(workers - 1)]
        try:
            work()
        finally:
            for other in others:
                other.result()
    return results


def _nothing() -> None:
    pass


class Repeated:
    """One step, run over and over.

    The step takes no argument and works in place on arrays that stay where they are. That lets CUDA record it once and
    replay the recording: a step of a hundred small kernels then costs one launch. It must not read a value back.
    Use it in a `with` block: a recording has to go at a time of its own choosing, not when garbage is collected.
    """

    def __init__(self, step: Callable[[], None], like: Array) -> None:
        self._step, self._on_cuda = step, is_cuda(like)
        self._device = device(like)
        self._recording: Any = None

    def __enter__(self) -> Repeated:
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is not None:
            self._recording.reset()
            self._recording = None
        # A step is mostly a method of what keeps this object: together they would wait for the garbage collector, and
        # hold the memory of a GPU until it comes.
        self._step = _nothing

    def run(self, times: int) -> None:
        """Do the step `times` times."""
        if not self._on_cuda:
            for _ in range(times):
                self._step()
        elif times > 0:
            if self._recording is None:
                self._recording = self._record()
                times -= 1
            for _ in range(times):
                self._recording.replay()

    def _record(self) -> Any:
        """Do the step once, which also loads what it needs, and record it."""
        import torch

        collecting = gc.isenabled()
        with torch.cuda.device(self._device):
            recording, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            gc.disable()
            try:
                with torch.cuda.stream(side):
                    self._step()
                    torch.cuda.synchronize()
                    recording.capture_begin()
                    try:
                        self._step()
                    finally:
                        recording.capture_end()
            finally:
                if collecting:
                    gc.enable()
            torch.cuda.current_stream().wait_stream(side)
        return recording


def in_threads(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """`function` of every item, in threads: for work that frees the interpreter, such as hashing."""
    workers = min(threads(), len(items))
    return [function(item) for item in items] if workers < 2 else list(_pool(workers).map(function, items))


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
        return _torch_top_k(x, k)
    xp = namespace(x)
    order = xp.argsort(x, axis=1, descending=True, stable=True)[:, :k]
    return xp.take_along_axis(x, order, axis=1), order


def _torch_top_k(x: Array, k: int) -> tuple[Array, Array]:
    """As `_numpy_top_k`. `topk` reads wide rows several times; two on narrow ones take a third of that."""
    n = x.shape[1]
    group = 16
    if n < 4 * group * k:
        found = x.topk(k, dim=1)
        return found.values, found.indices
    xp, m = namespace(x), n // group
    best = xp.max(xp.reshape(x[:, : m * group], (-1, group, m)), axis=1).topk(k, dim=1).indices
    columns = xp.arange(n, device=device(x))
    members = xp.reshape(best[:, :, None] + columns[:group] * m, (-1, k * group))
    rest = xp.broadcast_to(columns[m * group :], (x.shape[0], n - m * group))
    candidates = xp.concat([members, rest], axis=1)
    found = x.gather(1, candidates).topk(k, dim=1)
    return found.values, candidates.gather(1, found.indices)


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


def matmul_into(out: Array, a: Array, b: Array) -> Array:
    """out[...] = a @ b without a temporary where the library allows it. Returns out."""
    if isinstance(out, np.ndarray) or array_api_compat.is_torch_array(out):
        return namespace(out).matmul(a, b, out=out)
    out[...] = a @ b
    return out


def affine_product(c: Array, a: Array, b: Array, *, alpha: float, beta: float) -> Array:
    """beta * c + alpha * (a @ b) in one go where the library can. a, b, c: (..., d, d)."""
    if array_api_compat.is_torch_array(a):
        import torch

        if a.ndim > 3:
            flat = (x.reshape(-1, *x.shape[-2:]) for x in (c, a, b))
            return torch.baddbmm(*flat, alpha=alpha, beta=beta).reshape(c.shape)
        fused = torch.addmm if a.ndim == 2 else torch.baddbmm
        return fused(c, a, b, alpha=alpha, beta=beta)
    product = (alpha * a) @ b
    product += beta * c
    return product


def minimum_into(out: Array, other: Array) -> None:
    """out[...] = minimum(out, other) without a temporary where the library allows it."""
    if isinstance(out, np.ndarray) or array_api_compat.is_torch_array(out):
        namespace(out).minimum(out, other, out=out)
    else:
        out[...] = namespace(out).minimum(out, other)


def first_above(running: Array, target: Array) -> Array:
    """First column in which a row of ascending numbers exceeds its target, at most the last.

    running: (b, c), target: (b,). Returns (b,).
    """
    xp, last = namespace(running), running.shape[1] - 1
    if array_api_compat.is_torch_array(running):
        import torch

        return torch.searchsorted(running, target[:, None], right=True)[:, 0].clamp_(max=last)
    short = running <= xp.expand_dims(target, axis=1)
    return xp.clip(xp.sum(xp.astype(short, xp.int64), axis=1), None, last)


def poisson(rng: np.random.Generator, mean: float, shape: tuple[int, ...], like: Array) -> Array:
    """Poisson numbers of this mean, as floating numbers of the library and device of `like`.

    On a GPU they are drawn there, from a seed that `rng` gives.
    """
    if not is_cuda(like):
        return asarray(rng.poisson(mean, shape).astype(np.float64), like)
    import torch

    means = torch.full(shape, mean, dtype=like.dtype, device=like.device)
    return torch.poisson(means, generator=torch_generator(rng, like))


def torch_generator(rng: np.random.Generator, like: Array) -> Any:
    """A random stream of torch on the device of a torch array, with a seed that `rng` gives."""
    import torch

    return torch.Generator(like.device).manual_seed(int(rng.integers(2**63)))


def put_row(out: Array, number: Array, row: Array) -> None:
    """out[number] = row, the number being an array (1,) that a CUDA device need not show to the host."""
    if array_api_compat.is_torch_array(out):
        out.index_copy_(0, number, row[None])
    else:
        out[int(number[0]), ...] = row


def run_sums(a: Array, b: Array, run: int) -> Array:
    """Sums of a * b over runs along the last axis. a, b: (..., c), c a multiple of `run`. Returns (..., c / run)."""
    shape = (*a.shape[:-1], a.shape[-1] // run, run)
    if isinstance(a, np.ndarray):
        return np.einsum("...i,...i->...", a.reshape(shape), b.reshape(shape))
    xp = namespace(a)
    return xp.sum(xp.reshape(a * b, shape), axis=-1)


def exp_in_place(x: Array) -> Array:
    """x[...] = exp(x), without a temporary where the library allows it. Returns x."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


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
        if is_cuda(values):
            # Atomic additions come in any order and round differently each time; a product does not.
            segments = xp.arange(n_segments, device=device(values))
            return ((labels == segments[:, None]) * weights) @ values
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
