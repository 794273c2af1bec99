"""Charts of measured figures for the documents, as SVG.

Each function takes the argument of a generator, which is empty.

`growth` shows the time of CSLS and of coresets against the number of words, `coreset_scores` the tables of
docs/results.md against the size of the coresets, `coreset_premise` what `benchmarks.coreset_study` has measured, and
`null_p_values` the p-values of unrelated pairs.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from benchmarks import coreset_study, judgement
from benchmarks.records import FOLDER, read_records, select
from benchmarks.run import RESULTS
from qwp.experiments.paper import AVERAGE, published
from qwp.showing.svg import AxisScale, tick_step

_PANEL_WIDTH, _PANEL_HEIGHT = 400, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 48, 56
_KEY_ROW, _LABEL_WIDTH, _MOST_TICKS = 22, 44, 6
_COLOURS = ("#1f6feb", "#bc4c00", "#1a7f37", "#8250df", "#57606a")
_STYLE = """
  text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .frame { fill: none; stroke: #57606a; stroke-width: 1; }
"""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A curve. dots: measured points (x, y); path: the line, by default through the dots; band: (x, low, high)."""

    colour: str
    dots: Sequence[Point]
    path: Sequence[Point] = ()
    band: Sequence[tuple[float, float, float]] = ()
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A frame with curves; the x axis is logarithmic. log: whether y is, too. note: text in the upper left corner."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log: bool = False
    unit: str = ""
    note: str = ""

    @property
    def values(self) -> list[float]:
        """All heights of the curves."""
        points = [y for line in self.lines for _, y in (*line.dots, *line.path)]
        return points + [y for line in self.lines for _, *ends in line.band for y in ends]


def ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0**decade for decade in decades for digit in (1, 2, 5) if low <= digit * 10.0**decade <= high]


def axis_ticks(axis: AxisScale) -> list[float]:
    """Return round numbers within an axis."""
    if axis.logarithmic:
        return ticks(axis.low, axis.high)
    step = tick_step(axis.high - axis.low, _MOST_TICKS)
    return [step * i for i in range(math.ceil(axis.low / step), math.floor(axis.high / step + 1e-9) + 1)]


def draw(summary: str, panels: Sequence[Panel], key: Sequence[tuple[str, str]] = ()) -> str:
    """Return panels side by side. summary: for screen readers; key: names of the curves and their colours."""
    width, height = _PANEL_WIDTH * len(panels), _PANEL_HEIGHT + (_KEY_ROW + 6 if key else 0)
    parts = [part for number, panel in enumerate(panels) for part in _panel(panel, number * _PANEL_WIDTH)]
    for number, (name, colour) in enumerate(key):
        left, top = _LEFT + number * (width - _LEFT) / len(key), _PANEL_HEIGHT + 8
        parts.append(f'<circle cx="{left:g}" cy="{top - 4}" r="4.5" fill="{colour}"/>')
        parts.append(f'<text x="{left + 10:g}" y="{top}">{escape(name)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            f"<title>{escape(summary)}</title>",
            f"<style>{_STYLE}</style>",
            # A background, so that the chart is readable on a dark page.
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, offset: int) -> Iterable[str]:
    """Yield a panel: grid, frame, curves and labels."""
    sizes = sorted({x for line in panel.lines for x, _ in line.dots})
    low, high = min(panel.values), max(panel.values)
    margin = 0.06 * (high - low)
    ends = (
        (low / 1.5, high * 1.5) if panel.log else (max(0.0, low - margin) if low >= 0 else low - margin, high + margin)
    )
    x = AxisScale(sizes[0] / 1.25, sizes[-1] * 1.25, _LEFT, _PANEL_WIDTH - _RIGHT, logarithmic=True)
    y = AxisScale(*ends, _PANEL_HEIGHT - _BOTTOM, _TOP, panel.log)
    middle, bottom = (x.start + x.stop) / 2, _PANEL_HEIGHT - _BOTTOM
    yield f'<g transform="translate({offset} 0)">'
    labelled = -math.inf
    for size in sizes:
        at = x(size)
        yield f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>'
        if at - labelled >= _LABEL_WIDTH:
            labelled = at
            yield f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{size:,.0f}</text>'
    for tick in axis_ticks(y):
        yield f'<line class="grid" x1="{_LEFT}" y1="{y(tick):.1f}" x2="{x.stop}" y2="{y(tick):.1f}"/>'
        label = _seconds(tick) if panel.unit == "s" else f"{tick:g}"
        yield f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{label}</text>'
    yield f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{x.stop - x.start:g}" height="{y.start - y.stop:g}"/>'
    for line in panel.lines:
        yield from _curve(line, x, y)
    yield f'<text class="title" x="{middle:g}" y="28" text-anchor="middle">{escape(panel.title)}</text>'
    if panel.note:
        yield f'<text x="{x.start + 12:g}" y="{y.stop + 22:g}">{panel.note}</text>'
    yield f'<text x="{middle:g}" y="{_PANEL_HEIGHT - 14}" text-anchor="middle">{escape(panel.x_label)}</text>'
    turn = f'transform="translate(20 {(y.start + y.stop) / 2:g}) rotate(-90)"'
    yield f'<text {turn} text-anchor="middle">{escape(panel.y_label)}</text>'
    yield "</g>"


