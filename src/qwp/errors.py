"""Errors that users can act on, and the checks of arguments that raise them."""

from __future__ import annotations

import importlib.util
import math
import operator
from collections.abc import Iterable

# Optional libraries: the extra that installs each, its name, and a module to look for.
_EXTRAS = {
    "torch": ("torch", "torch"),
    "pot": ("POT", "ot"),
    "ray": ("Ray", "ray"),
    "plot": ("resvg-py", "resvg_py"),
    "arrow": ("pyarrow", "pyarrow"),
    "faiss": ("FAISS", "faiss"),
    "duckdb": ("DuckDB", "duckdb"),
    "qdrant": ("qdrant-client", "qdrant_client"),
    "lancedb": ("LanceDB", "lancedb"),
}


class QwpError(Exception):
    """Base class of all errors that qwp raises on purpose. The command line prints one line and exits with code 2."""


class InputError(QwpError, ValueError):
    """A file, an option or an array is invalid. The message says what was given, what is expected and how to fix it."""


def one_of(choices: Iterable[str], **values: object) -> None:
    """Raise an InputError for a value that is none of the choices."""
    known = tuple(choices)
    for name, value in values.items():
        if value not in known:
            raise InputError(f"{name}={value!r} is not known; expected one of {', '.join(known)}")


def at_least(least: float, **values: float) -> None:
    """Raise an InputError for a number below a lower bound."""
    for name, value in values.items():
        if not value >= least:
            raise InputError(f"{name}={value} should be at least {least:g}")


def whole(least: int, **values: int) -> None:
    """Raise an InputError for a value that is no integer, or below a lower bound."""
    for name, value in values.items():
        try:
            operator.index(value)
        except TypeError:
            kind = f"({type(value).__name__}) has another type than expected"
            raise InputError(f"{name}={value!r} {kind}: a whole number, {least} or more") from None
    at_least(least, **values)


def positive(**values: float) -> None:
    """Raise an InputError for a number that is not positive and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value} should be positive and finite")


def installed(extra: str, what: str) -> None:
    """Raise an InputError if an optional library is missing. The library is not imported. what: the feature in need."""
    name, module = _EXTRAS[extra]
    if importlib.util.find_spec(module) is None:
        raise InputError(f'{what} needs {name}, which is not installed: pip install "qwp[{extra}]"')
