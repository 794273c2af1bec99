"""`qwp explore`: look at finished alignments in the browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from qwp.cli import completion, console, options
from qwp.errors import InputError
from qwp.explore.opened import MOST_WORDS, Explored
from qwp.spaces.lexicon import Lexicon

_PORTS = (0, 65535)
_WORDS = (2, 200_000)
_PATIENCE = 2.0  # seconds to wait for threads at the end

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...",
        help="Folders written by `qwp align --out`; several are compared.",
        show_default=False,
        autocompletion=completion.result_folders,
    ),
]
LexiconFile = Annotated[
    Path | None,
    typer.Option(
        "--lexicon", metavar="FILE", help="A dictionary that says which translations are right.", show_default=False
    ),
]
Port = Annotated[int, typer.Option("--port", metavar="N", help="Port on this machine; 0 for any that is free.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address; open no browser.")]
MaxWords = Annotated[
    int, typer.Option("--max-words", metavar="N", help="Most frequent words of each side in the table and on the map.")
]


@console.guarded
def command(
    folders: Folders,
    lexicon: LexiconFile = None,
    port: Port = 0,
    no_browser: NoBrowser = False,
    max_words: MaxWords = MOST_WORDS,
) -> None:
    """Look at finished alignments in the browser: search, map, table, corrections, comparison.

    The page is served to this machine only, under an address with a secret in it; Ctrl-C ends it. Marks go into
    corrections.tsv and rejected.tsv beside the result.
    """
    _check("--port", port, _PORTS)
    _check("--max-words", max_words, _WORDS)
    gold = None if lexicon is None else options.load_lexicon(lexicon)
    _serve(_opened(folders, gold, max_words), port, browser=not no_browser)


def _check(option: str, value: int, bounds: tuple[int, int]) -> None:
    if not bounds[0] <= value <= bounds[1]:
        name = option.removeprefix("--").replace("-", "_")
        raise InputError(f"{name}={value} is out of range; expected {bounds[0]:,} to {bounds[1]:,}")


def _opened(folders: Sequence[Path], gold: Lexicon | None, most: int) -> list[Explored]:
    names = [folder.resolve().name or str(folder) for folder in folders]
    # Folders of the same name are told apart by their paths.
    shown = [name if names.count(name) == 1 else str(folder) for name, folder in zip(names, folders, strict=True)]
    return [
        Explored(name, options.load_alignment(folder), folder=folder, lexicon=gold, most=most)
        for name, folder in zip(shown, folders, strict=True)
    ]


def _serve(explored: Sequence[Explored], port: int, *, browser: bool) -> None:
    from qwp.explore.server import ExplorerServer
    from qwp.explore.session import Session

    session = Session(explored)
    try:
        server = ExplorerServer(session, port)
    except OSError as error:
        raise InputError(
            f"--port {port} cannot be used ({error.strerror or error}): choose another, or leave it out"
        ) from error
    console.say(server.address, whole=True)
    console.note("Ctrl-C ends it; the address works on this machine only, as long as this runs")
    session.start()
    if browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        console.note("ended")
    finally:
        server.server_close()
        ended = session.close(_PATIENCE)
    if not ended:
        # A daemon thread that computes while Python shuts down can abort the process.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
