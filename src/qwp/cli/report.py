"""`qwp report`: a page about a saved alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.cli.options import Computing, GoldReading, count, option
from qwp.errors import InputError
from qwp.parameters import MOST_WORDS
from qwp.report.analysis import MAX_WORDS, Analysis
from qwp.results.all_pairs import AllPairs
from qwp.results.saved import ALL_PAIRS
from qwp.showing import terminal
from qwp.spaces.io.files import check_folder
from qwp.spaces.lexicon import Lexicon


@dataclass(frozen=True)
class ReportPage:
    """Options that say what to write."""

    out: Path = option("HTML page to write.", default=Path("report.html"), flags=("--out", "-o"))
    title: str | None = option("Heading of the page.", "WORDS")
    svg: Path | None = option("Write each figure as an SVG file, too.", "DIR")
    png: Path | None = option("Write each figure as a PNG file, too (extra plot).", "DIR")

    def folders(self) -> dict[str, Path]:
        """Return the folders of the figures, by format."""
        return {kind: folder for kind, folder in (("svg", self.svg), ("png", self.png)) if folder is not None}


@dataclass(frozen=True)
class AnalysisOptions(GoldReading):
    """Options that say what to analyse."""

    lexicon: list[Path] | None = option("A gold dictionary; may be given several times.", flags=("--lexicon", "-l"))
    max_words: int = count(
        "Analyse the N most frequent words of each side, which limits the time.", MAX_WORDS, most=MOST_WORDS
    )
    csls_k: options.CslsK = 10

    def lexicons(self) -> dict[str, Lexicon]:
        """Read the dictionaries. Returns them by the names of their files."""
        found: dict[str, Lexicon] = {}
        for path in self.lexicon or []:
            if str(path) in found:
                raise InputError(f"--lexicon {path} was given twice; expected each dictionary once")
            found[str(path)] = self.load(path)
        return found


@options.with_options
def command(
    folder: options.AlignmentFolder,
    page: ReportPage,
    contents: AnalysisOptions,
    computing: Computing,
    json: options.Json = False,
) -> None:
    """Write a self-contained HTML page about an alignment: verdict, scores, reliability, hubs, a map.

    With --lexicon the page also shows what only a dictionary can measure. It needs no network and no other file. If DIR
    is a folder of `qwp align-all`, the page shows a matrix of languages.
    """
    if (folder / ALL_PAIRS).exists():
        _write_languages(folder, page, contents, json=json)
        return
    from qwp.report.analysis import analyse
    from qwp.report.writing import check_plots, write_page, write_plots

    folders = page.folders()
    check_folder(page.out)
    for kind, target in folders.items():
        check_plots(target, kind)
    lexicons = contents.lexicons()
    alignment = options.load_alignment(folder).on(computing.device)
    if alignment.quality.estimate is None:
        terminal.note("judging the alignment first: confidences need an estimate, and the saved result has none")
    with use_memory(computing.max_memory):
        analysis = analyse(alignment, lexicons, max_words=contents.max_words, csls_k=contents.csls_k)
    write_page(page.out, analysis, title=page.title)
    plots = [path for kind, target in folders.items() for path in write_plots(target, analysis, kind)]
    if json:
        console.print_json({"command": "report", **_as_json(analysis, page.out, plots)})
    else:
        _show(analysis, page.out, plots)


def _write_languages(folder: Path, page: ReportPage, contents: AnalysisOptions, *, json: bool) -> None:
    """Write the page about every two of several languages."""
    from qwp.report.languages import write_languages

    if contents.lexicon or page.folders():
        raise InputError(
            f"{folder} holds pairs of languages, whose page takes no --lexicon, --svg or --png: leave them out, or "
            f"report on one pair in a folder of {folder}"
        )
    check_folder(page.out)
    found = AllPairs.load(folder, check="size")
    write_languages(page.out, found, title=page.title)
    if json:
        console.print_json({"command": "report", "out": str(page.out), "pairs": found.records()})
    else:
        console.figures([("pairs", f"{len(found.alignments)}, {len(found.failed)} failed"), ("report", str(page.out))])


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
    """Print the main figures and the path of the page."""
    from qwp.report.writing import headline

    hubs = analysis.hubness
    rows = [(f"P@1, {name}", headline(found)) for name, found in analysis.evaluations.items()]
    if analysis.reliability is not None:
        rows.append(("calibration error", f"{100 * analysis.reliability.error:.1f} points"))
    rows.append(("hubs", f"skewness {hubs.cosine.skewness:.1f} by cosine, {hubs.csls.skewness:.1f} by CSLS"))
    console.figures([("judged", analysis.quality.short), *rows, ("report", str(out))])
    if plots:
        terminal.note(f"{len(plots)} figures written to {', '.join(dict.fromkeys(str(p.parent) for p in plots))}")
    for name, words in analysis.left_out.items():
        if words:
            terminal.note(f"{words:,} source words of {name} are left out: the fit was given their pairs")
    if not analysis.anchors_known:
        terminal.note("the fit was given known pairs that are not found; they may be among the scored words")
    if not analysis.left_out:
        terminal.note("no --lexicon was given: the page has no scores against a dictionary")
