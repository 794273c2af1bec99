"""Charts of the page as inline SVG, made here: lines with bands, numbered dots, a transport plan.

Each says what it shows to those who do not see it, and has a tip for each point. Colours are classes: the page has
them, light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwp.showing.terminal import in_markup as escape

COLOURS, SHAPES = 7, 4


@dataclass(frozen=True)
class Dot:
    """A point of a line. low, high: of the band around it."""

    x: float
    y: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class Line:
    """number: which colour and shape; dashed: without shapes and band, for what was published."""

    name: str
    number: int
    dots: Sequence[Dot]
    dashed: bool = False


# --------------------------------------------------------------------------- scales


@dataclass(frozen=True)
class _Scale:
    """From values to positions, by their logarithm if that is said."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(v) if self.logarithmic else v for v in (self.low, self.high, value))
        share = 0.5 if high <= low else (value - low) / (high - low)
        return self.begin + share * (self.end - self.begin)


def _room(values: Sequence[float], share: float = 0.06, least: float = 1.0) -> tuple[float, float]:
    """A range with room around the values, within 0 to 100."""
    low, high = min(values), max(values)
    room = max(share * (high - low), (least - (high - low)) / 2)
    return max(0.0, low - room), min(100.0, high + room)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within a range."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(step * i, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten within a range, or powers alone where there are many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    units = (1, 2, 3, 5, 7) if high < 12 * low else (1, 2, 5) if len(decades) <= 3 else (1,)
    found = [unit * 10.0**decade for decade in decades for unit in units if low <= unit * 10.0**decade <= high]
    return found or [low]


# --------------------------------------------------------------------------- parts


def _open(width: float, height: float, label: str, css: str = "chart") -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" class="{css}" role="img" '
        f'aria-label="{escape(label)}">'
    )


