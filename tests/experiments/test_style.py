"""The looks of the page: light and dark have the same colours, enough of them, that can be read."""

from __future__ import annotations

import re

import pytest

from qwp.experiments import style
from qwp.experiments.charts import COLOURS


def variables(text: str) -> dict[str, str]:
    return dict(re.findall(r"(--[\w]+):([^;]+)", text))


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    first, second = sorted((luminance(one), luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def test_light_and_dark_have_the_same_colours() -> None:
    light, dark = variables(style._LIGHT), variables(style._DARK)
    assert light.keys() == dark.keys()
    assert {f"--c{i}" for i in range(COLOURS)} <= light.keys()


@pytest.mark.parametrize("colours", [style._LIGHT, style._DARK], ids=["light", "dark"])
def test_words_and_marks_can_be_read(colours: str) -> None:
    found = variables(colours)
    for name in ("--ink", "--soft", "--accent", "--good", "--bad"):
        assert contrast(found[name], found["--card"]) >= 4.5, name
    for i in range(COLOURS):
        assert contrast(found[f"--c{i}"], found["--card"]) >= 3, i
        assert contrast(found["--on"], found[f"--c{i}"]) >= 4, i


def test_the_script_is_well_formed_in_xml() -> None:
    assert not {"<", "&"} & set(style.SCRIPT + style.STYLE)
