"""The colours of all pages: the same names in both schemes, with enough contrast."""

from __future__ import annotations

import re

import pytest

from qwp.experiments import html_page
from qwp.report import page
from qwp.showing.style import BASE, CHARTS, DARK, LIGHT, SERIES


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour like #fff or #a1b2c3 as defined by WCAG 2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_contrast(colours: dict[str, str]) -> None:
    on_cards = [(name, "card") for name in ("ink", "soft", "accent", "src", "tgt", "ok", "bad")]
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


def test_every_used_colour_is_defined() -> None:
    assert set(LIGHT) == set(DARK)
    assert set(re.findall(r"var\(--(\w+)\)", BASE + page.CSS)) <= set(LIGHT)
    own = {"c", "v"}  # set by rules of the page and by cells
    assert set(re.findall(r"var\(--(\w+)\)", html_page.CSS)) <= set(LIGHT) | own
    assert f"c{SERIES - 1}" in LIGHT
    assert CHARTS in BASE


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_of_systems_have_contrast(colours: dict[str, str]) -> None:
    for i in range(SERIES):
        assert contrast(colours[f"c{i}"], colours["card"]) >= 3, i
        assert contrast(colours["on"], colours[f"c{i}"]) >= 4, i
