"""Charts of a report: a curve, shares with their intervals, bars side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from qwp.showing import svg
from qwp.showing.html import Markup
from qwp.showing.svg import AxisScale, PlotFrame, Ticks, percent, text_width


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
    """A share from 0 to 1 at `x`, with its interval and a tooltip."""

    x: float
    value: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class Ranges:
    """Shares with their intervals, in one or two named series.

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
