"""`qwp shift`: rank words of one language by how far they moved between two spaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.cli.options import HeadReading, count, option
from qwp.cli.outputs import TABLE, Output, TextRows
from qwp.errors import InputError
from qwp.shifts.compare import BY, FDR, MEASURES, Shift, ShiftedWord, shift
from qwp.showing import terminal
from qwp.showing.charts import labelled_bars
from qwp.showing.svg import standalone
from qwp.spaces.frequency import ORDERS
from qwp.spaces.io.files import atomic_write, check_folder

_COLUMNS = (
    *("word", "distance", "neighbourhood", "z", "p", "q", "moved", "rank_then", "rank_now", "overlap"),
    *("neighbours_then", "neighbours_now"),
)


@dataclass(frozen=True)
class Ranking:
    """Options that say which words to show."""

    top: int = count("Number of words to show, the most moved first.", 20)
    every: bool = option("Show all words that both files have.", default=False, flags=["--all"])
    word: list[str] | None = option("Show only this word; may be repeated.", "WORD")
    svg: Path | None = option("Draw the words that are shown, with z and their nearest words, into this SVG file.")
    by: str = option(
        "Rank by z, relative to words of similar frequency, or by the plain distance.", default="z", choices=BY
    )
    fdr: float = option(
        "False discovery rate: the share of words reported as moved that did not.", "RATE", FDR, above=0, most=0.999
    )
    neighbours: int = count("Nearest words to show of each time.", 5, most=1000)


@dataclass(frozen=True)
class ShiftOptions:
    """Options that say how to compare the two spaces."""

    measure: str = option(
        "Base z, p and q on the mapped vectors, or on the nearest words.", default="cosine", choices=MEASURES
    )
    control: tuple[Path, Path] | None = option(
        "Vectors between which nothing moved, such as those of random halves of the text, to show the noise.", "C D"
    )
    order: str = option(
        "auto checks that frequent words come first, given trusts the file.", default="auto", choices=ORDERS
    )
    max_memory: options.MaxMemory = None


@options.with_options
def command(
    then: Annotated[Path, typer.Argument(metavar="A", help="Vectors of the earlier text.")],
    now: Annotated[Path, typer.Argument(metavar="B", help="Vectors of the later text, in the same language.")],
    ranking: Ranking,
    comparison: ShiftOptions,
    reading: HeadReading,
    output: Output,
) -> None:
    """Rank the words of one language by how far they moved between the vectors of two times, A and B.

    The words that did not move map the vectors of A onto those of B. z compares a word with others of its frequency; q
    is the false discovery rate at which it counts as moved.
    """
    output.check()
    if ranking.svg is not None:
        check_folder(ranking.svg)
    control, fdr = comparison.control, ranking.fdr
    read = [options.load_space(path, **reading.arguments()) for path in (then, now, *(control or ()))]
    warnings = [text for _, notes in read for text in notes]
    spaces = [space for space, _ in read]
    with use_memory(comparison.max_memory):
        found = shift(
            *spaces[:2],
            measure=comparison.measure,
            control=(spaces[2], spaces[3]) if control else None,
            order=comparison.order,
        )
        words = _chosen(found, ranking)
    if ranking.svg is not None:
        _draw(found, words, ranking.svg)
    output.write(
        json=lambda: _json(found, words, fdr, warnings),
        rows=lambda: TextRows(_COLUMNS, [_cells(word, fdr) for word in words]),
        show=lambda: _show(found, words, fdr),
    )
    if output.kind != TABLE:
        terminal.note(_in_words(found, fdr))


def _chosen(found: Shift, ranking: Ranking) -> list[ShiftedWord]:
    """Return the words to show, those that moved most first."""
    if not ranking.word:
        shown = len(found) if ranking.every else ranking.top
        return found.top(shown, by=ranking.by, neighbours=ranking.neighbours)
    unknown = [word for word in ranking.word if word not in found.index]
    if unknown:
        raise InputError(
            f"--word {', '.join(unknown)}: not among the {len(found):,} words of both {found.names[0]} and "
            f"{found.names[1]}; check the spelling and upper and lower case"
        )
    rows = {found.index[word] for word in ranking.word}
    return list(found.described([row for row in found.order(ranking.by).tolist() if row in rows], ranking.neighbours))


def _draw(found: Shift, words: list[ShiftedWord], path: Path) -> None:
    rows = [(word.word, word.z, f"{', '.join(word.then)} → {', '.join(word.now)}") for word in words]
    drawing = labelled_bars(rows, f"z of words that moved from {found.names[0]} to {found.names[1]}")
    with atomic_write(path) as file:
        file.write(standalone(drawing).encode())
    terminal.note(f"written to {path}")


def _json(found: Shift, words: list[ShiftedWord], fdr: float, warnings: list[str]) -> dict[str, Any]:
    about = found.to_dict(0, fdr=fdr)
    return {"command": "shift", **about, "top": [word.to_dict() for word in words], "warnings": warnings}


def _cells(word: ShiftedWord, fdr: float) -> tuple[str, ...]:
    return (
        word.word,
        *(f"{number:.6f}" for number in (word.distance, word.neighbourhood, word.z)),
        *(f"{number:.6g}" for number in (word.p, word.q)),
        "yes" if word.q <= fdr else "no",
        *(str(word.rank_then), str(word.rank_now), f"{word.overlap:.2f}"),
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
