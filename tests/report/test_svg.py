"""Pictures as files of their own."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from qwp.report import svg
from qwp.report.charts import Curve
from qwp.report.svg import _DARK, CSS, LIGHT, PICTURES, decimals_of, number, percent, shortened, text_width
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


def luminance(colour: str) -> float:
    """The relative luminance of a colour like #fff or #a1b2c3, as WCAG 2 has it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, _DARK], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(colours: dict[str, str]) -> None:
    on_cards = [(name, "card") for name in ("ink", "soft", "src", "tgt", "ok", "bad")]
    others = [
        ("ink", "bg"),
        ("ink", "chip"),
        ("soft", "chip"),
        ("ok", "okbg"),
        ("bad", "badbg"),
        ("unsure", "unsurebg"),
    ]
    for text, ground in on_cards + others:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_every_colour_that_is_used_is_there() -> None:
    assert set(LIGHT) == set(_DARK)
    assert set(re.findall(r"var\(--(\w+)\)", CSS + PICTURES)) <= set(LIGHT)


def test_numbers_in_tables() -> None:
    cases: list[tuple[object, str]] = [
        (True, "yes"),
        (np.bool_(False), "no"),
        (None, "–"),
        (12345, "12,345"),
        (np.int64(12345), "12,345"),
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (12345.67, "12,345.7"),
        (math.inf, "–"),
        (1e-7, "1e-07"),
        ("text", "text"),
    ]
    for value, shown in cases:
        assert number(value) == shown


def test_columns_line_up_also_where_a_value_is_zero() -> None:
    values = [0.0, 0.125, 1.0]
    decimals = decimals_of(values)
    assert [number(value, decimals) for value in values] == ["0.000", "0.125", "1.000"]
    assert decimals_of([1, None]) is None


def test_long_words_are_shortened_and_wide_ones_measured() -> None:
    assert shortened("a" * 24) == "a" * 24
    assert shortened("a" * 25) == "a" * 23 + "…"
    assert text_width("ab") == 14.0
    assert text_width("日本") == 26.0
    assert text_width("e\u0301") == 7.0
    assert (percent(0.1234), percent(math.nan)) == ("12.3", "–")
