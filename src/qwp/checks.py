"""Refusing arguments that cannot work, in the same words everywhere; `parameters` has those of methods."""

from __future__ import annotations

import importlib.util
import math
import operator
from collections.abc import Iterable

from qwp.errors import InputError

# Optional libraries: the extra that brings each, its name, and the module that shows that it is there.
_EXTRAS = {
    "torch": ("torch", "torch"),
    "pot": ("POT", "ot"),
    "ray": ("Ray", "ray"),
    "plot": ("resvg-py", "resvg_py"),
    "arrow": ("pyarrow", "pyarrow"),
    "faiss": ("FAISS", "faiss"),
    "duckdb": ("DuckDB", "duckdb"),
}


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


def whole(least: int, **values: int) -> None:
    """Refuse what is no whole number, and numbers below their least sensible value."""
    for name, value in values.items():
        try:
            operator.index(value)
        except TypeError:
            kind = f"({type(value).__name__}) has another type than expected"
            raise InputError(f"{name}={value!r} {kind}: a whole number, {least} or more") from None
    at_least(least, **values)


def positive(**values: float) -> None:
    """Refuse numbers that are not positive and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value} should be positive and finite")


def installed(extra: str, what: str) -> None:
    """Refuse to go on without an optional library, which is not imported here. what: what needs it."""
    name, module = _EXTRAS[extra]
    if importlib.util.find_spec(module) is None:
        raise InputError(f'{what} needs {name}, which is not installed: pip install "qwp[{extra}]"')
