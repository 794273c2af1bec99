"""SVG drawings: shapes, scales, ticks and axes of charts, and drawings as files of their own.

Colours are classes of `qwp.showing.html`, which follow the light or dark scheme of a page. A file has no page around
it, so `standalone` writes the light colours into it as plain values.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from qwp.showing.html import CHARTS, LIGHT, Markup, element

LARGEST = 1e150  # differences and products of drawn values must stay finite
SMALLEST = 1e-150
MISSING = "–"
_LABEL_CHARACTERS = 24
_OPENING = re.compile(r"<svg [^>]*>")
_VIEW_BOX = re.compile(r'viewBox="0 0 (?P<width>[0-9.]+) (?P<height>[0-9.]+)"')
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"

Point = tuple[float, float]


def drawable(value: float) -> bool:
    """Return whether a value is finite and small enough to be drawn."""
    return math.isfinite(value) and abs(value) < LARGEST


def coordinate(value: float) -> str:
    """Format a coordinate: two decimals are far below a pixel; adding 0.0 turns -0 into 0."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


# --------------------------------------------------------------------------- shapes


def picture(width: float, height: float, label: str, css: str, parts: Iterable[Markup]) -> Markup:
    """Return a drawing. Screen readers read `label` in its place."""
    box = f"0 0 {coordinate(width)} {coordinate(height)}"
    namespace = "http://www.w3.org/2000/svg"
    return element("svg", *parts, xmlns=namespace, viewBox=box, class_=css, role="img", aria_label=label)


def _shape(name: str, css: str, tip: str, **attributes: object) -> Markup:
    """Return a shape, with its numbers formatted and a tooltip if there is one."""
    numbers = {key: coordinate(value) if isinstance(value, float) else value for key, value in attributes.items()}
    return element(name, element("title", tip) if tip else "", **numbers, class_=css)


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """Return a straight line."""
    return _shape("line", css, "", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def text(x: float, y: float, words: str, css: str, anchor: str, rotation: float = 0.0) -> Markup:
    """Return text at a position, rotated by some degrees. anchor: `start`, `middle` or `end`."""
    rotate = f"rotate({coordinate(rotation)} {coordinate(x)} {coordinate(y)})" if rotation else None
    return element("text", words, x=coordinate(x), y=coordinate(y), class_=css, text_anchor=anchor, transform=rotate)


def circle(x: float, y: float, radius: float, css: str, tip: str = "") -> Markup:
    """Return a circle with a tooltip."""
    return _shape("circle", css, tip, cx=float(x), cy=float(y), r=float(radius))


def rect(
    x: float, y: float, width: float, height: float, css: str, tip: str = "", *, opacity: str | None = None
) -> Markup:
    """Return a rectangle with a tooltip."""
    size = {"width": float(width), "height": float(height)}
    return _shape("rect", css, tip, x=float(x), y=float(y), **size, fill_opacity=opacity)


def polyline(points: Iterable[Point], css: str, *, closed: bool = False, tip: str = "") -> Markup:
    """Return a line through points, or the polygon that they enclose."""
    coordinates = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)
    return _shape("polygon" if closed else "polyline", css, tip, points=coordinates)


def standalone(drawing: str) -> str:
    """Return the drawing of a page as the text of a file, with its size, a white background and its style."""
    box, opening = _VIEW_BOX.search(drawing), _OPENING.match(drawing)
    assert box is not None
    assert opening is not None, "made by `picture`"
    style = re.sub(r"var\(--(\w+)\)", lambda name: LIGHT[name[1]], CHARTS.strip())
    size = f'width="{box["width"]}" height="{box["height"]}"'
    background = f'<rect {size} fill="{LIGHT["card"]}"/>'
    head = opening[0][:-1] + f' {size} font-family="{_FONT}">'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<style>{style}</style>{background}{drawing[opening.end() :]}\n'
    )


# --------------------------------------------------------------------------- words in drawings


def text_width(text: str) -> float:
    """Estimate the width in pixels at 12.5px; East Asian wide characters take a full em, combining marks nothing."""
    wide = {"W": 13.0, "F": 13.0}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 7.0) for c in text)


def shortened(word: str) -> str:
    """Shorten a word to the length of a label."""
    return word if len(word) <= _LABEL_CHARACTERS else word[: _LABEL_CHARACTERS - 1] + "…"


def percent(share: float) -> str:
    """Format a share from 0 to 1 in percent."""
    return f"{100 * share:.1f}" if math.isfinite(share) else MISSING


# --------------------------------------------------------------------------- scales and ticks


