"""Refusing arguments that cannot work, in the same words everywhere; `parameters` has those of methods."""

from __future__ import annotations

import math
from collections.abc import Iterable

from qwp.errors import InputError


def one_of(choices: Iterable[str], **values: object) -> None:
    """Refuse names that mean nothing."""
    known = tuple(choices)
    for name, value in values.items():
        if value not in known:
            raise InputError(f"{name}={value!r} is not known; expected one of {', '.join(known)}")


def at_least(least: float, **values: float) -> None:
    """Refuse numbers below their least sensible value."""
    for name, value in values.items():
        if not value >= least:
            raise InputError(f"{name}={value} should be at least {least:g}")


def positive(**values: float) -> None:
    """Refuse numbers that are not positive and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value} should be positive and finite")
