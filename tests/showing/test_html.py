"""Pieces of HTML for notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from qwp.showing import html

texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"'\x1b\u202e"))


@given(texts, texts)
def test_any_text_is_only_text(one: str, two: str) -> None:
    card = html.card("#fff", html.line(one, "#000", two), html.table([(one, two)], (two, one)))
    card.encode()
    tree = ElementTree.fromstring(card.replace("\ufffe", "").replace("\uffff", ""))
    assert {each.tag for each in tree.iter()} == {"div", "b", "table", "tr", "th", "td"}


def test_a_table_without_rows_is_nothing() -> None:
    assert html.table([], ("a", "b")) == ""
    assert html.table([("a", "b")]).count("<tr>") == 1


def test_what_fails_is_shown_as_plain_text() -> None:
    def broken() -> str:
        raise ValueError

    assert html.never_failing(broken, ["<a>"]) == "<pre>[&#x27;&lt;a&gt;&#x27;]</pre>"
    assert html.never_failing(lambda: "<b>x</b>", None) == "<b>x</b>"
