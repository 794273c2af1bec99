"""Markup: any text is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.experiments import html_page
from qwp.report import page
from qwp.showing import html
from qwp.showing.html import BASE, CHARTS, DARK, LIGHT, SERIES


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


texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"'\x1b\u202e"))


@given(texts, texts)
def test_any_text_is_escaped(one: str, two: str) -> None:
    card = html.card("#fff", html.line(one, "#000", two), html.table([(one, two)], (two, one)))
    card.encode()
    tree = ElementTree.fromstring(card)
    assert {each.tag for each in tree.iter()} == {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}


def test_elements_escape_all_but_markup() -> None:
    inner = html.element("b", "<&>", title='"x"')
    assert inner == '<b title="&quot;x&quot;">&lt;&amp;&gt;</b>'
    assert html.element("p", inner, 3, class_="a", aria_label=None, data_x=1) == f'<p class="a" data-x="1">{inner}3</p>'
    assert html.element("br") == "<br/>"
    assert html.element("td") == "<td></td>"
    assert html.join("<", inner) == f"&lt;{inner}"


def test_a_page_is_well_formed_and_allows_no_other_file() -> None:
    page = html.page("a <b>", html.element("p", "x"), css="p{color:red}", script="let x = 1;")
    root = ElementTree.fromstring(page)
    assert root.findtext("head/title") == "a <b>"
    policy = root.find("head/meta[@http-equiv]")
    assert policy is not None
    assert str(policy.get("content")).startswith("default-src 'none'")
    assert root.findtext("body/script") == "let x = 1;"
    assert "script" not in html.page("a", html.Markup(), css="")


def test_a_table_without_rows_is_empty() -> None:
    assert html.table([], ("a", "b")) == ""
    assert html.table([("a", "b")]).count("<tr>") == 1


def test_a_failing_block_falls_back_to_plain_text() -> None:
    def broken() -> str:
        raise ValueError

    assert html.never_failing(broken, ["<a>"]) == "<pre>[&#x27;&lt;a&gt;&#x27;]</pre>"
    assert html.never_failing(lambda: "<b>x</b>", None) == "<b>x</b>"
