"""`qwp report`: a page about a saved alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.errors import InputError
from qwp.report.analysis import MAX_WORDS, Analysis
from qwp.spaces.io.files import check_folder
from qwp.spaces.lexicon import Lexicon

DEFAULT_OUT = Path("report.html")


@console.guarded
def command(
    folder: options.AlignmentFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the HTML page goes.")] = DEFAULT_OUT,
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(
            "--lexicon",
            "-l",
            metavar="FILE",
            help="A gold dictionary, to measure with. May be given several times.",
            show_default=False,
        ),
    ] = None,
    lexicon_format: options.LexiconFormat = "auto",
    case: options.Case = "keep",
    reverse: options.Reverse = False,
    title: Annotated[
        str | None, typer.Option("--title", metavar="WORDS", help="Heading of the page.", show_default=False)
    ] = None,
    max_words: Annotated[
        int,
        typer.Option(
            "--max-words", metavar="N", help="Look at the N most frequent words of each side, which bounds the time."
        ),
    ] = MAX_WORDS,
    csls_k: options.CslsK = 10,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="DIR", help="Write each picture as an SVG file, too.", show_default=False),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(
            "--png", metavar="DIR", help="Write each picture as a PNG file, too (extra plot).", show_default=False
        ),
    ] = None,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    json: options.Json = False,
) -> None:
    """Write a self-contained HTML page about an alignment: verdict, scores, reliability, hubs, a map.

    With --lexicon the page also has what only a dictionary can measure. It needs no network and no other file.
    """
    from qwp.report.analysis import analyse
    from qwp.report.writing import check_plots, write_page, write_plots

    options.check(max_words=max_words, csls_k=csls_k, max_memory=max_memory)
    folders = {kind: where for kind, where in (("svg", svg), ("png", png)) if where is not None}
    check_folder(out)
    for kind, where in folders.items():
        check_plots(where, kind)
    lexicons = _lexicons(lexicon or [], lexicon_format, case, reverse=reverse)
    alignment = options.load_alignment(folder).on(device)
    if alignment.quality.estimate is None:
        console.note("judging the alignment first: confidences need an estimate, and it was saved without one")
    with use_memory(max_memory):
        analysis = analyse(alignment, lexicons, max_words=max_words, csls_k=csls_k)
    write_page(out, analysis, title=title)
    plots = [path for kind, where in folders.items() for path in write_plots(where, analysis, kind)]
    if json:
        console.print_json({"command": "report", **_as_json(analysis, out, plots)})
    else:
        _show(analysis, out, plots)


def _lexicons(paths: Sequence[Path], format: str, case: str, *, reverse: bool) -> dict[str, Lexicon]:
    """The dictionaries by the names of their files."""
    found: dict[str, Lexicon] = {}
    for path in paths:
        if str(path) in found:
            raise InputError(f"--lexicon {path} was given twice; expected each dictionary once")
        found[str(path)] = options.load_lexicon(path, format, case, reverse=reverse)
    return found


def _as_json(analysis: Analysis, out: Path, plots: Sequence[Path]) -> dict[str, Any]:
    return {
        "out": str(out),
        "plots": [str(path) for path in plots],
        "verdict": analysis.quality.verdict,
        "quality": analysis.quality.to_dict(),
        **analysis.to_dict(),
        "provenance": asdict(analysis.alignment.provenance),
    }


def _show(analysis: Analysis, out: Path, plots: Sequence[Path]) -> None:
    """Where it is, and the figures that a reader looks for first."""
    from qwp.report.sections import headline

    hubs = analysis.hubness
    rows = [(f"P@1, {name}", headline(found)) for name, found in analysis.evaluations.items()]
    if analysis.reliability is not None:
        rows.append(("calibration error", f"{analysis.reliability.error:.3f}"))
    rows.append(("hubs", f"skewness {hubs.cosine.skewness:.1f} by cosine, {hubs.csls.skewness:.1f} by CSLS"))
    console.figures([("judged", analysis.quality.short), *rows, ("report", str(out))])
    if plots:
        console.note(f"{len(plots)} pictures written to {', '.join(dict.fromkeys(str(p.parent) for p in plots))}")
    if not analysis.evaluations:
        console.note("no --lexicon was given: nothing was measured against a dictionary")
