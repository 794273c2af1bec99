"""`qwp translate`: the best translations of words."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.translations import Asked, Translation
from qwp.search.spelling import LABEL, checked_weight
from qwp.spaces.sides import Side

# Pairs of words whose comparison takes some seconds.
_WORTH_SAYING = 200_000_000


@console.guarded
def command(
    folder: options.AlignmentFolder,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Words; without any they are read from stdin.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Translations of each word.")] = 5,
    retrieval: Annotated[str, typer.Option("--retrieval", help="nn, csls or softmax.")] = "csls",
    csls_k: options.CslsK = 10,
    approximate: options.Approximate = False,
    spelling: options.Spelling = False,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target language to the source.")] = False,
    json: options.Json = False,
) -> None:
    """Translate words with a saved alignment.

    Unknown words are reported one by one; only when all are unknown the exit code is 2.
    """
    options.check(k=k, csls_k=csls_k, max_memory=max_memory)
    weight = checked_weight(spelling, retrieval)
    given = words or _from_stdin()
    alignment = options.load_alignment(folder, check="size").on(device)
    side: Side = "tgt" if reverse else "src"
    vocabulary = alignment.tgt if reverse else alignment.src
    asked = Asked.of(given, vocabulary)
    known, unknown = asked.known, asked.unknown
    for word in unknown:
        console.warn(asked.explained(word, str(folder)))
    if known and retrieval == "csls" and not approximate:
        _announce_lookup(alignment, "src" if reverse else "tgt", csls_k)
    with use_memory(max_memory):
        found = (
            alignment.translate(
                known, k, retrieval=retrieval, csls_k=csls_k, side=side, approximate=approximate, spelling=weight
            )
            if known
            else {}
        )
    recall = options.lowest_recall(alignment, side) if approximate and known else None
    if json:
        console.print_json(
            {
                "command": "translate",
                "verdict": alignment.quality.verdict,
                "retrieval": retrieval,
                "spelling": weight,
                "direction": "tgt-src" if reverse else "src-tgt",
                "recall_at_10": recall.value if recall else None,
                "translations": {w: [{"word": t.word, "score": t.score} for t in ts] for w, ts in found.items()},
                "unknown": unknown,
            }
        )
    elif found:
        _show(found, LABEL if weight else retrieval)
        if weight:
            console.note(options.spelling_note(weight, alignment.src, alignment.tgt))
        if recall:
            console.say(str(recall))
    if not known:
        raise asked.none_known(side, "--reverse", told=True)


def _announce_lookup(alignment: Alignment, side: Side, csls_k: int) -> None:
    """Say why the first translation takes longer than others."""
    size = len(alignment.src) * len(alignment.tgt)
    if size >= _WORTH_SAYING and not alignment.has_lookup(side, csls_k):
        console.note(
            f"first use: {len(alignment.src):,} words are compared with {len(alignment.tgt):,}, and what comes of it "
            "is kept for the next time"
        )


def _from_stdin() -> list[str]:
    if sys.stdin.isatty():
        raise InputError("no word was given; expected words after the folder, or on standard input")
    words = sys.stdin.read().split()
    if not words:
        raise InputError("standard input holds no word; expected at least one")
    return words


def _show(found: dict[str, list[Translation]], retrieval: str) -> None:
    rows = [
        [word if rank == 0 else "", translation.word, f"{translation.score:.3f}"]
        for word, translations in found.items()
        for rank, translation in enumerate(translations)
    ]
    console.table(["word", "translation", f"score ({retrieval})"], rows)
