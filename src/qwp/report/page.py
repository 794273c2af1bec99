"""A self-contained HTML report of one alignment: no network, no JavaScript, charts as inline SVG made here.

The page is also well-formed XML, so each `<svg>` can be cut out and saved as a file of its own, and the tests
can read the whole page with a strict parser.
"""

from __future__ import annotations

import html as _html
import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError
from qwp.spaces.io.files import replacing

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One line chart: `x` and `y` have the same length; points that are not finite are left out."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class WordPoint:
    """One word on the map at (x, y); the words of one translation pair share the number `pair`."""

    word: str
    side: Literal["src", "tgt"]
    x: float
    y: float
    pair: int


# ------------------------------------------------------------------------------------------- text and numbers

# What XML 1.0 forbids, and lone surrogates, which UTF-8 cannot hold: both occur in damaged vector files.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LARGEST = 1e150  # differences and products of drawn values must stay finite
_SMALLEST = 1e-150
_MISSING = "–"


def _escape(value: object) -> str:
    """`value` as text that is safe in an element and in a quoted attribute."""
    return _html.escape(_ILLEGAL.sub("\ufffd", str(value)), quote=True)


def _drawable(value: float) -> bool:
    return math.isfinite(value) and abs(value) < _LARGEST


def _number(value: object, decimals: int | None = None) -> str:
    """A cell of a table: whole numbers with separators, others with `decimals` (None: as many as needed)."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _fraction(float(value), decimals)
    return _MISSING if value is None else str(value)


def _fraction(number: float, decimals: int | None) -> str:
    if not math.isfinite(number):
        return _MISSING
    if decimals is not None and 1e-4 <= abs(number) < 1e12:
        return f"{number:,.{decimals}f}"
    return f"{number:,.1f}" if 1000 <= abs(number) < 1e12 else f"{number:.4g}"


def _decimals(values: Iterable[object]) -> int | None:
    """How many decimals the fractions in a column need to line up; None where it holds no fractions."""
    cells = [_number(v) for v in values if isinstance(v, Real) and not isinstance(v, Integral)]
    return max((len(cell.partition(".")[2]) for cell in cells if "e" not in cell), default=None)


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def _coordinate(value: float) -> str:
    """A position in an SVG: two decimals are far below a pixel; adding 0.0 turns -0 into 0."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


# ------------------------------------------------------------------------------------------------ line charts


@dataclass(frozen=True)
class _Frame:
    """The plotting area of a chart, in units of its view box."""

    width: float = 480.0
    height: float = 280.0
    left: float = 60.0
    right: float = 16.0
    top: float = 12.0
    bottom: float = 46.0


_CHART = _Frame()
_MAX_HOVER = 200  # hover targets of a chart: more would overlap and only make the file larger
_MAX_DOTS = 40  # up to this many points each is drawn as a dot


def _padded(low: float, high: float) -> tuple[float, float]:
    """A range with room to draw in: a constant (or nearly constant) one is widened on both sides."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, _SMALLEST):
        return low, high
    room = 0.1 * size if size > _SMALLEST else 1.0
    return low - room, high + room


def _tick_step(span: float, count: int, whole: bool = False) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that cuts `span` into at most `count` parts.

    With `whole` the step is a whole number: there is no step 0.5 of a loop.
    """
    raw = max(span / count, 1.0) if whole else span / count
    power = 10.0 ** math.floor(math.log10(raw))
    # The tolerance keeps rounding noise in span / count from pushing an exact fit to the next larger step.
    steps = (factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0))
    return next(step for step in steps if step >= raw * (1 - 1e-9) and not (whole and step % 1))


