"""Elements of SVG, and pictures as files of their own.

In a page the colours of a picture are those of the page, light or dark. A file has no page around it: `alone` puts the
light colours in, as plain values, which every program that shows SVG understands.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Protocol

import numpy as np

from qwp.showing.terminal import in_markup as escape

LIGHT = {
    "bg": "#f6f7f9",
    "card": "#fff",
    "ink": "#1c2430",
    "soft": "#5a6675",
    "rule": "#e1e5ea",
    "grid": "#eceff3",
    "src": "#1d5fd0",
    "tgt": "#b8480b",
    "ok": "#146c3c",
    "okbg": "#e4f5ea",
    "bad": "#a51d1d",
    "badbg": "#fdeaea",
    "unsure": "#8a5300",
    "unsurebg": "#fdf3e0",
    "chip": "#f0f2f5",
}
_DARK = {
    "bg": "#12161c",
    "card": "#1a2029",
    "ink": "#e6eaf0",
    "soft": "#9ba7b6",
    "rule": "#2d3642",
    "grid": "#262e39",
    "src": "#7fb2ff",
    "tgt": "#ffab70",
    "ok": "#7ddba3",
    "okbg": "#15301f",
    "bad": "#ff9d9d",
    "badbg": "#3a1a1c",
    "unsure": "#f0c070",
    "unsurebg": "#33270f",
    "chip": "#252d38",
}

PICTURES = """
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.tick,.label,.key{fill:var(--soft);font-size:12px}.label,.key{font-size:12.5px}
.line{fill:none;stroke:var(--src);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.ideal{stroke:var(--soft);stroke-dasharray:5 4}
.dot{fill:var(--src);stroke:var(--card)}
.dot:hover{stroke:var(--ink);stroke-width:2}
.hover{fill:transparent}.hover:hover{fill:var(--src);fill-opacity:.5}
circle.src,rect.src{fill:var(--src)}circle.tgt,rect.tgt{fill:var(--tgt)}
.whisker{stroke-width:2;stroke-opacity:.65}.whisker.src{stroke:var(--src)}.whisker.tgt{stroke:var(--tgt)}
.pair{stroke:var(--soft);stroke-opacity:.55}
.leader{stroke:var(--soft);stroke-opacity:.45;stroke-width:.7;stroke-dasharray:2 2}
.word{font-size:12.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.word.src{fill:var(--src)}.word.tgt{fill:var(--tgt)}
""".strip()
"""Of what is drawn, in a page and in files."""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


CSS = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-size:16px}}
main{{max-width:1040px;margin:0 auto;padding:28px 16px 48px}}
h1{{font-size:1.65rem;line-height:1.25;margin:0 0 16px;overflow-wrap:anywhere}}
h2{{font-size:1.1rem;margin:0 0 12px}}
section{{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:18px 20px;
margin-top:18px}}
.verdict{{display:flex;gap:12px;align-items:flex-start;border-radius:12px;padding:14px 18px;font-weight:600;
overflow-wrap:anywhere;border:1px solid currentColor}}
.verdict.ok{{color:var(--ok);background:var(--okbg)}}
.verdict.bad{{color:var(--bad);background:var(--badbg)}}
.verdict.unsure{{color:var(--unsure);background:var(--unsurebg)}}
.verdict .sign{{font-size:1.2rem;line-height:1.25}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:7px 20px 7px 0;border-bottom:1px solid var(--rule);vertical-align:baseline}}
tr:last-child>td,tbody tr:last-child>th{{border-bottom:0}}
thead th{{color:var(--soft);font-weight:600;font-size:.85rem}}
tbody th{{font-weight:500}}
.facts th,.prov th{{color:var(--soft);width:1%;white-space:nowrap;padding-right:28px}}
.facts td{{font-weight:600}}
.num{{text-align:right}}
td.num,th.num{{padding-left:14px}}
.chip{{display:inline-block;background:var(--chip);border-radius:7px;padding:1px 9px;margin:2px 6px 2px 0}}
.chip.first{{font-weight:600}}
.chip small{{color:var(--soft);font-weight:400;margin-left:6px}}
.mark{{text-align:center;font-weight:700}}
.mark .yes{{color:var(--ok)}}.mark .no{{color:var(--bad)}}
p.lead{{margin:0 0 12px;max-width:75ch}}p.after{{margin:12px 0 0}}
code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.9em;background:var(--chip);
border-radius:5px;padding:1px 5px;overflow-wrap:anywhere}}
.none,.note{{color:var(--soft)}}.note{{font-size:.85rem;font-weight:400}}
.none{{margin:0}}figcaption .note{{display:block;min-height:1.3em}}
.charts{{display:grid;gap:22px;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr))}}
.charts+.scroll,.scroll+.charts{{margin-top:16px}}.charts>.scroll{{align-self:center}}
figure{{margin:0;min-width:0;max-width:620px}}
figcaption{{margin-bottom:6px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
svg.map{{min-width:640px}}
{PICTURES}
.legend{{margin:0 0 8px;display:flex;gap:8px 20px;flex-wrap:wrap;color:var(--soft);font-size:.9rem}}
.legend i{{display:inline-block;width:10px;height:10px;margin-right:7px}}
.legend .s{{background:var(--src);border-radius:50%}}.legend .t{{background:var(--tgt)}}
summary{{cursor:pointer;font-weight:600;font-size:1.1rem}}
details[open] summary{{margin-bottom:10px}}
.prov td{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
font-size:.85rem;overflow-wrap:anywhere}}
@media (max-width:600px){{.facts tr{{display:block;padding:6px 0;border-bottom:1px solid var(--rule)}}
.facts th,.facts td{{display:block;border:0;padding:0;width:auto}}.facts tr:last-child{{border:0}}
section{{padding:16px 14px}}}}
@media print{{body{{background:#fff}}section{{break-inside:avoid}}}}
""".strip()


LARGEST = 1e150  # differences and products of drawn values must stay finite
SMALLEST = 1e-150
_OPENING = re.compile(r"<svg [^>]*>")
_VIEW_BOX = re.compile(r'viewBox="0 0 (?P<width>[0-9.]+) (?P<height>[0-9.]+)"')
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"


class Picture(Protocol):
    """Something that is drawn, with a heading and a remark for the page around it."""

    @property
    def title(self) -> str:
        """Its heading."""

    @property
    def note(self) -> str:
        """What is said beside the heading; may be empty."""

    def svg(self) -> str | None:
        """The drawing as one `<svg>` element; None where there is nothing to draw."""


def drawable(value: float) -> bool:
    """Whether a value has a place in a picture."""
    return math.isfinite(value) and abs(value) < LARGEST


def coordinate(value: float) -> str:
    """A position: two decimals are far below a pixel; adding 0.0 turns -0 into 0."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def opened(width: float, height: float, label: str, css: str) -> str:
    """The opening tag of a picture; `label` is read out in its place."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {coordinate(width)} {coordinate(height)}" '
        f'class="{css}" role="img" aria-label="{escape(label)}">'
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """A straight line."""
    ends = f'x1="{coordinate(x1)}" y1="{coordinate(y1)}" x2="{coordinate(x2)}" y2="{coordinate(y2)}"'
    return f'<line {ends} class="{css}"/>'


def text(x: float, y: float, words: str, css: str, anchor: str, extra: str = "") -> str:
    """Words at a place."""
    return (
        f'<text x="{coordinate(x)}" y="{coordinate(y)}" class="{css}" text-anchor="{anchor}"{extra}>'
        f"{escape(words)}</text>"
    )


def circle(x: float, y: float, radius: float, css: str, tip: str) -> str:
    """A dot that says something when the pointer is on it."""
    place = f'cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(radius)}"'
    return f'<circle {place} class="{css}"><title>{escape(tip)}</title></circle>'


def box(x: float, y: float, width: float, height: float, css: str, tip: str) -> str:
    """A rectangle, with the same."""
    corner = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    size = f'width="{coordinate(width)}" height="{coordinate(height)}"'
    return f'<rect {corner} {size} class="{css}"><title>{escape(tip)}</title></rect>'


def alone(drawing: str) -> str:
    """A drawing for a page as the text of a file: with its size, a white ground and its style."""
    found = _VIEW_BOX.search(drawing)
    assert found is not None, "a drawing begins with `opened`"
    style = re.sub(r"var\(--(\w+)\)", lambda name: LIGHT[name[1]], PICTURES)
    size = f'width="{found["width"]}" height="{found["height"]}"'
    ground = f'<rect {size} fill="{LIGHT["card"]}"/>'
    opening = _OPENING.match(drawing)
    assert opening is not None
    head = opening[0][:-1] + f' {size} font-family="{_FONT}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<style>{style}</style>{ground}{drawing[opening.end() :]}\n'


MISSING = "–"
_LABEL_CHARACTERS = 24


def number(value: object, decimals: int | None = None) -> str:
    """A cell of a table: whole numbers with separators, others with `decimals` (None: as many as needed)."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _fraction(float(value), decimals)
    return MISSING if value is None else str(value)


def _fraction(value: float, decimals: int | None) -> str:
    if not math.isfinite(value):
        return MISSING
    if decimals is not None and (value == 0 or 1e-4 <= abs(value) < 1e12):
        return f"{value:,.{decimals}f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def decimals_of(values: Iterable[object]) -> int | None:
    """How many decimals the fractions in a column need to line up; None where it holds no fractions."""
    cells = [number(v) for v in values if isinstance(v, Real) and not isinstance(v, Integral)]
    return max((len(cell.partition(".")[2]) for cell in cells if "e" not in cell), default=None)


def is_figure(value: object) -> bool:
    """Whether a cell belongs into a column of numbers."""
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def percent(share: float) -> str:
    """A share from 0 to 1 in percent."""
    return f"{100 * share:.1f}" if math.isfinite(share) else MISSING


def text_width(text: str) -> float:
    """An estimate in pixels at 12.5px; East Asian wide characters take a full em, combining marks nothing."""
    wide = {"W": 13.0, "F": 13.0}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 7.0) for c in text)


def shortened(word: str) -> str:
    """A word as a label in a picture."""
    return word if len(word) <= _LABEL_CHARACTERS else word[: _LABEL_CHARACTERS - 1] + "…"
