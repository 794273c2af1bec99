"""`qwp convert`: rewrite vectors in another file format."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.cli.options import HeadReading, WritingOptions
from qwp.spaces.io.reading import Reading as ReadingNotes


@options.with_options
def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file to read.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    reading: HeadReading,
    writing: WritingOptions,
    words: options.Words = None,
    json: options.Json = False,
) -> None:
    """Rewrite a vector file in another format, in bounded memory."""
    from qwp.cli.streaming import BATCH, check_target, copy, refuse_sources
    from qwp.spaces import io

    how: dict[str, Any] = asdict(writing)
    check_target(out, **how)
    refuse_sources([out], [source] if words is None else [source, words])
    notes: list[ReadingNotes] = []
    batches = io.stream(source, batch=BATCH, on_open=notes.append, words=words, **reading.arguments())
    count = copy(batches, out, **how, named=lambda: not notes[0].unnamed, quiet=json)
    warnings = options.warn_of(notes[0])
    if json:
        console.print_json(
            {
                "command": "convert",
                "in": str(source),
                "input_format": notes[0].format,
                "out": str(out),
                "words": count,
                "duplicates": notes[0].duplicates,
                "skipped": notes[0].skipped,
                "warnings": warnings,
            }
        )
