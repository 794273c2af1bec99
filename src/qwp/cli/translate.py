"""`qwp translate`: the best translations of words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.outputs import Output, Rows
from qwp.errors import InputError
from qwp.results.alignment import Translation
from qwp.search.retrieval import METHODS
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.sides import Side

_BYTE_ORDER_MARK = "\ufeff"


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
        typer.Option(
            "--retrieval",
            metavar="|".join(METHODS),
            help="How to search: nearest neighbours, CSLS or inverted softmax.",
            autocompletion=completion.among(METHODS),
        ),
    ] = "csls",
    csls_k: options.CslsK = 10,
    approximate: options.Approximate = False,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target language to the source.")] = False,
    format: outputs.Format = None,
    out: outputs.Out = None,
    json: outputs.Json = False,
) -> None:
    """Translate words with a saved alignment.

    TSV has a line for each translation: word, rank, translation, score. Unknown words are reported one by one; only
    when all are unknown the exit code is 2.
    """
    options.check(k=k, csls_k=csls_k, max_memory=max_memory)
    output = Output.chosen(format, out, json=json)
    asked = list(dict.fromkeys(words or _from_stdin()))
    alignment = options.load_alignment(folder).on(device)
    side: Side = "tgt" if reverse else "src"
    vocabulary = alignment.tgt if reverse else alignment.src
    known = [word for word in asked if word in vocabulary]
    unknown = [word for word in asked if word not in vocabulary]
    for word in unknown:
        console.warn(_unknown(word, vocabulary, folder, typed=bool(words)))
    if not known:
        raise InputError(
            f"none of the {len(asked)} words is among the {len(vocabulary):,} words of the "
            f"{'target' if reverse else 'source'} side (such as {', '.join(vocabulary.words[:3])}): "
            f"check the spelling and the direction ({'leave out' if reverse else 'try'} --reverse)"
        )
    with use_memory(max_memory):
        found = alignment.translate(known, k, retrieval=retrieval, csls_k=csls_k, side=side, approximate=approximate)
    recall = options.lowest_recall(alignment, side) if approximate else None
    output.write(
        json=lambda: {
            "command": "translate",
            "verdict": alignment.quality.verdict,
            "retrieval": retrieval,
            "direction": "tgt-src" if reverse else "src-tgt",
            "recall_at_10": recall.value if recall else None,
            "translations": {w: [{"word": t.word, "score": t.score} for t in ts] for w, ts in found.items()},
            "unknown": unknown,
        },
        rows=lambda: _rows(found),
        show=lambda: _show(found, retrieval),
    )
    if recall:
        console.note(str(recall))


def _from_stdin() -> list[str]:
    """The words on standard input, one a line, with what is inside of them."""
    if sys.stdin.isatty():
        raise InputError("no word was given; expected words after the folder, or on standard input")
    lines = sys.stdin.read().removeprefix(_BYTE_ORDER_MARK).split("\n")
    words = [word for word in (line.strip(" \t\r") for line in lines) if word]
    if not words:
        raise InputError("standard input holds no word; expected at least one, one a line")
    return words


def _unknown(word: str, vocabulary: Embeddings, folder: Path, *, typed: bool) -> str:
    lowered, parts = word.lower(), word.split()
    hint = f"; {lowered!r} is there" if lowered != word and lowered in vocabulary else ""
    if not typed and len(parts) > 1 and all(part in vocabulary for part in parts):
        hint = f"; the {len(parts)} words in it are: standard input has one word a line"
    return f"{word!r} is not among the {len(vocabulary):,} words of {folder}{hint}"


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
