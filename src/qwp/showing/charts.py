"""Charts as inline SVG: curves, shares with intervals, bars, lines with bands, numbered dots, a transport plan.

Each chart has a description for screen readers, and most points have a tooltip. Colours are classes of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from qwp.showing import svg
from qwp.showing.html import SERIES, Markup, element
from qwp.showing.svg import AxisScale, PlotFrame, Point, Ticks, percent, text_width


class Picture(Protocol):
    """A drawing with a heading and a note for the page around it."""

    @property
    def title(self) -> str:
        """The heading."""

    @property
    def note(self) -> str:
        """Text beside the heading; may be empty."""

    def svg(self) -> Markup | None:
        """Return the drawing as one `<svg>` element, or None if there is nothing to draw."""


_LINE = PlotFrame()
_WITH_KEY = PlotFrame(top=34.0)
_MAX_HOVER = 200  # hover targets of a chart: more would overlap and only make the file larger
_MAX_DOTS = 40  # up to this many points each is drawn as a dot
# The first of two series has circles or bars of one colour, the second squares or bars of the other.
_SERIES = ("src", "tgt")


def thinned(count: int, limit: int) -> list[int]:
    """Return at most `limit` evenly spread indices of 0..count-1, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [round(index * (count - 1) / (limit - 1)) for index in range(limit)]


@dataclass(frozen=True)
class LineChart:
    """A line chart. `x` and `y` have the same length; points that are not finite are left out."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]

    @property
    def note(self) -> str:
        """The last value, and how many values are left out."""
        points = self._points()
        skipped = len(self.x) - len(points)
        notes = [f"last value {points[-1][1]:.4g}"] if points else []
        if skipped:
            what = "1 value that is" if skipped == 1 else f"{skipped:,} values that are"
            notes.append(f"{what} not finite left out")
        return "; ".join(notes)

    def svg(self) -> Markup | None:
        """Draw the line, with a tooltip at its points."""
        points = self._points()
        return self._drawn(points) if points else None

    def _points(self) -> list[tuple[float, float]]:
        pairs = ((float(x), float(y)) for x, y in zip(self.x, self.y, strict=True))
        return [(x, y) for x, y in pairs if svg.drawable(x) and svg.drawable(y)]

    def _drawn(self, points: Sequence[tuple[float, float]]) -> Markup:
        xs, ys = [x for x, _ in points], [y for _, y in points]
        (x_low, x_high), (y_low, y_high) = svg.padded(min(xs), max(xs)), svg.padded(min(ys), max(ys))
        # The y axis ends on round values; the x axis on the data, so that the line uses the whole width.
        x_ticks = svg.labelled_ticks(x_low, x_high, 6, whole=len(set(xs)) > 1 and all(x.is_integer() for x in xs))
        y_ticks = svg.labelled_ticks(y_low, y_high, 5, outward=True)
        frame = _LINE.fitting([label for _, label in y_ticks])
        to_x = AxisScale(x_low, x_high, *frame.x_ends)
        to_y = AxisScale(y_ticks[0][0], y_ticks[-1][0], *frame.y_ends)
        places = [(to_x(x), to_y(y)) for x, y in points]
        parts = [
            *frame.axes(to_x, to_y, x_ticks, y_ticks, (self.x_label, self.y_label)),
            svg.polyline(places, "line"),
            *self._marks(points, places),
        ]
        return frame.picture(f"{self.title}: {self.y_label} by {self.x_label}", parts)

    def _marks(self, points: Sequence[tuple[float, float]], places: Sequence[tuple[float, float]]) -> Iterator[Markup]:
        """Draw the points as dots (few) or as invisible hover targets (many), each with its values as a tooltip."""
        css, radius = ("dot", 3) if len(points) <= _MAX_DOTS else ("hover", 6)
        for index in thinned(len(points), _MAX_HOVER):
            x, y = points[index]
            yield svg.circle(*places[index], radius, css, f"{self.x_label} {x:.6g}, {self.y_label} {y:.6g}")


@dataclass(frozen=True)
class Dot:
    """A value at `x`, with the ends of the interval around it and a tooltip."""

    x: float
    value: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class Ranges:
    """Shares from 0 to 1 with their intervals, in one or two named series.

    x_range: the ends of the horizontal axis. ideal: name of the diagonal on which the share equals x; "" for none.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    x_ticks: Ticks
    series: Sequence[tuple[str, Sequence[Dot]]]
    note: str = ""
    ideal: str = ""

    def svg(self) -> Markup | None:
        """Draw a dot for each share, with a line for its interval."""
        dots = [dot for _, found in self.series for dot in found]
        if not dots:
            return None
        highest = 1.0 if self.ideal else max(dot.high for dot in dots)
        to_x = AxisScale(*self.x_range, *_WITH_KEY.x_ends)
        to_y, parts = _share_axes(self, to_x, self.x_ticks, highest)
        if self.ideal:
            parts.append(svg.line(to_x(0.0), to_y(0.0), to_x(1.0), to_y(1.0), "ideal"))
        parts += _key([name for name, _ in self.series], self.ideal)
        for css, (_, found) in zip(_SERIES, self.series, strict=False):
            for dot in found:
                x = to_x(dot.x)
                parts.append(svg.line(x, to_y(dot.low), x, to_y(dot.high), f"whisker {css}"))
                parts.append(marker(css, x, to_y(dot.value), 4, dot.tip))
        return _WITH_KEY.picture(f"{self.title}: {self.y_label} by {self.x_label}", parts)


