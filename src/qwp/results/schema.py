"""Schemas of JSON files: read untrusted JSON within bounds and validate it.

A schema is composed of kinds, such as `Record({"seed": Int(), "path": Optional(Text())})`. The `problem` of a kind
describes what is wrong with a value, and where.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qwp.errors import InputError
from qwp.spaces.io.arguments import parse_json

MOST_BYTES = 256 << 20
"""No index is nearly as large; reading such a file would only fill the memory."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


# --------------------------------------------------------------------------- reading and hashing


def read_object(path: Path, remedy: str, most: int = MOST_BYTES) -> dict[str, Any]:
    """Read a file with one JSON object of at most `most` bytes. remedy: what the user can do if it cannot be read."""
    if not path.is_file():
        raise InputError(f"{path} {'is no file' if path.exists() else 'does not exist'}: {remedy}")
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}): {remedy}") from error
    if len(data) > most:
        raise InputError(f"{path} is larger than {most >> 20} MiB, which no index is: {remedy}")
    try:
        value = parse_json(data)
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are
        raise InputError(f"{path} is damaged ({error}): {remedy}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is damaged (it holds {shown(value)}; expected an object): {remedy}")
    return value


def digest(value: Any) -> str:
    """Return the sha256 of a JSON value, which does not depend on the order of names or on white space."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def tensors_digest(text: str, tensors: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of a text and of arrays with their names, types and shapes, on machines of any byte order."""
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\n{name} {tensor.dtype.newbyteorder('<').str} {tensor.shape}\n".encode("utf-8", "surrogatepass"))
        found.update(np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def shown(value: Any) -> str:
    """Return a value, shortened for a message."""
    return _SHORT.repr(value)


# --------------------------------------------------------------------------- kinds of values


class Kind(Protocol):
    """Validates a value."""

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None. where: the location of the value, for the message."""


def _unless(right: bool, value: Any, where: str, expected: str) -> str | None:
    return None if right else f"{where} is {shown(value)}; expected {expected}"


@dataclass(frozen=True)
class Text:
    """A text. pattern: a regular expression for all of it; choices: the only texts there are.

    surrogates: whether halves of surrogate pairs may be in it, as in the names of files that are not UTF-8.
    """

    pattern: str | None = None
    choices: tuple[str, ...] | None = None
    most: int = 10_000
    surrogates: bool = False

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        if self.choices is not None:
            return _unless(value in self.choices, value, where, f"one of {', '.join(self.choices)}")
        right = isinstance(value, str) and len(value) <= self.most and (self.surrogates or _encodes(value))
        if right and self.pattern is not None:
            right = re.fullmatch(self.pattern, value) is not None
        like = "" if self.pattern is None else f" like {self.pattern}"
        return _unless(right, value, where, f"a text{like} of at most {self.most:,} characters")


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


HASH = Text(pattern="[0-9a-f]{64}")


@dataclass(frozen=True)
class Int:
    """An integer within bounds."""

    least: int = 0
    most: int = 2**63 - 1

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        right = type(value) is int and self.least <= value <= self.most
        return _unless(right, value, where, f"a whole number from {self.least} to {self.most}")


@dataclass(frozen=True)
class Number:
    """A finite number within bounds."""

    least: float = -math.inf
    most: float = math.inf

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        right = type(value) in (int, float) and math.isfinite(value) and self.least <= value <= self.most
        bounds = "" if math.isinf(self.most) else f" from {self.least:g} to {self.most:g}"
        return _unless(right, value, where, f"a finite number{bounds}")


@dataclass(frozen=True)
class Flag:
    """true or false."""

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        return _unless(isinstance(value, bool), value, where, "true or false")


@dataclass(frozen=True)
class Optional:
    """null, or a value of a kind."""

    kind: Kind

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        return None if value is None else self.kind.problem(value, where)


@dataclass(frozen=True)
class Scalar:
    """A text, a finite number, a boolean or null."""

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        if isinstance(value, str):
            return Text().problem(value, where)
        right = value is None or isinstance(value, bool) or Number().problem(value, where) is None
        return _unless(right, value, where, "a text, a finite number, true, false or null")


@dataclass(frozen=True)
class Anything:
    """Any JSON value; `parse_json` has bounded its size and depth."""

    def problem(self, value: Any, where: str) -> str | None:
        """Return None."""


@dataclass(frozen=True)
class ListOf:
    """A list whose elements are of one kind."""

    kind: Kind
    least: int = 0
    most: int = 10_000_000

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            return _unless(False, value, where, f"a list of {self.least} to {self.most:,} elements")
        return _first(self.kind.problem(inner, f"{where}[{i}]") for i, inner in enumerate(value))


@dataclass(frozen=True)
class MapOf:
    """An object with arbitrary names and values of one kind."""

    kind: Kind
    name: Kind = field(default_factory=Text)

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, dict):
            return _unless(False, value, where, "an object")
        return _first(
            self.name.problem(name, f"a name in {where}") or self.kind.problem(inner, f"{where}.{name}")
            for name, inner in value.items()
        )


@dataclass(frozen=True)
class Record:
    """An object with exactly these names. optional: names that may be missing."""

    kinds: Mapping[str, Kind]
    optional: frozenset[str] = frozenset()

    def problem(self, value: Any, where: str) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, dict):
            return _unless(False, value, where, "an object")
        dot = f"{where}." if where else ""
        missing = [name for name in self.kinds if name not in value and name not in self.optional]
        if missing:
            return f"{dot}{missing[0]} is missing"
        strange = [name for name in value if name not in self.kinds]
        if strange:
            return f"{dot}{shown(strange[0])} is not known"
        return _first(self.kinds[name].problem(inner, f"{dot}{name}") for name, inner in value.items())


def _first(problems: Any) -> str | None:
    found: str | None = next((problem for problem in problems if problem is not None), None)
    return found
