"""Parameters, each declared once as a field of the component that uses it, with range, choices, help and panel.

A component is a frozen dataclass derived from `Settings`. Its fields are parameters (`param`), other components, or
constants. A method is a composition of components. `parameters` collects the flat names of its parameters
(`coreset_size=500` in Python, `--coreset-size 500` on the command line), and `with_values` routes values back to the
components that declare them. Checks, error messages, flags, `help()`, the tables of docs/parameters.md and the types of
the keyword arguments of `qwp.align` are derived from these declarations.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from qwp.errors import InputError, one_of

CORESETS, LOOP, START, REFINE, RUN = "Coresets", "Transport and loop", "Initialization", "Refinement", "Run"
OTHER = "Other methods"
PANELS = (RUN, CORESETS, LOOP, START, REFINE, OTHER)
"""The panels of --help in their order."""

# Upper bounds beyond the capacity of any machine, which exclude nonsensical values.
MOST_WORDS = 100_000_000
MOST_STEPS = 1_000_000
MOST_SIZE = 1_000_000

TRAIN_WORDS = "Most frequent words of each side that the method learns from; all words are mapped."

_DECLARED, _FIXED = "qwp", "qwp-fixed"
_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Declaration:
    """The meaning and the valid values of a parameter.

    Attributes:
        help: one sentence for users.
        panel: one of PANELS.
        least: lower bound of a number.
        above: exclusive lower bound of a number.
        most: upper bound of a number.
        choices: valid values of a string.
        text: a check of a string without choices, which raises an InputError.
        range: the range in words, if bounds and choices do not give it.
        decided: the meaning of None, in words.
        option: the flat name, if it differs from the name of the field.
        execution_only: whether the parameter affects the computation but not the result.
        shared: whether every method has the parameter, which is then listed after the others.
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
    option: str | None = None
    execution_only: bool = False
    shared: bool = False


def param(default: Any, help: str, panel: str, **declared: Any) -> Any:
    """Return a field of a component with a default and a `Declaration`."""
    return field(default=default, metadata={_DECLARED: Declaration(help, panel, **declared)})


def fixed(default: Any) -> Any:
    """Return a field with a component whose parameters are not exposed to users."""
    return field(default=default, metadata={_FIXED: True})


@dataclass(frozen=True)
class Parameter:
    """A parameter of a composition: its flat name, its type without None, and its default."""

    name: str
    type: type
    optional: bool
    default: Any
    declared: Declaration

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def shown_default(self) -> str:
        """The default in words."""
        return self.shown(self.default)

    def shown(self, value: Any) -> str:
        """Return a value of this parameter in words."""
        return str(value) if value is not None else self.declared.decided or "decided by the data"

    @property
    def range(self) -> str:
        """The valid values in words."""
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
        """Raise an InputError for an invalid value."""
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
        if not -math.inf < value < math.inf:  # also excludes NaN
            return False
        return not (
            (declared.least is not None and value < declared.least)
            or (declared.above is not None and value <= declared.above)
            or (declared.most is not None and value > declared.most)
        )


def _brief(value: Any) -> str:
    """Return the repr of a value, shortened."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python limits the conversion of integers to text
        return "a number of thousands of digits"


def _number(value: float | None) -> str:
    if value is None:
        return "any number"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


class Settings:
    """Base class of components: frozen dataclasses of parameters, other components and constants."""

    def declaration(self, name: str, declared: Declaration) -> Declaration:
        """Return the declaration of a field. Overridden by components whose choices depend on their parts."""
        del name
        return declared

    def check_together(self) -> None:
        """Raise an InputError for inconsistent values of this component."""


def parameters(component: Settings) -> dict[str, Parameter]:
    """Return the parameters of a component and its parts by flat name, with its values as their defaults.

    Parameters that all methods share come last.
    """
    found: dict[str, Parameter] = {}
    for part in components(component):
        for each, (kind, optional) in _declared(type(part)).items():  # type: ignore[arg-type]  # a class is hashable
            declared = part.declaration(each.name, each.metadata[_DECLARED])
            name = declared.option or each.name
            found.setdefault(name, Parameter(name, kind, optional, getattr(part, each.name), declared))
    return dict(sorted(found.items(), key=lambda item: item[1].declared.shared))


def values(component: Settings) -> dict[str, Any]:
    """Return the values of all parameters of a component and its parts, by flat name."""
    return {name: parameter.default for name, parameter in parameters(component).items()}


def with_values(component: S, given: Mapping[str, Any]) -> S:
    """Return the component with new values of some parameters. given: by flat name, for all parts that declare them."""
    changes = {
        name: given[declared.option or name]
        for name, declared in ((each.name, each.metadata[_DECLARED]) for each in _declared(type(component)))  # type: ignore[arg-type]
        if (declared.option or name) in given
    }
    for name, part in _parts(component):
        if isinstance(part, Settings):
            changes[name] = with_values(part, given)
        elif isinstance(part, Mapping):
            changes[name] = {key: with_values(each, given) for key, each in part.items()}
        else:
            changes[name] = tuple(with_values(each, given) for each in part)
    return replace(component, **changes)  # type: ignore[type-var]


def check(component: Settings) -> None:
    """Raise an InputError for the first parameter with an invalid value, alone or together with the others."""
    for parameter in parameters(component).values():
        parameter.check(parameter.default)
    for part in components(component):
        part.check_together()


def components(component: Settings) -> Iterator[Settings]:
    """Yield a component and all of its parts, depth first."""
    yield component
    for _, part in _parts(component):
        for each in (part,) if isinstance(part, Settings) else part.values() if isinstance(part, Mapping) else part:
            yield from components(each)


def _parts(component: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the fields with a component, a mapping of components or a tuple of components."""
    for each in fields(component):  # type: ignore[arg-type]
        value = getattr(component, each.name)
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
        if _FIXED not in each.metadata and inner and all(isinstance(part, Settings) for part in inner):
            yield each.name, value


@cache
def _declared(cls: type[Settings]) -> dict[Field[Any], tuple[type, bool]]:
    """Return the fields of a component that are parameters, with their type without None and whether None is valid."""
    hints = get_type_hints(cls)
    return {each: _without_none(hints[each.name]) for each in fields(cls) if _DECLARED in each.metadata}  # type: ignore[arg-type]


def _without_none(hint: Any) -> tuple[type, bool]:
    if get_origin(hint) in (Union, UnionType):
        [kind] = [part for part in get_args(hint) if part is not NoneType]
        return kind, True
    return hint, False


def described(listed: Iterable[Parameter]) -> str:
    """Return the parameters as a section of a docstring."""
    lines = ["Parameters:"]
    for p in listed:
        lines.append(
            f"    {p.name} ({p.type.__name__}, default {p.shown_default}): {p.declared.help} Range: {p.range}."
        )
    return "\n".join(lines)