@dataclass(frozen=True)
class Bars:
    """Shares from 0 to 1 by group, a bar for each of one or two named series; each is as long as `groups`."""

    title: str
    x_label: str
    y_label: str
    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]
    note: str = ""

    def svg(self) -> Markup | None:
        """Draw groups of bars."""
        values = [value for _, found in self.series for value in found]
        if not values:
            return None
        to_x = AxisScale(0.0, float(len(self.groups)), *_WITH_KEY.x_ends)
        to_y, parts = _share_axes(self, to_x, [(i + 0.5, label) for i, label in enumerate(self.groups)], max(values))
        parts += _key([name for name, _ in self.series])
        width = 0.76 * (to_x(1.0) - to_x(0.0)) / len(self.series)
        for number, (css, (name, found)) in enumerate(zip(_SERIES, self.series, strict=False)):
            for index, value in enumerate(found):
                x = to_x(index + 0.12) + number * width
                tip = f"{name}: {percent(value)} % with {self.groups[index]}"
                parts.append(svg.rect(x, to_y(value), width - 1.5, to_y(0.0) - to_y(value), css, tip))
        return _WITH_KEY.picture(f"{self.title}: {self.y_label} by {self.x_label}", parts)


def marker(css: str, x: float, y: float, radius: float, tip: str) -> Markup:
    """Draw a circle for the first series, a square for the second: the two differ without colour as well."""
    if css == _SERIES[0]:
        return svg.circle(x, y, radius, css, tip)
    half = radius - 0.25
    return svg.rect(x - half, y - half, 2 * half, 2 * half, css, tip)


def _share_axes(chart: Ranges | Bars, x: AxisScale, x_ticks: Ticks, highest: float) -> tuple[AxisScale, list[Markup]]:
    """Return the vertical scale of a chart of shares up to `highest`, and its axes."""
    y_ticks = svg.percent_ticks(highest)
    y = AxisScale(y_ticks[0][0], y_ticks[-1][0], *_WITH_KEY.y_ends)
    return y, list(_WITH_KEY.axes(x, y, x_ticks, y_ticks, (chart.x_label, chart.y_label)))


def _key(names: Sequence[str], ideal: str = "") -> Iterator[Markup]:
    """Draw the names of the series in a line above the plotting area."""
    x, y = _WITH_KEY.left + 4, 14.0
    for css, name in zip(_SERIES, names, strict=False):
        yield marker(css, x, y - 4, 4, name)
        yield svg.text(x + 10, y, name, "key", "start")
        x += 30 + text_width(name)
    if ideal:
        yield svg.line(x - 4, y - 4, x + 16, y - 4, "ideal")
        yield svg.text(x + 22, y, ideal, "key", "start")


# --------------------------------------------------------------------------- charts of many systems

SHAPES = 4


@dataclass(frozen=True)
class PlotLine:
    """A line in the colour and shape of `number`; published figures are dashed, without shapes and band."""

    name: str
    number: int
    dots: Sequence[Dot]
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


def banded_lines(lines: Sequence[PlotLine], label: str, x_label: str, y_label: str) -> Markup:
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
    places = [(x(dot.x), y(dot.value)) for dot in line.dots]
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


def plan_chart(plan: npt.NDArray[np.int64], rows: Sequence[str], columns: Sequence[str], label: str) -> Markup:
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


def labelled_bars(rows: Sequence[tuple[str, float, str]], label: str) -> Markup:
    """Draw one horizontal bar for each row of a label, a value of 0 or more, and a text beside the bar."""
    top, height, start, longest, margin = 16.0, 24.0, 150.0, 180.0, 12.0
    most = max([value for _, value, _ in rows] + [svg.SMALLEST])
    parts: list[Markup] = []
    for number, (name, value, beside) in enumerate(rows):
        middle, length = top + (number + 0.5) * height, longest * max(value, 0.0) / most
        parts += [
            svg.text(start - margin, middle + 4, svg.shortened(name), "label", "end"),
            svg.rect(start, middle - 7, length, 14, "src", f"{name}: {value:.1f}"),
            svg.text(start + length + 6, middle + 4, f"{value:.1f}", "tick", "start"),
            svg.text(start + longest + 50, middle + 4, beside, "tick", "start"),
        ]
    width = start + longest + 62 + max((text_width(beside) for _, _, beside in rows), default=0.0)
    return svg.picture(width, 2 * top + height * len(rows), label, "chart", parts)
