"""The HTML report: parsed with strict parsers, with known positions of what is drawn."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qwp.errors import InputError
from qwp.report import page as page_module
from qwp.report.page import Curve, WordPoint, render_report, word_map, write_report
from tests.libraries import assert_close, assert_same

SVG = "{http://www.w3.org/2000/svg}"
# The plotting area of every chart: known here so that a change of the layout is a decision, not an accident.
LEFT, RIGHT, TOP, BOTTOM = 60.0, 464.0, 12.0, 234.0
NASTY = """<script>alert("x")</script> & 'quoted'"""


def render(**changes: Any) -> str:
    given_: dict[str, Any] = {
        "title": "A title",
        "summary": [],
        "verdict": "fine",
        "verdict_ok": True,
        "scores": [],
        "translations": [],
        "curves": [],
        "points": [],
        "provenance": {},
    }
    return render_report(**{**given_, **changes})


def tree(html: str) -> ET.Element:
    """The page read as XML: fails on anything unclosed, unescaped or illegal."""
    return ET.fromstring(html)


def section(page: ET.Element, name: str) -> ET.Element:
    found = page.find(f".//section[@id='{name}']")
    assert found is not None
    return found


def text(element: ET.Element) -> str:
    return "".join(element.itertext())


def cells(page: ET.Element, name: str) -> list[list[str]]:
    return [[text(cell) for cell in row] for row in section(page, name).iter("tr")]


def chart(x: Sequence[float], y: Sequence[float]) -> ET.Element:
    page = tree(render(curves=[Curve("Cost", "step", "cost", x, y)]))
    found = section(page, "curves").find(f".//{SVG}svg")
    assert found is not None
    return found


def centres(svg: ET.Element) -> list[tuple[float, float]]:
    return [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in svg.iter(f"{SVG}circle")]


def line_points(svg: ET.Element) -> list[tuple[float, float]]:
    line = svg.find(f"{SVG}polyline")
    assert line is not None
    pairs = [place.split(",") for place in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def texts(svg: ET.Element, css: str) -> list[str]:
    return [text(t) for t in svg.iter(f"{SVG}text") if t.attrib["class"] == css]


def full_page() -> str:
    return render(
        title="en to es",
        summary=[("Pairs", "1,842")],
        scores=[{"lexicon": "a", "P@1": 31.25, "n": 1025}, {"lexicon": "b", "P@1": 60.0, "MRR": math.nan}],
        translations=[("king", [("rey", 0.71), ("conde", 0.5)], True), ("sea", [], False), ("x", [], None)],
        curves=[Curve("Cost", "step", "cost", [0, 1, 2], [3.0, 2.0, 1.0])],
        points=[WordPoint("sun", "src", 0.0, 0.0, 0), WordPoint("sol", "tgt", 1.0, 1.0, 0)],
        provenance={"version": "0.1.0", "config": {"k": 500, "coreset": {"kind": "lloyd"}}, "seed": 1234567},
    )


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


# ------------------------------------------------------------------------------------------------- whole page


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
    page = tree(render())
    assert not list(page.iter(f"{SVG}svg"))
    assert text(section(page, "map")).endswith("No word pairs to draw.")


@pytest.mark.parametrize(("ok", "css"), [(True, "verdict ok"), (False, "verdict bad")])
def test_verdict_banner(ok: bool, css: str) -> None:
    banner = tree(render(verdict="so it is", verdict_ok=ok)).find(".//*[@role='status']")
    assert banner is not None
    assert banner.attrib["class"] == css
    assert text(banner).endswith("so it is")
    assert text(banner)[0] == ("✓" if ok else "✗")


@pytest.mark.parametrize("nasty", [NASTY, "]]>", "--><b>", "\x00\x0b\x1f", "\ud800", "&amp;", "a\ufffeb"])
def test_every_text_is_escaped(nasty: str) -> None:
    html = render(
        title=nasty,
        summary=[(nasty, nasty)],
        verdict=nasty,
        scores=[{nasty: nasty}],
        translations=[(nasty, [(nasty, 1.0)], True)],
        curves=[Curve(nasty, nasty, nasty, [0.0, 1.0], [0.0, 1.0])],
        points=[WordPoint(nasty, "src", 0.0, 0.0, 0), WordPoint(nasty, "tgt", 0.0, 0.0, 0)],
        provenance={nasty: nasty, "list": [nasty]},
    )
    page = tree(html)
    shown = page_module._ILLEGAL.sub("\ufffd", nasty)
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
    page = tree(render(points=points, translations=[(word, [(word, score)], None)], scores=[{"a": score, "b": word}]))
    assert len(list(page.iter("section"))) == 6


# ----------------------------------------------------------------------------------------------------- tables


def test_scores_take_the_union_of_the_columns_and_line_up_decimals() -> None:
    page = tree(full_page())
    assert cells(page, "scores") == [
        ["lexicon", "P@1", "n", "MRR"],
        ["a", "31.25", "1,025", "–"],
        ["b", "60.00", "–", "–"],
    ]
    head = section(page, "scores").findall(".//th")
    assert [cell.get("class") for cell in head] == [None, "num", "num", "num"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
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
    ],
)
def test_numbers_in_tables(value: object, shown: str) -> None:
    assert page_module._number(value) == shown


def test_translations_show_scores_and_whether_right() -> None:
    page = tree(full_page())
    rows = cells(page, "translations")[1:]
    assert rows == [["king", "rey0.710conde0.500", "✓"], ["sea", "", "✗"], ["x", "", ""]]
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


def test_provenance_takes_values_json_does_not_know() -> None:
    values: Mapping[str, object] = {"path": Path("a.vec"), "shape": (2, 3)}
    assert cells(tree(render(provenance=values)), "provenance") == [["path", '"a.vec"'], ["shape", "[2, 3]"]]


# ----------------------------------------------------------------------------------------------------- charts


def test_chart_points_are_at_their_known_positions() -> None:
    svg = chart([0, 5, 10], [0.0, 1.0, 0.5])
    middle = (LEFT + RIGHT) / 2
    expected = [(LEFT, BOTTOM), (middle, TOP), (RIGHT, (TOP + BOTTOM) / 2)]
    assert centres(svg) == expected
    assert line_points(svg) == expected
    assert texts(svg, "label") == ["step", "cost"]
    assert texts(svg, "tick") == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "0", "2", "4", "6", "8", "10"]
    tips = [text(title) for title in svg.iter(f"{SVG}title")]
    assert tips == ["step 0, cost 0", "step 5, cost 1", "step 10, cost 0.5"]


def test_ticks_stand_at_the_values_they_name() -> None:
    svg = chart([0, 10], [0.0, 1.0])
    marks = [t for t in svg.iter(f"{SVG}text") if t.attrib["class"] == "tick"]
    across = {text(t): float(t.attrib["x"]) for t in marks if t.attrib["text-anchor"] == "middle"}
    assert across["0"] == LEFT
    assert across["10"] == RIGHT
    assert across["4"] == pytest.approx(LEFT + 0.4 * (RIGHT - LEFT), abs=0.01)


def test_constant_curve_runs_through_the_middle_of_the_range() -> None:
    places = centres(chart([0, 1, 2], [1200.0] * 3))
    assert [y for _, y in places] == [(TOP + BOTTOM) / 2] * 3


def test_long_tick_labels_push_the_axis_to_the_right() -> None:
    svg = chart([0, 1], [1e-6, 3e-6])
    marks = [t for t in svg.iter(f"{SVG}text") if t.attrib["class"] == "tick"]
    beside = [box_of(t)[0] for t in marks if t.attrib["text-anchor"] == "end"]
    assert min(beside) > 16  # the turned title of the axis ends there


def test_one_point_is_drawn_inside_the_frame() -> None:
    [(x, y)] = centres(chart([7], [0.0]))
    assert LEFT < x < RIGHT
    assert TOP < y < BOTTOM


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    curve = Curve("Cost", "step", "cost", [0, 1, 2, 3], [0.0, math.nan, math.inf, 1.0])
    page = tree(render(curves=[curve]))
    svg = next(page.iter(f"{SVG}svg"))
    assert centres(svg) == [(LEFT, BOTTOM), (RIGHT, TOP)]
    assert "2 values that are not finite left out" in text(section(page, "curves"))


@pytest.mark.parametrize("y", [[], [math.nan]])
def test_curve_without_values_says_so(y: list[float]) -> None:
    page = tree(render(curves=[Curve("Cost", "step", "cost", list(range(len(y))), y)]))
    assert "No finite values to draw." in text(section(page, "curves"))
    assert not list(page.iter(f"{SVG}svg"))


def test_long_curve_keeps_its_line_and_thins_the_hover_targets() -> None:
    svg = chart(list(range(5000)), [math.sin(i / 100) for i in range(5000)])
    assert len(line_points(svg)) == 5000
    places = centres(svg)
    assert len(places) == 200
    assert (places[0][0], places[-1][0]) == (LEFT, RIGHT)


def test_curve_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(InputError, match=r"3 x values and 2 y values.*give one y"):
        render(curves=[Curve("Cost", "step", "cost", [0, 1, 2], [0.0, 1.0])])


@settings(max_examples=200)
@given(values=st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=8))
def test_any_curve_stays_inside_its_frame(values: list[tuple[float, float]]) -> None:
    page = tree(render(curves=[Curve("c", "x", "y", [x for x, _ in values], [y for _, y in values])]))
    for svg in page.iter(f"{SVG}svg"):
        assert 2 <= len(texts(svg, "tick")) <= 20
        for x, y in line_points(svg):
            assert LEFT <= x <= RIGHT
            assert TOP <= y <= BOTTOM


@pytest.mark.parametrize(
    ("ticks", "step", "labels"),
    [
        ([0.0, 2.5, 5.0], 2.5, ["0.0", "2.5", "5.0"]),
        ([0.25, 0.5], 0.25, ["0.25", "0.50"]),
        ([0.0, 200.0], 200.0, ["0", "200"]),
        ([0.0, 1e6, 2e6], 1e6, ["0", "1e+06", "2e+06"]),
        ([1e-5, 1.5e-5], 5e-6, ["1.0e-05", "1.5e-05"]),
        ([-0.0, 0.1], 0.1, ["0.0", "0.1"]),
    ],
)
def test_tick_labels(ticks: list[float], step: float, labels: list[str]) -> None:
    assert page_module._tick_labels(ticks, step) == labels


# --------------------------------------------------------------------------------------------------- word map


def map_svg(points: Sequence[WordPoint]) -> ET.Element:
    found = section(tree(render(points=points)), "map").find(f".//{SVG}svg")
    assert found is not None
    return found


def box_of(label: ET.Element) -> tuple[float, float, float, float]:
    width = page_module._text_width(text(label))
    left = float(label.attrib["x"]) - {"start": 0.0, "middle": width / 2, "end": width}[label.attrib["text-anchor"]]
    base = float(label.attrib["y"])
    return left, base - 11, left + width, base + 3


def test_map_draws_both_words_and_a_line_between_them() -> None:
    points = [WordPoint("sun", "src", 0.0, 0.0, 0), WordPoint("sol", "tgt", 2.0, 1.0, 0)]
    svg = map_svg(points)
    # 720 wide at one scale for both axes: 2 units -> 720, 1 unit -> 360; y grows upwards.
    assert svg.attrib["viewBox"] == "0 0 900 432"
    assert centres(svg) == [(90.0, 396.0)]
    [square] = svg.iter(f"{SVG}rect")
    assert (float(square.attrib["x"]) + 3.25, float(square.attrib["y"]) + 3.25) == (810.0, 36.0)
    [line] = [e for e in svg.iter(f"{SVG}line") if e.attrib["class"] == "pair"]
    assert [line.attrib[k] for k in ("x1", "y1", "x2", "y2")] == ["90", "396", "810", "36"]
    assert [text(t) for t in svg.iter(f"{SVG}title")] == ["sun – sol", "sol – sun"]
    assert (texts(svg, "word src"), texts(svg, "word tgt")) == (["sun"], ["sol"])


def test_map_of_one_point_and_of_equal_points() -> None:
    assert centres(map_svg([WordPoint("sun", "src", 3.0, 4.0, 0)])) == [(450.0, 180.0)]
    crowd = [WordPoint(f"w{i}", "src", 1.0, 1.0, i) for i in range(5)]
    assert centres(map_svg(crowd)) == [(450.0, 180.0)] * 5


def test_map_leaves_out_points_that_are_not_finite() -> None:
    points = [WordPoint("sun", "src", 0.0, 0.0, 0), WordPoint("sol", "tgt", math.nan, 1.0, 0)]
    svg = map_svg(points)
    assert texts(svg, "word tgt") == []
    assert not [e for e in svg.iter(f"{SVG}line") if e.attrib["class"] == "pair"]
    assert text(section(tree(render(points=points[1:])), "map")).endswith("No word pairs to draw.")


def test_words_of_different_pairs_are_not_joined() -> None:
    svg = map_svg([WordPoint("sun", "src", 0.0, 0.0, 0), WordPoint("mar", "tgt", 1.0, 1.0, 1)])
    assert not list(svg.iter(f"{SVG}line"))


def test_labels_in_a_crowd_do_not_cover_each_other() -> None:
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(scale=0.04, size=(12, 2)), [[-1.0, -1.0], [1.0, 1.0]]])
    svg = map_svg([WordPoint(f"word{i}", "src", float(x), float(y), i) for i, (x, y) in enumerate(places)])
    boxes = [box_of(t) for t in svg.iter(f"{SVG}text")]
    assert len(boxes) == 14
    height = float(svg.attrib["viewBox"].split()[3])
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        assert min(x0, y0) >= 0
        assert x1 <= 900
        assert y1 <= height
        for u0, v0, u1, v1 in boxes[:i]:
            assert min(x1, u1) - max(x0, u0) <= 0 or min(y1, v1) - max(y0, v0) <= 0


def test_long_words_are_shortened_on_the_map_but_not_in_the_tooltip() -> None:
    svg = map_svg([WordPoint("x" * 80, "src", 0.0, 0.0, 0)])
    assert texts(svg, "word src") == ["x" * 23 + "…"]
    assert text(next(svg.iter(f"{SVG}title"))) == "x" * 80


def test_word_map_finds_a_known_plane() -> None:
    # The points of a plane in 5 dimensions keep their distances in the map.
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    flat = rng.normal(size=(12, 2)) * (3.0, 1.0)
    vectors = flat @ basis.T + 4.0
    a, b = word_map(vectors[:6], vectors[6:])
    assert a.shape == b.shape == (6, 2)
    drawn = np.concatenate([a, b])
    assert_close(
        np.linalg.norm(drawn[:, None] - drawn[None], axis=2),
        np.linalg.norm(flat[:, None] - flat[None], axis=2),
        atol=1e-10,
    )
    assert drawn[:, 0].var() > drawn[:, 1].var()


def test_word_map_signs_and_exact_values() -> None:
    src = np.array([[2.0, 0.0], [-2.0, 0.0]])
    tgt = np.array([[0.0, 1.0], [0.0, -1.0]])
    a, b = word_map(src, tgt)
    assert_close(a, [[2, 0], [-2, 0]], atol=1e-12)
    assert_close(b, [[0, 1], [0, -1]], atol=1e-12)


@settings(max_examples=50)
@given(
    arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=st.floats(-100, 100)),
    st.floats(-50, 50),
)
def test_word_map_is_centred_and_blind_to_a_shift(vectors: np.ndarray[Any, Any], shift: float) -> None:
    a, b = word_map(vectors, vectors[::-1])
    assert a.shape == b.shape == (len(vectors), 2)
    if len(vectors):
        assert_close((a + b).sum(axis=0), 0, atol=1e-8)
    # Shifting everything moves no distance (the axes themselves may turn where two variances are equal).
    c, d = word_map(vectors + shift, vectors[::-1] + shift)
    assert np.square(np.r_[a, b]).sum() == pytest.approx(np.square(np.r_[c, d]).sum(), abs=1e-6, rel=1e-6)


def test_word_map_takes_half_precision_and_one_dimension() -> None:
    a, b = word_map(np.ones((2, 1), np.float16), -np.ones((2, 1), np.float16))
    assert_same(a, [[1, 0], [1, 0]])
    assert_same(b, [[-1, 0], [-1, 0]])


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 4)), r"\(2, 3\) and tgt_vectors \(2, 4\), expected the same shape"),
        (np.zeros(3), np.zeros(3), "src_vectors has 1 dimensions.*expected 2"),
        (np.zeros((1, 2)), np.array([[0.0, np.nan]]), "tgt_vectors holds 1 values that are not finite"),
    ],
)
def test_word_map_refuses_what_it_cannot_draw(
    src: np.ndarray[Any, Any], tgt: np.ndarray[Any, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        word_map(src, tgt)


# ---------------------------------------------------------------------------------------------------- writing


def test_write_report_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")
    write_report(path, "nuevo ñ\n")
    assert path.read_bytes() == "nuevo ñ\n".encode()
    write_report(str(path), "again")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_interrupted_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(error):
        write_report(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text() == "old"


def test_write_report_explains_a_bad_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist, expected a folder to write into"):
        write_report(tmp_path / "none" / "r.html", "x")
    with pytest.raises(InputError, match="is a directory, expected the name of a file"):
        write_report(tmp_path, "x")
