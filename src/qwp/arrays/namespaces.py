"""The array library of the inputs: its namespace, its device, and the way to NumPy and back."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

from qwp.arrays.types import Array, Namespace

# NumPy is a namespace of the standard by itself from here on. The one around it takes a tenth of a second to load,
# because it touches all that NumPy would load when needed, and costs a little in every call.
_COMPLETE = (2, 1)
_native: Any = np
# Of types met before. Small problems ask thousands of times, and the general answer costs as much as their work.
_KNOWN: dict[type, Namespace] = (
    {np.ndarray: _native} if tuple(int(part) for part in np.__version__.split(".")[:2]) >= _COMPLETE else {}
)


def namespace(*arrays: Array) -> Namespace:
    """The array API namespace that the arrays share."""
    kind = type(arrays[0]) if arrays else None
    if kind in _KNOWN and all(type(x) is kind for x in arrays):
        return _KNOWN[kind]
    found: Namespace = array_api_compat.array_namespace(*arrays)
    if kind is not None and (kind is np.ndarray or array_api_compat.is_torch_array(arrays[0])):
        _KNOWN[kind] = found
    return found


def to_numpy(x: Array) -> np.ndarray:
    """The array in host memory as NumPy, without a copy where none is needed."""
    if isinstance(x, np.ndarray):
        return x
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu())
    other: Any = x
    return np.asarray(np.from_dlpack(other))


def read(*values: Array) -> tuple[float, ...]:
    """Numbers, each an array without dimensions, in host memory: a GPU is waited for once, not once for each."""
    if len(values) > 1 and array_api_compat.is_torch_array(values[0]):
        xp = namespace(values[0])
        return tuple(to_numpy(xp.stack([xp.astype(value, xp.float64) for value in values])).tolist())
    return tuple(float(value) for value in values)


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


def is_cuda(x: Array) -> bool:
    """Whether the array lives on a CUDA device, where reading a value makes the host wait."""
    return array_api_compat.is_torch_array(x) and bool(x.is_cuda)


def wait_for(x: Array) -> None:
    """Wait until the device of `x` has done all it was told: before a clock is read."""
    if is_cuda(x):
        import torch

        torch.cuda.synchronize(device(x))


def eps(x: Array) -> float:
    """Machine precision of the array's dtype."""
    return float(namespace(x).finfo(x.dtype).eps)
