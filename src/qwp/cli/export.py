"""`qwp export`: write both spaces, in the common space, as ordinary vector files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qwp.cli import console, options
from qwp.cli.options import ReadingOptions, WritingOptions, option
from qwp.cli.streaming import BATCH, batches_of, check_target, copy, refuse_sources
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord
from qwp.spaces.embeddings import Side
from qwp.spaces.io import Batch
from qwp.spaces.io.files import check_file
from qwp.spaces.io.reading import Reading as ReadingNotes
from qwp.spaces.io.sources import split_part

_FASTTEXT = "fasttext"


@dataclass(frozen=True)
class Outs:
    """Options that name the vector files to write."""

    src_out: Path | None = option("File for the mapped source vectors.")
    tgt_out: Path | None = option("File for the mapped target vectors.")

    def checked(self, writing: Mapping[str, Any]) -> dict[Side, Path]:
        """Return the files to write by side. Raises an InputError for a file that cannot be written."""
        given: dict[Side, Path | None] = {"src": self.src_out, "tgt": self.tgt_out}
        outs = {side: path for side, path in given.items() if path is not None}
        if len(outs) == 2 and len({path.resolve() for path in outs.values()}) == 1:
            raise InputError(f"--src-out and --tgt-out both name {self.src_out}; expected two files")
        for path in outs.values():
            check_target(path, **writing)
        return outs


@dataclass(frozen=True)
class Sources:
    """Options that name the vectors to map."""

    src: Path | None = option("Source vectors to map, all of them.")
    tgt: Path | None = option("Target vectors to map, all of them.")
    src_words: Path | None = option("Words of --src if it has none.")
    tgt_words: Path | None = option("Words of --tgt if it has none.")
    saved: bool = option("Only the words saved in DIR, even if the files hold more.", default=False)

    def files(self) -> dict[Side, Path | None]:
        """Return the files to map by side."""
        return {"src": self.src, "tgt": self.tgt}


@options.with_options
def command(
    folder: options.AlignmentFolder,
    out: Outs,
    source: Sources,
    writing: WritingOptions,
    reading: ReadingOptions,
    json: options.Json = False,
) -> None:
    """Write the vectors in the common space, for any tool that reads vector files.

    If only the first words of a file were aligned (--max-vocab), the whole file is read again and all of its words are
    written, provided that it still begins with the same words and vectors. --saved writes only the aligned words; --src
    and --tgt name other files.

    A fastText model is written as a fastText model if the output file ends in .bin: all of its input vectors times the
    map, neither scaled nor centred.
    """
    how = asdict(writing)
    outs = out.checked(how)
    if not outs:
        raise InputError("nothing to write was asked for; expected --src-out FILE, --tgt-out FILE or both")
    if source.saved and (source.src or source.tgt):
        raise InputError("--saved and --src/--tgt were both given; expected one: the saved words or another file")
    alignment = options.load_alignment(folder)
    files = source.files()
    _refuse_sources(alignment, outs, files)
    words: dict[Side, Path | None] = {"src": source.src_words, "tgt": source.tgt_words}
    arguments = {
        side: {**reading.arguments(), "words": words[side], "label": side}
        if files[side]
        else _as_recorded(alignment, side, reading)
        for side in outs
    }
    # Check all sources before the first file is written.
    sources = {side: _source(alignment, side, files[side], saved=source.saved, **arguments[side]) for side in outs}
    written = write_sides(alignment, outs, sources, arguments, saved=source.saved, quiet=json, **how)
    if json:
        console.print_json({"command": "export", "verdict": alignment.quality.verdict, **written})


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
    """Write both sides in the common space.

    Args:
        alignment: the maps.
        outs: the files to write.
        sources: the file with the words of each side; None for the words of the alignment.
        reading: how to read the sources, as arguments of `qwp.load`.
        saved: write the aligned words only, even of a fastText model.
        batch: number of words to map at a time.
        writing: arguments of `streaming.copy`.

    Returns:
        what was written, by side, as JSON values.
    """
    if len(outs) == 1 and alignment.tgt_map is not None:
        console.warn(
            "both sides of this alignment are mapped: the vectors written here do not match the other side as it was. "
            "Write both (--src-out and --tgt-out), or align with --map orthogonal"
        )
    format, quiet = writing.get("format"), writing.get("quiet", False)
    models = {
        side: None if saved else model_of(alignment, side, sources[side], out, format) for side, out in outs.items()
    }
    written: dict[str, Any] = {}
    for side, out in outs.items():
        model = models[side]
        if model is not None:
            written[side] = _write_model(alignment, side, model, out, quiet=quiet)
        else:
            written[side] = _write_words(alignment, side, sources[side], out, reading[side], batch, **writing)
    return written


def _write_words(
    alignment: Alignment,
    side: Side,
    source: Path | None,
    out: Path,
    reading: dict[str, Any],
    batch: int,
    **writing: Any,
) -> dict[str, Any]:
    """Write all words of a source, or the saved words."""
    dim, written = alignment.side(side).dim, alignment.src_map.shape[1]
    notes: list[ReadingNotes] = []
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


def _all_words(path: Path, dim: int, size: int, notes: list[ReadingNotes], reading: dict[str, Any]) -> Iterator[Batch]:
    from qwp.spaces import io

    for batch in io.stream(path, batch=size, on_open=notes.append, **reading):
        if batch.vectors.shape[1] != dim:
            raise InputError(
                f"{path} has {batch.vectors.shape[1]} dimensions, the alignment {dim}: name a file of the same space"
            )
        yield batch


# --------------------------------------------------------------------------- the files to read


def _refuse_sources(alignment: Alignment, outs: Mapping[Side, Path], files: Mapping[Side, Path | None]) -> None:
    """Refuse to write over an input file or an aligned file."""
    aligned = (alignment.provenance.src.path, alignment.provenance.tgt.path)
    refuse_sources(outs.values(), [Path(path) for path in (*aligned, *files.values()) if path is not None])


def _as_recorded(alignment: Alignment, side: Side, reading: ReadingOptions) -> dict[str, Any]:
    """Return how the file of a side was read for the alignment. Options of the user win."""
    record: InputRecord = getattr(alignment.provenance, side)
    given, usual = reading.arguments(), ReadingOptions().arguments()
    known = {name: value for name, value in (record.reading or {}).items() if name in (*given, "words", "label")}
    return {**given, **known, **{name: value for name, value in given.items() if value != usual[name]}}


def _source(alignment: Alignment, side: Side, path: Path | None, *, saved: bool, **reading: Any) -> Path | None:
    """Return the file with the words to write; None for the saved words."""
    record: InputRecord = getattr(alignment.provenance, side)
    if path is not None:
        check_file(path)
        return path
    return None if saved or record.whole else _original(record, side, alignment.holds_vectors, **reading)


def _original(record: InputRecord, side: Side, has_saved: bool, /, **reading: Any) -> Path:
    """Return the file that was aligned, if it still begins with the aligned words and vectors.

    The path comes from the saved result, which may be anybody's. The hash makes sure that only a file of the same
    content is written out.
    """
    name, words = record.path, record.n_words
    ways_out = f"give --{side} FILE to export all words of a file of your choice" + (
        f", or --saved to export the {words:,} that were aligned" if has_saved else ""
    )
    if name is None or not split_part(Path(name))[0].is_file():
        raise InputError(f"only the first {words:,} words of {name} were aligned, and that file is missing: {ways_out}")
    if not _is_same(Path(name), record, ways_out, max_vocab=words, **reading):
        raise InputError(
            f"{name} does not begin with the {words:,} words and vectors that were aligned: it has changed, "
            f"or is another file. {ways_out[0].upper()}{ways_out[1:]}"
        )
    return Path(name)


def _is_same(path: Path, record: InputRecord, ways_out: str, **reading: Any) -> bool:
    """Return whether a file holds the words and vectors that were aligned."""
    from qwp.spaces import io

    try:
        return io.load(path, **reading).sha256() == record.sha256
    except InputError as error:
        raise InputError(f"{path} cannot be read as it was when it was aligned ({error}): {ways_out}") from error


# --------------------------------------------------------------------------- fastText models


def model_of(alignment: Alignment, side: Side, source: Path | None, out: Path, format: str | None) -> Path | None:
    """Return the fastText model to write in the common space: the source, or the aligned file.

    None if the output has another format, or the vectors of the side come from no model.
    """
    from qwp.spaces import io

    if format not in (None, _FASTTEXT) or (format is None and out.suffix != ".bin"):
        return None
    if source is not None:
        return source if io.sniff(source) == _FASTTEXT else None
    record: InputRecord = getattr(alignment.provenance, side)
    return _aligned_model(record, side) if (record.reading or {}).get("format") == _FASTTEXT else None


def _aligned_model(record: InputRecord, side: Side) -> Path:
    """Return the file of the model that was aligned, if it has not changed."""
    path = Path(record.path or "")
    ways_out = f"give --{side} FILE for a model of your choice, or --format word2vec-binary to write the words alone"
    if not path.is_file():
        raise InputError(f"{path}, the fastText model that was aligned, is missing: {ways_out}")
    most = None if record.complete else record.n_words
    if not _is_same(path, record, ways_out, max_vocab=most, **(record.reading or {})):
        raise InputError(f"{path} is no longer the fastText model that was aligned: {ways_out}")
    return path


def _write_model(alignment: Alignment, side: Side, model: Path, out: Path, *, quiet: bool) -> dict[str, Any]:
    """Write a fastText model in the common space. Returns what was written as JSON values."""
    from qwp.showing.bar import words_bar
    from qwp.spaces.io import fasttext

    aligned = alignment.side(side)
    dim = alignment.src_map.shape[1]
    matrix = np.eye(dim) if aligned.map is None else aligned.map
    with words_bar(quiet=quiet) as bar:
        task = bar.add_task(f"writing {out}", total=None)
        words = fasttext.write_mapped(model, out, matrix, lambda done: bar.advance(task, done))
    if not quiet:
        console.say(f"a fastText model of {words:,} words, {dim} dimensions written to {out}")
    return {"out": str(out), "words": words, "dim": dim, "from_file": str(model), "warnings": []}
