"""Generated tables of docs/cli.md: the options of the commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from qwp.cli.commands import COMMANDS, OTHER_TOOLS, loaded
from qwp.methods import METHODS
from tools.structure import table

Row = tuple[str, str, str]
"""Option, default and meaning."""

# The help of an option without a plain default ends with a description of it.
_DEFAULT = re.compile(r"(.*?) ?\(default: (.*)\)")
_LIKE_ALIGN = "align-all"
"""The command that takes nearly all options of `align`."""
_SHARED_BY = 3
"""Commands that must have an option with the same default and meaning before the table of shared options lists it."""


def options(command: str) -> str:
    """Return the options of a command as a Markdown table.

    argument: a command, or `shared` for the options that several commands have. The table of a command names shared
    options in a line below it, and `align-all` those of `align`. Parameters of methods, which docs/parameters.md lists,
    are left out.
    """
    if command == "shared":
        return table(["option", "default", "meaning"], [list(row) for row in _shared()])
    rows = list(_rows(command))
    inherited = list(_rows("align")) if command == _LIKE_ALIGN else []
    own = [row for row in rows if row not in _shared() and row not in inherited]
    shared = ", ".join(row[0].partition(", ")[0] for row in rows if row in _shared())
    parts = [table(["option", "default", "meaning"], [list(row) for row in own])] if own else []
    if shared:
        parts.append(f"[Shared options](#shared-options): {shared}.")
    if inherited:
        same = ", ".join(row[0].partition(", ")[0] for row in rows if row in inherited and row not in _shared())
        parts.append(f"[As of `qwp align`](#qwp-align): {same}.")
    return "\n\n".join(parts)


@cache
def _shared() -> tuple[Row, ...]:
    counts = Counter(row for name in COMMANDS if name not in (*OTHER_TOOLS, _LIKE_ALIGN) for row in _rows(name))
    return tuple(sorted(row for row, count in counts.items() if count >= _SHARED_BY))


def _rows(command: str) -> Iterator[Row]:
    of_methods = {name for aligner in METHODS.values() for name in aligner.parameters()}
    for option in loaded(command).params:
        is_parameter = option.name in of_methods and command in ("align", "align-many", _LIKE_ALIGN)
        if option.param_type_name == "option" and option.name != "help" and not option.hidden and not is_parameter:
            yield _row(option)


def _row(option: Any) -> Row:
    flags = [flag for flag in (*option.opts, *option.secondary_opts) if flag.startswith("-")]
    metavar = "" if getattr(option, "is_flag", False) or not option.metavar else f" {option.metavar}"
    shown = ", ".join(f"`{flag}{metavar}`" for flag in sorted(flags, key=len, reverse=True))
    # A default of 0 is shown, although it equals False.
    has_default = option.default is not None and not isinstance(option.default, bool | tuple)
    default = f"`{option.default}`" if has_default and not callable(option.default) else ""
    described = _DEFAULT.fullmatch(option.help or "")
    return (shown, described[2], described[1]) if described else (shown, default, option.help or "")