def _text(x: float, y: float, text: str, css: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'


def shape(x: float, y: float, number: int, size: float = 4.0, tip: str = "") -> str:
    """The mark of a system: one of four shapes in one of seven colours."""
    title = f"<title>{escape(tip)}</title>" if tip else ""
    css = f'class="dot c{number % COLOURS}"'
    corners = {
        1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2: [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    }.get(number % SHAPES)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" {css}>{title}</circle>'
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {css}>{title}</polygon>'


def swatch(number: int, *, dashed: bool = False) -> str:
    """The mark of a system in a legend."""
    line = f'<line x1="1" y1="7" x2="25" y2="7" class="line c{number % COLOURS}{" dashed" if dashed else ""}"/>'
    mark = "" if dashed else shape(13, 7, number)
    return f'<svg viewBox="0 0 26 14" class="swatch" aria-hidden="true">{line}{mark}</svg>'


@dataclass(frozen=True)
class _Frame:
    x: _Scale
    y: _Scale
    width: float
    height: float

    def axes(self, x_ticks: Sequence[float], x_label: str, y_label: str) -> Iterator[str]:
        left, right, bottom = self.x.begin - 8, self.width - 8, self.y.begin
        marks = ticks(self.y.low, self.y.high)
        digits = 1 if any(value != round(value) for value in marks) else 0
        for value in marks:
            y = self.y(value)
            yield f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" class="grid"/>'
            yield _text(left - 5, y + 4, f"{value:.{digits}f}", "tick", "end")
        yield f'<line x1="{left:.1f}" y1="{bottom:.1f}" x2="{right:.1f}" y2="{bottom:.1f}" class="axis"/>'
        before = -100.0
        for value in x_ticks:
            x = self.x(value)
            yield f'<line x1="{x:.1f}" y1="{bottom:.1f}" x2="{x:.1f}" y2="{bottom + 4:.1f}" class="axis"/>'
            if x - before > 26:
                yield _text(x, bottom + 17, f"{value:g}", "tick")
                before = x
        yield _text((left + right) / 2, self.height - 4, x_label, "label")
        yield _text(left, 12, y_label, "label", "start")


# --------------------------------------------------------------------------- charts


def line_chart(lines: Sequence[Line], label: str, x_label: str, y_label: str) -> str:
    """Lines over sizes, which are laid out by their logarithm, with the band of the seeds."""
    width, height = 330.0, 230.0
    dots = [dot for line in lines for dot in line.dots]
    if not dots:
        return ""
    sizes = sorted({dot.x for dot in dots})
    low, high = _room([value for dot in dots for value in (dot.low, dot.high)])
    scale = _Scale(sizes[0], sizes[-1], 50, width - 18, logarithmic=sizes[0] > 0)
    frame = _Frame(scale, _Scale(low, high, height - 38, 24), width, height)
    parts = [_open(width, height, label), *frame.axes(sizes, x_label, y_label)]
    parts += [part for line in lines for part in _band(line, frame)]
    parts += [part for line in lines for part in _path(line, frame)]
    return "".join([*parts, "</svg>"])


def _band(line: Line, frame: _Frame) -> Iterator[str]:
    if line.dashed or len(line.dots) < 2 or all(dot.low == dot.high for dot in line.dots):
        return
    there = [(dot.x, dot.high) for dot in line.dots]
    back = [(dot.x, dot.low) for dot in reversed(line.dots)]
    points = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in (*there, *back))
    yield f'<polygon points="{points}" class="band c{line.number % COLOURS}"/>'


def _path(line: Line, frame: _Frame) -> Iterator[str]:
    css = f"line c{line.number % COLOURS}" + (" dashed" if line.dashed else "")
    points = " ".join(f"{frame.x(dot.x):.1f},{frame.y(dot.y):.1f}" for dot in line.dots)
    if len(line.dots) > 1:
        yield f'<polyline points="{points}" class="{css}"/>'
    for dot in line.dots:
        if line.dashed:
            x, y = frame.x(dot.x), frame.y(dot.y)
            tip = f"<title>{escape(dot.tip)}</title>"
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" class="hollow c{line.number % COLOURS}">{tip}</circle>'
        else:
            yield shape(frame.x(dot.x), frame.y(dot.y), line.number, tip=dot.tip)


def numbered_dots(dots: Sequence[tuple[int, int, float, float, str]], label: str, x_label: str, y_label: str) -> str:
    """Dots with numbers in them, over seconds by their logarithm. dots: (number, colour, x, y, tip)."""
    width, height = 420.0, 320.0
    xs, ys = [max(x, 1e-3) for _, _, x, _, _ in dots], [y for *_, y, _ in dots]
    low, high = _room(ys, 0.1)
    frame = _Frame(
        _Scale(min(xs) / 1.25, max(xs) * 1.25, 56, width - 16, logarithmic=True),
        _Scale(low, high, height - 40, 28),
        width,
        height,
    )
    parts = [_open(width, height, label), *frame.axes(_powers(frame.x.low, frame.x.high), x_label, y_label)]
    spots = _apart([(frame.x(x), frame.y(y)) for x, y in zip(xs, ys, strict=True)])
    for (number, colour, *_, tip), x, y, (at_x, at_y) in zip(dots, xs, ys, spots, strict=True):
        there_x, there_y = frame.x(x), frame.y(y)
        if (at_x, at_y) != (there_x, there_y):
            parts.append(
                f'<line x1="{there_x:.1f}" y1="{there_y:.1f}" x2="{at_x:.1f}" y2="{at_y:.1f}" class="leader"/>'
            )
            parts.append(f'<circle cx="{there_x:.1f}" cy="{there_y:.1f}" r="2" class="dot c{colour % COLOURS}"/>')
        parts.append(
            f'<g><title>{escape(tip)}</title><circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="8.5" '
            f'class="dot c{colour % COLOURS}"/>{_text(at_x, at_y + 3.7, str(number), "number")}</g>'
        )
    return "".join([*parts, "</svg>"])


def _apart(spots: Sequence[tuple[float, float]], distance: float = 18.0) -> list[tuple[float, float]]:
    """Positions near these, none closer than that to another: each goes to the nearest free place around its own."""
    placed: list[tuple[float, float]] = []
    for x, y in spots:
        around = (
            (x + step * math.cos(turn * math.pi / 8), y - step * math.sin(turn * math.pi / 8))
            for step in range(0, 200, 4)
            for turn in range(16)
        )
        free = (spot for spot in around if all(math.dist(spot, other) >= distance for other in placed))
        placed.append(next(free, (x, y)))
    return placed


def plan_chart(plan: npt.NDArray[np.int64], rows: Sequence[str], columns: Sequence[str], label: str) -> str:
    """A transport plan (n, m) in parts of 255 of its largest entry, with the names of rows and columns."""
    cell, left, top = 14.0, 92.0, 78.0
    width, height = left + cell * plan.shape[1] + 40, top + cell * plan.shape[0] + 6
    parts = [_open(width, height, label, "plan")]
    area = f'width="{cell * plan.shape[1]:g}" height="{cell * plan.shape[0]:g}"'
    parts.append(f'<rect x="{left:g}" y="{top:g}" {area} class="empty"/>')
    for i, word in enumerate(rows):
        parts.append(_text(left - 5, top + cell * i + 10.5, word[:14], "word", "end"))
    for j, word in enumerate(columns):
        x, y = left + cell * j + 10, top - 6
        parts.append(_text(x, y, word[:13], "word", "start", f' transform="rotate(-60 {x:.1f} {y:.1f})"'))
    for i, j in np.argwhere(plan > 2).tolist():
        tip = f"{rows[i]} → {columns[j]}: {plan[i, j] / 2.55:.0f} % of the largest entry"
        parts.append(
            f'<rect x="{left + cell * j:g}" y="{top + cell * i:g}" width="{cell:g}" height="{cell:g}" class="mass" '
            f'fill-opacity="{max(0.08, plan[i, j] / 255):.2f}"><title>{escape(tip)}</title></rect>'
        )
    return "".join([*parts, "</svg>"])
