"""Parameters, each declared once: a field of the component that uses it, with its range, choices, help and panel.

A component is a frozen dataclass derived from `Settings`. Its fields are parameters (made by `param`), other
components, or plain constants. A method is a composition of components. Walking the composition finds the flat names
of its parameters (`coreset_size=500` in Python, `--coreset-size 500` on the command line), and `with_values` routes
values back to every component that declares them. Checks, error messages, flags, `help()`, the tables of
docs/parameters.md and the types of the keyword arguments of `qwp.align` are all made from these declarations.
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
# In the order of --help.
PANELS = (RUN, CORESETS, LOOP, START, REFINE, OTHER)

# Upper bounds that only keep absurd values out: no machine gets there.
MOST_WORDS = 100_000_000
MOST_STEPS = 1_000_000
MOST_SIZE = 1_000_000

TRAIN_WORDS = "Most frequent words of each side that the method learns from; all words are mapped."

_DECLARED, _FIXED = "qwp", "qwp-fixed"
_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Declaration:
    """What a parameter means and which values it takes.

    least, above, most: bounds of a number; `above` is an exclusive lower bound. choices: the values of a text. text: a
    check of any other text, which raises an InputError; range: the range in words where bounds and choices do not say
    it. decided: what None stands for. option: the flat name, if it is not the name of the field. execution_only: the
    parameter says where and how to compute and does not decide the result. shared: every method has it; it is listed
    after the others.
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
    """Return a field of a component: its default, and the rest of its `Declaration`."""
    return field(default=default, metadata={_DECLARED: Declaration(help, panel, **declared)})


def fixed(default: Any) -> Any:
    """Return a field that holds a component whose parameters no user can change."""
    return field(default=default, metadata={_FIXED: True})


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
    """A component: a frozen dataclass of parameters, other components and constants."""

    def declaration(self, name: str, declared: Declaration) -> Declaration:
        """Return the declaration of a field. A component whose choices depend on its parts overrides this."""
        del name
        return declared

    def check_together(self) -> None:
        """Raise an InputError for values of this component that exclude each other."""


def parameters(component: Settings) -> dict[str, Parameter]:
    """Return the parameters of a component and its parts by flat name; their defaults are the values it holds.

    Parameters that every method shares come last.
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
    """Return the component with the values of some parameters, by flat name, in every part that declares them."""
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
    """Raise an InputError for the first parameter whose value cannot work, or cannot work with the others."""
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
    """Yield the fields that hold a component, a mapping of components or a tuple of components."""
    for each in fields(component):  # type: ignore[arg-type]
        value = getattr(component, each.name)
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
        if _FIXED not in each.metadata and inner and all(isinstance(part, Settings) for part in inner):
            yield each.name, value


@cache
def _declared(cls: type[Settings]) -> dict[Field[Any], tuple[type, bool]]:
    """The fields of a component that are parameters, each with its type without None and whether it may be None."""
    hints = get_type_hints(cls)
    return {each: _without_none(hints[each.name]) for each in fields(cls) if _DECLARED in each.metadata}  # type: ignore[arg-type]


def _without_none(hint: Any) -> tuple[type, bool]:
    if get_origin(hint) in (Union, UnionType):
        [kind] = [part for part in get_args(hint) if part is not NoneType]
        return kind, True
    return hint, False


def described(listed: Iterable[Parameter]) -> str:
    """Return parameters as a section of a docstring."""
    lines = ["Parameters:"]
    for p in listed:
        lines.append(
            f"    {p.name} ({p.type.__name__}, default {p.shown_default}): {p.declared.help} Range: {p.range}."
        )
    return "\n".join(lines)
