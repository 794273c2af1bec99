"""The growth of time with the number of words as a picture: docs/images/growth.svg.

One panel shows one curve that `benchmarks.csls` has measured, on logarithmic axes: points, the fitted power law and its
exponent.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.run import RESULTS as INPUT

_PANEL_WIDTH, _PANEL_HEIGHT = 400, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 48, 56
_COLOURS = ("#1f6feb", "#bc4c00")
_STYLE = """
  text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .frame { fill: none; stroke: #57606a; stroke-width: 1; }
"""


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from `low` to `high` that spans the pixels from `first` to `last`."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.first + share * (self.last - self.first)


def chart(_: str = "") -> str:
    """Return the chart as SVG."""
    growth: dict[str, Any] = json.loads(INPUT.read_text("utf-8"))["csls"]["growth"]
    width = _PANEL_WIDTH * len(growth)
    panels = [_panel(curve, i * _PANEL_WIDTH, _COLOURS[i % len(_COLOURS)]) for i, curve in enumerate(growth.values())]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_PANEL_HEIGHT}" '
            f'width="{width}" height="{_PANEL_HEIGHT}" role="img">',
            f"<title>{escape(_summary(growth))}</title>",
            f"<style>{_STYLE}</style>",
            # A background, so that the chart is readable on a dark page.
            f'<rect width="{width}" height="{_PANEL_HEIGHT}" fill="#ffffff"/>',
            *panels,
            "</svg>\n",
        ]
    )


def _summary(growth: dict[str, Any]) -> str:
    parts = [f"{c['what']}: time grows with {c['size']} to the power {c['exponent']:.2f}" for c in growth.values()]
    return "; ".join(parts)


def _panel(curve: dict[str, Any], offset: int, colour: str) -> str:
    """Draw a curve: grid, frame, fitted line, points and labels."""
    sizes, seconds = curve["sizes"], curve["seconds"]
    fitted = [math.exp(curve["intercept"]) * n ** curve["exponent"] for n in (sizes[0], sizes[-1])]
    x = _Axis(sizes[0] / 1.25, sizes[-1] * 1.25, _LEFT, _PANEL_WIDTH - _RIGHT)
    shown = [*seconds, *fitted]
    y = _Axis(min(shown) / 1.5, max(shown) * 1.5, _PANEL_HEIGHT - _BOTTOM, _TOP)
    parts = [f'<g transform="translate({offset} 0)">']
    parts += [_vertical(x.at(n), f"{n:,}") for n in sizes]
    parts += [_horizontal(y.at(t), _seconds(t)) for t in ticks(y.low, y.high)]
    parts.append(
        f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{x.last - x.first:g}" height="{y.first - y.last:g}"/>'
    )
    ends = [f"{x.at(n):.1f},{y.at(t):.1f}" for n, t in zip((sizes[0], sizes[-1]), fitted, strict=True)]
    parts.append(f'<polyline points="{" ".join(ends)}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts += [
        f'<circle cx="{x.at(n):.1f}" cy="{y.at(t):.1f}" r="4.5" fill="{colour}" stroke="#ffffff" stroke-width="1.5"/>'
        for n, t in zip(sizes, seconds, strict=True)
    ]
    middle = (x.first + x.last) / 2
    parts += [
        f'<text class="title" x="{middle:g}" y="28" text-anchor="middle">{escape(curve["what"])}</text>',
        f'<text x="{x.first + 12:g}" y="{y.last + 22:g}">time ∝ {escape(curve["size"])}'
        f'<tspan dy="-5" font-size="10">{curve["exponent"]:.2f}</tspan></text>',
        f'<text x="{middle:g}" y="{_PANEL_HEIGHT - 14}" text-anchor="middle">number of {escape(curve["size"])}</text>',
        f'<text transform="translate(20 {(y.first + y.last) / 2:g}) rotate(-90)" text-anchor="middle">time</text>',
        "</g>",
    ]
    return "\n".join(parts)


def _vertical(at: float, label: str) -> str:
    bottom = _PANEL_HEIGHT - _BOTTOM
    return (
        f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>'
        f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    )


def _horizontal(at: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{_PANEL_WIDTH - _RIGHT}" y2="{at:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0**decade for decade in decades for digit in (1, 2, 5) if low <= digit * 10.0**decade <= high]


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1e3 * seconds:g} ms"