def _tick_labels(ticks: Sequence[float], step: float) -> list[str]:
    """Labels with just the digits that tell neighbouring ticks apart."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    exponent = math.floor(math.log10(step))
    # A step of 2.5 needs one digit more than its power of ten.
    digits = -exponent + (0 if math.isclose(step / 10.0**exponent, round(step / 10.0**exponent)) else 1)
    if size >= 1e6 or size < 1e-3:
        significant = math.floor(math.log10(size)) + digits if size > 0 else 0
        return ["0" if tick == 0 else f"{tick:.{max(0, significant)}e}" for tick in ticks]
    return [f"{round(tick, max(0, digits)) + 0.0:.{max(0, digits)}f}" for tick in ticks]


def _ticks(low: float, high: float, step: float, *, outward: bool) -> list[float]:
    """Round values in [low, high]; with `outward` the round values just outside as well, enclosing it."""
    first, last = low / step, high / step
    slack = 1e-9 * max(1.0, abs(first), abs(last))
    if outward:
        start, stop = math.floor(first + slack), math.ceil(last - slack)
    else:
        start, stop = math.ceil(first - slack), math.floor(last + slack)
    return [index * step for index in range(start, stop + 1)]


def _linear(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    """The straight map that takes low to start and high to stop."""
    return lambda value: start + (value - low) / (high - low) * (stop - start)


def _curve_points(curve: Curve) -> list[tuple[float, float]]:
    if len(curve.x) != len(curve.y):
        raise InputError(
            f"curve {curve.title!r} has {len(curve.x)} x values and {len(curve.y)} y values, expected as "
            "many of both: give one y for every x"
        )
    pairs = ((float(x), float(y)) for x, y in zip(curve.x, curve.y, strict=True))
    return [(x, y) for x, y in pairs if _drawable(x) and _drawable(y)]


def _thinned(count: int, limit: int) -> list[int]:
    """At most `limit` evenly spread indices of 0..count-1, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [round(index * (count - 1) / (limit - 1)) for index in range(limit)]


def _svg_open(width: float, height: float, label: str, css: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_coordinate(width)} {_coordinate(height)}" '
        f'class="{css}" role="img" aria-label="{_escape(label)}">'
    )


def _svg_line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    ends = f'x1="{_coordinate(x1)}" y1="{_coordinate(y1)}" x2="{_coordinate(x2)}" y2="{_coordinate(y2)}"'
    return f'<line {ends} class="{css}"/>'


def _svg_text(x: float, y: float, text: str, css: str, anchor: str, extra: str = "") -> str:
    return (
        f'<text x="{_coordinate(x)}" y="{_coordinate(y)}" class="{css}" text-anchor="{anchor}"{extra}>'
        f"{_escape(text)}</text>"
    )


def _chart_axes(
    frame: _Frame,
    curve: Curve,
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
) -> Iterator[str]:
    """Grid, tick labels, axis lines and axis titles; the ticks come with their positions."""
    right, bottom = frame.width - frame.right, frame.height - frame.bottom
    for y, label in y_ticks:
        yield _svg_line(frame.left, y, right, y, "grid")
        yield _svg_text(frame.left - 7, y + 4, label, "tick", "end")
    for x, label in x_ticks:
        yield _svg_line(x, bottom, x, bottom + 4, "axis")
        yield _svg_text(x, bottom + 17, label, "tick", "middle")
    yield _svg_line(frame.left, bottom, right, bottom, "axis")
    yield _svg_line(frame.left, frame.top, frame.left, bottom, "axis")
    middle_x, middle_y = (frame.left + right) / 2, (frame.top + bottom) / 2
    yield _svg_text(middle_x, frame.height - 8, curve.x_label, "label", "middle")
    turn = f' transform="rotate(-90 13 {_coordinate(middle_y)})"'
    yield _svg_text(13, middle_y, curve.y_label, "label", "middle", turn)


def _chart_marks(curve: Curve, points: Sequence[tuple[float, float]], places: Sequence[str]) -> Iterator[str]:
    """The points as dots (few) or as invisible hover targets (many), each with its values as a tooltip."""
    css = "dot" if len(points) <= _MAX_DOTS else "hover"
    radius = 3 if css == "dot" else 6
    for index in _thinned(len(points), _MAX_HOVER):
        x, y = points[index]
        cx, cy = places[index].split(",")
        tip = f"{curve.x_label} {x:.6g}, {curve.y_label} {y:.6g}"
        yield f'<circle cx="{cx}" cy="{cy}" r="{radius}" class="{css}"><title>{_escape(tip)}</title></circle>'


