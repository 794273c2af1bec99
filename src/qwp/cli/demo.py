"""`qwp demo`: align the packaged English and Spanish vectors and show the result."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from qwp.cli import console, options, scores
from qwp.cli.options import option
from qwp.cli.results import STYLES
from qwp.judging.evaluation import Evaluation
from qwp.report.analysis import Analysis
from qwp.report.writing import headline
from qwp.results.summary import quality_rows, times
from qwp.showing import terminal
from qwp.showing.bar import AlignProgress
from qwp.spaces.demo import load_demo

# Common words, chosen before any result was known.
EXAMPLES = (
    *("house", "water", "mother", "king", "night", "red", "three", "love", "book", "door", "city"),
    *("write", "beautiful", "monday", "always", "death"),
)
_TITLE = "qwp demo: English and Spanish words in one space, without a dictionary"
_LEXICON = "lexicon"


@dataclass(frozen=True)
class Files:
    """Options that name the files to write."""

    report: Path = option("HTML report to write.", default=Path("demo-report.html"))
    out: Path | None = option("Folder in which to save the alignment and the lexicon.", "DIR", flags=("--out", "-o"))


@options.with_options
def command(files: Files, seed: options.Seed = 0, threads: options.Threads = None, json: options.Json = False) -> None:
    """Align the packaged English and Spanish vectors with the default settings and write an HTML report.

    Exit code 3: the alignment failed.
    """
    from qwp.api import align
    from qwp.report.analysis import analyse
    from qwp.report.writing import write_page
    from qwp.spaces.io.files import check_folder

    report, out = files.report, files.out
    check_folder(report)
    if out is not None:
        check_folder(out / "alignment.json" if out.is_dir() else out)
    begin = time.perf_counter()
    src, tgt, lexicon = load_demo()
    with AlignProgress() as progress:
        alignment = align(src, tgt, seed=seed, threads=threads, progress=progress)
    analysis = analyse(alignment, {_LEXICON: lexicon}, words=EXAMPLES)
    seconds = time.perf_counter() - begin
    write_page(report, analysis, title=_TITLE, more=[("in all", terminal.seconds(seconds))])
    if out is not None:
        alignment.save(out)
        lexicon.save(out / "lexicon.tsv")
        terminal.note(f"explore it: `qwp explore {out} --lexicon {out / 'lexicon.tsv'}`")
    if json:
        console.print_json(_as_json(analysis, report, seconds))
    else:
        _show(analysis, report, seconds)
    if alignment.quality.failed:
        console.fail("the alignment failed" + (f". {alignment.quality.explanation}" if json else ""))
        raise typer.Exit(console.EXIT_FAILED)


def _scores(analysis: Analysis) -> Evaluation:
    return analysis.evaluations[_LEXICON]


def _as_json(analysis: Analysis, report: Path, seconds: float) -> dict[str, Any]:
    quality, result = analysis.quality, _scores(analysis)
    return {
        "command": "demo",
        "verdict": quality.verdict,
        "p_at_1": result.p_at_1(),
        "seconds": seconds,
        "report": str(report),
        "quality": quality.to_dict(),
        "evaluation": result.to_dict(),
        "translations": [
            {
                "word": each.word,
                "translations": [{"word": word, "score": score} for word, score in each.translations],
                "right": each.right,
            }
            for each in analysis.examples
        ],
        "provenance": asdict(analysis.alignment.provenance),
    }


def _show(analysis: Analysis, report: Path, seconds: float) -> None:
    rows = [
        [
            each.word,
            ", ".join(word for word, _ in each.translations),
            f"{each.translations[0][1]:.3f}",
            "" if each.right is None else "✓" if each.right else "✗",
        ]
        for each in analysis.examples
    ]
    console.table(["English", "Spanish, best first", "CSLS", "in lexicon"], rows, title="Example translations")
    scores.show(_scores(analysis))
    quality = analysis.quality
    console.say(quality.explanation, STYLES[quality.verdict])
    console.figures(
        [
            ("P@1", headline(_scores(analysis))),
            *quality_rows(quality),
            ("alignment", times(analysis.alignment.provenance.seconds)),
            ("in all", terminal.seconds(seconds)),
            ("report", str(report)),
        ]
    )
