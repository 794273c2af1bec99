"""Arrays of every library, comparisons between them, and skips for missing optional libraries."""

from __future__ import annotations

import importlib
from typing import Any

import array_api_strict
import numpy as np
import pytest

from qwp import arrays
from qwp.methods import METHODS


def as_strict(x: Any) -> Any:
    """Return an array of array-api-strict, which has the standard and nothing else."""
    return array_api_strict.asarray(x)


def host(x: Any) -> Any:
    """Return an array as a NumPy array, and any other value unchanged."""
    return arrays.to_numpy(x) if hasattr(x, "__dlpack__") else x


def assert_close(found: Any, expected: Any, *, atol: float = 0.0, rtol: float = 1e-7) -> None:
    """Assert equal shapes and differences of at most atol + rtol |expected|."""
    np.testing.assert_allclose(host(found), host(expected), atol=atol, rtol=rtol)


def assert_same(found: Any, expected: Any, message: str = "") -> None:
    """Assert equal shapes and identical numbers: for repeated calls on one machine, or results without rounding."""
    np.testing.assert_array_equal(host(found), host(expected), err_msg=message)


def pot() -> Any:
    """Return POT; skip the test if it is not installed."""
    return pytest.importorskip("ot", reason='POT is not installed: pip install "qwp[pot]"')


def skip_without_library(method: str) -> None:
    """Skip the test if the library that a method needs is not installed."""
    if METHODS[method].needs_torch:
        pytest.importorskip("torch", reason="torch is not installed")
    if METHODS[method].needs_pot:
        pot()


def optional_module(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