def _chart(curve: Curve, points: Sequence[tuple[float, float]]) -> str:
    """The SVG of one curve through `points`, of which there is at least one."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_low, x_high = _padded(min(xs), max(xs))
    y_low, y_high = _padded(min(ys), max(ys))
    x_step = _tick_step(x_high - x_low, 6, whole=len(set(xs)) > 1 and all(x.is_integer() for x in xs))
    y_step = _tick_step(y_high - y_low, 5)
    # The y axis ends on round values; the x axis on the data, so that the line uses the whole width.
    x_values = _ticks(x_low, x_high, x_step, outward=False)
    y_values = _ticks(y_low, y_high, y_step, outward=True)
    x_labels, y_labels = _tick_labels(x_values, x_step), _tick_labels(y_values, y_step)
    # Labels like 2.5e-06 need more room than usual beside the title of the axis.
    frame = replace(_CHART, left=max(_CHART.left, 30.0 + max(map(_text_width, y_labels))))
    to_x = _linear(x_low, x_high, frame.left, frame.width - frame.right)
    to_y = _linear(y_values[0], y_values[-1], frame.height - frame.bottom, frame.top)
    places = [f"{_coordinate(to_x(x))},{_coordinate(to_y(y))}" for x, y in points]
    parts = [
        _svg_open(frame.width, frame.height, f"{curve.title}: {curve.y_label} by {curve.x_label}", "chart"),
        *_chart_axes(
            frame,
            curve,
            [(to_x(value), label) for value, label in zip(x_values, x_labels, strict=True)],
            [(to_y(value), label) for value, label in zip(y_values, y_labels, strict=True)],
        ),
        f'<polyline points="{" ".join(places)}" class="line"/>',
        *_chart_marks(curve, points, places),
        "</svg>",
    ]
    return "".join(parts)


def _curve_figure(curve: Curve) -> str:
    points = _curve_points(curve)
    skipped = len(curve.x) - len(points)
    note = f"last value {points[-1][1]:.4g}" if points else ""
    if skipped:
        what = "1 value that is" if skipped == 1 else f"{skipped:,} values that are"
        note += f"{'; ' if note else ''}{what} not finite left out"
    body = _chart(curve, points) if points else '<p class="none">No finite values to draw.</p>'
    caption = f'<strong>{_escape(curve.title)}</strong> <span class="note">{_escape(note)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{body}</figure>"


# --------------------------------------------------------------------------------------------------- word map

_MAP_WIDTH = 900.0
_MAP_HEIGHTS = (360.0, 720.0)
_MAP_MARGIN = (90.0, 36.0)  # room for the labels of the outermost points
_LABEL_HEIGHT = 15.0
_LABEL_CHARACTERS = 24
_RINGS = (7.0, 18.0, 32.0, 48.0)
_DIRECTIONS = np.array([(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)], dtype=np.float64)


@dataclass(frozen=True)
class _Label:
    """A placed label: where its text is anchored (y is the middle) and whether it needs a leader line."""

    x: float
    y: float
    anchor: Literal["start", "middle", "end"]
    far: bool


def _text_width(text: str) -> float:
    """An estimate in pixels at 12.5px; East Asian wide characters take a full em, combining marks nothing."""
    wide = {"W": 13.0, "F": 13.0}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 7.0) for c in text)


def _shortened(word: str) -> str:
    return word if len(word) <= _LABEL_CHARACTERS else word[: _LABEL_CHARACTERS - 1] + "…"


def _map_positions(points: Sequence[WordPoint]) -> tuple[Array, float]:
    """Positions (p, 2) in the picture and its height. One scale for both axes: distances stay comparable."""
    data = np.array([(point.x, -point.y) for point in points], dtype=np.float64)  # SVG counts y downwards
    low, high = data.min(axis=0), data.max(axis=0)
    span = high - low
    room = np.array([_MAP_WIDTH - 2 * _MAP_MARGIN[0], _MAP_HEIGHTS[1] - 2 * _MAP_MARGIN[1]])
    scales = [float(r / s) for r, s in zip(room, span, strict=True) if s > _SMALLEST]
    scale = min(scales, default=1.0)
    height = float(np.clip(span[1] * scale + 2 * _MAP_MARGIN[1], *_MAP_HEIGHTS))
    centre = np.array([_MAP_WIDTH / 2, height / 2])
    return (data - (low / 2 + high / 2)) * scale + centre, height


def _overlap(boxes: Array, obstacles: Array) -> Array:
    """Overlap area of each of boxes (c, 4) with all obstacles (o, 4), columns x0, y0, x1, y1 -> (c,)."""
    size = np.minimum(boxes[:, None, 2:], obstacles[None, :, 2:]) - np.maximum(
        boxes[:, None, :2], obstacles[None, :, :2]
    )
    area: Array = np.prod(np.clip(size, 0.0, None), axis=2).sum(axis=1)
    return area


def _candidate_boxes(position: Array, width: float) -> Array:
    """Boxes (rings * 8, 4) for a label of `width` around the point at `position` (2,), nearest ring first."""
    half = np.array([width / 2, _LABEL_HEIGHT / 2])
    rings = np.repeat(np.array(_RINGS), len(_DIRECTIONS))[:, None]
    directions = np.tile(_DIRECTIONS, (len(_RINGS), 1))
    # A diagonal neighbour may sit closer on each axis and still be clear of the point.
    reach = np.where(np.abs(directions).sum(axis=1, keepdims=True) == 2, 0.6, 1.0) * rings
    centres = position + directions * (reach + half)
    return np.concatenate([centres - half, centres + half], axis=1)


def _place_labels(positions: Array, widths: Sequence[float], partners: Array, height: float) -> list[_Label]:
    """Greedy placement: each label in turn takes the place that covers the fewest labels and points.

    positions (p, 2) are the points, partners (p, 2) the other word of each pair (the point itself where there
    is none): a label prefers the side away from its partner, off the line between the two.
    """
    labels: list[_Label] = []
    # Labels already placed weigh more than points: two words printed over each other cannot be read at all.
    markers = np.concatenate([positions - 4.5, positions + 4.5], axis=1)
    placed = np.empty((0, 4))
    ring_cost = np.repeat(np.arange(len(_RINGS)) * 0.15, len(_DIRECTIONS))
    order_cost = np.tile(np.arange(len(_DIRECTIONS)) * 0.01, len(_RINGS))
    unit = _DIRECTIONS / np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)
    for position, width, partner in zip(positions, widths, partners, strict=True):
        boxes = _candidate_boxes(position, width)
        area = width * _LABEL_HEIGHT
        outside = np.clip(-boxes[:, :2], 0, None).sum(axis=1)
        outside += np.clip(boxes[:, 2:] - (_MAP_WIDTH, height), 0, None).sum(axis=1)
        away = partner - position
        towards = unit @ (away / max(float(np.linalg.norm(away)), 1.0))
        cost = 4 * _overlap(boxes, placed) / area + 2 * _overlap(boxes, markers) / area + outside
        best = int(np.argmin(cost + ring_cost + order_cost + 0.1 * np.tile(towards, len(_RINGS))))
        placed = np.concatenate([placed, boxes[best : best + 1]])
        labels.append(_label_of(boxes[best], best))
    return labels


def _label_of(box: Array, candidate: int) -> _Label:
    side = _DIRECTIONS[candidate % len(_DIRECTIONS)][0]
    x0, y0, x1, y1 = (float(value) for value in box)
    middle, far = (y0 + y1) / 2, candidate >= len(_DIRECTIONS)
    # Anchored on the side of the point, so that an error in the estimated width falls away from it.
    if side > 0:
        return _Label(x0, middle, "start", far)
    if side < 0:
        return _Label(x1, middle, "end", far)
    return _Label((x0 + x1) / 2, middle, "middle", far)


def _pairs(points: Sequence[WordPoint]) -> list[tuple[int, int]]:
    """Indices (source, target) of the words that share a pair number."""
    targets: dict[int, list[int]] = {}
    for index, point in enumerate(points):
        if point.side == "tgt":
            targets.setdefault(point.pair, []).append(index)
    return [
        (index, other)
        for index, point in enumerate(points)
        if point.side == "src"
        for other in targets.get(point.pair, [])
    ]


def _map_marker(point: WordPoint, x: float, y: float, tip: str) -> str:
    """A circle for the source, a square for the target: the two differ without colour as well."""
    title = f"<title>{_escape(tip)}</title>"
    if point.side == "src":
        return f'<circle cx="{_coordinate(x)}" cy="{_coordinate(y)}" r="3.5" class="src">{title}</circle>'
    corner = f'x="{_coordinate(x - 3.25)}" y="{_coordinate(y - 3.25)}"'
    return f'<rect {corner} width="6.5" height="6.5" class="tgt">{title}</rect>'


def _word_map_svg(points: Sequence[WordPoint]) -> str:
    """The map of at least one point with finite coordinates."""
    positions, height = _map_positions(points)
    pairs = _pairs(points)
    partners, names = positions.copy(), [""] * len(points)
    for a, b in pairs:
        partners[a], partners[b] = positions[b], positions[a]
        names[a], names[b] = points[b].word, points[a].word
    words = [_shortened(point.word) for point in points]
    # Two pixels of air on each side; with them no label is empty, even where a word is.
    labels = _place_labels(positions, [_text_width(word) + 4 for word in words], partners, height)
    spots = [(float(x), float(y)) for x, y in positions]
    parts = [_svg_open(_MAP_WIDTH, height, f"Map of {len(points)} words", "map")]
    parts += [_svg_line(*spots[a], *spots[b], "pair") for a, b in pairs]
    for spot, label in zip(spots, labels, strict=True):
        if label.far:
            parts.append(_svg_line(*spot, label.x, label.y, "leader"))
    for point, spot, name in zip(points, spots, names, strict=True):
        parts.append(_map_marker(point, *spot, f"{point.word} – {name}" if name else point.word))
    for point, word, label in zip(points, words, labels, strict=True):
        parts.append(_svg_text(label.x, label.y + 4, word, f"word {point.side}", label.anchor))
    return "".join([*parts, "</svg>"])


def _checked_vectors(name: str, vectors: npt.ArrayLike) -> Array:
    array = np.asarray(vectors, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"{name} has {array.ndim} dimensions (shape {array.shape}), expected 2: give one row per word")
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise InputError(f"{name} holds {bad} values that are not finite, expected 0: leave those words out of the map")
    return array


def word_map(src_vectors: npt.ArrayLike, tgt_vectors: npt.ArrayLike) -> tuple[Array, Array]:
    """Both sides of p word pairs in the plane: the first two principal components of all 2p vectors together.

    src_vectors (p, d) and tgt_vectors (p, d), both already in the common space -> two arrays (p, 2). The same
    vectors always give the same picture: the sign of each axis is fixed. With d = 1 the second one is 0.
    """
    src, tgt = _checked_vectors("src_vectors", src_vectors), _checked_vectors("tgt_vectors", tgt_vectors)
    if src.shape != tgt.shape:
        raise InputError(
            f"src_vectors has shape {src.shape} and tgt_vectors {tgt.shape}, expected the same shape: "
            "row i of both must be the two words of pair i"
        )
    plane = np.zeros((2 * len(src), 2))
    if src.size:
        stacked = np.concatenate([src, tgt])
        stacked -= stacked.mean(axis=0)
        axes = np.linalg.svd(stacked, full_matrices=False)[2][:2]
        # An SVD leaves the sign of each axis open; the largest entry of an axis is made positive.
        largest = np.abs(axes).argmax(axis=1)
        axes *= np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)[:, None]
        plane[:, : len(axes)] = stacked @ axes.T
    return plane[: len(src)], plane[len(src) :]


# --------------------------------------------------------------------------------------------------- sections

_CSS = """
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5a6675;--rule:#e1e5ea;
--grid:#eceff3;--src:#1d5fd0;--tgt:#b8480b;--ok:#146c3c;--ok-bg:#e4f5ea;--bad:#a51d1d;--bad-bg:#fdeaea;--chip:#f0f2f5}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#9ba7b6;
--rule:#2d3642;--grid:#262e39;--src:#7fb2ff;--tgt:#ffab70;--ok:#7ddba3;--ok-bg:#15301f;--bad:#ff9d9d;--bad-bg:#3a1a1c;
--chip:#252d38}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-size:16px}
main{max-width:1040px;margin:0 auto;padding:28px 16px 48px}
h1{font-size:1.65rem;line-height:1.25;margin:0 0 16px;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:0 0 12px}
section{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:18px 20px;
margin-top:18px}
.verdict{display:flex;gap:12px;align-items:flex-start;border-radius:12px;padding:14px 18px;font-weight:600;
overflow-wrap:anywhere;border:1px solid currentColor}
.verdict.ok{color:var(--ok);background:var(--ok-bg)}
.verdict.bad{color:var(--bad);background:var(--bad-bg)}
.verdict .sign{font-size:1.2rem;line-height:1.25}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:7px 14px 7px 0;border-bottom:1px solid var(--rule);vertical-align:baseline}
tr:last-child>td,tbody tr:last-child>th{border-bottom:0}
thead th{color:var(--soft);font-weight:600;font-size:.85rem}
tbody th{font-weight:500}
.facts th,.prov th{color:var(--soft);width:1%;white-space:nowrap;padding-right:28px}
.facts td{font-weight:600}
.num{text-align:right}
td.num,th.num{padding-left:14px}
.chip{display:inline-block;background:var(--chip);border-radius:7px;padding:1px 9px;margin:2px 6px 2px 0}
.chip.first{font-weight:600}
.chip small{color:var(--soft);font-weight:400;margin-left:6px}
.mark{text-align:center;font-weight:700}
.mark .yes{color:var(--ok)}.mark .no{color:var(--bad)}
.none,.note{color:var(--soft)}.note{font-size:.85rem;font-weight:400}
.none{margin:0}figcaption .note{display:block;min-height:1.3em}
.charts{display:grid;gap:22px;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr))}
figure{margin:0;min-width:0;max-width:620px}
figcaption{margin-bottom:6px}
svg{display:block;width:100%;height:auto;font-family:inherit}
svg.map{min-width:640px}
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.tick,.label{fill:var(--soft);font-size:12px}.label{font-size:12.5px}
.line{fill:none;stroke:var(--src);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.dot{fill:var(--src);stroke:var(--card)}
.dot:hover{stroke:var(--ink);stroke-width:2}
.hover{fill:transparent}.hover:hover{fill:var(--src);fill-opacity:.5}
circle.src{fill:var(--src)}rect.tgt{fill:var(--tgt)}
.pair{stroke:var(--soft);stroke-opacity:.55}
.leader{stroke:var(--soft);stroke-opacity:.45;stroke-width:.7;stroke-dasharray:2 2}
.word{font-size:12.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.word.src{fill:var(--src)}.word.tgt{fill:var(--tgt)}
.legend{margin:0 0 8px;display:flex;gap:8px 20px;flex-wrap:wrap;color:var(--soft);font-size:.9rem}
.legend i{display:inline-block;width:10px;height:10px;margin-right:7px}
.legend .s{background:var(--src);border-radius:50%}.legend .t{background:var(--tgt)}
summary{cursor:pointer;font-weight:600;font-size:1.1rem}
details[open] summary{margin-bottom:10px}
.prov td{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
font-size:.85rem;overflow-wrap:anywhere}
@media print{body{background:#fff}section{break-inside:avoid}}
""".strip()


def _section(name: str, heading: str, body: str, *, missing: str) -> str:
    content = body or f'<p class="none">{_escape(missing)}</p>'
    return f'<section id="{name}"><h2>{_escape(heading)}</h2>{content}</section>'


def _verdict_banner(verdict: str, ok: bool) -> str:
    css, sign = ("ok", "✓") if ok else ("bad", "✗")
    return (
        f'<div class="verdict {css}" role="status"><span class="sign" aria-hidden="true">{sign}</span>'
        f"<span>{_escape(verdict)}</span></div>"
    )


def _key_value_table(rows: Iterable[tuple[str, str]], css: str) -> str:
    body = "".join(f'<tr><th scope="row">{_escape(k)}</th><td>{_escape(v)}</td></tr>' for k, v in rows)
    return f'<div class="scroll"><table class="{css}"><tbody>{body}</tbody></table></div>' if body else ""


def _table(head: str, body: str) -> str:
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _scores_table(scores: Sequence[Mapping[str, object]]) -> str:
    """One row per mapping; the columns are all the keys, in the order in which they first appear."""
    columns = list(dict.fromkeys(key for row in scores for key in row))
    if not columns:
        return ""
    # A column of figures is set flush right; one word in it makes it text.
    css = {key: ' class="num"' if all(_is_figure(row.get(key)) for row in scores) else "" for key in columns}
    head = "".join(f'<th scope="col"{css[key]}>{_escape(key)}</th>' for key in columns)
    decimals = {key: _decimals(row.get(key) for row in scores) for key in columns}
    rows = ("".join(f"<td{css[k]}>{_escape(_number(row.get(k), decimals[k]))}</td>" for k in columns) for row in scores)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return _table(head, body)


def _mark(right: bool | None) -> str:
    if right is None:
        return ""
    css, sign, words = ("yes", "✓", "right") if right else ("no", "✗", "wrong")
    return f'<span class="{css}" role="img" aria-label="{words}" title="{words}">{sign}</span>'


def _chips(translations: Sequence[tuple[str, float]]) -> str:
    return "".join(
        f'<span class="chip{"" if rank else " first"}"><bdi>{_escape(word)}</bdi>'
        f"<small>{_escape(f'{score:.3f}' if math.isfinite(score) else _MISSING)}</small></span>"
        for rank, (word, score) in enumerate(translations)
    )


def _translations_table(rows: Sequence[tuple[str, Sequence[tuple[str, float]], bool | None]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr><th scope="row"><bdi>{_escape(word)}</bdi></th><td>{_chips(found)}</td>'
        f'<td class="mark">{_mark(right)}</td></tr>'
        for word, found, right in rows
    )
    judged = [right for _, _, right in rows if right is not None]
    note = f'<p class="note">{sum(judged)} of {len(judged)} checked examples are right.</p>' if judged else ""
    head = (
        '<th scope="col">Word</th><th scope="col">Translations, best first, with their scores</th>'
        '<th scope="col" class="mark">Right</th>'
    )
    return f"{_table(head, body)}{note}"


def _curves(curves: Sequence[Curve]) -> str:
    return f'<div class="charts">{"".join(map(_curve_figure, curves))}</div>' if curves else ""


def _map(points: Sequence[WordPoint]) -> str:
    drawn = [point for point in points if _drawable(point.x) and _drawable(point.y)]
    if not drawn:
        return ""
    legend = (
        '<p class="legend"><span><i class="s"></i>source word</span><span><i class="t"></i>target word</span>'
        "<span>a line joins the two words of a pair: the shorter, the better they match</span></p>"
    )
    return f'{legend}<div class="scroll">{_word_map_svg(drawn)}</div>'


def _flattened(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as rows with dotted names. Seeds stay as they are: no separators, no rounding."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, str):
            yield f"{prefix}{key}", value
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


def _provenance(values: Mapping[str, object]) -> str:
    table = _key_value_table(_flattened(values), "prov") or '<p class="none">None was recorded.</p>'
    summary = "<summary>Provenance: version, settings, seed, hashes</summary>"
    return f'<section id="provenance"><details>{summary}{table}</details></section>'


def render_report(
    *,
    title: str,
    summary: Sequence[tuple[str, str]],
    verdict: str,
    verdict_ok: bool,
    scores: Sequence[Mapping[str, object]],
    translations: Sequence[tuple[str, Sequence[tuple[str, float]], bool | None]],
    curves: Sequence[Curve],
    points: Sequence[WordPoint],
    provenance: Mapping[str, object],
) -> str:
    """The whole page as text. Everything given is escaped; every list may be empty.

    summary: (name, value) rows of key figures. scores: one mapping per row, keys are the columns.
    translations: (word, [(translation, score), ...] best first, whether right or None where unknown).
    points: the map, usually from `word_map`; points that are not finite are left out.
    provenance: may be nested.
    """
    sections = [
        _verdict_banner(verdict, verdict_ok),
        _section("figures", "Key figures", _key_value_table(summary, "facts"), missing="None were given."),
        _section("scores", "Scores", _scores_table(scores), missing="No scores: nothing to compare with."),
        _section("translations", "Example translations", _translations_table(translations), missing="None."),
        _section("curves", "Convergence", _curves(curves), missing="No curves were recorded."),
        _section("map", "Map of word pairs", _map(points), missing="No word pairs to draw."),
        _provenance(provenance),
    ]
    # The policy makes the browser itself refuse anything that is not in this file.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        f"<title>{_escape(title)}</title><style>{_CSS}</style>"
    )
    body = "\n".join(sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main><h1>{_escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def write_report(path: str | os.PathLike[str], html: str) -> None:
    """Write the page as UTF-8. It appears under `path` only when complete: a failure leaves nothing."""
    with replacing(Path(path)) as file:
        file.write(html.encode("utf-8"))
