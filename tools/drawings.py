"""Pictures of the architecture as SVG, drawn from the contract of the layers and the source files.

Each function takes the argument of a generator, which is empty here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path

from tools import project, structure

_STYLE = """text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f; }
.name { font-weight: 600; }
.soft { fill: #57606a; font-size: 12px; }
.box { fill: #eef3fb; stroke: #9db4d8; }
.end { fill: #fdf1e7; stroke: #dfb48f; }
.way { stroke: #57606a; stroke-width: 1.4; fill: none; marker-end: url(#tip); }"""
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#57606a"/></marker></defs>'
)


def _picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{html.escape(title)}</title>"]
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([*head, f"<style>\n{_STYLE}\n</style>", _TIP, ground, *parts, "</svg>", ""])


def _text(x: int, y: int, words: str, css: str = "", anchor: str = "start") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text x="{x}" y="{y}"{kind} text-anchor="{anchor}">{html.escape(words)}</text>'


def _box(x: int, y: int, width: int, height: int, css: str = "box") -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{css}"/>'


def _way(*points: tuple[int, int]) -> str:
    return f'<path d="M{" L".join(f"{x} {y}" for x, y in points)}" class="way"/>'


# --------------------------------------------------------------------------- layers

_ROW, _LEFT, _WIDTH = 34, 60, 860


def layers(_: str = "", root: Path = project.ROOT) -> str:
    """Draw the layers, highest first, each with the beginning of its docstring."""
    rows = structure.layer_names(root)
    parts = [_way((30, 24), (30, 20 + _ROW * len(rows))), _text(20, 16, "imports", "soft")]
    for number, names in enumerate(rows):
        top = 24 + _ROW * number
        width = (_WIDTH - _LEFT - 20 - 10 * (len(names) - 1)) // len(names)
        for place, name in enumerate(names):
            x = _LEFT + place * (width + 10)
            about = beginning(root / "src" / "qwp" / name)
            parts += [_box(x, top, width, _ROW - 8), _text(x + 12, top + 18, name, "name")]
            parts.append(_text(x + 112, top + 18, about, "soft"))
    return _picture(_WIDTH, 40 + _ROW * len(rows), "The layers of the package, from cli down to version", parts)


def beginning(path: Path) -> str:
    """Return the first clause of the docstring of a package or module that is not just its name."""
    line = project.docstring_line(path if path.is_dir() else path.with_suffix(".py"))
    parts = [part.strip() for part in re.split(r"[.:,;]", line) if part.strip()]
    return next((part for part in parts if part.lower() != path.name), "")


# --------------------------------------------------------------------------- the path of the data

STEPS = (
    ("read", "spaces/io/reading.py", "detect the format from the content"),
    ("prepare", "stages/problem.py", "normalise, estimate the order of the words"),
    ("initialize", "stages/init/best_of.py", "try initializers, keep the best map"),
    ("solve", "stages/wasserstein_procrustes.py", "transport coresets, move the map along the plans"),
    ("refine", "stages/refinement.py", "induce dictionaries by CSLS, fit maps to them"),
    ("judge", "judging/verdict.py", "compare with null maps"),
    ("save", "results/saved.py", "the parts first, the index last"),
)
"""Steps of the vectors from files to a folder: name, file, description."""
USES = (
    ("translate", "results/translator.py"),
    ("lexicon", "search/confidence.py"),
    ("evaluate", "judging/evaluation.py"),
    ("export", "cli/export.py"),
    ("report", "report/writing.py"),
)
"""Uses of a folder: name, file."""


def data_path(_: str = "") -> str:
    """Draw the path of the data from two files to a folder and its uses."""
    middle, wide, high, gap = 190, 380, 46, 16
    parts = [_box(middle, 16, wide, 30, "end"), _text(middle + 14, 36, "en.vec, es.vec", "name")]
    parts.append(_text(middle + wide - 14, 36, "files, frames, models", "soft", "end"))
    top = 46
    for name, file, about in STEPS:
        parts += [_way((middle + wide // 2, top), (middle + wide // 2, top + gap))]
        top += gap
        parts += [_box(middle, top, wide, high), _text(middle + 14, top + 19, name, "name")]
        parts += [_text(middle + wide - 14, top + 19, file, "soft", "end"), _text(middle + 14, top + 37, about, "soft")]
        top += high
    parts += [
        _way((middle + wide // 2, top), (middle + wide // 2, top + gap)),
        _box(middle, top + gap, wide, 30, "end"),
    ]
    parts += [_text(middle + 14, top + gap + 20, "Alignment, DIR", "name")]
    parts.append(_text(middle + wide - 14, top + gap + 20, "results/alignment.py", "soft", "end"))
    return _picture(
        760,
        top + 170,
        "The path of the data from two files to an alignment and its uses",
        [*parts, *_uses(top + gap + 30)],
    )


def _uses(top: int) -> list[str]:
    """Draw the row of uses below the folder."""
    parts = []
    for number, (name, file) in enumerate(USES):
        x, wide = 15 + 147 * number, 140
        parts += [_way((380, top), (380, top + 18), (x + wide // 2, top + 18), (x + wide // 2, top + 40))]
        parts += [_box(x, top + 40, wide, 46, "end"), _text(x + 12, top + 59, name, "name")]
        parts.append(_text(x + 12, top + 77, file, "soft"))
    return parts
