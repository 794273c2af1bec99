"""The --help of every command.

typer shows Python types as option values, breaks words in narrow columns, and changes its help with each version.
"""

from __future__ import annotations

import inspect
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from qwp.cli import console

_MOST_WIDTH = 100
_LONGEST_NAME = 30  # a longer name has its text on the next line
_ARGUMENTS, _OPTIONS, _ALL = "Arguments", "Options", "qwp.help_all"


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show all options, by stage, and exit."),
]


class _Helpful:
    """Draw the help of a command.

    Attributes:
        everyday: names of the options that --help shows, if --help-all shows all.
        brief: shorter texts for --help, by name.
        panels: titles of groups of options, in their order. Other groups come first.
    """

    everyday: frozenset[str] = frozenset()
    brief: Mapping[str, str] = MappingProxyType({})
    panels: tuple[str, ...] = ()

    def collect_usage_pieces(self: Any, ctx: Any) -> list[str]:
        """Return arguments, required options and the rest, in the usual order of typing."""
        params = [param for param in self.get_params(ctx) if not getattr(param, "hidden", False)]
        pieces = [_argument(param) for param in params if param.param_type_name == "argument"]
        pieces += [f"{max(p.opts, key=len)} {p.metavar}" for p in params if _is_option(p) and p.required]
        pieces += ["[OPTIONS]"]
        return [*pieces, "COMMAND ..."] if isinstance(self, TyperGroup) else pieces

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter, with colours on a terminal."""
        screen = console.stdout()
        with screen.capture() as drawn:
            for line in self._help_lines(ctx, _width()):
                screen.print(line, soft_wrap=True)
        formatter.write(drawn.get())

    def _help_lines(self: Any, ctx: Any, width: int) -> Iterator[Text]:
        yield from _wrapped(f"Usage: {' '.join([ctx.command_path, *self.collect_usage_pieces(ctx)])}", width, "  ")
        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
            yield Text()
            yield from _wrapped(paragraph, width)
        shown = [param for param in self.get_params(ctx) if self._is_shown(param, ctx)]
        texts = self.brief if self._is_short(ctx) else {}
        panels = _panels(shown, texts)
        order = {_ARGUMENTS: -2, **{title: number for number, title in enumerate(self.panels)}}
        for title in sorted(panels, key=lambda title: order.get(title, -1)):
            yield from _section(title, panels[title], width)
        if isinstance(self, TyperGroup):
            commands = [(name, _first_paragraph(self.commands[name].help)) for name in self.list_commands(ctx)]
            yield from _section("Commands", commands, width)
        if self._is_short(ctx):
            yield Text()
            options = sum(_is_option(param) for param in self.get_params(ctx))
            yield from _wrapped(f"`{ctx.command_path} --help-all` shows all {options} options.", width)

    def _is_short(self, ctx: Any) -> bool:
        return bool(self.everyday) and not ctx.meta.get(_ALL)

    def _is_shown(self, param: Any, ctx: Any) -> bool:
        if getattr(param, "hidden", False):
            return False
        always = not self._is_short(ctx) or not _is_option(param) or param.required
        return always or param.name in self.everyday or param.name == "help"


class HelpfulCommand(_Helpful, TyperCommand):
    """A command with this help."""


class HelpfulGroup(_Helpful, TyperGroup):
    """A group of commands with this help."""


def _width() -> int:
    return min(_MOST_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 80


def _is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")


def _argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    if not param.required and not name.startswith("["):
        name = f"[{name}]"
    return name if param.nargs == 1 or name.endswith("...") else f"{name}..."


def _panels(params: Iterable[Any], brief: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Return names and texts of the arguments and options, by title."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        text = brief.get(param.name) or _text(param)
        if _is_option(param):
            panels.setdefault(getattr(param, "rich_help_panel", None) or _OPTIONS, []).append((_option(param), text))
        else:
            panels.setdefault(_ARGUMENTS, []).append((str(param.metavar or param.name.upper()), text))
    return panels


def _option(param: Any) -> str:
    """Return the names of an option, the short one first, and its metavar."""
    long = [name for name in param.opts if name.startswith("--")]
    short = [name for name in param.opts if not name.startswith("--")]
    names = ", ".join(short) or "  "
    if long:
        names += (", " if short else "  ") + ", ".join(long)
    if param.secondary_opts:
        names += f", {', '.join(param.secondary_opts)}"
    return names if param.is_flag else f"{names} {param.metavar or 'VALUE'}"


def _text(param: Any) -> str:
    text = str(getattr(param, "help", None) or "")
    if param.required and _is_option(param):
        return f"{text} (required)"
    if getattr(param, "show_default", False) and not getattr(param, "is_flag", False) and param.default is not None:
        return f"{text} (default: {param.default})"
    return text


def _first_paragraph(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n\n")[0]


def _section(title: str, rows: list[tuple[str, str]], width: int) -> Iterator[Text]:
    """Yield a heading, then names and texts side by side."""
    yield Text()
    yield Text(title, style="bold")
    column = min(_LONGEST_NAME, max(len(name) for name, _ in rows)) + 2
    for name, text in rows:
        lines = textwrap.wrap(
            " ".join(text.split()), width - column - 2, break_long_words=False, break_on_hyphens=False
        ) or [""]
        beside = lines.pop(0) if len(name) + 2 <= column else ""
        yield Text.assemble(("  " + name.ljust(column if beside else 0), "cyan"), beside)
        for line in lines:
            yield Text(" " * (column + 2) + line)


def _wrapped(text: str, width: int, indent: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(
        " ".join(text.split()), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ):
        yield Text(line)
