"""Charts of measured figures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from qwp.showing.svg import AxisScale
from tools import charts
from tools.charts import Line, Panel, draw, ticks

SVG = "{http://www.w3.org/2000/svg}"


def panel(*, log: bool) -> Panel:
    line = Line("#123456", [(100.0, 2.0), (1000.0, 8.0)], band=[(100.0, 1.0, 3.0), (1000.0, 7.0, 9.0)], dashed=True)
    return Panel("a < b", "points", "score", [line], log=log)


@pytest.mark.parametrize("log", [False, True])
def test_a_panel_has_its_curves_inside_the_frame(log: bool) -> None:
    root = ET.fromstring(draw("two & more", [panel(log=log), panel(log=log)], [("k-means++", "#123456")]))
    assert root.find(f"{SVG}title").text == "two & more"  # type: ignore[union-attr]
    groups = root.findall(f"{SVG}g")
    assert len(groups) == 2
    frame = groups[0].find(f"{SVG}rect")
    assert frame is not None
    left, top = float(frame.attrib["x"]), float(frame.attrib["y"])
    right, bottom = left + float(frame.attrib["width"]), top + float(frame.attrib["height"])
    dots = groups[0].findall(f"{SVG}circle")
    assert len(dots) == 2
    for dot in dots:
        assert left < float(dot.attrib["cx"]) < right
        assert top < float(dot.attrib["cy"]) < bottom
    # Larger values are higher, and the band is around the line.
    assert float(dots[0].attrib["cy"]) > float(dots[1].attrib["cy"])
    assert len(groups[0].findall(f"{SVG}polygon")) == 1
    assert "a < b" in [text.text for text in groups[0].findall(f"{SVG}text")]
    assert "k-means++" in [text.text for text in root.findall(f"{SVG}text")]


def test_ticks_are_round_numbers() -> None:
    assert ticks(3, 60) == [5, 10, 20, 50]
    assert charts.axis_ticks(AxisScale(0.0, 0.7, 0, 100)) == pytest.approx([0.0, 0.2, 0.4, 0.6])
    assert charts.axis_ticks(AxisScale(12.0, 30.0, 0, 100)) == pytest.approx([15, 20, 25, 30])


@pytest.mark.parametrize(
    ("chart", "panels"),
    [(charts.growth, 2), (charts.coreset_scores, 2), (charts.coreset_premise, 3), (charts.null_p_values, 1)],
)
def test_the_charts_of_the_documents_are_drawn_from_the_records(chart: object, panels: int) -> None:
    assert callable(chart)
    root = ET.fromstring(chart(""))
    assert len(root.findall(f"{SVG}g")) == panels
    assert root.findall(f".//{SVG}polyline")
