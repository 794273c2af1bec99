"""`qwp explore`: serve finished alignments to the browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from qwp.cli import console, options
from qwp.cli.options import GoldReading, complete_results, count, option
from qwp.errors import InputError
from qwp.explore.workspace import MAX_WORDS, Items, Workspace
from qwp.showing import terminal
from qwp.spaces.embeddings import Side
from qwp.spaces.lexicon import Lexicon

_SECONDS_TO_CLOSE = 2.0


@dataclass(frozen=True)
class ServerOptions:
    """Options that say what to serve, and where."""

    lexicon: Path | None = option("A dictionary of correct translations.")
    src_items: Path | None = option("Texts and metadata of the source items: TSV, CSV or JSON Lines.", "FILE")
    tgt_items: Path | None = option("The same for the target items.", "FILE")
    port: int = count("Port on this machine; 0 for any free port.", 0, least=0, most=65_535)
    token_file: Path | None = option(
        "Keep the secret of the address in FILE, so that the address stays the same (with --port).", "FILE"
    )
    no_browser: bool = option("Print the address, but open no browser.", default=False)
    max_words: int = count(
        "Most frequent words of each side in the table and on the map.", MAX_WORDS, least=2, most=200_000
    )


@options.with_options
def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folders written by `qwp align --out`; several are compared.",
            autocompletion=complete_results,
        ),
    ],
    page: ServerOptions,
) -> None:
    """Look at finished alignments in the browser: search, map, table, corrections, comparison.

    Only this machine can open the page, whose address holds a secret; Ctrl-C stops the server. Marks are saved in
    corrections.tsv and rejected.tsv beside the result.
    """
    gold = None if page.lexicon is None else GoldReading().load(page.lexicon)
    _serve(_opened(folders, gold, page), page)


def _opened(folders: Sequence[Path], gold: Lexicon | None, page: ServerOptions) -> list[Workspace]:
    names = [folder.resolve().name or str(folder) for folder in folders]
    # Paths disambiguate folders of the same name.
    shown = [name if names.count(name) == 1 else str(folder) for name, folder in zip(names, folders, strict=True)]
    files: dict[Side, Path | None] = {"src": page.src_items, "tgt": page.tgt_items}
    found = []
    for name, folder in zip(shown, folders, strict=True):
        alignment = options.load_alignment(folder)
        items = {side: Items.load(path, alignment.side(side).space) for side, path in files.items() if path is not None}
        found.append(Workspace(name, alignment, folder=folder, lexicon=gold, items=items, max_words=page.max_words))
    return found


def _serve(workspace: Sequence[Workspace], page: ServerOptions) -> None:
    from qwp.explore.server import ExplorerServer, kept_token
    from qwp.explore.session import Session

    session = Session(workspace)
    token = None if page.token_file is None else kept_token(page.token_file)
    try:
        server = ExplorerServer(session, page.port, token=token)
    except OSError as error:
        raise InputError(
            f"--port {page.port} cannot be used ({error.strerror or error}): choose another, or leave it out"
        ) from error
    console.say(server.address, whole=True)
    terminal.note("Ctrl-C stops the server; the address works on this machine only, while the server runs")
    session.start()
    if not page.no_browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        terminal.note("ended")
    finally:
        server.server_close()
        ended = session.close(_SECONDS_TO_CLOSE)
    if not ended:
        # A daemon thread that computes while Python shuts down can abort the process.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
