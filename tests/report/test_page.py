"""The page of a report: valid, self-contained, with every text escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.report import page
from qwp.report.word_map import WordPoint
from qwp.showing.charts import LineChart
from qwp.showing.terminal import visible
from tests.report.pages import NASTY, SVG, cells, full_page, page_of, section, text, texts, tree


class TagCounter(HTMLParser):
    """Collects the tags and attributes of a page, and checks that every tag is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_valid_html_with_all_sections() -> None:
    html = full_page()
    assert html.startswith("<!DOCTYPE html>")
    counter = TagCounter()
    counter.feed(html)
    assert counter.open == []
    ids = [attributes["id"] for tag, attributes in counter.seen if tag == "section"]
    assert ids == ["figures", "scores", "translations", "curves", "map", "provenance"]
    assert "prefers-color-scheme:dark" in html


def test_page_refers_to_nothing_outside_itself() -> None:
    html = full_page()
    rest = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http://" not in rest
    assert "https://" not in rest
    assert "url(" not in rest
    assert "@import" not in rest
    counter = TagCounter()
    counter.feed(html)
    for tag, attributes in counter.seen:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed"}
        assert not {"src", "href", "onload", "onclick"} & attributes.keys()


def test_everything_may_be_empty() -> None:
    page = tree(page_of())
    assert not list(page.iter(f"{SVG}svg"))
    assert text(section(page, "map")).endswith("No word pairs to draw.")


@pytest.mark.parametrize(
    ("verdict", "css", "sign"),
    [("succeeded", "ok", "✓"), ("failed", "bad", "✗"), ("weak", "unsure", "!"), ("unjudged", "unsure", "!")],
)
def test_verdict_banner(verdict: str, css: str, sign: str) -> None:
    banner = tree(page_of(verdict=verdict, explanation="so it is")).find(".//*[@role='status']")
    assert banner is not None
    assert banner.attrib["class"] == f"verdict {css}"
    assert text(banner) == f"{sign}so it is"


@pytest.mark.parametrize("nasty", [NASTY, "]]>", "--><b>", "\x00\x0b\x1f", "\ud800", "&amp;", "a\ufffeb"])
def test_every_text_is_escaped(nasty: str) -> None:
    html = page_of(
        title=nasty,
        summary=[(nasty, nasty)],
        explanation=nasty,
        scores=[{nasty: nasty}],
        translations=[(nasty, [(nasty, 1.0)], 0.5, True)],
        curves=[LineChart(nasty, nasty, nasty, [0.0, 1.0], [0.0, 1.0])],
        points=[WordPoint(nasty, "src", 0.0, 0.0, 0), WordPoint(nasty, "tgt", 0.0, 0.0, 0)],
        provenance={nasty: nasty, "list": [nasty]},
    )
    page = tree(html)
    shown = visible(nasty)
    heading = page.find(".//h1")
    assert heading is not None
    assert text(heading) == shown
    assert cells(page, "figures") == [[shown, shown]]
    assert texts(next(page.iter(f"{SVG}svg")), "label") == [shown, shown]
    assert not list(page.iter("script"))
    assert not list(page.iter("b"))
    html.encode("utf-8")


@settings(max_examples=60)
@given(word=st.text(st.characters(), max_size=30), score=st.floats())
def test_any_word_gives_a_page_that_parses(word: str, score: float) -> None:
    points = [WordPoint(word, "src", 0.0, 1.0, 3), WordPoint(word + "b", "tgt", score, 1.0, 3)]
    page = tree(
        page_of(points=points, translations=[(word, [(word, score)], score, None)], scores=[{"a": score, "b": word}])
    )
    assert len(list(page.iter("section"))) == 6


def test_scores_take_the_union_of_the_columns_and_line_up_decimals() -> None:
    page = tree(full_page())
    assert cells(page, "scores") == [
        ["lexicon", "P@1", "n", "MRR"],
        ["a", "31.25", "1,025", "–"],
        ["b", "60.00", "–", "–"],
    ]
    head = section(page, "scores").findall(".//th")
    assert [cell.get("class") for cell in head] == [None, "num", "num", "num"]


def test_translations_show_scores_and_whether_right() -> None:
    page = tree(full_page())
    rows = cells(page, "translations")[1:]
    assert rows == [["king", "rey0.710conde0.500", "0.50", "✓"], ["sea", "", "–", "✗"], ["x", "", "0.25", ""]]
    assert "1 of 2 checked examples are right." in text(section(page, "translations"))


def test_provenance_is_flattened_and_unrounded_in_details() -> None:
    page = tree(full_page())
    assert section(page, "provenance").find("details/summary") is not None
    assert cells(page, "provenance") == [
        ["version", "0.1.0"],
        ["config.k", "500"],
        ["config.coreset.kind", "lloyd"],
        ["seed", "1234567"],
    ]


def test_provenance_accepts_any_value() -> None:
    values: Mapping[str, object] = {"path": Path("a.vec"), "shape": (2, 3)}
    assert cells(tree(page_of(provenance=values)), "provenance") == [["path", '"a.vec"'], ["shape", "[2, 3]"]]


def test_examples_without_lexicon_have_no_column_for_it() -> None:
    html = page.translations([("king", [("rey", 0.5)], 0.5, None)])
    assert "Right" not in html
    assert "right" not in html


def test_code_is_marked_and_words_stay_text() -> None:
    assert page.lead("say `qwp <x>` & go") == '<p class="lead">say <code>qwp &lt;x&gt;</code> &amp; go</p>'


def test_cells_with_words_keep_their_own_direction() -> None:
    assert page.table([{"word": "בית", "n": 1}], "Words").count("<bdi>") == 1


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
        assert page.number(value) == shown


def test_columns_line_up_also_where_a_value_is_zero() -> None:
    values = [0.0, 0.125, 1.0]
    decimals = page.decimals_of(values)
    assert [page.number(value, decimals) for value in values] == ["0.000", "0.125", "1.000"]
    assert page.decimals_of([1, None]) is None