@dataclass(frozen=True)
class AxisScale:
    """A map from values to coordinates that takes `low` to `start` and `high` to `stop`."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = 0.5 if high <= low else (value - low) / (high - low)
        return self.start + share * (self.stop - self.start)


Ticks = Sequence[tuple[float, str]]
"""Values or coordinates with their labels."""


def padded(low: float, high: float) -> tuple[float, float]:
    """Widen a range that is empty or nearly so, to have room to draw in."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, SMALLEST):
        return low, high
    room = 0.1 * size if size > SMALLEST else 1.0
    return low - room, high + room


def tick_step(span: float, count: int, whole: bool = False) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that divides `span` into at most `count` parts.

    With `whole` the step is a whole number: an iteration 0.5 does not exist.
    """
    raw = max(span / count, 1.0) if whole else span / count
    power = 10.0 ** math.floor(math.log10(raw))
    # The tolerance keeps rounding noise in span / count from pushing an exact fit to the next larger step.
    steps = (factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0))
    return next(step for step in steps if step >= raw * (1 - 1e-9) and not (whole and step % 1))


def tick_labels(ticks: Sequence[float], step: float) -> list[str]:
    """Return labels with just the digits that distinguish neighbouring ticks."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    exponent = math.floor(math.log10(step))
    # A step of 2.5 needs one digit more than its power of ten.
    digits = -exponent + (0 if math.isclose(step / 10.0**exponent, round(step / 10.0**exponent)) else 1)
    if size >= 1e6 or size < 1e-3:
        significant = math.floor(math.log10(size)) + digits if size > 0 else 0
        return ["0" if tick == 0 else f"{tick:.{max(0, significant)}e}" for tick in ticks]
    return [f"{round(tick, max(0, digits)) + 0.0:.{max(0, digits)}f}" for tick in ticks]


def ticks(low: float, high: float, step: float, *, outward: bool) -> list[float]:
    """Return round values in [low, high]; with `outward` also the round values just outside, which enclose it."""
    first, last = low / step, high / step
    slack = 1e-9 * max(1.0, abs(first), abs(last))
    if outward:
        start, stop = math.floor(first + slack), math.ceil(last - slack)
    else:
        start, stop = math.ceil(first - slack), math.floor(last + slack)
    return [index * step for index in range(start, stop + 1)]


def labelled_ticks(low: float, high: float, count: int, *, outward: bool = False, whole: bool = False) -> Ticks:
    """Return about `count` round values in a range with their labels."""
    step = tick_step(high - low, count, whole)
    values = ticks(low, high, step, outward=outward)
    return list(zip(values, tick_labels(values, step), strict=True))


def percent_ticks(highest: float) -> Ticks:
    """Return shares from 0 to at least `highest`, labelled in percent."""
    return [(value / 100, label) for value, label in labelled_ticks(0.0, max(100 * highest, 1.0), 5, outward=True)]


# --------------------------------------------------------------------------- axes


@dataclass(frozen=True)
class PlotFrame:
    """The plotting area of a chart, in units of its view box."""

    width: float = 480.0
    height: float = 280.0
    left: float = 60.0
    right: float = 16.0
    top: float = 12.0
    bottom: float = 46.0

    def fitting(self, labels: Sequence[str]) -> PlotFrame:
        """Return a frame with room for the labels of the vertical axis: 2.5e-06 needs more than usual."""
        return replace(self, left=max(self.left, 30.0 + max(map(text_width, labels), default=0.0)))

    @property
    def x_ends(self) -> tuple[float, float]:
        """Where the horizontal axis begins and ends."""
        return self.left, self.width - self.right

    @property
    def y_ends(self) -> tuple[float, float]:
        """Where the vertical axis begins and ends: SVG counts downwards."""
        return self.height - self.bottom, self.top

    def picture(self, label: str, parts: Iterable[Markup]) -> Markup:
        """Return a chart of the size of the frame."""
        return picture(self.width, self.height, label, "chart", parts)

    def axes(
        self, x: AxisScale, y: AxisScale, x_ticks: Ticks, y_ticks: Ticks, labels: tuple[str, str]
    ) -> Iterator[Markup]:
        """Draw grid, axis lines, ticks at values of the scales, and the titles of both axes.

        A tick on the horizontal axis has no label if that would print it over the one before.
        """
        (left, right), (bottom, top) = self.x_ends, self.y_ends
        for value, label in y_ticks:
            yield line(left, y(value), right, y(value), "grid")
            yield text(left - 7, y(value) + 4, label, "tick", "end")
        free = -math.inf
        for value, label in x_ticks:
            yield line(x(value), bottom, x(value), bottom + 4, "axis")
            if x(value) >= free:
                yield text(x(value), bottom + 17, label, "tick", "middle")
                free = x(value) + max(26.0, 0.75 * text_width(label))
        yield line(left, bottom, right, bottom, "axis")
        yield line(left, top, left, bottom, "axis")
        yield text((left + right) / 2, self.height - 8, labels[0], "label", "middle")
        yield text(13, (top + bottom) / 2, labels[1], "label", "middle", rotation=-90)
