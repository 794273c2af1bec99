"""Refusing values that cannot work, in the same words everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qwp.errors import InputError


def at_least(least: float, **values: float) -> None:
    """Refuse parameters below their least sensible value."""
    for name, value in values.items():
        if not value >= least:
            raise InputError(f"{name}={value} should be at least {least:g}")


def positive(**values: float) -> None:
    """Refuse parameters that are not positive and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value} should be positive and finite")


def between(low: float, high: float, **values: float) -> None:
    """Refuse parameters outside of their range."""
    for name, value in values.items():
        if not low <= value <= high:
            raise InputError(f"{name}={value} should lie between {low:g} and {high:g}")


def one_of(choices: Sequence[str], **values: str) -> None:
    """Refuse names that mean nothing."""
    for name, value in values.items():
        if value not in choices:
            raise InputError(f"{name} {value!r} is not known; expected one of {', '.join(choices)}")
