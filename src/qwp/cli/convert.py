"""`qwp convert`: vectors from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.io.reading import Reading


@console.guarded
def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file to read.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    max_vocab: options.MaxVocab = None,
    format: options.OutFormat = None,
    input_format: options.InputFormat = None,
    encoding: options.Encoding = UTF8,
    words: options.Words = None,
    digits: options.Digits = None,
    dtype: options.Dtype = "float32",
    errors: options.Errors = "raise",
    json: options.Json = False,
) -> None:
    """Rewrite a vector file in another format, in bounded memory."""
    from qwp.cli.streaming import BATCH, check_target, copy, refuse_sources
    from qwp.spaces import io

    options.check(max_vocab=max_vocab, errors=errors, encoding=encoding)
    writing: dict[str, Any] = {"format": format, "digits": digits, "dtype": dtype}
    check_target(out, **writing)
    refuse_sources([out], [source] if words is None else [source, words])
    notes: list[Reading] = []
    reading: dict[str, Any] = {"format": input_format, "errors": errors, "encoding": encoding, "words": words}
    batches = io.stream(source, batch=BATCH, max_vocab=max_vocab, on_open=notes.append, **reading)
    count = copy(batches, out, **writing, named=lambda: not notes[0].unnamed, json=json)
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