def _curve(line: Line, x: AxisScale, y: AxisScale) -> Iterable[str]:
    if line.band:
        around = [(at, high) for at, _, high in line.band] + [(at, low) for at, low, _ in reversed(line.band)]
        yield f'<polygon points="{_points(around, x, y)}" fill="{line.colour}" fill-opacity="0.15"/>'
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    path = _points(line.path or line.dots, x, y)
    yield f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>'
    for at, value in line.dots:
        place = f'cx="{x(at):.1f}" cy="{y(value):.1f}"'
        yield f'<circle {place} r="4" fill="{line.colour}" stroke="#ffffff" stroke-width="1.2"/>'


def _points(points: Iterable[Point], x: AxisScale, y: AxisScale) -> str:
    return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1e3 * seconds:g} ms"


# --------------------------------------------------------------------------- growth of the time


def growth(_: str = "") -> str:
    """Draw the curves of `benchmarks.csls` with their fitted power laws."""
    curves: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))["csls"]["growth"]
    parts = [f"{c['what']}: time grows with {c['size']} to the power {c['exponent']:.2f}" for c in curves.values()]
    panels = []
    for number, curve in enumerate(curves.values()):
        sizes = curve["sizes"]
        fitted = [(n, math.exp(curve["intercept"]) * n ** curve["exponent"]) for n in (sizes[0], sizes[-1])]
        line = Line(_COLOURS[number], list(zip(sizes, curve["seconds"], strict=True)), fitted)
        exponent = f'<tspan dy="-5" font-size="10">{curve["exponent"]:.2f}</tspan>'
        note = f"time ∝ {escape(curve['size'])}{exponent}"
        panels.append(Panel(curve["what"], f"number of {curve['size']}", "time", [line], True, "s", note))
    return draw("; ".join(parts), panels)


# --------------------------------------------------------------------------- coresets

_SYSTEMS = {
    "Random": "random",
    "KMeans++": "k-means++, cell weights",
    "KMeans++, equal weights": "k-means++, equal weights",
    "Lloyd": "Lloyd, means",
}


