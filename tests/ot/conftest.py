"""NumPy warnings are errors in the tests of transport."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_numerical_warning() -> Iterator[None]:
    """Turn NumPy warnings into errors: an overflow that is repaired later is a bug."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
