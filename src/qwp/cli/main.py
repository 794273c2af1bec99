"""The `qwp` program. `commands` lists its commands, each in a module of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

from qwp.cli import commands, console, process
from qwp.cli.help import HelpfulGroup
from qwp.cli.process import Received, unwinding
from qwp.showing import terminal
from qwp.version import __version__


class Program(HelpfulGroup):
    """The group of all commands. It reports usage errors like all other errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands.update(commands.listed())

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command, with its module imported."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, commands.loaded(name) if name in commands.COMMANDS else found, rest

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command and, in standalone mode, exit."""
        run: Callable[..., Any] = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **options)
        typed = options.get("args", args[0] if args else None)
        typed = list(sys.argv[1:] if typed is None else typed)
        with console.errors_as_json(wants_json(typed), command_of(typed)):
            try:
                # click returns the code of an exit, and None from a command that ends normally.
                code = run(*args, standalone_mode=False, **options)
            except typer.Abort:  # Ctrl-C while older versions of typer parse the options
                code = console.EXIT_INTERRUPTED
            except (Exception, KeyboardInterrupt) as error:
                code = console.explain(error)
        sys.exit(code if isinstance(code, int) else 0)


def command_of(args: Sequence[str]) -> str | None:
    """Return the first argument that is no option."""
    return next((argument for argument in args if not argument.startswith("-")), None)


# Commands whose --format names a format of vector files.
_VECTOR_FORMATS = ("convert", "export")


def wants_json(args: Sequence[str]) -> bool:
    """Return whether a command line, which may be invalid, asks for JSON."""
    options = list(args)[: args.index("--")] if "--" in args else list(args)
    if "--json" in options:
        return True
    asked = "--format=json" in options or ("--format", "json") in pairwise(options)
    return asked and command_of(args) not in _VECTOR_FORMATS


app = typer.Typer(
    name="qwp",
    cls=Program,
    help="Align two word-embedding spaces with no dictionary, and judge the result.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.say(f"qwp {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Align two word-embedding spaces with no dictionary, and judge the result."""


def main(command: Callable[[], object] = app) -> None:
    """Run the command line and exit. command: what to run."""
    with unwinding() as received:
        code = _run(command, received)
    # A command or the parser may have taken the signal for Ctrl-C.
    sys.exit(received.code if code == console.EXIT_INTERRUPTED and received.code else code)


def _run(command: Callable[[], object], received: Received) -> int:
    """Run the command, flush the streams and return the exit code."""
    try:
        try:
            process.prepare()
            command()
        finally:
            # A signal must not interrupt the final messages.
            received.done = True
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        code = console.explain(error)
    else:
        code = 0
    try:
        process.flush()
    except (BrokenPipeError, process.OutputError) as error:
        # A command that failed has reported it, most likely for the same reason.
        code = code or console.explain(error)
        terminal.silence(sys.stdout)
    return code
