"""The commands by name. The module of a command is imported when the command is called."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import typer
from typer.core import TyperCommand

from qwp.cli.aliases import AliasedCommand
from qwp.cli.help import HelpfulCommand

# The first paragraph of the docstring of each command. The module of the same name defines `command`.
COMMANDS = {
    "align": "Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.",
    "align-all": "Align every two of several vector files, bridge the pairs that fail, and show a matrix of languages.",
    "align-many": "Align a list of pairs of vector files, several at a time, on this machine or on a Ray cluster.",
    "methods": "List the methods of `qwp align`, or the options of one.",
    "evaluate": "Score an alignment DIR, or two files already in one space (--src, --tgt), against a dictionary.",
    "translate": "Translate words with a saved alignment.",
    "report": "Write a self-contained HTML page about an alignment: verdict, scores, reliability, hubs, a map.",
    "lexicon": "Write the induced dictionary: pairs of words that are each other's best translation by CSLS.",
    "export": "Write the vectors in the common space, for any tool that reads vector files.",
    "info": "Describe a vector file (read in full, damaged lines counted) or a saved alignment.",
    "convert": "Rewrite a vector file in another format, in bounded memory.",
    "migrate": "Move the vectors of an OLD embedding model to a NEW one, with or without paired items, measured first.",
    "compare": "Tell whether one embedding model made the vectors of A and B, and which items moved most.",
    "shift": "Rank the words of one language by how far they moved between the vectors of two times, A and B.",
    "data": "List, fetch and find public vectors and dictionaries. Only `qwp data download` uses the network.",
    "experiment": "Run the tables of the paper, or tables of your own, and lay them beside the published figures.",
    "explore": "Look at finished alignments in the browser: search, map, table, corrections, comparison.",
    "demo": "Align the packaged English and Spanish vectors with the default settings and write an HTML report.",
    "vecmap": "Run a command line of VecMap and write its two files: `qwp vecmap --unsupervised A B A.OUT B.OUT`.",
    "muse": "Run a command line of MUSE and write its files: `qwp muse unsupervised --src_lang en --tgt_lang es ...`.",
}
OTHER_TOOLS = ("muse", "vecmap")
"""Commands that parse the command line of another tool themselves."""
_ALL_AS_TYPED: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
}
_OWN_OPTIONS: dict[str, Any] = {
    "context_settings": {"token_normalize_func": lambda option: option.replace("_", "-")},
}


class Unloaded(TyperCommand):
    """A command for the list of commands, without its options."""


def listed() -> dict[str, Any]:
    """Return all commands without importing their modules."""
    return {name: Unloaded(name, help=summary) for name, summary in COMMANDS.items()}


@cache
def loaded(name: str) -> Any:
    """Import the module of a command and return the command with its options."""
    if name in OTHER_TOOLS:
        folder, usual, options = "qwp.cli.compat", HelpfulCommand, _ALL_AS_TYPED
    else:
        folder, usual, options = "qwp.cli", AliasedCommand, _OWN_OPTIONS
    module = importlib.import_module(f"{folder}.{name.replace('-', '_')}")
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=getattr(module, "Command", usual), **options)(module.command)
    return typer.main.get_command(alone)
