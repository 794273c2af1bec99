"""Fixtures of the array tests."""

from __future__ import annotations

from typing import Any

import pytest

from qwp import arrays
from tests.libraries import as_strict


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def library(request: pytest.FixtureRequest) -> Any:
    """Return a function that makes a float64 array of each installed library."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
        return lambda x: arrays.choose_device("cpu", "torch").put(x.copy(), "float64")
    return (lambda x: x.copy()) if request.param == "numpy" else as_strict
