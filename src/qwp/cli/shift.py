"""`qwp shift`: which words moved between two spaces of one language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.outputs import TABLE, Output, Rows
from qwp.shifts.compare import MEASURES, shift
from qwp.shifts.result import BY, FDR, Shift, ShiftedWord
from qwp.spaces.frequency import ORDERS
from qwp.spaces.io.arguments import UTF8

_COLUMNS = (
    *("word", "distance", "neighbourhood", "z", "p", "q", "moved", "rank_then", "rank_now", "kept"),
    *("neighbours_then", "neighbours_now"),
)


@console.guarded
def command(
    then: Annotated[Path, typer.Argument(metavar="A", help="Vectors of the earlier text.", show_default=False)],
    now: Annotated[
        Path, typer.Argument(metavar="B", help="Vectors of the later text, of the same language.", show_default=False)
    ],
    top: Annotated[int, typer.Option("--top", metavar="N", help="Words to show, those that moved most first.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Show all words that both files have.")] = False,
    by: Annotated[
        str, completion.choice("--by", BY, "Rank by z, against words of like frequency, or by the bare distance.")
    ] = "z",
    fdr: Annotated[
        float, typer.Option("--fdr", metavar="RATE", help="The share of words that are called moved and are not.")
    ] = FDR,
    measure: Annotated[
        str,
        completion.choice(
            "--measure", MEASURES, "What z, p and q are about: the vectors after mapping, or the nearest words."
        ),
    ] = "cosine",
    neighbours: Annotated[
        int, typer.Option("--neighbours", metavar="N", help="Nearest words to show of each time.")
    ] = 5,
    control: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--control",
            metavar="C D",
            help="Vectors between which nothing moved, such as those of random halves of the text, to show the noise.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str,
        completion.choice("--order", ORDERS, "auto checks that frequent words come first, given believes it."),
    ] = "auto",
    max_vocab: options.MaxVocab = None,
    errors: options.Errors = "raise",
    input_format: options.InputFormat = None,
    encoding: options.Encoding = UTF8,
    max_memory: options.MaxMemory = None,
    format: outputs.Format = None,
    out: outputs.Out = None,
    json: outputs.Json = False,
) -> None:
    """Rank the words of one language by how far they moved between the vectors of two times, A and B.

    The vectors of A are mapped onto those of B by the words that did not move. z compares a word with others of its
    frequency; q is the false discovery rate at which it counts as moved.
    """
    options.check(top=top, neighbours=neighbours, fdr=fdr, max_memory=max_memory)
    options.check(max_vocab=max_vocab, errors=errors, encoding=encoding)
    for option, value, choices in (("--by", by, BY), ("--measure", measure, MEASURES), ("--order", order, ORDERS)):
        outputs.known(option, value, choices)
    output = Output.chosen(format, out, json=json)
    reading = {"max_vocab": max_vocab, "errors": errors, "format": input_format, "encoding": encoding}
    read = [options.load_space(path, **reading) for path in (then, now, *(control or ()))]
    warnings = [text for _, notes in read for text in notes]
    spaces = [space for space, _ in read]
    with use_memory(max_memory):
        found = shift(*spaces[:2], measure=measure, control=(spaces[2], spaces[3]) if control else None, order=order)
        words = found.top(len(found) if every else top, by=by, neighbours=neighbours)
    output.write(
        json=lambda: _json(found, words, fdr, warnings),
        rows=lambda: Rows(_COLUMNS, [_cells(word, fdr) for word in words]),
        show=lambda: _show(found, words, fdr),
    )
    if output.format != TABLE:
        console.note(_in_words(found, fdr))


def _json(found: Shift, words: list[ShiftedWord], fdr: float, warnings: list[str]) -> dict[str, Any]:
    about = found.to_dict(0, fdr=fdr)
    return {"command": "shift", **about, "top": [word.to_dict() for word in words], "warnings": warnings}


def _cells(word: ShiftedWord, fdr: float) -> tuple[str, ...]:
    return (
        word.word,
        *(f"{number:.6f}" for number in (word.distance, word.neighbourhood, word.z)),
        *(f"{number:.6g}" for number in (word.p, word.q)),
        "yes" if word.q <= fdr else "no",
        *(str(word.rank_then), str(word.rank_now), f"{word.kept:.2f}"),
        *(" ".join(words) for words in (word.then, word.now)),
    )


def _in_words(found: Shift, fdr: float) -> str:
    moved = int((found.q <= fdr).sum())
    both = f"{len(found):,} words in both {found.names[0]} and {found.names[1]}"
    stable = f"{int(found.stable.sum()):,} of them stable"
    return f"{both}, {stable}; {moved:,} moved at a false discovery rate of {fdr:g}"


def _show(found: Shift, words: list[ShiftedWord], fdr: float) -> None:
    console.say(_in_words(found, fdr))
    rows = [
        [
            word.word,
            f"{word.distance:.3f}",
            f"{word.z:.1f}",
            f"{word.q:.2g}" + ("" if word.q <= fdr else " (no)"),
            f"{word.rank_then:,} → {word.rank_now:,}",
            ", ".join(word.then),
            ", ".join(word.now),
        ]
        for word in words
    ]
    console.table(["word", "distance", "z", "q", "rank", f"near it in {found.names[0]}", f"in {found.names[1]}"], rows)
