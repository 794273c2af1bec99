"""Words to show: those that mean something by themselves, where there are such words."""

from __future__ import annotations

from itertools import product

import numpy as np

from qwp.results.examples import content_words, looks_like_content, some_words
from qwp.results.sides import AlignedSide
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.normalization import Normalization

LETTERS = ["".join(pair) for pair in product("abcdefghijklmnopqrstuvwxyzàáâèé", repeat=2)]


def side_of(words: list[str], order: list[int] | None = None) -> AlignedSide:
    space = Embeddings(words, np.ones((len(words), 2), np.float32))
    return AlignedSide(space, None, Normalization((), ()), None if order is None else np.asarray(order))


def test_they_are_not_the_most_frequent_and_not_numbers() -> None:
    frequent = [f"the{end}" for end in LETTERS[:100]]
    others = ["1999", "...", "of", *(f"word{end}" for end in LETTERS)]
    chosen = some_words(side_of([*frequent, *others]), 8)
    assert len(set(chosen)) == 8
    assert set(chosen) <= set(others[3:])
    assert content_words(side_of([*frequent, *others]))[0] == others[3]


def test_where_there_are_few_any_word_will_do() -> None:
    assert some_words(side_of(["1", "2", "3"]), 8) == ["1", "2", "3"]
    assert some_words(side_of(["水", "火"]), 1) == ["水"]
    assert content_words(side_of(["1", "2"])) == []


def test_the_order_is_that_of_frequency() -> None:
    assert content_words(side_of(["rare", "often", "never"], [1, 0, 2])) == ["often", "rare", "never"]


def test_what_looks_like_a_content_word() -> None:
    assert [word for word in ("house", "the", ",", "1234", "東京", "水", "дом") if looks_like_content(word)] == [
        *("house", "東京", "水")
    ]
