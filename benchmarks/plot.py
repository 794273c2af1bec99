"""Draw how time grows with the number of words: docs/images/growth.svg from the figures of `benchmarks.csls`.

    python -m benchmarks.plot [--input benchmarks/results/latest.json] [--output docs/images/growth.svg]

One panel for each curve, both axes logarithmic: measured points, the fitted power law, and its exponent.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from qwp.errors import InputError
from qwp.spaces.io.files import replacing

INPUT = Path(__file__).parent / "results" / "latest.json"
OUTPUT = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"

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
    """A logarithmic axis from `low` to `high`, drawn from pixel `first` to pixel `last`."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.first + share * (self.last - self.first)


def growth_svg(growth: dict[str, Any]) -> str:
    """The drawing as text. growth: the entry of that name in what `benchmarks.csls.run` returns."""
    width = _PANEL_WIDTH * len(growth)
    panels = [_panel(curve, i * _PANEL_WIDTH, _COLOURS[i % len(_COLOURS)]) for i, curve in enumerate(growth.values())]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_PANEL_HEIGHT}" '
            f'width="{width}" height="{_PANEL_HEIGHT}" role="img">',
            f"<title>{escape(_summary(growth))}</title>",
            f"<style>{_STYLE}</style>",
            # Without a ground of its own the drawing would be unreadable on a dark page.
            f'<rect width="{width}" height="{_PANEL_HEIGHT}" fill="#ffffff"/>',
            *panels,
            "</svg>\n",
        ]
    )


def _summary(growth: dict[str, Any]) -> str:
    parts = [f"{c['what']}: time grows with {c['size']} to the power {c['exponent']:.2f}" for c in growth.values()]
    return "; ".join(parts)


def _panel(curve: dict[str, Any], offset: int, colour: str) -> str:
    """One curve: frame, grid, ticks, labels, fitted line, points."""
    sizes, seconds = curve["sizes"], curve["seconds"]
    fitted = [math.exp(curve["intercept"]) * n ** curve["exponent"] for n in (sizes[0], sizes[-1])]
    x = _Axis(sizes[0] / 1.25, sizes[-1] * 1.25, _LEFT, _PANEL_WIDTH - _RIGHT)
    shown = [*seconds, *fitted]
    y = _Axis(min(shown) / 1.5, max(shown) * 1.5, _PANEL_HEIGHT - _BOTTOM, _TOP)
    parts = [f'<g transform="translate({offset} 0)">']
    parts += [_vertical(x.at(n), _number(n)) for n in sizes]
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
    """1, 2 and 5 times powers of ten from low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0**decade for decade in decades for digit in (1, 2, 5) if low <= digit * 10.0**decade <= high]


def _number(n: int) -> str:
    return f"{n:,}"


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1e3 * seconds:g} ms"


def read_growth(path: Path) -> dict[str, Any]:
    """The growth figures in a file of `benchmarks.run` or of `benchmarks.csls --json`."""
    figures = json.loads(path.read_text(encoding="utf-8"))
    figures = figures.get("csls", figures)
    if "growth" not in figures:
        raise InputError(
            f"{path} holds no growth figures, only {', '.join(figures)}; expected those of the csls benchmark: "
            "run python -m benchmarks.run --only csls first"
        )
    growth: dict[str, Any] = figures["growth"]
    return growth


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the figures and write the drawing."""
    parser = argparse.ArgumentParser(prog="benchmarks.plot", description="Draw the growth of time with the words")
    parser.add_argument("--input", type=Path, default=INPUT, help="figures of benchmarks.run or benchmarks.csls")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the SVG goes")
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(options.output) as file:
        file.write(growth_svg(read_growth(options.input)).encode())


if __name__ == "__main__":
    main()
