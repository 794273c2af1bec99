"""Spelling similarity, and its effect on candidates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import InputError
from qwp.search.spelling import Spelling, checked_weight, folded

WORDS = st.text(st.sampled_from("abcdéÉñßłдомλ東-'19 "), max_size=12) | st.text(max_size=60)


def similarity(word: str, other: str, spelling: Spelling = Spelling()) -> float:  # noqa: B008
    return float(spelling.similarities([word], [other], np.zeros((1, 1), dtype=np.int64))[0, 0])


def slow_distance(a: str, b: str) -> int:
    """Return the edit distance by the definition; characters other than letters never match."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        row = [i]
        for j, y in enumerate(b, start=1):
            differ = x != y or not x.isalpha()
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + differ))
        previous = row
    return previous[-1]


def test_known_similarities() -> None:
    known = [
        ("nation", "nation", 1.0),
        ("nation", "Nación", (5 / 6) ** 2),
        ("house", "haus", (3 / 5) ** 2),
        ("abc", "xyz", 0.0),
        ("a", "", 0.0),
        ("", "", 1.0),
        # Case and accents.
        ("Élan", "elan", 1.0),
        ("STRASSE", "straße", 1.0),
        ("Łódź", "lodz", 1.0),
        ("cœur", "coeur", 1.0),
        # Other scripts, numbers and symbols.
        ("dom", "дом", 0.0),
        ("covid-19", "ковид-19", 0.0),
        ("tokyo", "東京", 0.0),
        ("1990", "1991", 0.0),
        ("1990", "1990", 1.0),
        ("---", "--", 0.0),
        ("covid-19", "Covid-19", 1.0),
    ]
    for word, other, expected in known:
        assert similarity(word, other) == pytest.approx(expected), (word, other)
        assert similarity(other, word) == pytest.approx(expected), (word, other)


@given(WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_similarity_is_symmetric_and_1_for_equal_words(word: str, other: str) -> None:
    found = similarity(word, other)
    assert 0.0 <= found <= 1.0
    assert found == similarity(other, word)
    assert similarity(word, word) == 1.0


@given(WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_similarity_follows_from_the_edit_distance(word: str, other: str) -> None:
    a, b = folded(word)[:40], folded(other)[:40]
    expected = 1.0 if folded(word) == folded(other) else (1 - slow_distance(a, b) / max(len(a), len(b))) ** 2
    assert similarity(word, other) == pytest.approx(expected)


def test_similarities_equal_those_of_each_pair() -> None:
    rng = np.random.default_rng(0)
    words, others = (["".join(rng.choice([*"abcde"], size=rng.integers(0, 9))) for _ in range(n)] for n in (40, 25))
    rows = rng.integers(0, 25, (40, 7))
    expected = [[similarity(word, others[j]) for j in some] for word, some in zip(words, rows.tolist(), strict=True)]
    np.testing.assert_array_equal(Spelling().similarities(words, others, rows), expected)


def test_blocks_change_nothing() -> None:
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice([*"abc"], size=rng.integers(0, 9))) for _ in range(30)]
    rows = rng.integers(0, 30, (30, 5))
    whole = Spelling().similarities(words, words, rows)
    # Sums of whole numbers do not depend on their order.
    np.testing.assert_array_equal(Spelling(block_pairs=7).similarities(words, words, rows), whole)


def test_first_letters_of_long_words_are_compared() -> None:
    words, spelling = ["abcd", "abxy"], Spelling(longest=2)
    found = spelling.similarities(words, words, np.array([[0, 1], [0, 1]]))
    # Words that differ later are not equal, but as similar as their first letters.
    assert found.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert similarity("abcd", "xbcd", spelling) == similarity("ab", "xb")
    long = ["ab" * 50_000, "ba" * 50_000]
    assert Spelling().similarities(long, long, np.array([[1], [0]]))[0, 0] == similarity("ab" * 20, "ba" * 20)


def test_a_cognate_wins_a_tie_by_the_weight() -> None:
    rows, scores = np.array([[0, 1, 2]]), np.array([[0.5, 0.5, 0.2]], dtype=np.float32)
    others = ["casa", "nación", "nation"]
    found, total = Spelling(0.1).reranked(["nation"], others, rows, scores)
    assert found.tolist() == [[1, 0, 2]]
    assert total.dtype == np.float32
    # casa and nation: two of six letters match.
    expected = [[0.5 + 0.1 * 25 / 36, 0.5 + 0.1 * similarity("casa", "nation"), 0.3]]
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    assert Spelling(0.7).reranked(["nation"], others, rows, scores)[0].tolist() == [[1, 2, 0]]


def test_words_of_another_script_are_not_changed() -> None:
    rows, scores = np.array([[2, 0, 1]]), np.array([[0.5, 0.5, 0.2]])
    found, total = Spelling().reranked(["dom"], ["дом", "домой", "том"], rows, scores)
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(total, scores)


@pytest.mark.parametrize(
    ("words", "others", "expected"),
    [
        (["house", "water", "good"], ["Haus", "Wässer", "gut"], True),
        (["house", "water", "good"], ["дом", "вода", "хорошо"], False),
        # A few foreign words make no alphabet.
        (["house", "water", "good"], ["good", *["良い", "家", "水", "ウェブサイト", "ブログ"] * 5], False),
        (["дом", "вода"], ["дім", "вода"], True),
        (["1990"], ["1990"], False),
        ([], [], False),
    ],
)
def test_alphabets(words: list[str], others: list[str], expected: bool) -> None:
    assert Spelling().one_alphabet(words, others) is Spelling().one_alphabet(others, words) is expected


def test_the_most_frequent_words_are_the_alphabet() -> None:
    words, others = ["house", "дом"], ["haus", "東京"]
    assert Spelling().one_alphabet(words, others)
    assert not Spelling(alphabet_words=1).one_alphabet(words[::-1], others)
    assert not Spelling(shared_letters=0.9).one_alphabet(words, others)


def test_only_the_first_candidates_are_compared() -> None:
    rows, scores = np.arange(5)[None, :], np.linspace(0.5, 0.4, 5)[None, :]
    others = ["zzz", "zzz", "word", "word", "zzz"]
    found, total = Spelling(1.0, compared=3).reranked(["word"], others, rows, scores)
    assert found[0].tolist() == [2, 0, 1, 3, 4]
    np.testing.assert_array_equal(total[0, -2:], scores[0, -2:])


def test_weights() -> None:
    weights: list[Any] = [0, 0.0, 0.25, np.float32(0.25), 1, 10]
    for weight in weights:
        assert checked_weight(weight) == float(weight)
    # True is the measured weight.
    assert checked_weight(True) == Spelling.weight
    assert checked_weight(False) == 0.0


def test_invalid_weights_are_refused() -> None:
    message = r"is not a weight; expected 0 \(off\) to 10, or True for the measured weight 0.7"
    wrong: list[Any] = [-0.1, 10.1, math.nan, math.inf, "0.5", None]
    for weight in wrong:
        with pytest.raises(InputError, match=message):
            checked_weight(weight)


def test_spelling_requires_csls() -> None:
    with pytest.raises(InputError, match=r"spelling=0.5 was received with retrieval='nn'; expected 'csls'"):
        checked_weight(0.5, "nn")
    assert checked_weight(0.0, "nn") == 0.0
