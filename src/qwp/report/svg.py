"""Elements of SVG, and pictures as files of their own.

In a page the colours of a picture are those of the page, light or dark. A file has no page around it: `alone` puts the
light colours in, as plain values, which every program that shows SVG understands.
"""

from __future__ import annotations

import math
import re
from typing import Protocol

from qwp.report.style import LIGHT, PICTURES
from qwp.showing.escapes import in_markup as escape

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
