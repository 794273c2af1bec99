"""Writing reports: the page, and its pictures one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from qwp.errors import InputError, installed, one_of
from qwp.report.analysis import MAX_WORDS, Analysis, analyse
from qwp.report.page import render
from qwp.report.sections import default_title, measured, pictures, sections
from qwp.results.alignment import Alignment
from qwp.search.retrieval import DEFAULT_CSLS_K
from qwp.showing import svg
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.lexicon import Lexicon, PairsOfWords

KINDS = ("svg", "png")
_ZOOM = 2  # pixels of a PNG for each unit of the drawing


def write_report(
    alignment: Alignment,
    path: str | PathLike[str],
    lexicon: PairsOfWords | None = None,
    *,
    title: str | None = None,
    words: Sequence[str] = (),
    max_words: int = MAX_WORDS,
    csls_k: int = DEFAULT_CSLS_K,
) -> Analysis:
    """Write a self-contained HTML page about an alignment and return its figures.

    Args:
        alignment: the alignment to report on.
        path: the HTML file to write.
        lexicon: a gold dictionary: a `Lexicon`, a path, pairs of words or a dict. With it the page also has scores,
            the reliability of the confidence and the most confident mistakes.
        title: heading of the page; by default the names of both sides.
        words: source words whose translations the page shows; by default some content words.
        max_words: analyse only the most frequent words of each side, which bounds the time.
        csls_k: neighbours of CSLS.
    """
    check_folder(Path(path))
    gold = {} if lexicon is None else {"lexicon": Lexicon.of(lexicon)}
    analysis = analyse(alignment, gold, words=words, max_words=max_words, csls_k=csls_k)
    write_page(path, analysis, title=title)
    return analysis


def write_page(
    path: str | PathLike[str],
    analysis: Analysis,
    *,
    title: str | None = None,
    more: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page of a report, completely or not at all. more: further key figures."""
    quality = analysis.quality
    page = render(
        title=default_title(analysis) if title is None else title,
        verdict=quality.verdict,
        explanation=measured(analysis) + quality.explanation,
        sections=sections(analysis, more),
        settings=asdict(analysis.alignment.provenance),
    )
    with atomic_write(Path(path)) as file:
        file.write(page.encode("utf-8"))


def check_plots(folder: Path, kind: str) -> None:
    """Raise an InputError if `write_plots` cannot write to the folder, before any work is done."""
    one_of(KINDS, kind=kind)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected the name of a folder for the pictures")
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent} does not exist, expected a folder to put {folder.name} into")
    if kind == "png":
        installed("plot", "--png")


def write_plots(folder: str | PathLike[str], analysis: Analysis, kind: str = "svg") -> list[Path]:
    """Write each picture of a report to a file, in light colours. kind: `svg`, or `png` (extra `plot`)."""
    where = Path(folder)
    check_plots(where, kind)
    encode: Callable[[str], bytes] = _png if kind == "png" else str.encode
    where.mkdir(exist_ok=True)
    written = []
    for name, picture in pictures(analysis).items():
        drawing = picture.svg()
        assert drawing is not None, "`pictures` leaves out what cannot be drawn"
        path = where / f"{name}.{kind}"
        with atomic_write(path) as file:
            file.write(encode(svg.standalone(drawing)))
        written.append(path)
    return written


def _png(drawing: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=_ZOOM))
