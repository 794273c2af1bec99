"""Transport must not warn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_numerical_warning() -> Iterator[None]:
    """An overflow that is repaired later is still a flaw: every warning of NumPy is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
