"""`qwp translate`: the best translations of words."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.cli.labels import LabelOptions, Labels
from qwp.cli.options import Computing, SearchOptions, count, option
from qwp.cli.outputs import JSON, Output, TextRows
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.translator import Translation, WordQuery
from qwp.search.retrieval import METHODS
from qwp.search.spelling import LABEL, checked_weight
from qwp.showing import terminal
from qwp.spaces.embeddings import Side

_BYTE_ORDER_MARK = "\ufeff"
SHOWN_FROM = 200_000_000
"""Number of word pairs whose comparison takes some seconds."""


@dataclass(frozen=True)
class TranslationSearch(SearchOptions):
    """How to search for the translations of words."""

    k: int = count("Number of translations of each word.", 5, flags=["-k"])
    retrieval: str = option(
        "How to search: nearest neighbours, CSLS or inverted softmax.", default="csls", choices=METHODS
    )
    reverse: bool = option("Translate from the target language.", default=False)


@options.with_options
def command(
    folder: options.AlignmentFolder,
    search: TranslationSearch,
    labels: LabelOptions,
    computing: Computing,
    output: Output,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="Words; without any, they are read from standard input, one a line.",
        ),
    ] = None,
) -> None:
    """Translate words with a saved alignment.

    TSV has a line for each translation: word, rank, translation, score. Each unknown word is reported; the exit code is
    2 only if all are unknown. A fastText model knows all words that have subwords. With labels, items are asked for by
    their label or name; tables and TSV show labels, JSON names.
    """
    output.check()
    retrieval, reverse = search.retrieval, search.reverse
    weight = checked_weight(search.spelling, retrieval)
    given = words or _from_stdin()
    alignment = options.load_alignment(folder, check="size").on(computing.device)
    side: Side = "tgt" if reverse else "src"
    vocabulary = alignment.tgt if reverse else alignment.src
    texts = labels.read(alignment.src, alignment.tgt)
    asked_texts, found_texts = (texts["tgt"], texts["src"]) if reverse else (texts["src"], texts["tgt"])
    asked = WordQuery.of((asked_texts.named(word) for word in given), vocabulary)
    for word in asked.composed:
        terminal.note(asked.explained(word, str(folder)))
    for word in asked.unknown:
        console.warn(asked.explained(word, str(folder)) + ("" if words else _line_hint(asked, word)))
    if not asked.known:
        raise asked.none_known(side, "--reverse", listed=output.kind != JSON)
    with use_memory(computing.max_memory):
        if retrieval == "csls" and not search.approximate:
            prepare_lookup(alignment, "src" if reverse else "tgt", search.csls_k)
        found = alignment.translate(
            asked.known,
            search.k,
            retrieval=retrieval,
            csls_k=search.csls_k,
            side=side,
            approximate=search.approximate,
            spelling=weight,
        )
    recall = options.lowest_recall(alignment, side) if search.approximate else None
    output.write(
        json=lambda: {
            "command": "translate",
            "verdict": alignment.quality.verdict,
            "retrieval": retrieval,
            "spelling": weight,
            "direction": "tgt-src" if reverse else "src-tgt",
            "recall_at_10": recall.value if recall else None,
            "translations": {w: [{"word": t.word, "score": t.score} for t in ts] for w, ts in found.items()},
            "unknown": asked.unknown,
            "composed": asked.composed,
        },
        rows=lambda: _rows(_labelled(found, asked_texts, found_texts)),
        show=lambda: _show(_labelled(found, asked_texts, found_texts), LABEL if weight else retrieval),
    )
    if weight:
        terminal.note(options.spelling_note(weight, alignment.src, alignment.tgt))
    if recall:
        terminal.note(str(recall))


def prepare_lookup(alignment: Alignment, side: Side, csls_k: int, *, shown_from: int = SHOWN_FROM) -> None:
    """Compare all words before the first translation, with a progress bar if it takes long.

    shown_from: number of word pairs from which on the bar is shown.
    """
    if len(alignment.src) * len(alignment.tgt) < shown_from or alignment.has_lookup(side, csls_k):
        return
    from qwp.showing.bar import words_bar  # slow to import, and most calls need no bar

    words = len(getattr(alignment, side))
    other = len(alignment.src) + len(alignment.tgt) - words
    terminal.note(f"first use: {words:,} words are compared with {other:,}; the result is cached for the next time")
    with words_bar(quiet=False) as bar:
        task = bar.add_task("comparing", total=words)
        alignment.lookup(side, csls_k, lambda done: bar.advance(task, done))


def _from_stdin() -> list[str]:
    """Return the words on standard input, one a line. A word may hold blanks."""
    if sys.stdin.isatty():
        raise InputError("no word was given; expected words after the folder, or on standard input")
    lines = sys.stdin.read().removeprefix(_BYTE_ORDER_MARK).split("\n")
    words = [word for word in (line.strip(" \t\r") for line in lines) if word]
    if not words:
        raise InputError("standard input holds no word; expected at least one, each on its own line")
    return words


def _line_hint(asked: WordQuery, word: str) -> str:
    """Return a hint for a line of standard input that holds several known words."""
    parts = word.split()
    if len(parts) < 2 or not all(part in asked.vocabulary for part in parts):
        return ""
    return f"; the {len(parts)} words in it are: standard input has one word a line"


Labelled: TypeAlias = "list[tuple[str, list[Translation]]]"


def _labelled(found: Mapping[str, list[Translation]], asked: Labels, answers: Labels) -> Labelled:
    """Return the translations of each word with labels instead of names."""
    return [
        (asked.shown(word), [replace(each, word=answers.shown(each.word)) for each in translations])
        for word, translations in found.items()
    ]


def _rows(found: Labelled) -> TextRows:
    return TextRows(
        ("word", "rank", "translation", "score"),
        (
            (word, str(rank), translation.word, f"{translation.score:.6f}")
            for word, translations in found
            for rank, translation in enumerate(translations, 1)
        ),
    )


def _show(found: Labelled, retrieval: str) -> None:
    rows = [
        [word if rank == 0 else "", translation.word, f"{translation.score:.3f}"]
        for word, translations in found
        for rank, translation in enumerate(translations)
    ]
    console.table(["word", "translation", f"score ({retrieval})"], rows)
