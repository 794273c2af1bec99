"""The array library of the inputs: its namespace, its device, and conversion from and to NumPy."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import array_api_compat
import numpy as np
import numpy.typing as npt

from qwp.errors import InputError, installed, one_of

Floats: TypeAlias = npt.NDArray[np.float64]
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]
"""NumPy floats of any width."""
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

Tensor: TypeAlias = Any
"""A torch tensor, in code that needs torch. Torch is optional, so the type checker treats it as Any."""


class Array(Protocol):
    """An array of a library that follows the array API standard."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> Array: ...  # noqa: N802  (the standard's name)
    def __getitem__(self, key: Any, /) -> Array: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __neg__(self) -> Array: ...
    def __add__(self, other: Any, /) -> Array: ...
    def __radd__(self, other: Any, /) -> Array: ...
    def __sub__(self, other: Any, /) -> Array: ...
    def __rsub__(self, other: Any, /) -> Array: ...
    def __mul__(self, other: Any, /) -> Array: ...
    def __rmul__(self, other: Any, /) -> Array: ...
    def __truediv__(self, other: Any, /) -> Array: ...
    def __rtruediv__(self, other: Any, /) -> Array: ...
    def __floordiv__(self, other: Any, /) -> Array: ...
    def __mod__(self, other: Any, /) -> Array: ...
    def __pow__(self, other: Any, /) -> Array: ...
    def __matmul__(self, other: Any, /) -> Array: ...
    def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]
    def __lt__(self, other: Any, /) -> Array: ...
    def __le__(self, other: Any, /) -> Array: ...
    def __gt__(self, other: Any, /) -> Array: ...
    def __ge__(self, other: Any, /) -> Array: ...


class Linalg(Protocol):
    """The linear algebra extension of a library."""

    def diagonal(self, x: Array, /) -> Array: ...
    def eigh(self, x: Array, /) -> tuple[Array, Array]: ...
    def qr(self, x: Array, /) -> tuple[Array, Array]: ...
    def svd(self, x: Array, /, *, full_matrices: bool = ...) -> tuple[Array, Array, Array]: ...
    def vector_norm(self, x: Array, /) -> Array: ...


