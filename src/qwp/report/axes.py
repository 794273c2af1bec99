"""The axes of a chart: from values to places, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from qwp.report import svg
from qwp.report.text import text_width


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
