"""Pictures as files of their own."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from qwp.report import svg
from qwp.report.charts import Curve
from tests.report.pages import NASTY, SVG


def test_a_file_has_its_size_its_colours_and_a_ground() -> None:
    drawing = Curve(NASTY, "step", "cost", [0, 1], [0.0, 1.0]).svg()
    assert drawing is not None
    text = svg.alone(drawing)
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert (root.attrib["width"], root.attrib["height"]) == ("480", "280")
    assert "var(" not in text
    assert root[1].attrib["fill"] == "#fff"
    assert text.startswith("<?xml")


def test_coordinates_are_short() -> None:
    assert [svg.coordinate(value) for value in (-0.001, 1.5, 2.0, 1 / 3)] == ["0", "1.5", "2", "0.33"]


def test_values_beyond_all_bounds_are_not_drawn() -> None:
    assert [svg.drawable(value) for value in (1.0, float("nan"), float("inf"), 1e200)] == [True, False, False, False]
