"""Pages for tests, read with a strict parser, and helpers to find shapes in drawings."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

from qwp.report import page
from qwp.report.page import Section, render
from qwp.report.word_map import WordMap, WordPoint
from qwp.showing.charts import LineChart
from qwp.showing.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"
# The plotting area of every chart: known here so that a change of the layout is a decision, not an accident.
LEFT, RIGHT, TOP, BOTTOM = 60.0, 464.0, 12.0, 234.0
NASTY = """<script>alert("x")</script> & 'quoted'"""


def page_of(**changes: Any) -> str:
    """Return a page with one section of each kind; each may be empty."""
    given: dict[str, Any] = {
        "title": "A title",
        "summary": [],
        "verdict": "succeeded",
        "explanation": "fine",
        "scores": [],
        "translations": [],
        "curves": [],
        "points": [],
        "provenance": {},
    }
    parts = {**given, **changes}
    return render(
        title=parts["title"],
        verdict=parts["verdict"],
        explanation=parts["explanation"],
        sections=[
            Section("figures", "Key figures", page.facts(parts["summary"], "Key figures")),
            Section("scores", "Scores", page.table(parts["scores"], "Scores")),
            Section("translations", "Example translations", page.translations(parts["translations"])),
            Section("curves", "Convergence", page.charts(parts["curves"])),
            Section("map", "Map", page.word_map(WordMap(parts["points"])), missing="No word pairs to draw."),
        ],
        settings=parts["provenance"],
    )


def tree(html: str) -> ET.Element:
    """Parse the page as XML, which fails on anything unclosed, unescaped or illegal."""
    return ET.fromstring(html)


def section(page: ET.Element, name: str) -> ET.Element:
    """Return a section by name."""
    found = page.find(f".//section[@id='{name}']")
    assert found is not None
    return found


def text(element: ET.Element) -> str:
    """Return the text of an element."""
    return "".join(element.itertext())


def cells(page: ET.Element, name: str) -> list[list[str]]:
    """Return the cells of the tables in a section."""
    return [[text(cell) for cell in row] for row in section(page, name).iter("tr")]


def chart(x: Sequence[float], y: Sequence[float]) -> ET.Element:
    """Return the drawing of a curve."""
    page = tree(page_of(curves=[LineChart("Cost", "step", "cost", x, y)]))
    found = section(page, "curves").find(f".//{SVG}svg")
    assert found is not None
    return found


def centres(svg: ET.Element) -> list[tuple[float, float]]:
    """Return the centres of the circles."""
    return [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in svg.iter(f"{SVG}circle")]


def line_points(svg: ET.Element) -> list[tuple[float, float]]:
    """Return the points of the line."""
    line = svg.find(f"{SVG}polyline")
    assert line is not None
    pairs = [place.split(",") for place in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def texts(svg: ET.Element, css: str) -> list[str]:
    """Return the texts of a class in a drawing."""
    return [text(t) for t in svg.iter(f"{SVG}text") if t.attrib["class"] == css]


def full_page() -> str:
    """Return a page with content in every section."""
    return page_of(
        title="en to es",
        summary=[("Pairs", "1,842")],
        scores=[{"lexicon": "a", "P@1": 31.25, "n": 1025}, {"lexicon": "b", "P@1": 60.0, "MRR": math.nan}],
        translations=[
            ("king", [("rey", 0.71), ("conde", 0.5)], 0.5, True),
            ("sea", [], None, False),
            ("x", [], 0.25, None),
        ],
        curves=[LineChart("Cost", "step", "cost", [0, 1, 2], [3.0, 2.0, 1.0])],
        points=[WordPoint("sun", "src", 0.0, 0.0, 0), WordPoint("sol", "tgt", 1.0, 1.0, 0)],
        provenance={"version": "0.1.0", "config": {"k": 500, "coreset": {"kind": "lloyd"}}, "seed": 1234567},
    )


def map_svg(points: Sequence[WordPoint]) -> ET.Element:
    """Return the drawing of a map."""
    found = section(tree(page_of(points=points)), "map").find(f".//{SVG}svg")
    assert found is not None
    return found


def box_of(label: ET.Element) -> tuple[float, float, float, float]:
    """Return the corners of a label."""
    width = text_width(text(label))
    left = float(label.attrib["x"]) - {"start": 0.0, "middle": width / 2, "end": width}[label.attrib["text-anchor"]]
    base = float(label.attrib["y"])
    return left, base - 11, left + width, base + 3
