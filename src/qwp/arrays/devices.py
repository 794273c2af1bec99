"""The array library and the device of a computation."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qwp.arrays.namespaces import Array
from qwp.errors import InputError, installed, one_of

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
