"""Content words, told without a list of words."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.report.selection import content_pairs, content_ranks, example_words, generality
from qwp.results.alignment import InducedPair
from qwp.results.sides import AlignedSide
from qwp.spaces.demo import load_demo
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.normalization import Normalization

FUNCTION_WORDS = {"which", "would", "though", "because", "perhaps", "quite", "rather", "however", "either", "else"}


def side_of(space: Embeddings) -> AlignedSide:
    return AlignedSide(space, None, Normalization((), ()))


@pytest.fixture(scope="module")
def english() -> AlignedSide:
    return side_of(load_demo()[0])


def test_function_words_are_left_out(english: AlignedSide) -> None:
    chosen = {english.space.words[rank] for rank in content_ranks(english)}
    assert not chosen & FUNCTION_WORDS
    assert {"flowers", "water", "horses", "music"} <= chosen
    assert not any(len(word) < 4 for word in chosen)


def test_examples_are_spread_over_the_ranks(english: AlignedSide) -> None:
    words = example_words(english, 16)
    ranks = [english.space.index[word] for word in words]
    assert len(words) == 16
    assert ranks == sorted(ranks)
    assert ranks[0] < 200
    assert 900 < ranks[-1] < 1500


def test_an_estimated_order_counts(english: AlignedSide) -> None:
    order = np.arange(len(english.space))[::-1].copy()
    turned = AlignedSide(english.space, None, english.normalization, order)
    assert generality(turned) == pytest.approx(generality(english)[::-1])
    assert set(example_words(turned, 16)) != set(example_words(english, 16))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_vocabularies_have_examples(n: int) -> None:
    space = Embeddings([str(i) for i in range(n)], np.eye(3, dtype=np.float32)[:n])
    assert example_words(side_of(space), 16) == [str(i) for i in range(n)]


def test_pairs_are_mutual_sure_and_of_many_topics() -> None:
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(8, dtype=np.float32), 25, axis=0)
    vectors = topics + 0.05 * rng.standard_normal(topics.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names = [f"word{i}" for i in range(200)]
    side = side_of(Embeddings(names, vectors))
    # The surest are all of one topic; the pairs of odd number do not choose each other.
    pairs = [InducedPair(name, f"{name}x", 1.0, 1.0, i % 2 == 0, 1.0 - i / 400) for i, name in enumerate(names)]
    target = side_of(Embeddings([f"{name}x" for name in names], vectors))
    chosen = content_pairs(pairs, (side, target), vectors, 8)
    assert len({row // 25 for row in chosen[:4]}) == 4
    assert all(pairs[row].mutual for row in chosen)
    assert content_pairs(pairs[:1], (side_of(side.space.head(1)), side_of(target.space.head(1))), vectors[:1], 8) == [0]
