"""The `qwp` command: one subcommand a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

import qwp
from qwp.cli import align, console, convert, demo, evaluate, export, info, lexicon, methods, streams, translate
from qwp.cli.aliases import AliasGroup, command_of
from qwp.cli.compat import muse, vecmap
from qwp.cli.help import HelpfulCommand
from qwp.cli.signals import Received, unwinding


class Program(AliasGroup):
    """All commands. Mistakes in the options are told in the same way as all others."""

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run and, unless told otherwise, exit."""
        run: Callable[..., Any] = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **options)
        typed = options.get("args", args[0] if args else None)
        typed = list(sys.argv[1:] if typed is None else typed)
        with console.errors_as_json(wants_json(typed), command_of(typed)):
            try:
                # The code of an exit; a command that comes to its end returns nothing.
                code = run(*args, standalone_mode=False, **options)
            except typer.Abort:  # older versions of typer, for Ctrl-C while the options are parsed
                code = console.EXIT_INTERRUPTED
            except (Exception, KeyboardInterrupt) as error:
                code = console.explain(error)
        sys.exit(code if isinstance(code, int) else 0)


# Their --format is that of vector files.
_OTHER_FORMATS = ("convert", "export")


def wants_json(args: Sequence[str]) -> bool:
    """Whether a command line, which need not be right otherwise, asks for JSON."""
    options = list(args)[: args.index("--")] if "--" in args else list(args)
    if "--json" in options:
        return True
    asked = "--format=json" in options or ("--format", "json") in pairwise(options)
    return asked and command_of(args) not in _OTHER_FORMATS


app = typer.Typer(
    name="qwp",
    cls=Program,
    help="Align two word-embedding spaces with no dictionary, and say how well it went.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("align", cls=align.AlignCommand)(align.command)
for _name, _module in (
    ("methods", methods),
    ("evaluate", evaluate),
    ("translate", translate),
    ("lexicon", lexicon),
    ("export", export),
    ("info", info),
    ("convert", convert),
    ("demo", demo),
):
    app.command(_name, cls=HelpfulCommand)(_module.command)
for _name, _tool in (("vecmap", vecmap), ("muse", muse)):
    # Its own parser reads everything that follows.
    app.command(
        _name,
        cls=HelpfulCommand,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
    )(_tool.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.say(f"qwp {qwp.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Align two word-embedding spaces with no dictionary, and say how well it went."""


def main() -> None:
    """Entry point of the console script."""
    with unwinding() as received:
        code = _run(received)
    # A command, or the parser, may know no other interrupt than Ctrl-C.
    sys.exit(received.code if code == console.EXIT_INTERRUPTED and received.code else code)


def _run(received: Received) -> int:
    """Run the command and return its exit code. Nothing is left in the streams that could still fail."""
    try:
        try:
            streams.prepare()
            app()
        finally:
            # What is left is to say how it ended: a signal that comes now must not break that off.
            received.done = True
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        code = console.explain(error)
    else:
        code = 0
    try:
        streams.flush()
    except (BrokenPipeError, streams.OutputError) as error:
        # A command that ended otherwise has said so, and most likely for the same reason.
        code = code or console.explain(error)
        streams.silence(sys.stdout)
    return code
