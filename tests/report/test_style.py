"""Colours that can be read, light and dark."""

from __future__ import annotations

import re

import pytest

from qwp.report.style import _DARK, CSS, LIGHT, PICTURES


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
