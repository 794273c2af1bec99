"""Flags of older tools and underscore spellings, rewritten before parsing: --help shows one name each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

ALIASES = {
    "--nmax": "--max-vocab",
    "--n-refinement": "--refine",
    "--reg": "--epsilon",
    "--csls": "--csls-k",
    "--dico-max-rank": "--refine-words",
    "--bsz": "--coreset-size",
    "--nepoch": "--epochs",
    "--niter": "--steps",
}


def rewrite(args: Sequence[str]) -> list[str]:
    """The same arguments with every known older spelling replaced, up to a lone `--`."""
    rewritten: list[str] = []
    for number, argument in enumerate(args):
        if argument == "--":
            return rewritten + list(args[number:])
        rewritten.append(_rewrite_one(argument))
    return rewritten


def _rewrite_one(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    flag = flag.replace("_", "-")
    return ALIASES.get(flag, flag) + equals + value


class AliasGroup(TyperGroup):
    """The group of commands, with `rewrite` applied to what the user typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite, then parse as usual."""
        return super().parse_args(ctx, rewrite(args))
