"""What the shell offers when a command line is completed with the Tab key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from qwp.methods import METHODS
from qwp.results.saved import ALIGNMENT, SEVERAL

Completer = Callable[[str], "list[str | tuple[str, str]]"]


def among(choices: Iterable[str] | Mapping[str, str]) -> Completer:
    """The choices that begin like what was typed; those of a mapping with what they mean."""
    items: list[str | tuple[str, str]] = list(choices.items() if isinstance(choices, Mapping) else choices)

    def complete(incomplete: str) -> list[str | tuple[str, str]]:
        return [item for item in items if (item if isinstance(item, str) else item[0]).startswith(incomplete)]

    return complete


def choice(
    flag: str, choices: Iterable[str], help: str, *, metavar: str | None = None, show_default: bool = True
) -> Any:
    """An option that takes one of some words: --help names them, unless it has a metavar, and the shell offers them."""
    names = tuple(choices)
    return typer.Option(
        flag,
        metavar=metavar or "|".join(names),
        help=help,
        show_default=show_default,
        autocompletion=among(names),
    )


methods = among({name: method.summary for name, method in METHODS.items()})


def result_folders(incomplete: str) -> list[str]:
    """Folders that `qwp align` wrote; where there is none the shell completes names of files as usual."""
    typed, start = os.path.split(incomplete)
    try:
        folders = sorted(path for path in Path(typed or ".").iterdir() if path.name.startswith(start))
    except OSError:
        return []
    return [os.path.join(typed, path.name) for path in folders if _is_result(path)]


def _is_result(path: Path) -> bool:
    return any((path / index).is_file() for index in (ALIGNMENT, SEVERAL))
