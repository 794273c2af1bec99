"""`qwp info`: describe a vector file or a saved alignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.cli import console, options
from qwp.cli.options import FileFormat
from qwp.cli.outputs import Output, TextRows
from qwp.cli.results import expect_alignment
from qwp.cli.streaming import BATCH
from qwp.errors import InputError
from qwp.judging.verdict import Quality
from qwp.results.provenance import Provenance
from qwp.results.summary import quality_rows, times
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sources import split_part

_FIRST_WORDS = 10


@options.with_options
def command(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE|DIR", help="A vector file, or a folder of `qwp align`."),
    ],
    reading: FileFormat,
    output: Output,
    words: options.Words = None,
) -> None:
    """Describe a vector file (read in full, damaged lines counted) or a saved alignment."""
    output.check()
    if not split_part(path)[0].exists():
        raise InputError(f"{path} does not exist; expected a vector file or a folder written by `qwp align --out`")
    for flag, value in (("--input-format", reading.input_format), ("--words", words)):
        if path.is_dir() and value is not None:
            raise InputError(f"{flag} {value} is for files; {path} is a folder: leave it out")
    about = _alignment(path) if path.is_dir() else of_file(path, words=words, **reading.arguments())
    output.write(
        json=lambda: {"command": "info", **about},
        rows=lambda: TextRows(("name", "value"), _flat(about)),
        show=lambda: _show_alignment(about) if path.is_dir() else _show_file(about),
    )


def _flat(about: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted names and JSON values of nested mappings. A text is not quoted."""
    for name, value in about.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value if isinstance(value, str) else dumps(value, ensure_ascii=False)


# --------------------------------------------------------------------------- files


def of_file(
    path: Path,
    format: str | None = None,
    encoding: str = UTF8,
    words: Path | None = None,
    batch: int = BATCH,
) -> dict[str, Any]:
    """Describe a vector file, reading it in batches so that it may exceed the memory."""
    from qwp.showing.bar import words_bar
    from qwp.spaces import io

    notes: list[Reading] = []
    first: list[str] = []
    least, most, total, n_words, dim, zeros = np.inf, 0.0, 0.0, 0, 0, 0
    with words_bar(quiet=False) as bar:
        task = bar.add_task(f"reading {path}", total=None)
        how: dict[str, Any] = {"format": format, "encoding": encoding, "words": words}
        for part in io.stream(path, batch=batch, errors="skip", on_open=notes.append, **how):
            norms = np.linalg.norm(part.vectors.astype(np.float64), axis=1)
            least, most = min(least, float(norms.min())), max(most, float(norms.max()))
            total, zeros = total + float(norms.sum()), zeros + int(np.count_nonzero(norms == 0))
            first += part.words[: _FIRST_WORDS - len(first)]
            n_words, dim = n_words + len(part), part.vectors.shape[1]
            bar.update(task, completed=n_words)
    reading = notes[0]
    return {
        "kind": "vectors",
        "path": str(path),
        "format": reading.format,
        "bytes": reading.size,
        "words": n_words,
        "dim": dim,
        "header_count": reading.header_count,
        "duplicates": reading.duplicates,
        "skipped": reading.skipped,
        "skipped_lines": list(reading.skipped_lines),
        "zero_vectors": zeros,
        "norms": {"min": least, "mean": total / n_words, "max": most},
        "first_words": first,
        "warnings": list(reading.warnings),
    }


def _show_file(about: dict[str, Any]) -> None:
    header = about["header_count"]
    norms = about["norms"]
    rows = [
        ("file", f"{about['path']} ({about['bytes']:,} bytes)"),
        ("format", about["format"]),
        ("words", f"{about['words']:,}"),
        ("dimensions", str(about["dim"])),
        ("header", "none" if header is None else f"announces {header:,} words"),
        ("repeated words", f"{about['duplicates']:,}"),
        ("damaged lines", f"{about['skipped']:,}"),
        ("zero vectors", f"{about['zero_vectors']:,}"),
        ("lengths", f"{norms['min']:.4g} to {norms['max']:.4g}, mean {norms['mean']:.4g}"),
        ("first words", " ".join(about["first_words"])),
    ]
    console.figures(rows + [("", line) for line in about["skipped_lines"]])


# --------------------------------------------------------------------------- alignments


def _alignment(folder: Path) -> dict[str, Any]:
    """Describe a saved alignment by its index. Its vectors must exist but are not read."""
    from qwp.results import saved
    from qwp.results.saved import read_alignment_index

    def complete() -> dict[str, Any]:
        stored = read_alignment_index(folder)
        stored.check_parts(content=False)
        return {**stored.content, "vectors_saved": saved.VECTOR_FILES[0] in stored.parts}

    expect_alignment(folder)
    found = saved.read(folder, saved.ALIGNMENT, complete)
    shown = {name: found[name] for name in ("vectors_saved", "provenance", "normalization", "quality")}
    return {"kind": "alignment", "path": str(folder), "verdict": shown["quality"]["verdict"], **shown}


def _show_alignment(about: dict[str, Any]) -> None:
    provenance, quality = Provenance.from_dict(about["provenance"]), Quality.from_dict(about["quality"])
    console.say(quality.explanation, "bold")
    rows = [
        ("verdict", quality.verdict),
        *quality_rows(quality),
        ("method", f"{provenance.method}, seed {provenance.seed}, qwp {provenance.version}"),
        ("time", times(provenance.seconds)),
    ]
    if not about["vectors_saved"]:
        rows.append(("vectors", "not saved: commands that need them read these files"))
    for side, name, record in (("src", "source", provenance.src), ("tgt", "target", provenance.tgt)):
        words = "all words of" if record.complete else "the first words of"
        if record.vocab_words is not None:
            words = f"of {record.vocab_words:,} in a vocabulary, from"
        rows.append((name, f"{record.n_words:,} x {record.dim}, {words} {record.path or 'an array'}"))
        rows.append(("", f"sha256 {record.sha256}"))
        rows.append(("", f"normalised by {','.join(about['normalization'][side]) or 'none'}"))
    rows += [(name.replace("_", "-"), str(value)) for name, value in provenance.config.items()]
    console.figures(rows)
