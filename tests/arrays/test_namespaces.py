"""Arrays of several libraries, and conversions between them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import partial
from typing import Any

import array_api_strict
import numpy as np
import pytest

from qwp import arrays
from qwp.arrays import Device
from qwp.arrays.namespaces import check_dtype
from qwp.errors import InputError
from tests.libraries import as_strict, assert_same


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_move_between_libraries(dtype: str) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    assert arrays.to_numpy(x) is x
    moved = arrays.asarray(np.arange(3.0), like=as_strict(x))
    library: Any = arrays.namespace(moved)
    assert library is array_api_strict
    assert arrays.to_numpy(moved).dtype == x.dtype
    assert_same(arrays.to_numpy(as_strict(x)), x)


def test_asarray_leaves_integers_alone() -> None:
    like = np.zeros(1, dtype=np.float32)
    assert arrays.asarray(np.arange(3), like).dtype == np.arange(3).dtype
    assert arrays.asarray(np.arange(3.0), like).dtype == np.float32
    assert arrays.asarray(np.arange(3), like, dtype=np.float64).dtype == np.float64


def test_numbers_are_read_at_once_whatever_their_types(library: Any) -> None:
    x = library(np.array([3.0, -1.5]))
    xp = arrays.namespace(x)
    values = xp.max(x), xp.astype(xp.min(x), xp.float32), xp.any(x > 2)
    assert arrays.to_floats(*values) == (3.0, -1.5, 1.0)
    assert arrays.to_floats(values[1]) == (-1.5,)
    assert np.isnan(arrays.to_floats(xp.min(x) * np.nan, xp.max(x))[0])


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_eps(xp: Any) -> None:
    assert arrays.eps(xp.zeros(1, dtype=xp.float32)) == np.finfo(np.float32).eps
    assert arrays.eps(xp.zeros(1, dtype=xp.float64)) == np.finfo(np.float64).eps


def test_the_namespace_is_that_of_the_arrays(library: Any) -> None:
    x = library(np.ones((2, 2)))
    xp = arrays.namespace(x, x)
    assert type(xp.ones((2, 2))) is type(x)
    assert_same(arrays.to_numpy(xp.sum(x, axis=0)), [2.0, 2.0])
    with pytest.raises(TypeError):
        arrays.namespace("no array")  # type: ignore[arg-type]


def test_cpu_arrays_are_not_on_cuda(library: Any) -> None:
    x = library(np.ones(3))
    assert not arrays.is_cuda(x)
    arrays.synchronize(x)
    there = arrays.asarray(np.arange(3.0), x)
    assert arrays.device(there) == arrays.device(x)


def test_places_on_the_cpu() -> None:
    assert arrays.choose_device("cpu") == arrays.choose_device("cpu", "numpy") == Device("numpy", "cpu")
    assert arrays.choose_device("auto", "numpy") == Device("numpy", "cpu")
    x = np.ones((2, 3))
    assert Device("numpy", "cpu").put(x, "float64") is x
    assert Device("numpy", "cpu").put(x, "float32").dtype == np.float32
    assert str(Device("numpy", "cpu")) == "numpy"


def test_torch_on_the_cpu_is_a_place() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    place = arrays.choose_device("cpu", "torch")
    assert place == Device("torch", "cpu")
    assert str(place) == f"torch {torch.__version__} cpu"
    moved: Any = place.put(np.ones((2, 3)), "float32")
    assert (moved.dtype, moved.device.type) == (torch.float32, "cpu")
    assert not arrays.is_cuda(moved)
    arrays.synchronize(moved)


def test_arrays_that_can_only_be_read_are_copied_for_torch(recwarn: pytest.WarningsRecorder) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    kept = np.arange(6, dtype=np.float32).reshape(2, 3)
    kept.flags.writeable = False
    put: Any = Device("torch", "cpu").put(kept, "float32")
    put[0, 0] = 7.0  # what torch would warn of: the memory may be that of a file
    assert kept[0, 0] == 0.0
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize("device", ["gpu", "", "cpu:0", "auto:1", "cuda:x", "cuda:-1"])
def test_an_unknown_device_is_refused(device: str) -> None:
    with pytest.raises(InputError, match=rf"device '{device}' is not known; expected auto, cpu, cuda or cuda:0"):
        arrays.choose_device(device)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(InputError, match=r"backend='jax' is not known; expected one of auto, numpy, torch"):
        arrays.choose_device("cpu", "jax")


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_numpy_does_not_run_on_cuda(device: str) -> None:
    with pytest.raises(InputError, match=f"device '{device}' needs torch, but backend 'numpy' was asked for"):
        arrays.choose_device(device, "numpy")


@pytest.mark.parametrize(
    ("device", "library", "what"),
    [("cpu", "torch", "backend 'torch'"), ("auto", "torch", "backend 'torch'"), ("cuda", "auto", "device 'cuda'")],
)
def test_torch_that_is_missing_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, device: str, library: str, what: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf'{what} needs torch, which is not installed: pip install "qwp\[torch\]"'):
        arrays.choose_device(device, library)
    assert arrays.choose_device() == Device("numpy", "cpu")


@pytest.mark.parametrize(("found", "device"), [(0, "cuda"), (0, "cuda:0"), (2, "cuda:2")])
def test_a_missing_cuda_device_is_refused(found: int, device: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InputError, match=f"device '{device}' is not there: torch sees {found} CUDA devices; use"):
        arrays.choose_device(device, count=lambda: found)


def test_auto_takes_a_cuda_device_if_there_is_one() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    choose = partial(arrays.choose_device, count=lambda: 2)
    assert choose() == choose("cuda") == Device("torch", "cuda:0")
    assert choose("cuda:1") == Device("torch", "cuda:1")
    assert choose("auto", "numpy") == choose("cpu") == Device("numpy", "cpu")


@pytest.mark.slow
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


def test_check_dtype() -> None:
    assert check_dtype("float32") == "float32"
    with pytest.raises(InputError, match=r"'float16' is not known; expected one of float32, float64"):
        check_dtype("float16")
