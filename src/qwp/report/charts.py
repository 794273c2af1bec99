"""Charts: a line, shares with their intervals, bars side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from qwp.errors import InputError
from qwp.report import svg
from qwp.report.svg import percent, text_width


@dataclass(frozen=True)
class Frame:
    """The plotting area of a chart, in units of its view box."""

    width: float = 480.0
    height: float = 280.0
    left: float = 60.0
    right: float = 16.0
    top: float = 12.0
    bottom: float = 46.0

    def fitting(self, labels: Sequence[str]) -> Frame:
        """The same, with room for the labels of the upright axis: those like 2.5e-06 need more than usual."""
        return replace(self, left=max(self.left, 30.0 + max(map(text_width, labels), default=0.0)))

    @property
    def x_ends(self) -> tuple[float, float]:
        """Where the level axis begins and ends."""
        return self.left, self.width - self.right

    @property
    def y_ends(self) -> tuple[float, float]:
        """Where the upright axis begins and ends: SVG counts downwards."""
        return self.height - self.bottom, self.top


Ticks = Sequence[tuple[float, str]]
"""Places or values, with their labels."""


def padded(low: float, high: float) -> tuple[float, float]:
    """A range with room to draw in: a constant (or nearly constant) one is pad on both sides."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, svg.SMALLEST):
        return low, high
    room = 0.1 * size if size > svg.SMALLEST else 1.0
    return low - room, high + room


def tick_step(span: float, count: int, whole: bool = False) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that cuts `span` into at most `count` parts.

    With `whole` the step is a whole number: there is no step 0.5 of a loop.
    """
    raw = max(span / count, 1.0) if whole else span / count
    power = 10.0 ** math.floor(math.log10(raw))
    # The tolerance keeps rounding noise in span / count from pushing an exact fit to the next larger step.
    steps = (factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0))
    return next(step for step in steps if step >= raw * (1 - 1e-9) and not (whole and step % 1))


def tick_labels(ticks: Sequence[float], step: float) -> list[str]:
    """Labels with just the digits that tell neighbouring ticks apart."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    exponent = math.floor(math.log10(step))
    # A step of 2.5 needs one digit more than its power of ten.
    digits = -exponent + (0 if math.isclose(step / 10.0**exponent, round(step / 10.0**exponent)) else 1)
    if size >= 1e6 or size < 1e-3:
        significant = math.floor(math.log10(size)) + digits if size > 0 else 0
        return ["0" if tick == 0 else f"{tick:.{max(0, significant)}e}" for tick in ticks]
    return [f"{round(tick, max(0, digits)) + 0.0:.{max(0, digits)}f}" for tick in ticks]


def ticks(low: float, high: float, step: float, *, outward: bool) -> list[float]:
    """Round values in [low, high]; with `outward` the round values just outside as well, enclosing it."""
    first, last = low / step, high / step
    slack = 1e-9 * max(1.0, abs(first), abs(last))
    if outward:
        start, stop = math.floor(first + slack), math.ceil(last - slack)
    else:
        start, stop = math.ceil(first - slack), math.floor(last + slack)
    return [index * step for index in range(start, stop + 1)]


def percent_ticks(highest: float) -> Ticks:
    """Shares from 0 to at least `highest`, labelled in percent."""
    step = tick_step(max(100 * highest, 1.0), 5)
    values = ticks(0.0, max(100 * highest, 1.0), step, outward=True)
    return [(value / 100, label) for value, label in zip(values, tick_labels(values, step), strict=True)]


