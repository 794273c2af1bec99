"""`qwp export`: write both spaces, in the common space, as ordinary vector files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.cli import console, options
from qwp.cli.streaming import BATCH, batches_of, check_target, copy, refuse_sources
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord
from qwp.spaces.embeddings import Side
from qwp.spaces.io import Batch
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.io.files import check_file
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sources import located

_FORMAT = "fasttext"


def asked_for(alignment: Alignment, side: Side, source: Path | None, out: Path, format: str | None) -> Path | None:
    """The model that is to be written in the common space: that of `source`, or the one that was aligned.

    None where another format is asked for, or the vectors of the side are no model.
    """
    from qwp.spaces import io

    if format not in (None, _FORMAT) or (format is None and out.suffix != ".bin"):
        return None
    if source is not None:
        return source if io.sniff(source) == _FORMAT else None
    record: InputRecord = getattr(alignment.provenance, side)
    return _aligned(record, side) if (record.reading or {}).get("format") == _FORMAT else None


def _aligned(record: InputRecord, side: Side) -> Path:
    """The model that was aligned, if it is still the same."""
    from qwp.spaces import io

    path = Path(record.path or "")
    ways_out = f"give --{side} FILE for a model of your choice, or --format word2vec-binary to write the words alone"
    if not path.is_file():
        raise InputError(f"{path}, the fastText model that was aligned, is not there: {ways_out}")
    try:
        same = io.load(path, max_vocab=None if record.complete else record.n_words, **(record.reading or {}))
    except InputError as error:
        raise InputError(f"{path} cannot be read as it was when it was aligned ({error}): {ways_out}") from error
    if same.sha256() != record.sha256:
        raise InputError(f"{path} is no longer the fastText model that was aligned: {ways_out}")
    return path


def write(alignment: Alignment, side: Side, model: Path, out: Path, *, json: bool) -> dict[str, Any]:
    """Write a model in the common space. Returns what was written as plain JSON types."""
    from qwp.showing.bar import words_bar
    from qwp.spaces.io import fasttext

    aligned = alignment.side(side)
    dim = alignment.src_map.shape[1]
    turn = np.eye(dim) if aligned.map is None else aligned.map
    with words_bar(quiet=json) as bar:
        task = bar.add_task(f"writing {out}", total=None)
        words = fasttext.write_mapped(model, out, turn, lambda done: bar.advance(task, done))
    if not json:
        console.say(f"a fastText model of {words:,} words, {dim} dimensions written to {out}")
    return {"out": str(out), "words": words, "dim": dim, "from_file": str(model), "warnings": []}


SrcOut = Annotated[
    Path | None,
    typer.Option("--src-out", metavar="FILE", help="Where mapped source vectors go.", show_default=False),
]
TgtOut = Annotated[
    Path | None,
    typer.Option("--tgt-out", metavar="FILE", help="Where mapped target vectors go.", show_default=False),
]


@console.guarded
def command(
    folder: options.AlignmentFolder,
    src_out: SrcOut = None,
    tgt_out: TgtOut = None,
    src: Annotated[
        Path | None,
        typer.Option("--src", metavar="FILE", help="Source vectors to map, all of them.", show_default=False),
    ] = None,
    tgt: Annotated[
        Path | None,
        typer.Option("--tgt", metavar="FILE", help="Target vectors to map, all of them.", show_default=False),
    ] = None,
    src_words: Annotated[
        Path | None,
        typer.Option("--src-words", metavar="FILE", help="Words of --src where it has none.", show_default=False),
    ] = None,
    tgt_words: Annotated[
        Path | None,
        typer.Option("--tgt-words", metavar="FILE", help="Words of --tgt where it has none.", show_default=False),
    ] = None,
    saved: Annotated[
        bool, typer.Option("--saved", help="Only the words saved in DIR, though the files held more.")
    ] = False,
    format: options.OutFormat = None,
    digits: options.Digits = None,
    dtype: options.Dtype = "float32",
    input_format: options.InputFormat = None,
    encoding: options.Encoding = UTF8,
    errors: options.Errors = "raise",
    json: options.Json = False,
) -> None:
    """Write the vectors in the common space, for any tool that reads vector files.

    Where the alignment was made from the first words of a file (--max-vocab), the whole file is read
    again and all of its words are written, if it still begins with the same words and vectors; --saved
    writes only those that were aligned, --src and --tgt name other files.

    A side that came from a fastText model is written as one where the file ends in .bin: all of its input vectors times
    the map, neither scaled nor centred.
    """
    writing: dict[str, Any] = {"format": format, "digits": digits, "dtype": dtype}
    outs = checked_outs(src_out, tgt_out, **writing)
    if not outs:
        raise InputError("nothing to write was asked for; expected --src-out FILE, --tgt-out FILE or both")
    if saved and (src or tgt):
        raise InputError("--saved and --src/--tgt were both given; expected one: the saved words or another file")
    alignment = options.load_alignment(folder)
    files: dict[Side, Path | None] = {"src": src, "tgt": tgt}
    _refuse_sources(alignment, outs, files)
    given = {"errors": errors, "format": input_format, "encoding": encoding}
    words: dict[Side, Path | None] = {"src": src_words, "tgt": tgt_words}
    reading = {
        side: {**given, "words": words[side], "label": side} if files[side] else _as_recorded(alignment, side, given)
        for side in outs
    }
    # All before the first file is written.
    sources = {side: _source(alignment, side, files[side], saved=saved, **reading[side]) for side in outs}
    written = write_sides(alignment, outs, sources, reading, saved=saved, json=json, **writing)
    if json:
        console.print_json({"command": "export", "verdict": alignment.quality.verdict, **written})


def checked_outs(src_out: Path | None, tgt_out: Path | None, **writing: Any) -> dict[Side, Path]:
    """The files to write, by side; an InputError where one could not be written, before anything is read."""
    given: dict[Side, Path | None] = {"src": src_out, "tgt": tgt_out}
    outs = {side: path for side, path in given.items() if path is not None}
    if len(outs) == 2 and len({path.resolve() for path in outs.values()}) == 1:
        raise InputError(f"--src-out and --tgt-out both name {src_out}; expected two files")
    for path in outs.values():
        check_target(path, **writing)
    return outs


def write_sides(
    alignment: Alignment,
    outs: Mapping[Side, Path],
    sources: Mapping[Side, Path | None],
    reading: Mapping[Side, dict[str, Any]],
    *,
    saved: bool = False,
    batch: int = BATCH,
    **writing: Any,
) -> dict[str, Any]:
    """Write each side in the common space: all words of its source, or where that is None the words of the alignment.

    reading: how the source of each side is read. batch: words that are mapped at a time. saved: no more than the words
    of the alignment, also of a fastText model, which is otherwise written as a whole where its format is asked for.
    Returns what was written, by side, as plain JSON types.
    """
    if len(outs) == 1 and alignment.tgt_map is not None:
        console.warn(
            "both sides of this alignment are mapped: the vectors written here do not match the other side as it was. "
            "Write both (--src-out and --tgt-out), or align with --map orthogonal"
        )
    format, json = writing.get("format"), writing.get("json", False)
    whole = {
        side: None if saved else asked_for(alignment, side, sources[side], out, format) for side, out in outs.items()
    }
    written: dict[str, Any] = {}
    for side, out in outs.items():
        model = whole[side]
        if model is not None:
            written[side] = write(alignment, side, model, out, json=json)
        else:
            written[side] = _export(alignment, side, sources[side], out, reading[side], batch, **writing)
    return written


def _refuse_sources(alignment: Alignment, outs: Mapping[Side, Path], files: Mapping[Side, Path | None]) -> None:
    """Refuse to write over the files that are read, and over those that were aligned."""
    aligned = (alignment.provenance.src.path, alignment.provenance.tgt.path)
    refuse_sources(outs.values(), [Path(path) for path in (*aligned, *files.values()) if path is not None])


def _as_recorded(alignment: Alignment, side: Side, given: dict[str, Any]) -> dict[str, Any]:
    """How the file of one side was read when it was aligned; what the user says now wins."""
    record: InputRecord = getattr(alignment.provenance, side)
    known = {name: value for name, value in (record.reading or {}).items() if name in (*given, "words", "label")}
    usual = {"errors": "raise", "format": None, "encoding": UTF8}
    return {**given, **known, **{name: value for name, value in given.items() if value != usual[name]}}


def _export(
    alignment: Alignment,
    side: Side,
    source: Path | None,
    out: Path,
    reading: dict[str, Any],
    batch: int,
    **writing: Any,
) -> dict[str, Any]:
    """Write all words of a source, or those that were saved."""
    dim, written = alignment.side(side).dim, alignment.src_map.shape[1]
    notes: list[Reading] = []
    count: int | None = None
    batches: Iterable[Batch]
    if source is None:
        space = alignment.side(side).space
        batches, count = batches_of(space, batch), len(space)
    else:
        batches = _all_words(source, dim, batch, notes, reading)
    words = copy(
        batches,
        out,
        treat=lambda vectors: alignment.transform(vectors, side),
        count=count,
        named=lambda: not any(found.unnamed for found in notes),
        **writing,
    )
    warnings = [text for found in notes for text in options.warn_of(found)]
    return {
        "out": str(out),
        "words": words,
        "dim": written,
        "from_file": None if source is None else str(source),
        "warnings": warnings,
    }


def _all_words(path: Path, dim: int, size: int, notes: list[Reading], reading: dict[str, Any]) -> Iterator[Batch]:
    from qwp.spaces import io

    for batch in io.stream(path, batch=size, on_open=notes.append, **reading):
        if batch.vectors.shape[1] != dim:
            raise InputError(
                f"{path} has {batch.vectors.shape[1]} dimensions, the alignment {dim}: name a file of the same space"
            )
        yield batch


def _source(alignment: Alignment, side: Side, file: Path | None, *, saved: bool, **reading: Any) -> Path | None:
    """The file whose words are to be written; None for the words that were saved."""
    record: InputRecord = getattr(alignment.provenance, side)
    if file is not None:
        check_file(file)
        return file
    return None if saved or record.whole else _original(record, side, alignment.holds_vectors, **reading)


def _original(record: InputRecord, side: Side, has_saved: bool, /, **reading: Any) -> Path:
    """The file that an alignment was made from, if what was aligned is still the beginning of it.

    Nobody but the user may choose the file that is written out: what a result says about where it came from is taken
    for true only if the hash agrees.
    """
    from qwp.spaces import io

    name, words = record.path, record.n_words
    ways_out = f"give --{side} FILE to export all words of a file of your choice" + (
        f", or --saved to export the {words:,} that were aligned" if has_saved else ""
    )
    if name is None or not located(Path(name))[0].is_file():
        raise InputError(
            f"only the first {words:,} words of {name} were aligned, and that file is not there: {ways_out}"
        )
    try:
        same = io.load(name, max_vocab=words, **reading).sha256() == record.sha256
    except InputError as error:
        raise InputError(f"{name} cannot be read as it was when it was aligned ({error}): {ways_out}") from error
    if not same:
        raise InputError(
            f"{name} does not begin with the {words:,} words and vectors that were aligned: it has changed, "
            f"or is another file. {ways_out[0].upper()}{ways_out[1:]}"
        )
    return Path(name)
