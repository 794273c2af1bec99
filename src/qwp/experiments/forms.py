"""The forms of a report: Markdown, LaTeX, a page, and a file to make them of later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qwp.experiments.kept import as_file
from qwp.experiments.latex import latex
from qwp.experiments.markdown import markdown
from qwp.experiments.page import page
from qwp.experiments.report import Report

MARKDOWN, LATEX, HTML, JSON = "markdown", "latex", "html", "json"
FORMS: dict[str, Callable[[Report], str]] = {MARKDOWN: markdown, LATEX: latex, HTML: page, JSON: as_file}
_SUFFIXES = {".tex": LATEX, ".html": HTML, ".htm": HTML, ".json": JSON}


def form_of(out: Path | None) -> str:
    """What the name of a file asks for."""
    return MARKDOWN if out is None else _SUFFIXES.get(out.suffix.lower(), MARKDOWN)
