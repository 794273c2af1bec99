"""The `qwp` command: one subcommand a file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import qwp
from qwp.cli import align, convert, demo, evaluate, export, info, lexicon, methods, translate
from qwp.cli.aliases import AliasGroup
from qwp.cli.console import EXIT_INTERRUPTED

app = typer.Typer(
    name="qwp",
    cls=AliasGroup,
    help="Align two word-embedding spaces with no dictionary, and say how well it went.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("align")(align.command)
app.command("methods")(methods.command)
app.command("evaluate")(evaluate.command)
app.command("translate")(translate.command)
app.command("lexicon")(lexicon.command)
app.command("export")(export.command)
app.command("info")(info.command)
app.command("convert")(convert.command)
app.command("demo")(demo.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"qwp {qwp.__version__}")
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
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode shows an escape for a character it lacks; it must not stop the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
