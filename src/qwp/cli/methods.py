"""`qwp methods`: list the methods, what they need, and their options."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.cli.outputs import Output, TextRows
from qwp.errors import InputError
from qwp.methods import METHODS
from qwp.parameters import Parameter


@options.with_options
def command(
    output: Output,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show the options of this method.",
            autocompletion=options.complete_methods,
        ),
    ] = None,
) -> None:
    """List the methods of `qwp align`, or the options of one."""
    if name is not None and name not in METHODS:
        raise InputError(f"method {name} is not known; expected one of {', '.join(METHODS)}")
    output.check()
    shown = METHODS if name is None else (name,)
    output.write(
        json=lambda: {"command": "methods", "methods": [_as_json(method) for method in shown]},
        rows=lambda: _method_rows() if name is None else _option_rows(name),
        show=lambda: _list() if name is None else _show(name),
    )


def _as_json(name: str) -> dict[str, Any]:
    method = METHODS[name]
    return {
        "name": name,
        "summary": method.summary,
        "supervision": method.supervision,
        "paper": method.paper,
        "needs_torch": method.needs_torch,
        "needs_pot": method.needs_pot,
        "options": [_option(parameter) for parameter in _options(name)],
    }


def _options(name: str) -> list[Parameter]:
    """Return the options of a method, the common ones last."""
    return list(METHODS[name].parameters().values())


def _option(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "flag": parameter.flag,
        "type": parameter.type.__name__,
        "default": parameter.default,
        "range": parameter.range,
        "help": parameter.declared.help,
    }


def _method_rows() -> TextRows:
    lines = (
        (name, method.supervision, method.summary, method.paper, _yes(method.needs_torch), _yes(method.needs_pot))
        for name, method in METHODS.items()
    )
    return TextRows(("method", "supervision", "summary", "paper", "needs_torch", "needs_pot"), lines)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _option_rows(name: str) -> TextRows:
    lines = [(p.flag, p.type.__name__, p.shown_default, p.range, p.declared.help) for p in _options(name)]
    return TextRows(("option", "type", "default", "range", "meaning"), lines)


def _list() -> None:
    rows = [(name, method.supervision, _summary(name), method.paper) for name, method in METHODS.items()]
    console.table(("method", "supervision", "what it does", "paper"), rows)
    console.say("`qwp methods NAME` shows the options of one; `qwp align SRC TGT --method NAME --out DIR` runs it.")


def _summary(name: str) -> str:
    method = METHODS[name]
    needed = [library for library, needs in (("torch", method.needs_torch), ("POT", method.needs_pot)) if needs]
    return method.summary + (f" (needs {', '.join(needed)})" if needed else "")


def _show(name: str) -> None:
    method = METHODS[name]
    console.figures(
        [
            ("method", name),
            ("what it does", _summary(name)),
            ("supervision", method.supervision),
            ("paper", method.paper),
        ]
    )
    rows = [(p.flag, p.shown_default, p.range, p.declared.help) for p in _options(name)]
    console.table(("option", "default", "range", "meaning"), rows)
