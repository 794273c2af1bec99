"""Refusing arguments of a wrong kind in one clear line, before any file is touched."""

from __future__ import annotations

import codecs
import operator
import os
import reprlib
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError

_DTYPES = ("float32", "float64")
UTF8 = "utf-8"
# What numbers and the ends of words and lines are made of: in an encoding of words all of it is as in ASCII.
_PLAIN = "+-.0123456789Ee \t\r\n"


def as_path(path: object) -> Path:
    """The name of a file as a Path; text, bytes and path-like objects are names."""
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(
            f"received {reprlib.repr(path)} ({type(path).__name__}) as a path, expected the name of a file"
        ) from None
    if not name:
        raise InputError("received an empty path, expected the name of a file")
    if "\0" in name:
        raise InputError(f"received {reprlib.repr(name)} as a path, expected a name without NUL characters")
    return Path(name)


def as_count(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """A whole number in its range; True and 1.5 are none."""
    expected = f"at least {least}" if most is None else f"{least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(
            f"received {name}={reprlib.repr(value)} ({type(value).__name__}), expected a whole number, {expected}"
        ) from None
    if number < least or (most is not None and number > most):
        raise InputError(f"received {name}={number}, expected {expected}")
    return number


def as_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(map(repr, choices)) if len(choices) == 2 else f"one of {', '.join(choices)}"
        raise InputError(f"received {name}={reprlib.repr(value)}, expected {expected}")
    return value


def as_dtype(value: object) -> np.dtype[Any]:
    """float32 or float64, by name or as NumPy has it."""
    try:
        dtype = None if value is None else np.dtype(value)  # type: ignore[call-overload]
    except Exception:  # NumPy has many ways to refuse nonsense, SyntaxError and RecursionError among them
        dtype = None
    if dtype is None or str(dtype) not in _DTYPES:
        raise InputError(f"received dtype={reprlib.repr(value)}, expected one of {', '.join(_DTYPES)}")
    return np.dtype(str(dtype))


def as_encoding(value: object) -> str:
    """The name of an encoding as Python has it: one of text, in which numbers and blanks are those of ASCII."""
    try:
        found = codecs.lookup(value)  # type: ignore[arg-type]
        plain = _PLAIN.encode(found.name)  # a LookupError where it is none of text
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"received encoding={reprlib.repr(value)}, expected one that Python knows, such as utf-8, latin-1 or cp1251"
        ) from None
    if plain != _PLAIN.encode("ascii"):
        raise InputError(
            f"received encoding={reprlib.repr(value)}, in which blanks and digits are not those of ASCII, expected one "
            "such as utf-8, latin-1 or cp1251: convert the file, as with `iconv -t UTF-8`"
        )
    return found.name


def text_in(encoding: str) -> str:
    """What was expected of a word, with a hint where nobody named an encoding."""
    return "UTF-8 text (--encoding names another)" if encoding == UTF8 else f"{encoding} text"
