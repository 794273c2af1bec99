"""The commands by name. The module of one, with all that it needs, is loaded when it is called."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import typer
from typer.core import TyperCommand

# What `qwp --help` says of each: the first paragraph of its docstring. The module of the same name has its `command`.
COMMANDS = {
    "align": "Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.",
    "methods": "List the methods of `qwp align`, or the options of one.",
    "evaluate": "Score an alignment DIR, or two files already in one space (--src, --tgt), against a dictionary.",
    "translate": "Translate words with a saved alignment.",
    "lexicon": "Write the induced dictionary: best CSLS translation of each source word.",
    "export": "Write the vectors in the common space, for any tool that reads vector files.",
    "info": "Describe a vector file (read in full, damaged lines counted) or a saved alignment.",
    "convert": "Rewrite a vector file in another format, in bounded memory.",
    "demo": "Align the packaged English and Spanish vectors with the default settings and write an HTML report.",
}


class Unloaded(TyperCommand):
    """A command as a list of commands shows it."""


def listed() -> dict[str, Any]:
    """All commands, none of them loaded."""
    return {name: Unloaded(name, help=summary) for name, summary in COMMANDS.items()}


@cache
def loaded(name: str) -> Any:
    """A command with its options."""
    alone = typer.Typer(add_completion=False)
    alone.command(name)(importlib.import_module(f"qwp.cli.{name}").command)
    return typer.main.get_command(alone)