class Namespace(Protocol):
    """The functions of a library, as in the array API standard."""

    float32: Any
    float64: Any
    int32: Any
    int64: Any
    inf: float
    linalg: Linalg

    def finfo(self, dtype: Any, /) -> Any: ...

    # Creation.
    def asarray(self, x: Any, /, *, dtype: Any = ..., device: Any = ..., copy: bool | None = ...) -> Array: ...
    def astype(self, x: Array, dtype: Any, /) -> Array: ...
    def arange(self, stop: int, /, *, device: Any = ...) -> Array: ...
    def empty(self, shape: tuple[int, ...], *, dtype: Any = ..., device: Any = ...) -> Array: ...
    def empty_like(self, x: Array, /) -> Array: ...
    def eye(self, n: int, /, *, dtype: Any = ..., device: Any = ...) -> Array: ...
    def full(self, shape: int | tuple[int, ...], value: float, *, dtype: Any = ..., device: Any = ...) -> Array: ...
    def full_like(self, x: Array, /, fill_value: float) -> Array: ...
    def ones(self, shape: int | tuple[int, ...], *, dtype: Any = ..., device: Any = ...) -> Array: ...
    def ones_like(self, x: Array, /) -> Array: ...
    def zeros(self, shape: int | tuple[int, ...], *, dtype: Any = ..., device: Any = ...) -> Array: ...
    def zeros_like(self, x: Array, /) -> Array: ...

    # Manipulation and indexing.
    def broadcast_to(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def concat(self, x: Sequence[Array], /, *, axis: int = ...) -> Array: ...
    def expand_dims(self, x: Array, /, *, axis: int) -> Array: ...
    def matrix_transpose(self, x: Array, /) -> Array: ...
    def permute_dims(self, x: Array, axes: tuple[int, ...], /) -> Array: ...
    def reshape(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def squeeze(self, x: Array, /, *, axis: int) -> Array: ...
    def stack(self, x: Sequence[Array], /, *, axis: int = ...) -> Array: ...
    def take(self, x: Array, indices: Any, /, *, axis: int = ...) -> Array: ...
    def take_along_axis(self, x: Array, indices: Array, /, *, axis: int) -> Array: ...
    def where(self, condition: Any, x: Any, y: Any, /) -> Array: ...

    # Elementwise.
    def abs(self, x: Array, /) -> Array: ...
    def sign(self, x: Array, /) -> Array: ...
    def clip(self, x: Array, low: Any, high: Any, /) -> Array: ...
    def exp(self, x: Array, /) -> Array: ...
    def isnan(self, x: Array, /) -> Array: ...
    def log(self, x: Array, /) -> Array: ...
    def maximum(self, x: Array, y: Array, /) -> Array: ...
    def minimum(self, x: Array, y: Array, /) -> Array: ...
    def sqrt(self, x: Array, /) -> Array: ...

    # Reductions, searching and sorting.
    def all(self, x: Array, /) -> Array: ...
    def any(self, x: Array, /) -> Array: ...
    def argmax(self, x: Array, /, *, axis: int = ...) -> Array: ...
    def argsort(self, x: Array, /, *, axis: int = ..., stable: bool = ...) -> Array: ...
    def count_nonzero(self, x: Array, /, *, axis: int = ...) -> Array: ...
    def cumulative_sum(self, x: Array, /, *, axis: int = ..., dtype: Any = ...) -> Array: ...
    def max(self, x: Array, /, *, axis: Any = ..., keepdims: bool = ...) -> Array: ...
    def mean(self, x: Array, /, *, axis: Any = ..., keepdims: bool = ...) -> Array: ...
    def min(self, x: Array, /, *, axis: Any = ..., keepdims: bool = ...) -> Array: ...
    def nonzero(self, x: Array, /) -> tuple[Array, ...]: ...
    def sort(self, x: Array, /, *, axis: int = ..., stable: bool = ...) -> Array: ...
    def std(self, x: Array, /, *, axis: Any = ...) -> Array: ...
    def sum(self, x: Array, /, *, axis: Any = ..., keepdims: bool = ..., dtype: Any = ...) -> Array: ...
    def unique_values(self, x: Array, /) -> Array: ...


# NumPy follows the standard from this version on. The wrapper of array_api_compat takes 0.1 s to import and slows every
# call.
_COMPLETE = (2, 1)
_native: Any = np
# Namespaces by array type. Small problems look them up thousands of times, which would take as long as their work.
_KNOWN: dict[type, Namespace] = (
    {np.ndarray: _native} if tuple(int(part) for part in np.__version__.split(".")[:2]) >= _COMPLETE else {}
)


def namespace(*arrays: Array) -> Namespace:
    """Return the array API namespace of the arrays."""
    kind = type(arrays[0]) if arrays else None
    if kind in _KNOWN and all(type(x) is kind for x in arrays):
        return _KNOWN[kind]
    found: Namespace = array_api_compat.array_namespace(*arrays)
    if kind is not None and (kind is np.ndarray or array_api_compat.is_torch_array(arrays[0])):
        _KNOWN[kind] = found
    return found


def to_numpy(x: Array) -> np.ndarray:
    """Return the array as a NumPy array in host memory, without a copy if possible."""
    if isinstance(x, np.ndarray):
        return x
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu())
    other: Any = x
    return np.asarray(np.from_dlpack(other))


def to_floats(*values: Array) -> tuple[float, ...]:
    """Return zero-dimensional arrays as floats, with a single synchronisation of the GPU."""
    if len(values) > 1 and array_api_compat.is_torch_array(values[0]):
        xp = namespace(values[0])
        return tuple(to_numpy(xp.stack([xp.astype(value, xp.float64) for value in values])).tolist())
    return tuple(float(value) for value in values)


def asarray(x: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """Return x as an array of the library and device of `like`; floating-point data takes the dtype of `like`."""
    xp = namespace(like)
    if isinstance(dtype, str):
        dtype = getattr(xp, dtype)
    elif dtype is None and np.issubdtype(x.dtype, np.floating):
        dtype = like.dtype
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def device(x: Array) -> Any:
    """Return the device of an array."""
    return array_api_compat.device(x)


def is_cuda(x: Array) -> bool:
    """Return whether the array is on a CUDA device, where reading a value makes the host wait."""
    return array_api_compat.is_torch_array(x) and bool(x.is_cuda)


def synchronize(x: Array) -> None:
    """Wait for all pending work on the device of x, before a clock is read."""
    if is_cuda(x):
        import torch

        torch.cuda.synchronize(device(x))


def eps(x: Array) -> float:
    """Return the machine precision of the dtype of an array."""
    return float(namespace(x).finfo(x.dtype).eps)


DTYPES = ("float32", "float64")
BACKENDS = ("auto", "numpy", "torch")


@dataclass(frozen=True)
class Device:
    """An array library and a device: ("numpy", "cpu"), ("torch", "cuda:0"), ..."""

    library: str
    device: str

    def put(self, x: np.ndarray, dtype: str) -> Array:
        """Return x on this device with the given dtype, without a copy if possible."""
        host = np.asarray(x, dtype=check_dtype(dtype))
        if self.library == "numpy":
            return host
        import torch

        # Memory-mapped vectors are read-only, which torch does not support: it warns, and could write into them.
        return torch.asarray(host if host.flags.writeable else host.copy(), device=self.device)

    def __str__(self) -> str:
        if self.library == "numpy":
            return "numpy"
        import torch

        if self.device == "cpu":
            return f"torch {torch.__version__} cpu"
        return f"torch {torch.__version__} {self.device} ({torch.cuda.get_device_name(self.device)})"


HOST = Device("numpy", "cpu")


def choose_device(device: str = "auto", library: str = "auto", *, count: Callable[[], int] | None = None) -> Device:
    """Return the device for a device name (auto, cpu, cuda, cuda:1) and a library (auto, numpy, torch).

    auto is a CUDA device if torch is installed and sees one, otherwise NumPy on the CPU. count: returns the number of
    CUDA devices; by default torch counts them.
    """
    count = cuda_device_count if count is None else count
    one_of(BACKENDS, backend=library)
    kind, _, number = device.partition(":")
    # isdigit alone accepts superscripts and numbers of any length.
    is_number = number.isascii() and number.isdigit() and len(number) < 5
    if kind not in ("auto", "cpu", "cuda") or (number and not (kind == "cuda" and is_number)):
        raise InputError(f"device {device!r} is not known; expected auto, cpu, cuda or cuda:0, cuda:1, ...")
    if kind == "cuda" and library == "numpy":
        raise InputError(f"device {device!r} needs torch, but backend 'numpy' was asked for: leave one of them out")
    if kind == "auto":
        kind = "cuda" if library != "numpy" and count() else "cpu"
    if kind == "cpu":
        if library == "torch":
            require_torch("backend 'torch'")
        return Device("torch" if library == "torch" else "numpy", "cpu")
    require_torch(f"device {device!r}")
    index, found = int(number or 0), count()
    if index >= found:
        raise InputError(f"device {device!r} is not there: torch sees {found} CUDA devices; use device 'cpu' or 'auto'")
    return Device("torch", f"cuda:{index}")


def require_torch(what: str) -> None:
    """Raise an InputError if torch is not installed. what: the feature that needs it."""
    installed("torch", what)


def cuda_device_count() -> int:
    """Return the number of CUDA devices that torch sees. Without a driver torch is not imported, to save seconds."""
    if importlib.util.find_spec("torch") is None:
        return 0
    drivers = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
    if sys.platform == "linux" and not any(os.path.exists(path) for path in drivers):
        return 0
    import torch

    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def check_dtype(dtype: str) -> str:
    """Return a supported dtype; raise an InputError for any other."""
    one_of(DTYPES, dtype=dtype)
    return dtype
