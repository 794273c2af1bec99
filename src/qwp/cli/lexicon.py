"""`qwp lexicon`: the dictionary that an alignment induces."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.outputs import JSON, TABLE, TSV, TSV_FORBIDDEN
from qwp.errors import InputError
from qwp.results.lexicon import InducedPair
from qwp.search.spelling import LABEL, checked_weight
from qwp.spaces.io.files import check_folder, replacing

COLUMNS = ("src", "tgt", "score", "margin", "mutual", "confidence")
FILE_FORMATS = (TSV, "csv", "muse")
FORMATS = (*FILE_FORMATS, TABLE, JSON)
# What would end a cell or a line. Python before 3.11 reads no NUL in CSV.
_FORBIDDEN = {TSV: TSV_FORBIDDEN, "csv": "\n\r\0", "muse": " \t\n\r", TABLE: "", JSON: ""}
# At the beginning of a file it is not part of a word.
_BYTE_ORDER_MARK = "\ufeff"
# Pairs of a table on stdout.
_SHOWN = 20


@console.guarded
def command(
    folder: options.AlignmentFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File to write. (default: stdout)", show_default=False),
    ] = None,
    format: Annotated[
        str | None,
        completion.choice(
            "--format",
            FORMATS,
            "tsv or csv with all columns and a header, muse: two words, a table or one JSON object. (default: by "
            "the suffix of FILE; without one a table on a terminal, tsv elsewhere)",
            show_default=False,
        ),
    ] = None,
    max_words: Annotated[
        int | None,
        typer.Option(
            "--max-words",
            metavar="N",
            help="Only the N most frequent source words. (default: all)",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All source words, not only mutual best pairs.")] = False,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", metavar="X", help="Leave out pairs with less confidence (0 to 1).")
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
    chosen = _chosen_format(out, format, json=json)
    if out is not None:
        check_folder(out)
    alignment = options.load_alignment(folder).on(device)
    if alignment.quality.estimate is None:
        console.note("judging the alignment first: confidences need an estimate, and it was saved without one")
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
    about = {
        "command": "lexicon",
        "out": None if out is None else str(out),
        "format": chosen,
        "verdict": alignment.quality.verdict,
        "spelling": weight,
        "recall_at_10": recall.value if recall else None,
        "pairs": len(pairs),
        "mutual": sum(pair.mutual for pair in pairs),
        "below_confidence": len(induced) - len(kept),
        "unwritable": len(kept) - len(pairs),
    }
    if out is not None:
        _write(out, pairs, about)
    elif chosen != JSON:
        _print(pairs, chosen, _columns(weight))
    if json or (out is None and chosen == JSON):
        console.print_json(about if out is not None else {**about, "lexicon": _as_json(pairs)})
    else:
        if weight:
            console.note(options.spelling_note(weight, alignment.src, alignment.tgt))
            console.note("the confidence is that of the pair by CSLS alone")
        _remark(about, recall)


def _chosen_format(out: Path | None, format: str | None, *, json: bool) -> str:
    outputs.known("--format", format, FORMATS)
    if out is None and json:
        if format not in (None, JSON):
            raise InputError(f"--json and --format {format} ask for two formats on stdout: add --out FILE for one")
        return JSON
    if format is not None:
        return format
    if out is None:
        return TABLE if sys.stdout.isatty() else TSV
    return {".csv": "csv", ".json": JSON}.get(out.suffix, TSV)


def _as_json(pairs: Iterable[InducedPair]) -> list[dict[str, Any]]:
    return [asdict(pair) for pair in pairs]


def _write(out: Path, pairs: Sequence[InducedPair], about: dict[str, Any]) -> None:
    """The file, in the format that `about` names."""
    with replacing(out) as file:
        if about["format"] == JSON:
            file.write(console.json_text({**about, "lexicon": _as_json(pairs)}).encode())
        elif about["format"] == TABLE:
            with redirect_stdout(io.StringIO()) as drawn:
                _show(pairs, _columns(about["spelling"]))
            file.write(drawn.getvalue().encode())
        else:
            for block in _encoded(pairs, about["format"], _columns(about["spelling"])):
                file.write(block)


def _print(pairs: Sequence[InducedPair], format: str, columns: Sequence[str]) -> None:
    """On stdout: all pairs, or the first ones as a table."""
    if format != TABLE:
        console.print_lines(outputs.shown(block.decode() for block in _encoded(pairs, format, columns)))
        return
    _show(pairs[:_SHOWN], columns)
    if len(pairs) > _SHOWN:
        more = len(pairs) - _SHOWN
        console.note(
            f"{more:,} more {'pair' if more == 1 else 'pairs'}: --out FILE writes all, --format tsv prints all"
        )


def _show(pairs: Sequence[InducedPair], columns: Sequence[str]) -> None:
    rows = [
        (p.src, p.tgt, f"{p.score:.3f}", f"{p.margin:.3f}", "yes" if p.mutual else "no", f"{p.confidence:.2f}")
        for p in pairs
    ]
    console.table(columns, rows)


def _remark(about: dict[str, Any], recall: options.Recall | None) -> None:
    if recall:
        console.note(str(recall))
    if about["out"] is not None:
        console.note(f"{about['pairs']:,} pairs ({about['mutual']:,} mutual) written to {about['out']}")


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
