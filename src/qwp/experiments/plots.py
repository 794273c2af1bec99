"""Charts of an experiment as inline SVG: lines with bands, numbered dots, a transport plan.

Each chart has a description for screen readers and a tooltip for each point. Colours are classes of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qwp.arrays import Ints
from qwp.showing import svg
from qwp.showing.html import SERIES, Markup, element
from qwp.showing.svg import AxisScale, PlotFrame, Point

SHAPES = 4


@dataclass(frozen=True)
class PlotDot:
    """A point of a line, with the ends of the band around it and a tooltip."""

    x: float
    y: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class PlotLine:
    """A line in the colour and shape of `number`; published figures are dashed, without shapes and band."""

    name: str
    number: int
    dots: Sequence[PlotDot]
    dashed: bool = False


def colour(number: int) -> str:
    """Return the class of the colour of a system."""
    return f"c{number % SERIES}"


def shape(x: float, y: float, number: int, size: float = 4.0, tip: str = "") -> Markup:
    """Draw the mark of a system: one of four shapes in one of seven colours."""
    css = f"dot {colour(number)}"
    corners = {
        1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2: [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    }.get(number % SHAPES)
    if corners is None:
        return svg.circle(x, y, size, css, tip)
    return svg.polyline([(x + size * dx, y + size * dy) for dx, dy in corners], css, closed=True, tip=tip)


def swatch(number: int, *, dashed: bool = False) -> Markup:
    """Draw the mark of a system in a legend."""
    line = svg.line(1, 7, 25, 7, f"line {colour(number)}{' dashed' if dashed else ''}")
    mark = "" if dashed else shape(13, 7, number)
    return element("svg", line, mark, viewBox="0 0 26 14", class_="swatch", aria_hidden="true")


def _score_range(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return a range of scores in percent with a margin around the values of at least half a point."""
    low, high = min(values), max(values)
    margin = max(share * (high - low), (1.0 - (high - low)) / 2)
    return max(0.0, low - margin), min(100.0, high + margin)


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return 1, 2, 5 times powers of ten within a range: more of them in a short range, fewer in a long one."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    units = (1, 2, 3, 5, 7) if high < 12 * low else (1, 2, 5) if len(decades) <= 3 else (1,)
    values = [unit * 10.0**decade for decade in decades for unit in units if low <= unit * 10.0**decade <= high]
    return [(value, f"{value:g}") for value in values or [low]]


def line_chart(lines: Sequence[PlotLine], label: str, x_label: str, y_label: str) -> Markup:
    """Draw lines by size, on a logarithmic axis, with a band from the lowest to the highest seed."""
    frame = PlotFrame(330.0, 230.0, left=50.0, right=14.0)
    dots = [dot for line in lines for dot in line.dots]
    if not dots:
        return Markup()
    sizes = sorted({dot.x for dot in dots})
    low, high = _score_range([value for dot in dots for value in (dot.low, dot.high)], 0.06)
    left, right = frame.x_ends
    x = AxisScale(sizes[0], sizes[-1], left + 8, right - 8, logarithmic=sizes[0] > 0)
    y = AxisScale(low, high, *frame.y_ends)
    size_ticks = [(size, f"{size:g}") for size in sizes]
    parts = [*frame.axes(x, y, size_ticks, svg.labelled_ticks(low, high, 5), (x_label, y_label))]
    parts += [part for line in lines for part in _band(line, x, y)]
    parts += [part for line in lines for part in _path(line, x, y)]
    return frame.picture(label, parts)


def _band(line: PlotLine, x: AxisScale, y: AxisScale) -> Iterator[Markup]:
    if line.dashed or len(line.dots) < 2 or all(dot.low == dot.high for dot in line.dots):
        return
    upper = [(x(dot.x), y(dot.high)) for dot in line.dots]
    lower = [(x(dot.x), y(dot.low)) for dot in reversed(line.dots)]
    yield svg.polyline([*upper, *lower], f"band {colour(line.number)}", closed=True)


