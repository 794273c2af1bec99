"""`qwp lexicon`: the dictionary that an alignment induces."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.cli.labels import LabelOptions
from qwp.cli.options import Computing, SearchOptions, count, option
from qwp.cli.outputs import JSON, TABLE, TSV, TSV_FORBIDDEN, drawn, for_stdout
from qwp.errors import InputError
from qwp.parameters import MOST_WORDS
from qwp.results.corrections import Corrections, pinned_lexicon, pins
from qwp.results.lexicon import InducedPair
from qwp.search.spelling import LABEL, checked_weight
from qwp.showing import terminal
from qwp.spaces.io.files import atomic_write, check_folder

COLUMNS = ("src", "tgt", "score", "margin", "mutual", "confidence")
FILE_FORMATS = (TSV, "csv", "muse")
FORMATS = (*FILE_FORMATS, TABLE, JSON)
# Characters that end a cell or a line. Python before 3.11 reads no NUL in CSV.
_FORBIDDEN = {TSV: TSV_FORBIDDEN, "csv": "\n\r\0", "muse": " \t\n\r", TABLE: "", JSON: ""}
# Readers drop it at the beginning of a file.
_BYTE_ORDER_MARK = "\ufeff"
_TABLE_ROWS = 20


@dataclass(frozen=True)
class LexiconOutput:
    """Options that say where to write the dictionary, and in which format."""

    out: Path | None = option("File to write. (default: stdout)", flags=("--out", "-o"))
    format: str | None = option(
        "tsv or csv with all columns and a header, muse: two words, a table or one JSON object. (default: by the "
        "suffix of FILE; without one a table on a terminal, tsv elsewhere)",
        choices=FORMATS,
    )
    json: options.Json = False

    def check(self) -> None:
        """Refuse contradictory options before the work begins."""
        if self.out is not None:
            check_folder(self.out)
        elif self.json and self.format not in (None, JSON):
            raise InputError(f"--json and --format {self.format} ask for two formats on stdout: add --out FILE for one")

    @property
    def kind(self) -> str:
        """The format to write."""
        if self.out is None and self.json:
            return JSON
        if self.format is not None:
            return self.format
        if self.out is None:
            return TABLE if sys.stdout.isatty() else TSV
        return {".csv": "csv", ".json": JSON}.get(self.out.suffix, TSV)


@dataclass(frozen=True)
class Selection:
    """Options that say which pairs to write."""

    max_words: int | None = count("Only the N most frequent source words. (default: all)", most=MOST_WORDS)
    every: bool = option("All source words, not only mutual best pairs.", default=False, flags=["--all"])
    min_confidence: float = option("Leave out pairs with less confidence (0 to 1).", default=0.0, least=0, most=1)


@options.with_options
def command(
    folder: options.AlignmentFolder,
    output: LexiconOutput,
    selection: Selection,
    search: SearchOptions,
    labels: LabelOptions,
    computing: Computing,
) -> None:
    """Write the induced dictionary: pairs of words that are each other's best translation by CSLS.

    Columns: score (CSLS), margin (lead over the second candidate), mutual (each is the other's best), confidence (0 to
    1, from CSLS alone). Pairs that were accepted in `qwp explore` are pinned: they replace the induced translation and
    have confidence 1. Words are written exactly as they are, also to CSV: a spreadsheet takes a word that begins with
    =, +, - or @ for a formula unless it imports the columns as text. With labels, tables, TSV and CSV show these; JSON
    and muse keep names.
    """
    weight = checked_weight(search.spelling)
    output.check()
    out, kind = output.out, output.kind
    corrections = Corrections.of(folder)
    alignment = options.load_alignment(folder).on(computing.device)
    texts = labels.read(alignment.src, alignment.tgt)
    pinned = pins(alignment, corrections)["src"]
    with use_memory(computing.max_memory):
        induced = alignment.induce(
            max_words=selection.max_words,
            mutual_only=not (selection.every or pinned),
            csls_k=search.csls_k,
            approximate=search.approximate,
            spelling=weight,
        )
    if pinned:
        every = pinned_lexicon(alignment, induced, corrections)
        induced = [pair for pair in every if selection.every or pair.mutual or pair.src in pinned]
    recall = options.lowest_recall(alignment, "src", "tgt") if search.approximate else None
    confident = [pair for pair in induced if pair.confidence >= selection.min_confidence]
    pairs = [pair for pair in confident if _fits(pair, kind)]
    if len(pairs) < len(confident):
        dropped = len(confident) - len(pairs)
        console.warn(f"{dropped:,} pairs left out: words with blanks or line breaks do not fit {kind}")
    about = {
        "command": "lexicon",
        "out": None if out is None else str(out),
        "format": kind,
        "verdict": alignment.quality.verdict,
        "spelling": weight,
        "recall_at_10": recall.value if recall else None,
        "pairs": len(pairs),
        "mutual": sum(pair.mutual for pair in pairs),
        "pinned": sum(pair.src in pinned for pair in pairs),
        "below_confidence": len(induced) - len(confident),
        "unwritable": len(confident) - len(pairs),
    }
    if kind in (TSV, "csv", TABLE):
        pairs = [replace(p, src=texts["src"].shown(p.src), tgt=texts["tgt"].shown(p.tgt)) for p in pairs]
    if out is not None:
        _write(out, pairs, about)
    elif kind != JSON:
        _print(pairs, kind, _columns(weight))
    if output.json or (out is None and kind == JSON):
        console.print_json(about if out is not None else {**about, "lexicon": _as_json(pairs)})
    else:
        if weight:
            terminal.note(options.spelling_note(weight, alignment.src, alignment.tgt))
            terminal.note("the confidence is that of the pair by CSLS alone")
        _remark(about, recall)


def _as_json(pairs: Iterable[InducedPair]) -> list[dict[str, Any]]:
    return [asdict(pair) for pair in pairs]


def _write(out: Path, pairs: Sequence[InducedPair], about: dict[str, Any]) -> None:
    """Write the pairs to a file, in the format that `about` names."""
    columns = _columns(about["spelling"])
    with atomic_write(out) as target:
        if about["format"] == JSON:
            target.write(console.json_text({**about, "lexicon": _as_json(pairs)}).encode())
        elif about["format"] == TABLE:
            target.write(drawn(lambda: _show(pairs, columns)))
        else:
            for block in _encoded(pairs, about["format"], columns):
                target.write(block)


def _print(pairs: Sequence[InducedPair], format: str, columns: Sequence[str]) -> None:
    """Print all pairs on stdout, or the first ones as a table."""
    if format != TABLE:
        console.print_lines(for_stdout(block.decode() for block in _encoded(pairs, format, columns)))
        return
    _show(pairs[:_TABLE_ROWS], columns)
    if len(pairs) > _TABLE_ROWS:
        more = len(pairs) - _TABLE_ROWS
        terminal.note(
            f"{more:,} more {'pair' if more == 1 else 'pairs'}: --out FILE writes all, --format tsv prints all"
        )


def _show(pairs: Sequence[InducedPair], columns: Sequence[str]) -> None:
    rows = [
        (p.src, p.tgt, f"{p.score:.3f}", f"{p.margin:.3f}", "yes" if p.mutual else "no", f"{p.confidence:.2f}")
        for p in pairs
    ]
    console.table(columns, rows)


def _remark(about: dict[str, Any], recall: options.MeasuredRecall | None) -> None:
    if recall:
        terminal.note(str(recall))
    if about["pinned"]:
        terminal.note(f"pairs accepted in `qwp explore` (corrections.tsv), which are pinned: {about['pinned']:,}")
    if about["out"] is not None:
        terminal.note(f"{about['pairs']:,} pairs ({about['mutual']:,} mutual) written to {about['out']}")


def _columns(spelling: float) -> tuple[str, ...]:
    """Return the header, which says if scores include spelling."""
    return tuple(f"score ({LABEL})" if spelling and name == "score" else name for name in COLUMNS)


def _fits(pair: InducedPair, format: str) -> bool:
    """Return whether a reader of the file gets both words back unchanged."""
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
