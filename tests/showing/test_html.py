"""Markup: any text is escaped."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from qwp.showing import html

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
