"""Parameters, each declared once: as a field of a dataclass, with its range, choices, help and panel.

A group of parameters is a subclass of `Settings` that stands beside what it controls; a method inherits the groups it
uses. Checks, error messages, command line flags, `help()`, the tables of docs/parameters.md and the types of the
keyword arguments of `qwp.align` are all made from these declarations.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from qwp.checks import one_of
from qwp.errors import InputError

CORESETS, LOOP, START, REFINE, RUN = "Coresets", "Transport and loop", "Start", "Refinement", "Run"
OTHER = "Other methods"
# In the order of --help.
PANELS = (RUN, CORESETS, LOOP, START, REFINE, OTHER)

# Upper bounds that only keep absurd values out: no machine gets there.
MOST_WORDS = 100_000_000
MOST_STEPS = 1_000_000
MOST_SIZE = 1_000_000

TRAIN_WORDS = "Most frequent words of each side that the method learns from; all words are mapped."

_DECLARED = "qwp"
_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Declaration:
    """What a parameter means and which values it takes.

    least, above, most: bounds of a number; `above` is a lower one that is not reached itself. choices: the names it may
    have. text: a check of any other text, which raises an InputError; range: its range in words where bounds and
    choices do not say it. decided: what a value of None stands for. execution_only: it says where and how to
    compute and does not decide the result.
    """

    help: str
    panel: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: tuple[str, ...] | None = None
    text: Callable[[str], object] | None = None
    range: str | None = None
    decided: str | None = None
    execution_only: bool = False


def param(default: Any, help: str, panel: str, **declared: Any) -> Any:
    """A field of a `Settings` class: its default, and the rest of its `Declaration`."""
    return field(default=default, metadata={_DECLARED: Declaration(help, panel, **declared)})


@dataclass(frozen=True)
class Parameter:
    """One parameter of one class: its name in Python, its type without None, and its default there."""

    name: str
    type: type
    optional: bool
    default: Any
    declared: Declaration

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def shown_default(self) -> str:
        """The default for people."""
        return self.shown(self.default)

    def shown(self, value: Any) -> str:
        """A value of this parameter for people."""
        return str(value) if value is not None else self.declared.decided or "decided by the data"

    @property
    def range(self) -> str:
        """The values it takes, in words."""
        declared = self.declared
        if declared.range is not None:
            return declared.range
        if declared.choices is not None:
            return ", ".join(declared.choices)
        if self.type is bool:
            return "true, false"
        if declared.above is not None:
            return f"above {declared.above:g}, at most {_number(declared.most)}"
        return f"{_number(declared.least)} to {_number(declared.most)}"

    def check(self, value: Any) -> None:
        """Raise an InputError for a value that it cannot have."""
        if value is None and self.optional:
            return
        self._check_type(value)
        if self.declared.choices is not None:
            one_of(self.declared.choices, **{self.name: value})
        if self.declared.text is not None:
            self.declared.text(value)
        if self.type in (int, float) and not self._within(value):
            raise InputError(f"{self.name}={_brief(value)} is out of range; expected {self.range}")

    def _check_type(self, value: Any) -> None:
        allowed: dict[type, tuple[type, ...]] = {int: (int, np.integer), float: (int, float, np.integer, np.floating)}
        wanted = allowed.get(self.type, (self.type,))
        if not isinstance(value, wanted) or (isinstance(value, bool) and self.type is not bool):
            found = f"{self.name}={_brief(value)} ({type(value).__name__})"
            raise InputError(f"{found} has another type than expected: {_KINDS[self.type]}, {self.range}")

    def _within(self, value: float) -> bool:
        declared = self.declared
        if not -math.inf < value < math.inf:  # NaN is not, either
            return False
        return not (
            (declared.least is not None and value < declared.least)
            or (declared.above is not None and value <= declared.above)
            or (declared.most is not None and value > declared.most)
        )


def _brief(value: Any) -> str:
    """A value as Python writes it, cut where it is long."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python refuses to write out such numbers
        return "a number of thousands of digits"


def _number(value: float | None) -> str:
    if value is None:
        return "any number"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


class Settings:
    """A group of parameters: a dataclass whose fields are made by `param`.

    A subclass may give an inherited parameter another default by a plain `name: type = value`.
    """

    shared: ClassVar[bool] = False
    """Whether all methods have this group: its parameters are then listed last."""

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The parameters by name: those of the class itself, those it inherits, those that all methods share."""
        return _parameters(cls)  # type: ignore[arg-type]  # a class is hashable, whatever its objects are

    def check(self) -> None:
        """Raise an InputError for the first parameter whose value cannot work, or cannot work with the others."""
        for name, parameter in self.parameters().items():
            parameter.check(getattr(self, name))
        self.check_together()

    def check_together(self) -> None:
        """Raise an InputError for values that exclude each other. Subclasses say which."""

    @classmethod
    def of(cls: type[S], other: Settings) -> S:
        """The part of `other`, which has all parameters of this group, as an object of its own."""
        return cls(**{name: getattr(other, name) for name in cls.parameters()})


@cache
def _parameters(cls: type[Settings]) -> dict[str, Parameter]:
    hints = get_type_hints(cls)
    made = {}
    for each in sorted(fields(cls), key=lambda f: _depth(cls, f.name)):  # type: ignore[arg-type]
        kind, optional = _without_none(hints[each.name])
        made[each.name] = Parameter(each.name, kind, optional, each.default, _declaration(cls, each.name))
    return made


def _own_fields(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = cls.__dict__.get("__dataclass_fields__", {})
    return found


def _declaration(cls: type, name: str) -> Declaration:
    """The nearest declaration of a field; a subclass that only changes the default keeps that of its base."""
    for base in cls.__mro__:
        declared = _own_fields(base)[name].metadata.get(_DECLARED) if name in _own_fields(base) else None
        if isinstance(declared, Declaration):
            return declared
    raise TypeError(f"{cls.__name__}.{name} is not declared: use param(...)")


def _depth(cls: type, name: str) -> tuple[bool, int]:
    """Whether a field is one that all methods share, and how far up among the bases of a class it was declared."""
    number, base = max((n, base) for n, base in enumerate(cls.__mro__) if name in _own_fields(base))
    return base.__dict__.get("shared", False), number


def _without_none(hint: Any) -> tuple[type, bool]:
    if get_origin(hint) in (Union, UnionType):
        [kind] = [part for part in get_args(hint) if part is not NoneType]
        return kind, True
    return hint, False


def described(parameters: Iterable[Parameter]) -> str:
    """Parameters as a section of a docstring."""
    lines = ["Parameters:"]
    for p in parameters:
        lines.append(
            f"    {p.name} ({p.type.__name__}, default {p.shown_default}): {p.declared.help} Range: {p.range}."
        )
    return "\n".join(lines)
