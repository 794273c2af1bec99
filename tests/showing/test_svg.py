"""SVG: shapes, ticks, axes, and drawings as files."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from qwp.showing import svg
from qwp.showing.svg import percent, shortened, text_width
from tests.report.pages import NASTY, SVG


def test_a_standalone_file_has_size_colours_and_background() -> None:
    text = svg.standalone(svg.PlotFrame().picture(NASTY, [svg.text(1, 2, NASTY, "key", "end", rotation=-90)]))
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert (root.attrib["width"], root.attrib["height"]) == ("480", "280")
    assert "var(" not in text
    assert root[1].attrib["fill"] == "#fff"
    assert text.startswith("<?xml")


def test_coordinates_are_short() -> None:
    assert [svg.coordinate(value) for value in (-0.001, 1.5, 2.0, 1 / 3)] == ["0", "1.5", "2", "0.33"]


def test_non_finite_and_huge_values_are_not_drawable() -> None:
    assert [svg.drawable(value) for value in (1.0, float("nan"), float("inf"), 1e200)] == [True, False, False, False]


def test_long_words_are_shortened_and_wide_ones_measured() -> None:
    assert shortened("a" * 24) == "a" * 24
    assert shortened("a" * 25) == "a" * 23 + "…"
    assert text_width("ab") == 14.0
    assert text_width("日本") == 26.0
    assert text_width("e\u0301") == 7.0
    assert (percent(0.1234), percent(math.nan)) == ("12.3", "–")


def test_tick_labels() -> None:
    cases: list[tuple[list[float], float, list[str]]] = [
        ([0.0, 2.5, 5.0], 2.5, ["0.0", "2.5", "5.0"]),
        ([0.25, 0.5], 0.25, ["0.25", "0.50"]),
        ([0.0, 200.0], 200.0, ["0", "200"]),
        ([0.0, 1e6, 2e6], 1e6, ["0", "1e+06", "2e+06"]),
        ([1e-5, 1.5e-5], 5e-6, ["1.0e-05", "1.5e-05"]),
        ([-0.0, 0.1], 0.1, ["0.0", "0.1"]),
    ]
    for ticks, step, labels in cases:
        assert svg.tick_labels(ticks, step) == labels


def test_percent_ticks_enclose_the_highest_share() -> None:
    assert [label for _, label in svg.percent_ticks(0.47)] == ["0", "10", "20", "30", "40", "50"]
    assert svg.percent_ticks(1.0)[-1] == (1.0, "100")
    assert svg.percent_ticks(0.0)[-1][0] >= 0.01


def test_long_labels_get_room() -> None:
    frame = svg.PlotFrame()
    assert frame.fitting(["0", "1"]) == frame
    assert frame.fitting(["2.5e-06"]).left > frame.left


def test_scales_are_linear_or_logarithmic() -> None:
    assert svg.AxisScale(0.0, 4.0, 10.0, 0.0)(1.0) == 7.5
    assert svg.AxisScale(1.0, 100.0, 0.0, 10.0, logarithmic=True)(10.0) == pytest.approx(5.0)
    assert svg.AxisScale(3.0, 3.0, 0.0, 10.0)(3.0) == 5.0


def test_labels_that_would_overlap_are_left_out() -> None:
    x, y = svg.AxisScale(0.0, 1.0, 60.0, 464.0), svg.AxisScale(0.0, 1.0, 234.0, 12.0)
    parts = list(svg.PlotFrame().axes(x, y, [(0.0, "0"), (0.01, "0.01"), (1.0, "1")], [], ("x", "y")))
    ticks = [part for part in parts if 'class="tick"' in part]
    assert [ET.fromstring(tick).text for tick in ticks] == ["0", "1"]
    assert sum('class="axis"' in part for part in parts) == 5


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (71.2, 73.9), (49.6, 50.6)])
def test_ticks_are_round_values_of_the_range(low: float, high: float) -> None:
    found = svg.labelled_ticks(low, high, 5)
    assert 2 <= len(found) <= 6
    assert all(low - 1e-6 <= value <= high + 1e-6 for value, _ in found)
    assert [float(label) for _, label in found] == pytest.approx([value for value, _ in found])
