"""Reports as files: the page, and its pictures one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from qwp.checks import installed, one_of
from qwp.errors import InputError
from qwp.report import svg
from qwp.report.contents import contents, default_title, pictures
from qwp.report.findings import MOST_WORDS, Findings, find
from qwp.report.page import render
from qwp.results.alignment import Alignment
from qwp.search.retrieval import DEFAULT_CSLS_K
from qwp.spaces.io.files import check_folder, replacing
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
    max_words: int = MOST_WORDS,
    csls_k: int = DEFAULT_CSLS_K,
) -> Findings:
    """Write an HTML page about an alignment and return its figures.

    The page needs nothing but itself. lexicon: a gold dictionary, with which the page also has scores, the reliability
    of the confidence and the most certain mistakes; a Lexicon, a path, pairs of words or a dict. words: those whose
    translations are shown; some content words unless they are given. max_words: only so many of the most frequent words
    of each side are looked at, which bounds the time.
    """
    check_folder(Path(path))
    gold = {} if lexicon is None else {"lexicon": Lexicon.of(lexicon)}
    findings = find(alignment, gold, words=words, max_words=max_words, csls_k=csls_k)
    write_page(path, findings, title=title)
    return findings


def write_page(
    path: str | PathLike[str],
    findings: Findings,
    *,
    title: str | None = None,
    more: Sequence[tuple[str, str]] = (),
) -> None:
    """The page of a report. more: further key figures. It appears only when complete: a failure leaves nothing."""
    quality = findings.quality
    page = render(
        title=default_title(findings) if title is None else title,
        verdict=quality.verdict,
        explanation=quality.explanation,
        sections=contents(findings, more),
        settings=asdict(findings.alignment.provenance),
    )
    with replacing(Path(path)) as file:
        file.write(page.encode("utf-8"))


def check_plots(folder: Path, kind: str) -> None:
    """Refuse what `write_plots` could not do, before any work."""
    one_of(KINDS, kind=kind)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected the name of a folder for the pictures")
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent} does not exist, expected a folder to put {folder.name} into")
    if kind == "png":
        installed("plot", "--png")


def write_plots(folder: str | PathLike[str], findings: Findings, kind: str = "svg") -> list[Path]:
    """Each picture of a report as a file of its own, in light colours. kind: `svg`, or `png` (extra `plot`)."""
    where = Path(folder)
    check_plots(where, kind)
    encoded: Callable[[str], bytes] = _png if kind == "png" else str.encode
    where.mkdir(exist_ok=True)
    written = []
    for name, picture in pictures(findings).items():
        drawing = picture.svg()
        assert drawing is not None, "what cannot be drawn is not among the pictures"
        path = where / f"{name}.{kind}"
        with replacing(path) as file:
            file.write(encoded(svg.alone(drawing)))
        written.append(path)
    return written


def _png(drawing: str) -> bytes:
    """A drawing as pixels."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=_ZOOM))
