"""`qwp export`: write both spaces, in the common space, as ordinary vector files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.spaces.io import Batch
from qwp.spaces.io.reading import Reading
from qwp.spaces.sides import Side


@console.guarded
def command(
    folder: options.AlignmentFolder,
    src_out: Annotated[
        Path | None,
        typer.Option("--src-out", metavar="FILE", help="Where source vectors go.", show_default=False),
    ] = None,
    tgt_out: Annotated[
        Path | None,
        typer.Option("--tgt-out", metavar="FILE", help="Where target vectors go.", show_default=False),
    ] = None,
    src: Annotated[
        Path | None,
        typer.Option("--src", metavar="FILE", help="Source vectors to map, all of them.", show_default=False),
    ] = None,
    tgt: Annotated[
        Path | None,
        typer.Option("--tgt", metavar="FILE", help="Target vectors to map, all of them.", show_default=False),
    ] = None,
    saved: Annotated[
        bool, typer.Option("--saved", help="Only the words saved in DIR, though the files held more.")
    ] = False,
    format: options.OutFormat = None,
    digits: options.Digits = None,
    errors: options.Errors = "raise",
    json: options.Json = False,
) -> None:
    """Write the vectors in the common space, for any tool that reads vector files.

    Where the alignment was made from the first words of a file (--max-vocab), the whole file is read
    again and all of its words are written; --saved writes only those that were aligned, --src and --tgt
    name other files.
    """
    from qwp.cli.streaming import check_target

    outs: dict[Side, Path] = {s: p for s, p in (("src", src_out), ("tgt", tgt_out)) if p is not None}  # type: ignore[misc]
    if not outs:
        raise InputError("nothing to write was asked for; expected --src-out FILE, --tgt-out FILE or both")
    for path in outs.values():
        check_target(path, format, digits)
    if saved and (src or tgt):
        raise InputError("--saved and --src/--tgt were both given; expected one: the saved words or another file")
    alignment = options.load_alignment(folder)
    files = {"src": src, "tgt": tgt}
    if len(outs) == 1 and alignment.tgt_map is not None:
        console.warn(
            "both sides of this alignment are mapped: the vectors written here do not match the other side as it was. "
            "Write both (--src-out and --tgt-out), or align with --map orthogonal"
        )
    written: dict[str, Any] = {}
    for side, out in outs.items():
        written[side] = _export(
            alignment,
            side,
            files[side],
            out,
            saved=saved,
            format=format,
            digits=digits,
            errors=errors,
            json=json,
        )
    if json:
        console.print_json({"command": "export", "verdict": alignment.quality.verdict, **written})


def _export(
    alignment: Alignment,
    side: Side,
    file: Path | None,
    out: Path,
    *,
    saved: bool,
    errors: str,
    **writing: Any,
) -> dict[str, Any]:
    from qwp.cli.streaming import batches_of, copy

    space = alignment.src if side == "src" else alignment.tgt
    notes: list[Reading] = []
    count: int | None = None
    batches: Iterable[Batch]
    complete = getattr(alignment.provenance, side).complete
    if file is None and (saved or complete):
        batches, count = batches_of(space), len(space)
    else:
        batches = _from_file(alignment, side, file, errors, notes)
    words = copy(batches, out, treat=lambda vectors: alignment.transform(vectors, side), count=count, **writing)
    warnings = [text for reading in notes for text in options.warn_of(reading)]
    source = str(notes[0].path) if notes else None
    return {"out": str(out), "words": words, "dim": space.dim, "from_file": source, "warnings": warnings}


def _from_file(
    alignment: Alignment, side: Side, file: Path | None, errors: str, notes: list[Reading]
) -> Iterator[Batch]:
    """All words of a file: the one named, or the one the alignment was made from."""
    from qwp.cli.streaming import BATCH
    from qwp.spaces import io

    path = file if file is not None else _original(alignment, side)
    space = alignment.src if side == "src" else alignment.tgt
    first = True
    for batch in io.stream(path, batch=BATCH, errors=errors, on_open=notes.append):
        if first:
            if batch.vectors.shape[1] != space.dim:
                raise InputError(
                    f"{path} has {batch.vectors.shape[1]} dimensions, the alignment {space.dim}: "
                    "name a file of the same space"
                )
            if file is None and not _same_words(batch.words, space.words):
                raise InputError(
                    f"{path} does not begin with the words that were aligned: it has changed since. "
                    f"Give --{side} FILE to export a file of your choice, or --saved for the aligned words"
                )
            first = False
        yield batch


def _same_words(found: list[str], aligned: list[str]) -> bool:
    both = min(len(found), len(aligned))
    return found[:both] == aligned[:both]


def _original(alignment: Alignment, side: Side) -> Path:
    name = getattr(alignment.provenance, side).path
    words = len(alignment.src if side == "src" else alignment.tgt)
    if name is not None and Path(name).is_file():
        return Path(name)
    raise InputError(
        f"only the first {words:,} words of {name} were aligned, and that file is not there now: name it "
        f"with --{side} FILE to export all of its words, or give --saved to export those {words:,}"
    )
