"""Checks of arguments before any file is opened, and untrusted settings files: TOML and JSON within bounds."""

from __future__ import annotations

import codecs
import json
import operator
import os
import reprlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DTYPES = ("float32", "float64")
UTF8 = "utf-8"
# Characters of numbers, and of the ends of words and lines: an encoding of words has to encode them as ASCII does.
_ASCII = "+-.0123456789Ee \t\r\n"


def as_path(path: object) -> Path:
    """Return a file name, given as text, bytes or a path-like object, as a Path."""
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
    """Return a whole number in a range; booleans and floats are refused."""
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
    """Return a value that is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(map(repr, choices)) if len(choices) == 2 else f"one of {', '.join(choices)}"
        raise InputError(f"received {name}={reprlib.repr(value)}, expected {expected}")
    return value


def as_dtype(value: object) -> np.dtype[Any]:
    """Return float32 or float64, given by name or as a NumPy type."""
    try:
        dtype = None if value is None else np.dtype(value)  # type: ignore[call-overload]
    except Exception:  # NumPy raises many kinds of exception for invalid types, SyntaxError among them
        dtype = None
    if dtype is None or str(dtype) not in _DTYPES:
        raise InputError(f"received dtype={reprlib.repr(value)}, expected one of {', '.join(_DTYPES)}")
    return np.dtype(str(dtype))


def as_encoding(value: object) -> str:
    """Return Python's name of a text encoding that encodes digits and blanks as ASCII does."""
    try:
        found = codecs.lookup(value)  # type: ignore[arg-type]
        encoded = _ASCII.encode(found.name)  # raises a LookupError for a codec that is not a text encoding
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"received encoding={reprlib.repr(value)}, expected one that Python knows, such as utf-8, latin-1 or cp1251"
        ) from None
    if encoded != _ASCII.encode("ascii"):
        raise InputError(
            f"received encoding={reprlib.repr(value)}, in which blanks and digits are not those of ASCII, expected one "
            "such as utf-8, latin-1 or cp1251: convert the file, as with `iconv -t UTF-8`"
        )
    return found.name


def text_in(encoding: str) -> str:
    """Return the description of an expected word, with a hint if the user named no encoding."""
    return "UTF-8 text (--encoding names another)" if encoding == UTF8 else f"{encoding} text"


_MAX_TOML_BYTES = 1 << 16
_MAX_JSON_DIGITS = 20  # of an integer: 64 bits and a sign
_MAX_LINE_BYTES = 5000  # the longest values are names of files


def read_toml(path: Path, *, like: str) -> dict[str, Any]:
    """Read a settings file.

    The parser's memory grows with the square of a line, so a key of a million dots would exhaust it: lines are limited.

    Args:
        path: the file.
        like: an example line, for the message about a file that is not TOML.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_TOML_BYTES + 1)
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read ({error.strerror}): check its name") from error
    if len(raw) > _MAX_TOML_BYTES:
        raise InputError(f"{path} is larger than {_MAX_TOML_BYTES:,} bytes; expected a few lines of settings")
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if len(line) > _MAX_LINE_BYTES:
            raise InputError(f"line {number} of {path} has {len(line):,} bytes; expected a name and a value")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueErrors: invalid TOML, invalid UTF-8, integers of 5,000 digits
        raise InputError(f"{path} is not TOML ({error}); expected lines like: {like}") from error


def parse_json(data: bytes, most_depth: int = 64) -> Any:
    """Parse JSON in UTF-8. A ValueError for invalid JSON, repeated names, deep nesting and very long integers.

    most_depth: levels of nested lists and objects.
    """
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_int=_whole)
    except RecursionError:
        raise ValueError(f"it is nested more than {most_depth} deep") from None
    level, depth = [value], 0
    while level:
        if depth > most_depth:
            raise ValueError(f"it is nested more than {most_depth} deep")
        level = [inner for outer in level for inner in _inside(outer)]
        depth += 1
    return value


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {reprlib.repr(repeated)} occurs more than once")
    return found


def _whole(text: str) -> int:
    if len(text) > _MAX_JSON_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)
