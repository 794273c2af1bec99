"""The map of word pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qwp.report.word_map import ContentWords, WordPoint, generality, word_map
from qwp.results.lexicon import InducedPair
from qwp.results.sides import AlignedSide
from qwp.spaces.demo import load_demo
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.normalization import Normalization
from tests.libraries import assert_close, assert_same
from tests.report.pages import SVG, box_of, centres, map_svg, page_of, section, text, texts, tree


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
    assert text(section(tree(page_of(points=points[1:])), "map")).endswith("No word pairs to draw.")


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
def test_word_map_is_centred_and_invariant_to_translation(vectors: np.ndarray[Any, Any], shift: float) -> None:
    a, b = word_map(vectors, vectors[::-1])
    assert a.shape == b.shape == (len(vectors), 2)
    if len(vectors):
        assert_close((a + b).sum(axis=0), 0, atol=1e-8)
    # A translation changes no distance (the axes may rotate if two variances are equal).
    c, d = word_map(vectors + shift, vectors[::-1] + shift)
    assert np.square(np.r_[a, b]).sum() == pytest.approx(np.square(np.r_[c, d]).sum(), abs=1e-6, rel=1e-6)


def test_word_map_accepts_half_precision_and_one_dimension() -> None:
    a, b = word_map(np.ones((2, 1), np.float16), -np.ones((2, 1), np.float16))
    assert_same(a, [[1, 0], [1, 0]])
    assert_same(b, [[-1, 0], [-1, 0]])


FUNCTION_WORDS = {"which", "would", "though", "because", "perhaps", "quite", "rather", "however", "either", "else"}


def side_of(space: Embeddings) -> AlignedSide:
    return AlignedSide(space, None, Normalization((), ()))


@pytest.fixture(scope="module")
def english() -> AlignedSide:
    return side_of(load_demo()[0])


def test_function_words_are_left_out(english: AlignedSide) -> None:
    chosen = {english.space.words[rank] for rank in ContentWords().ranks(english)}
    assert not chosen & FUNCTION_WORDS
    assert {"flowers", "water", "horses", "music"} <= chosen
    assert not any(len(word) < 4 for word in chosen)


def test_examples_are_spread_over_the_ranks(english: AlignedSide) -> None:
    words = ContentWords().examples(english, 16)
    ranks = [english.space.index[word] for word in words]
    assert len(words) == 16
    assert ranks == sorted(ranks)
    assert ranks[0] < 200
    assert 900 < ranks[-1] < 1500


def test_an_estimated_order_is_used(english: AlignedSide) -> None:
    order = np.arange(len(english.space))[::-1].copy()
    turned = AlignedSide(english.space, None, english.normalization, order)
    assert generality(turned) == pytest.approx(generality(english)[::-1])
    assert set(ContentWords().examples(turned, 16)) != set(ContentWords().examples(english, 16))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_vocabularies_have_examples(n: int) -> None:
    space = Embeddings([str(i) for i in range(n)], np.eye(3, dtype=np.float32)[:n])
    assert ContentWords().examples(side_of(space), 16) == [str(i) for i in range(n)]


def test_pairs_are_mutual_confident_and_of_different_topics() -> None:
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(8, dtype=np.float32), 25, axis=0)
    vectors = topics + 0.05 * rng.standard_normal(topics.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names = [f"word{i}" for i in range(200)]
    side = side_of(Embeddings(names, vectors))
    # The most confident pairs have one topic; the pairs with odd numbers are not mutual.
    pairs = [InducedPair(name, f"{name}x", 1.0, 1.0, i % 2 == 0, 1.0 - i / 400) for i, name in enumerate(names)]
    target = side_of(Embeddings([f"{name}x" for name in names], vectors))
    chosen = ContentWords().pairs(pairs, (side, target), vectors, 8)
    assert len({row // 25 for row in chosen[:4]}) == 4
    assert all(pairs[row].mutual for row in chosen)
    ends = side_of(side.space.head(1)), side_of(target.space.head(1))
    assert ContentWords().pairs(pairs[:1], ends, vectors[:1], 8) == [0]
    # A small pool holds few topics.
    small = ContentWords(function_words=0, pool=1).pairs(pairs, (side, target), vectors, 8)
    assert {row // 25 for row in small} < {row // 25 for row in chosen}