def linear(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    """The straight map that takes low to start and high to stop."""
    return lambda value: start + (value - low) / (high - low) * (stop - start)


def drawn(frame: Frame, x_ticks: Ticks, y_ticks: Ticks, x_label: str, y_label: str) -> Iterator[str]:
    """Grid, tick labels, axis lines and axis titles; the ticks come with their places."""
    (left, right), (bottom, top) = frame.x_ends, frame.y_ends
    for y, label in y_ticks:
        yield svg.line(left, y, right, y, "grid")
        yield svg.text(left - 7, y + 4, label, "tick", "end")
    for x, label in x_ticks:
        yield svg.line(x, bottom, x, bottom + 4, "axis")
        yield svg.text(x, bottom + 17, label, "tick", "middle")
    yield svg.line(left, bottom, right, bottom, "axis")
    yield svg.line(left, top, left, bottom, "axis")
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    yield svg.text(middle_x, frame.height - 8, x_label, "label", "middle")
    turn = f' transform="rotate(-90 13 {svg.coordinate(middle_y)})"'
    yield svg.text(13, middle_y, y_label, "label", "middle", turn)


_LINE = Frame()
_WITH_KEY = Frame(top=34.0)
_MAX_HOVER = 200  # hover targets of a chart: more would overlap and only make the file larger
_MAX_DOTS = 40  # up to this many points each is drawn as a dot
# The first of two series has circles or bars of one colour, the second squares or bars of the other.
_SERIES = ("src", "tgt")


def thinned(count: int, limit: int) -> list[int]:
    """At most `limit` evenly spread indices of 0..count-1, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [round(index * (count - 1) / (limit - 1)) for index in range(limit)]


# --------------------------------------------------------------------------- a line


@dataclass(frozen=True)
class Curve:
    """One line chart: `x` and `y` have the same length; points that are not finite are left out."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]

    @property
    def note(self) -> str:
        """The last value, and how many are left out."""
        points = self._points()
        skipped = len(self.x) - len(points)
        said = [f"last value {points[-1][1]:.4g}"] if points else []
        if skipped:
            what = "1 value that is" if skipped == 1 else f"{skipped:,} values that are"
            said.append(f"{what} not finite left out")
        return "; ".join(said)

    def svg(self) -> str | None:
        """The line, with the values at its points."""
        points = self._points()
        return self._drawn(points) if points else None

    def _points(self) -> list[tuple[float, float]]:
        if len(self.x) != len(self.y):
            raise InputError(
                f"curve {self.title!r} has {len(self.x)} x values and {len(self.y)} y values, expected as "
                "many of both: give one y for every x"
            )
        pairs = ((float(x), float(y)) for x, y in zip(self.x, self.y, strict=True))
        return [(x, y) for x, y in pairs if svg.drawable(x) and svg.drawable(y)]

    def _drawn(self, points: Sequence[tuple[float, float]]) -> str:
        xs, ys = [x for x, _ in points], [y for _, y in points]
        x_low, x_high = padded(min(xs), max(xs))
        y_low, y_high = padded(min(ys), max(ys))
        x_step = tick_step(x_high - x_low, 6, whole=len(set(xs)) > 1 and all(x.is_integer() for x in xs))
        y_step = tick_step(y_high - y_low, 5)
        # The y axis ends on round values; the x axis on the data, so that the line uses the whole width.
        x_values = ticks(x_low, x_high, x_step, outward=False)
        y_values = ticks(y_low, y_high, y_step, outward=True)
        x_labels, y_labels = tick_labels(x_values, x_step), tick_labels(y_values, y_step)
        frame = _LINE.fitting(y_labels)
        to_x = linear(x_low, x_high, *frame.x_ends)
        to_y = linear(y_values[0], y_values[-1], *frame.y_ends)
        places = [(to_x(x), to_y(y)) for x, y in points]
        x_ticks = [(to_x(value), label) for value, label in zip(x_values, x_labels, strict=True)]
        y_ticks = [(to_y(value), label) for value, label in zip(y_values, y_labels, strict=True)]
        parts = [
            svg.opened(frame.width, frame.height, f"{self.title}: {self.y_label} by {self.x_label}", "chart"),
            *drawn(frame, x_ticks, y_ticks, self.x_label, self.y_label),
            f'<polyline points="{" ".join(",".join(map(svg.coordinate, place)) for place in places)}" class="line"/>',
            *self._marks(points, places),
            "</svg>",
        ]
        return "".join(parts)

    def _marks(self, points: Sequence[tuple[float, float]], places: Sequence[tuple[float, float]]) -> Iterator[str]:
        """The points as dots (few) or as invisible hover targets (many), each with its values as a tooltip."""
        css, radius = ("dot", 3) if len(points) <= _MAX_DOTS else ("hover", 6)
        for index in thinned(len(points), _MAX_HOVER):
            x, y = points[index]
            yield svg.circle(*places[index], radius, css, f"{self.x_label} {x:.6g}, {self.y_label} {y:.6g}")


# --------------------------------------------------------------------------- shares with intervals


@dataclass(frozen=True)
class Dot:
    """A share from 0 to 1 and the interval it may lie in. tip: what it says when the pointer is on it."""

    x: float
    value: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class Ranges:
    """Shares with their intervals, in one or two series by name.

    x_range: the ends of the level axis; x_ticks: values on it. ideal: draw the line where the share is x itself.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    x_ticks: Ticks
    series: Sequence[tuple[str, Sequence[Dot]]]
    note: str = ""
    ideal: str = ""

    def svg(self) -> str | None:
        """A dot for each, with a line for its interval."""
        dots = [dot for _, found in self.series for dot in found]
        if not dots:
            return None
        y_ticks = percent_ticks(1.0 if self.ideal else max(dot.high for dot in dots))
        frame = _WITH_KEY
        to_x = linear(*self.x_range, *frame.x_ends)
        to_y = linear(y_ticks[0][0], y_ticks[-1][0], *frame.y_ends)
        parts = [
            svg.opened(frame.width, frame.height, f"{self.title}: {self.y_label} by {self.x_label}", "chart"),
            *drawn(
                frame,
                [(to_x(value), label) for value, label in self.x_ticks],
                [(to_y(value), label) for value, label in y_ticks],
                self.x_label,
                self.y_label,
            ),
        ]
        if self.ideal:
            parts.append(svg.line(to_x(0.0), to_y(0.0), to_x(1.0), to_y(1.0), "ideal"))
        parts += _key(frame, [name for name, _ in self.series], self.ideal)
        for css, (_, found) in zip(_SERIES, self.series, strict=False):
            for dot in found:
                x = to_x(dot.x)
                parts.append(svg.line(x, to_y(dot.low), x, to_y(dot.high), f"whisker {css}"))
                parts.append(_marker(css, x, to_y(dot.value), dot.tip))
        return "".join([*parts, "</svg>"])


# --------------------------------------------------------------------------- bars


@dataclass(frozen=True)
class Bars:
    """Shares from 0 to 1 in groups, a bar for each of one or two series by name, each as long as `groups`."""

    title: str
    x_label: str
    y_label: str
    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]
    note: str = ""

    def svg(self) -> str | None:
        """Groups of bars."""
        values = [value for _, found in self.series for value in found]
        if not values:
            return None
        y_ticks = percent_ticks(max(values))
        frame = _WITH_KEY
        to_x = linear(0.0, float(len(self.groups)), *frame.x_ends)
        to_y = linear(y_ticks[0][0], y_ticks[-1][0], *frame.y_ends)
        width = 0.76 * (to_x(1.0) - to_x(0.0)) / len(self.series)
        parts = [
            svg.opened(frame.width, frame.height, f"{self.title}: {self.y_label} by {self.x_label}", "chart"),
            *drawn(
                frame,
                [(to_x(index + 0.5), label) for index, label in enumerate(self.groups)],
                [(to_y(value), label) for value, label in y_ticks],
                self.x_label,
                self.y_label,
            ),
            *_key(frame, [name for name, _ in self.series]),
        ]
        for number, (css, (name, found)) in enumerate(zip(_SERIES, self.series, strict=False)):
            for index, value in enumerate(found):
                x = to_x(index + 0.12) + number * width
                tip = f"{name}: {percent(value)} % with {self.groups[index]}"
                parts.append(svg.box(x, to_y(value), width - 1.5, to_y(0.0) - to_y(value), css, tip))
        return "".join([*parts, "</svg>"])


# --------------------------------------------------------------------------- what both have


def _marker(css: str, x: float, y: float, tip: str) -> str:
    """A circle for the first series, a square for the second: the two differ without colour as well."""
    if css == _SERIES[0]:
        return svg.circle(x, y, 4, css, tip)
    return svg.box(x - 3.75, y - 3.75, 7.5, 7.5, css, tip)


def _key(frame: Frame, names: Sequence[str], ideal: str = "") -> Iterator[str]:
    """What the series are called, in a line above the plotting area."""
    x, y = frame.left + 4, 14.0
    for css, name in zip(_SERIES, names, strict=False):
        yield _marker(css, x, y - 4, name)
        yield svg.text(x + 10, y, name, "key", "start")
        x += 30 + text_width(name)
    if ideal:
        yield svg.line(x - 4, y - 4, x + 16, y - 4, "ideal")
        yield svg.text(x + 22, y, ideal, "key", "start")
