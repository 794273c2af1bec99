"""Charts of experiments: positions, shapes and escaping."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from qwp.experiments.plots import NumberedDot, PlotDot, PlotLine, line_chart, numbered_dots, plan_chart, shape, swatch

SVG = "{http://www.w3.org/2000/svg}"


def lines(*values: float) -> list[PlotLine]:
    dots = [PlotDot(10.0 ** (i + 2), value, value - 1, value + 1, f"tip {value}") for i, value in enumerate(values)]
    return [PlotLine("a", 0, dots)]


def test_a_line_goes_up_where_the_score_does() -> None:
    chart = ElementTree.fromstring(line_chart(lines(20, 40, 30), "label <&>", "size", "P@1"))
    assert (chart.get("role"), chart.get("aria-label")) == ("img", "label <&>")
    points = [each.split(",") for each in str(chart.findall(f"{SVG}polyline")[0].get("points")).split()]
    xs, ys = ([float(point[i]) for point in points] for i in (0, 1))
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)  # sizes by their logarithm
    assert ys[1] < ys[2] < ys[0]
    tips = [each.text for each in chart.iter(f"{SVG}title")]
    assert tips == ["tip 20", "tip 40", "tip 30"]
    assert len(chart.findall(f"{SVG}polygon")) == 1  # the band


def test_one_point_and_none() -> None:
    assert "polyline" not in line_chart(lines(50), "", "", "")
    assert line_chart([], "", "", "") == ""


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
