"""`qwp lexicon`: write the dictionary that an alignment induces."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.errors import InputError
from qwp.results.alignment import InducedPair
from qwp.search.spelling import LABEL, checked_weight
from qwp.spaces.io.files import check_folder, replacing

COLUMNS = ("src", "tgt", "score", "margin", "mutual", "confidence")
FORMATS = ("tsv", "csv", "muse")
# What would end a cell or a line. Python before 3.11 reads no NUL in CSV.
_FORBIDDEN = {"tsv": "\t\n\r", "csv": "\n\r\0", "muse": " \t\n\r"}
# At the beginning of a file it is not part of a word.
_BYTE_ORDER_MARK = "\ufeff"


@console.guarded
def command(
    folder: options.AlignmentFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.", show_default=False)],
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="tsv or csv with all columns and a header, or muse: two words. (default: by the suffix)",
            show_default=False,
        ),
    ] = None,
    max_words: Annotated[
        int | None,
        typer.Option("--max-words", help="Only the N most frequent source words. (default: all)", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All source words, not only mutual best pairs.")] = False,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", help="Leave out pairs with less confidence (0 to 1).")
    ] = 0.0,
    csls_k: options.CslsK = 10,
    approximate: options.Approximate = False,
    spelling: options.Spelling = False,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    json: options.Json = False,
) -> None:
    """Write the induced dictionary: best CSLS translation of each source word.

    Columns: score (CSLS), margin (lead over the second candidate), mutual (each is the other's best),
    confidence (0 to 1, by CSLS alone). Words are written exactly as they are, also to CSV: a spreadsheet takes one that
    begins with =, +, - or @ for a formula unless the columns are imported as text.
    """
    options.check(max_words=max_words, min_confidence=min_confidence, csls_k=csls_k, max_memory=max_memory)
    weight = checked_weight(spelling)
    chosen = _chosen_format(out, format)
    check_folder(out)
    alignment = options.load_alignment(folder).on(device)
    with use_memory(max_memory):
        induced = alignment.induce(
            max_words=max_words,
            mutual_only=not every,
            csls_k=csls_k,
            approximate=approximate,
            spelling=weight,
        )
    recall = options.lowest_recall(alignment, "src", "tgt") if approximate else None
    kept = [pair for pair in induced if pair.confidence >= min_confidence]
    pairs = [pair for pair in kept if _fits(pair, chosen)]
    if len(pairs) < len(kept):
        console.warn(f"{len(kept) - len(pairs):,} pairs left out: words with blanks or line breaks do not fit {chosen}")
    with replacing(out) as file:
        for block in _encoded(pairs, chosen, _columns(weight)):
            file.write(block)
    mutual = sum(pair.mutual for pair in pairs)
    if json:
        counts = {"pairs": len(pairs), "mutual": mutual, "below_confidence": len(induced) - len(kept)}
        about = {
            "command": "lexicon",
            "out": str(out),
            "format": chosen,
            "verdict": alignment.quality.verdict,
            "spelling": weight,
            "recall_at_10": recall.value if recall else None,
        }
        console.print_json({**about, **counts, "unwritable": len(kept) - len(pairs)})
    else:
        if recall:
            console.say(str(recall))
        if weight:
            console.note(options.spelling_note(weight, alignment.src, alignment.tgt))
            console.note("the confidence is that of the pair by CSLS alone")
        console.say(f"{len(pairs):,} pairs ({mutual:,} mutual) written to {out}")


def _chosen_format(out: Path, format: str | None) -> str:
    if format is None:
        return "csv" if out.suffix == ".csv" else "tsv"
    if format not in FORMATS:
        raise InputError(f"--format {format} is not known; expected one of {', '.join(FORMATS)}")
    return format


def _columns(spelling: float) -> tuple[str, ...]:
    """The header: it says so where scores are not those of CSLS alone."""
    return tuple(f"score ({LABEL})" if spelling and name == "score" else name for name in COLUMNS)


def _fits(pair: InducedPair, format: str) -> bool:
    """Whether both words come back as they are when the file is read."""
    words = (pair.src, pair.tgt)
    if set(_FORBIDDEN[format]) & set(pair.src + pair.tgt):
        return False
    if format == "csv":
        return all(word.strip(" \t") == word for word in words)
    return format != "muse" or not pair.src.startswith(_BYTE_ORDER_MARK)


def _encoded(pairs: Iterable[InducedPair], format: str, columns: Iterable[str] = COLUMNS) -> Iterable[bytes]:
    if format == "muse":
        for pair in pairs:
            yield f"{pair.src} {pair.tgt}\n".encode()
        return
    yield _row(columns, format)
    for pair in pairs:
        figures = (
            f"{pair.score:.6f}",
            f"{pair.margin:.6f}",
            "yes" if pair.mutual else "no",
            f"{pair.confidence:.6f}",
        )
        yield _row((pair.src, pair.tgt, *figures), format)


def _row(cells: Iterable[str], format: str) -> bytes:
    if format == "tsv":
        return ("\t".join(cells) + "\n").encode()
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode()