def coreset_scores(_: str = "") -> str:
    """Draw MAP without refinement against the size of the coresets, ours and that of the paper."""
    [view] = [
        v for v in json.loads((FOLDER / "experiment-bench.json").read_text("utf-8"))["views"] if v["name"] == "table1"
    ]
    sizes = [float(size) for size in view["columns"]]
    rows = {row["label"]: row["entries"] for row in view["rows"] if row["group"] == AVERAGE}
    names = {name: label for name, label in _SYSTEMS.items() if name in rows}
    colours = dict(zip(names, _COLOURS, strict=False))
    ours = []
    for name in names:
        # An average without a mark lacks a direction, so it is not comparable.
        entries = [(size, each) for size, each in zip(sizes, rows[name], strict=True) if each.get("mark")]
        dots = [(size, statistics.mean(each["ours"])) for size, each in entries]
        band = [(size, min(each["ours"]), max(each["ours"])) for size, each in entries]
        ours.append(Line(colours[name], dots, band=band))
    table = published().tables["table1"]
    theirs = [
        Line(colours[name], [(size, table.value(name, AVERAGE, size) or 0.0) for size in table.sizes], dashed=True)
        for name in ("Random", "KMeans++")
    ]
    labels = "points in a coreset", "MAP without refinement, %"
    return draw(
        "MAP against the size of the coresets: ours, mean over directions with the range of the seeds, and the paper",
        [Panel("here, mean over directions", *labels, ours), Panel("published", *labels, theirs)],
        [(label, colours[name]) for name, label in names.items()],
    )


_Record = dict[str, Any]
_PREMISE = {
    "random": "random",
    "k-means++, cell weights": "k-means++, cell weights",
    "k-means++, equal weights": "k-means++, equal weights",
    "Lloyd, cell weights": "Lloyd, means",
    "Lloyd on the sphere, equal weights": "Lloyd on the sphere",
}


def coreset_premise(_: str = "") -> str:
    """Draw the error of the transport distance, and the bias and the noise of the correspondence."""
    found = read_records(coreset_study.RESULTS)
    distances, gradients = (
        select(found, suite="distances"),
        select(found, suite="gradients", epsilon=coreset_study.EPSILON),
    )
    panels = [
        Panel("error of the distance", "points in a coreset", "|W(k) - W| / W", _lines(distances, _distance_error)),
        Panel("bias of the direction", "points in a coreset", "relative length", _lines(gradients, _part("bias"))),
        Panel("noise of one draw", "points in a coreset", "relative length", _lines(gradients, _part("noise"))),
    ]
    summary = (
        "Coresets against their size: error of the transport distance, bias and noise of the direction of the step"
    )
    return draw(summary, panels, list(zip(_PREMISE.values(), _COLOURS, strict=True)))


def _lines(found: Sequence[_Record], value: Callable[[_Record], float]) -> list[Line]:
    lines = []
    for name, colour in zip(_PREMISE, _COLOURS, strict=True):
        dots = sorted((float(record["k"]), value(record)) for record in select(found, system=name))
        lines.append(Line(colour, dots))
    return lines


def _distance_error(record: _Record) -> float:
    whole = float(record["whole"]["true"])
    return float(abs(statistics.mean(record["distances"]["true"]) - whole)) / whole


def _part(name: str) -> Callable[[_Record], float]:
    return lambda record: float(record["true"][name])


# --------------------------------------------------------------------------- p-values of unrelated pairs


def null_p_values(_: str = "") -> str:
    """Draw how often the p-value of an unrelated pair is at most a level, if its kind is not in the calibration."""
    found = read_records(judgement.RESULTS)
    p_values = [values.tolist() for _, values in judgement.left_out(found).values() if len(values)]
    levels = (1, 2, 5, 10, 20, 50, 100)

    def shares(values: list[float]) -> list[float]:
        return [100 * sum(value <= level / 100 for value in values) / len(values) for level in levels]

    fresh = judgement.validation_p_values(found).tolist()
    pooled = shares([value for values in p_values for value in values])
    worst = [max(each) for each in zip(*map(shares, p_values), strict=True)]
    lines = {
        "all kinds": Line(_COLOURS[0], list(zip(levels, pooled, strict=True))),
        "worst kind": Line(_COLOURS[1], list(zip(levels, worst, strict=True))),
        "new pairs": Line(_COLOURS[2], list(zip(levels, shares(fresh), strict=True))),
        "exact": Line(_COLOURS[4], list(zip(levels, levels, strict=True)), dashed=True),
    }
    summary = "Share of unrelated pairs with a p-value of at most the level, each kind left out of the calibration"
    panel = Panel("p-values of unrelated pairs", "level, %", "pairs with p at most the level, %", list(lines.values()))
    return draw(summary, [panel], [(name, line.colour) for name, line in lines.items()])
