"""The whole page: sound, self-contained, every text escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.report.charts import Curve
from qwp.report.word_map import WordPoint
from qwp.showing.escapes import _NOT_IN_XML
from tests.report.pages import NASTY, SVG, cells, full_page, page_of, section, text, texts, tree


class TagCounter(HTMLParser):
    """What a browser's reader sees: opened tags, their attributes, and that every tag is closed in order."""

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


def test_page_is_sound_html_with_all_sections() -> None:
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
        curves=[Curve(nasty, nasty, nasty, [0.0, 1.0], [0.0, 1.0])],
        points=[WordPoint(nasty, "src", 0.0, 0.0, 0), WordPoint(nasty, "tgt", 0.0, 0.0, 0)],
        provenance={nasty: nasty, "list": [nasty]},
    )
    page = tree(html)
    shown = _NOT_IN_XML.sub("\ufffd", nasty)
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
