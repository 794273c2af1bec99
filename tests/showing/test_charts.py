"""Charts of a report: shapes at known positions."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.showing.charts import (
    Bars,
    Dot,
    LineChart,
    NumberedDot,
    PlotLine,
    Ranges,
    banded_lines,
    labelled_bars,
    numbered_dots,
    plan_chart,
    shape,
    swatch,
)
from tests.report.pages import (
    BOTTOM,
    LEFT,
    RIGHT,
    SVG,
    TOP,
    box_of,
    centres,
    chart,
    line_points,
    page_of,
    section,
    text,
    texts,
    tree,
)

# Charts with a key begin lower.
BELOW_KEY = 34.0


def test_chart_points_are_at_their_known_positions() -> None:
    svg = chart([0, 5, 10], [0.0, 1.0, 0.5])
    middle = (LEFT + RIGHT) / 2
    expected = [(LEFT, BOTTOM), (middle, TOP), (RIGHT, (TOP + BOTTOM) / 2)]
    assert centres(svg) == expected
    assert line_points(svg) == expected
    assert texts(svg, "label") == ["step", "cost"]
    assert texts(svg, "tick") == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "0", "2", "4", "6", "8", "10"]
    tips = [text(title) for title in svg.iter(f"{SVG}title")]
    assert tips == ["step 0, cost 0", "step 5, cost 1", "step 10, cost 0.5"]


def test_ticks_are_at_their_values() -> None:
    svg = chart([0, 10], [0.0, 1.0])
    marks = [t for t in svg.iter(f"{SVG}text") if t.attrib["class"] == "tick"]
    across = {text(t): float(t.attrib["x"]) for t in marks if t.attrib["text-anchor"] == "middle"}
    assert across["0"] == LEFT
    assert across["10"] == RIGHT
    assert across["4"] == pytest.approx(LEFT + 0.4 * (RIGHT - LEFT), abs=0.01)


def test_constant_curve_runs_through_the_middle_of_the_range() -> None:
    places = centres(chart([0, 1, 2], [1200.0] * 3))
    assert [y for _, y in places] == [(TOP + BOTTOM) / 2] * 3


def test_long_tick_labels_push_the_axis_to_the_right() -> None:
    svg = chart([0, 1], [1e-6, 3e-6])
    marks = [t for t in svg.iter(f"{SVG}text") if t.attrib["class"] == "tick"]
    beside = [box_of(t)[0] for t in marks if t.attrib["text-anchor"] == "end"]
    assert min(beside) > 16  # the rotated title of the axis ends there


def test_one_point_is_drawn_inside_the_frame() -> None:
    [(x, y)] = centres(chart([7], [0.0]))
    assert LEFT < x < RIGHT
    assert TOP < y < BOTTOM


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    curve = LineChart("Cost", "step", "cost", [0, 1, 2, 3], [0.0, math.nan, math.inf, 1.0])
    page = tree(page_of(curves=[curve]))
    svg = next(page.iter(f"{SVG}svg"))
    assert centres(svg) == [(LEFT, BOTTOM), (RIGHT, TOP)]
    assert "2 values that are not finite left out" in text(section(page, "curves"))


@pytest.mark.parametrize("y", [[], [math.nan]])
def test_curve_without_values_has_a_message(y: list[float]) -> None:
    page = tree(page_of(curves=[LineChart("Cost", "step", "cost", list(range(len(y))), y)]))
    assert "No finite values to draw." in text(section(page, "curves"))
    assert not list(page.iter(f"{SVG}svg"))


def test_long_curve_keeps_its_line_and_thins_the_hover_targets() -> None:
    svg = chart(list(range(5000)), [math.sin(i / 100) for i in range(5000)])
    assert len(line_points(svg)) == 5000
    places = centres(svg)
    assert len(places) == 200
    assert (places[0][0], places[-1][0]) == (LEFT, RIGHT)


@settings(max_examples=200)
@given(values=st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=8))
def test_any_curve_stays_inside_its_frame(values: list[tuple[float, float]]) -> None:
    page = tree(page_of(curves=[LineChart("c", "x", "y", [x for x, _ in values], [y for _, y in values])]))
    for svg in page.iter(f"{SVG}svg"):
        assert 2 <= len(texts(svg, "tick")) <= 20
        for x, y in line_points(svg):
            assert LEFT <= x <= RIGHT
            assert TOP <= y <= BOTTOM


# --------------------------------------------------------------------------- shares and bars


def drawn(picture: Ranges | Bars) -> ET.Element:
    found = picture.svg()
    assert found is not None
    return ET.fromstring(found)


def marks(svg: ET.Element, css: str) -> list[dict[str, float]]:
    """Return the rectangles of a series below the key."""
    boxes = [r.attrib for r in svg.iter(f"{SVG}rect") if r.get("class") == css]
    places = [{name: float(box[name]) for name in ("x", "y", "width", "height")} for box in boxes]
    return [box for box in places if box["y"] > 12]


def test_shares_and_intervals_are_at_known_positions() -> None:
    dots = [Dot(0.5, 0.5, 0.25, 0.75, "half")]
    svg = drawn(Ranges("T", "confidence", "right", (0.0, 1.0), [(0.0, "0"), (1.0, "1")], [("a", dots)], ideal="ideal"))
    middle = ((LEFT + RIGHT) / 2, (BELOW_KEY + BOTTOM) / 2)
    assert centres(svg)[1] == middle  # the first circle belongs to the key
    [whisker] = [e.attrib for e in svg.iter(f"{SVG}line") if e.attrib["class"] == "whisker src"]
    quarter = (BOTTOM - BELOW_KEY) / 4
    assert [float(whisker[n]) for n in ("y1", "y2")] == [BOTTOM - quarter, BELOW_KEY + quarter]
    diagonal = next(e.attrib for e in svg.iter(f"{SVG}line") if e.attrib["class"] == "ideal")
    ends = [float(diagonal[n]) for n in ("x1", "y1", "x2", "y2")]
    assert ends == [LEFT, BOTTOM, RIGHT, BELOW_KEY]
    assert texts(svg, "key") == ["a", "ideal"]
    assert "half" in [text(t) for t in svg.iter(f"{SVG}title")]


def test_the_second_series_differs_without_colour() -> None:
    dot = Dot(1.0, 0.5, 0.4, 0.6, "x")
    svg = drawn(Ranges("T", "x", "y", (0.0, 2.0), [(1.0, "1")], [("a", [dot]), ("b", [dot])]))
    assert len(centres(svg)) == 2
    assert len(marks(svg, "tgt")) == 1


def test_bars_are_as_high_as_their_shares() -> None:
    svg = drawn(Bars("T", "x", "y", ["0", "1"], [("a", [0.5, 0.25]), ("b", [0.0, 1.0])]))
    high = BOTTOM - BELOW_KEY
    assert [box["height"] for box in marks(svg, "src")] == [0.5 * high, 0.25 * high]
    assert [box["height"] for box in marks(svg, "tgt")] == [0.0, high]
    assert [box["y"] + box["height"] for box in marks(svg, "src")] == [BOTTOM, BOTTOM]
    assert "b: 100.0 % with 1" in [text(t) for t in svg.iter(f"{SVG}title")]


def test_empty_charts_are_none() -> None:
    assert Ranges("T", "x", "y", (0.0, 1.0), [], [("a", [])]).svg() is None
    assert Bars("T", "x", "y", [], []).svg() is None


def lines(*values: float) -> list[PlotLine]:
    dots = [Dot(10.0 ** (i + 2), value, value - 1, value + 1, f"tip {value}") for i, value in enumerate(values)]
    return [PlotLine("a", 0, dots)]


def test_a_line_goes_up_where_the_score_does() -> None:
    chart = ElementTree.fromstring(banded_lines(lines(20, 40, 30), "label <&>", "size", "P@1"))
    assert (chart.get("role"), chart.get("aria-label")) == ("img", "label <&>")
    points = [each.split(",") for each in str(chart.findall(f"{SVG}polyline")[0].get("points")).split()]
    xs, ys = ([float(point[i]) for point in points] for i in (0, 1))
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)  # sizes by their logarithm
    assert ys[1] < ys[2] < ys[0]
    tips = [each.text for each in chart.iter(f"{SVG}title")]
    assert tips == ["tip 20", "tip 40", "tip 30"]
    assert len(chart.findall(f"{SVG}polygon")) == 1  # the band


def test_one_point_and_none() -> None:
    assert "polyline" not in banded_lines(lines(50), "", "", "")
    assert banded_lines([], "", "", "") == ""


def test_overlapping_dots_move_apart() -> None:
    dots = [NumberedDot(i, i, 10.0, 50.0, f"tip {i}") for i in range(1, 6)]
    chart = ElementTree.fromstring(numbered_dots(dots, "label", "seconds", "P@1"))
    large = [each for each in chart.iter(f"{SVG}circle") if each.get("r") == "8.5"]
    places = np.array([[float(str(each.get(name))) for name in ("cx", "cy")] for each in large])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 100 * np.eye(5)
    assert apart.min() >= 17.8
    assert len(chart.findall(f"{SVG}line[@class='leader']")) == 4


def test_a_plan_has_a_square_for_each_entry() -> None:
    plan = np.array([[255, 0], [2, 128]])
    chart = ElementTree.fromstring(plan_chart(plan, ["a<b", "c"], ["x", "\x00y"], "label"))
    squares = [each for each in chart.iter(f"{SVG}rect") if each.get("class") == "mass"]
    assert [each.get("fill-opacity") for each in squares] == ["1.00", "0.50"]
    assert [each.text for each in chart.iter(f"{SVG}title")] == [
        "a<b → x: 100 % of the largest entry",
        "c → \\x00y: 50 % of the largest entry",
    ]


def test_shapes_differ_before_colours_repeat() -> None:
    drawn = [shape(0, 0, number) for number in range(28)]
    assert len(set(drawn)) == 28
    assert "dashed" in swatch(0, dashed=True)


def test_labelled_bars() -> None:
    drawn = labelled_bars([("gay", 8.0, "merry → queer"), ("<b>", 4.0, ""), ("below", -1.0, "")], "z")
    assert "merry → queer" in drawn
    assert "&lt;b&gt;" in drawn
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([0-9.]+)"', drawn)]
    assert widths == [180.0, 90.0, 0.0]
    assert labelled_bars([], "nothing").startswith("<svg")
