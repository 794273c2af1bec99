"""`qwp translate`: the best translations of words."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.outputs import Output, Rows
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.translator import Translation, WordQuery
from qwp.search.retrieval import METHODS
from qwp.search.spelling import LABEL, checked_weight
from qwp.spaces.embeddings import Side

_BYTE_ORDER_MARK = "\ufeff"
SHOWN_FROM = 200_000_000
"""Pairs of words whose comparison takes some seconds."""


@console.guarded
def command(
    folder: options.AlignmentFolder,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="Words; without any they are read from standard input, one a line.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="Translations of each word.")] = 5,
    retrieval: Annotated[
        str,
        completion.choice("--retrieval", METHODS, "How to search: nearest neighbours, CSLS or inverted softmax."),
    ] = "csls",
    csls_k: options.CslsK = 10,
    approximate: options.Approximate = False,
    spelling: options.Spelling = False,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target language to the source.")] = False,
    format: outputs.Format = None,
    out: outputs.Out = None,
    json: outputs.Json = False,
) -> None:
    """Translate words with a saved alignment.

    TSV has a line for each translation: word, rank, translation, score. Unknown words are reported one by one; only
    when all are unknown the exit code is 2. Of a fastText model all words are known that have subwords.
    """
    options.check(k=k, csls_k=csls_k, max_memory=max_memory)
    output = Output.chosen(format, out, json=json)
    weight = checked_weight(spelling, retrieval)
    given = words or _from_stdin()
    alignment = options.load_alignment(folder, check="size").on(device)
    side: Side = "tgt" if reverse else "src"
    vocabulary = alignment.tgt if reverse else alignment.src
    asked = WordQuery.of(given, vocabulary)
    known, unknown = asked.known, asked.unknown
    for word in asked.composed:
        console.note(asked.explained(word, str(folder)))
    for word in unknown:
        console.warn(asked.explained(word, str(folder)) + ("" if words else _several_in_a_line(asked, word)))
    if not known:
        raise asked.none_known(side, "--reverse", listed=output.format != outputs.JSON)
    with use_memory(max_memory):
        if retrieval == "csls" and not approximate:
            prepare_lookup(alignment, "src" if reverse else "tgt", csls_k)
        found = alignment.translate(
            known, k, retrieval=retrieval, csls_k=csls_k, side=side, approximate=approximate, spelling=weight
        )
    recall = options.lowest_recall(alignment, side) if approximate else None
    output.write(
        json=lambda: {
            "command": "translate",
            "verdict": alignment.quality.verdict,
            "retrieval": retrieval,
            "spelling": weight,
            "direction": "tgt-src" if reverse else "src-tgt",
            "recall_at_10": recall.value if recall else None,
            "translations": {w: [{"word": t.word, "score": t.score} for t in ts] for w, ts in found.items()},
            "unknown": unknown,
            "composed": asked.composed,
        },
        rows=lambda: _rows(found),
        show=lambda: _show(found, LABEL if weight else retrieval),
    )
    if weight:
        console.note(options.spelling_note(weight, alignment.src, alignment.tgt))
    if recall:
        console.note(str(recall))


def prepare_lookup(alignment: Alignment, side: Side, csls_k: int, *, shown_from: int = SHOWN_FROM) -> None:
    """Show why the first translation takes longer than others, and how far it is.

    shown_from: pairs of words from which on the comparison is shown.
    """
    if len(alignment.src) * len(alignment.tgt) < shown_from or alignment.has_lookup(side, csls_k):
        return
    from qwp.showing.bar import words_bar  # most calls need no bar, and it is slow to import

    words = len(getattr(alignment, side))
    other = len(alignment.src) + len(alignment.tgt) - words
    console.note(f"first use: {words:,} words are compared with {other:,}; what comes of it is kept for the next time")
    with words_bar(quiet=False) as bar:
        task = bar.add_task("comparing", total=words)
        alignment.lookup(side, csls_k, lambda done: bar.advance(task, done))


def _from_stdin() -> list[str]:
    """The words on standard input, one a line, with what is inside of them."""
    if sys.stdin.isatty():
        raise InputError("no word was given; expected words after the folder, or on standard input")
    lines = sys.stdin.read().removeprefix(_BYTE_ORDER_MARK).split("\n")
    words = [word for word in (line.strip(" \t\r") for line in lines) if word]
    if not words:
        raise InputError("standard input holds no word; expected at least one, one a line")
    return words


def _several_in_a_line(asked: WordQuery, word: str) -> str:
    """A hint for who writes several words into a line of standard input."""
    parts = word.split()
    if len(parts) < 2 or not all(part in asked.vocabulary for part in parts):
        return ""
    return f"; the {len(parts)} words in it are: standard input has one word a line"


def _rows(found: dict[str, list[Translation]]) -> Rows:
    return Rows(
        ("word", "rank", "translation", "score"),
        (
            (word, str(rank), translation.word, f"{translation.score:.6f}")
            for word, translations in found.items()
            for rank, translation in enumerate(translations, 1)
        ),
    )


def _show(found: dict[str, list[Translation]], retrieval: str) -> None:
    rows = [
        [word if rank == 0 else "", translation.word, f"{translation.score:.3f}"]
        for word, translations in found.items()
        for rank, translation in enumerate(translations)
    ]
    console.table(["word", "translation", f"score ({retrieval})"], rows)