def _path(line: PlotLine, x: AxisScale, y: AxisScale) -> Iterator[Markup]:
    places = [(x(dot.x), y(dot.y)) for dot in line.dots]
    if len(places) > 1:
        yield svg.polyline(places, f"line {colour(line.number)}{' dashed' if line.dashed else ''}")
    for dot, place in zip(line.dots, places, strict=True):
        if line.dashed:
            yield svg.circle(*place, 2.5, f"hollow {colour(line.number)}", dot.tip)
        else:
            yield shape(*place, line.number, tip=dot.tip)


@dataclass(frozen=True)
class NumberedDot:
    """A dot with a number in it, at `seconds` and `score`, in the colour of a system."""

    number: int
    system: int
    seconds: float
    score: float
    tip: str


def numbered_dots(dots: Sequence[NumberedDot], label: str, x_label: str, y_label: str) -> Markup:
    """Draw scores over seconds, on a logarithmic axis. Dots that would overlap move apart."""
    frame = PlotFrame(420.0, 320.0, left=56.0)
    seconds = [max(dot.seconds, 1e-3) for dot in dots]
    low, high = _score_range([dot.score for dot in dots], 0.1)
    x = AxisScale(min(seconds) / 1.25, max(seconds) * 1.25, *frame.x_ends, logarithmic=True)
    y = AxisScale(low, high, *frame.y_ends)
    ticks = _log_ticks(x.low, x.high), svg.labelled_ticks(low, high, 5)
    parts = [*frame.axes(x, y, *ticks, (x_label, y_label))]
    places = [(x(second), y(dot.score)) for dot, second in zip(dots, seconds, strict=True)]
    for dot, place, free in zip(dots, places, _spread(places), strict=True):
        css = f"dot {colour(dot.system)}"
        if free != place:
            parts += [svg.line(*place, *free, "leader"), svg.circle(*place, 2, css)]
        number = svg.text(free[0], free[1] + 3.7, str(dot.number), "number", "middle")
        parts.append(element("g", element("title", dot.tip), svg.circle(*free, 8.5, css), number))
    return frame.picture(label, parts)


def _spread(places: Sequence[Point]) -> list[Point]:
    """Move points apart to a distance of at least 18: each takes the nearest free position around its own."""
    spread: list[Point] = []
    for x, y in places:
        around = (
            (x + step * math.cos(turn * math.pi / 8), y - step * math.sin(turn * math.pi / 8))
            for step in range(0, 200, 4)
            for turn in range(16)
        )
        free = (place for place in around if all(math.dist(place, other) >= 18.0 for other in spread))
        spread.append(next(free, (x, y)))
    return spread


def plan_chart(plan: Ints, rows: Sequence[str], columns: Sequence[str], label: str) -> Markup:
    """Draw a transport plan (n, m), in units of 1/255 of its largest entry, with the words of rows and columns."""
    cell, left, top = 14.0, 92.0, 78.0
    height, width = cell * plan.shape[0], cell * plan.shape[1]
    parts = [svg.rect(left, top, width, height, "empty")]
    for i, word in enumerate(rows):
        parts.append(svg.text(left - 5, top + cell * i + 10.5, word[:14], "word", "end"))
    for j, word in enumerate(columns):
        parts.append(svg.text(left + cell * j + 10, top - 6, word[:13], "word", "start", rotation=-60))
    for i, j in np.argwhere(plan > 2).tolist():
        tip = f"{rows[i]} → {columns[j]}: {plan[i, j] / 2.55:.0f} % of the largest entry"
        opacity = f"{max(0.08, plan[i, j] / 255):.2f}"
        parts.append(svg.rect(left + cell * j, top + cell * i, cell, cell, "mass", tip, opacity=opacity))
    return svg.picture(left + width + 40, top + height + 6, label, "plan", parts)
