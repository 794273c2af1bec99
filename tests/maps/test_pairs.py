"""Known pairs of words."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps.pairs import Flags, KnownPairs, found_words, from_pairs, identical_rows, lexicon_rows, mcnemar
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.spaces.lexicon import Lexicon
from tests.libraries import as_strict, assert_close
from tests.problems import planted, rotation


def test_from_pairs_recovers_the_map() -> None:
    problem = planted(80, 60, d=7, shuffle=True, seed=3)
    rows, columns = problem.gold.T
    found = from_pairs(problem.src, problem.tgt, rows, columns)
    assert_close(found, problem.w, atol=1e-10)


def test_from_pairs_warns_of_too_few(caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(80, d=7, seed=3)
    with caplog.at_level(logging.WARNING, logger="qwp"):
        w = from_pairs(problem.src, problem.tgt, np.arange(3), np.arange(3))
    assert "3 pairs for 7 dimensions" in caplog.text
    assert orthogonality_error(w) < 1e-10
    assert_close(problem.src[:3] @ w, problem.tgt[:3], atol=1e-10)


def test_lexicon_rows_are_those_of_the_covered_pairs() -> None:
    lexicon = Lexicon((("a", "x"), ("b", "nowhere"), ("c", "y"), ("a", "y")))
    rows, columns = lexicon_rows(lexicon, {"a": 5, "b": 6, "c": 7}, {"x": 0, "y": 1})
    assert (rows.tolist(), columns.tolist()) == ([5, 7, 5], [0, 1, 1])


def test_no_covered_pair_is_explained() -> None:
    with pytest.raises(InputError, match=r"seed lexicon of 1 pairs: no pair is covered.*at least one"):
        lexicon_rows(Lexicon((("a", "x"),)), {"b": 0}, {"x": 0})
    with pytest.raises(InputError, match=r"identical strings: no pair is covered"):
        identical_rows(["a"], ["b"])


def test_from_pairs_array_api_strict() -> None:
    problem = planted(30, d=4, seed=3)
    rows = np.arange(30)
    x, y = (as_strict(z) for z in (problem.src, problem.tgt))
    assert_close(arrays.to_numpy(from_pairs(x, y, rows, rows)), problem.w, atol=1e-10)


def test_identical_rows() -> None:
    rows, columns = identical_rows(["the", "2020", "Paris", "cat"], ["le", "Paris", "chat", "2020"])
    assert (rows.tolist(), columns.tolist()) == ([1, 2], [3, 1])


@given(
    src=st.lists(st.text("abc", max_size=2), unique=True, max_size=8),
    tgt=st.lists(st.text("abc", max_size=2), unique=True, max_size=8),
)
@settings(max_examples=30)
def test_identical_rows_are_all_the_common_words(src: list[str], tgt: list[str]) -> None:
    assume(set(src) & set(tgt))
    rows, columns = identical_rows(src, tgt)
    assert [src[i] for i in rows] == [tgt[j] for j in columns]
    assert {src[i] for i in rows} == set(src) & set(tgt)


@given(words=st.integers(1, 600), most=st.integers(1, 4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_a_tenth_of_the_words_chooses_and_a_tenth_is_held_out(words: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(words) * 3, rng.integers(1, most + 1, words))
    pairs = src, rng.integers(0, 1000, len(src))
    known = KnownPairs.of(pairs)
    if words < 200:
        assert known == KnownPairs(pairs)
        return
    assert known.validation is not None
    assert known.held_out is not None
    parts = known.used, known.validation, known.held_out
    of_parts = [set(part[0].tolist()) for part in parts]
    # All translations of a word are in one part.
    assert sum(len(part) for part in of_parts) == len(set.union(*of_parts)) == words
    assert [len(part) for part in of_parts[1:]] == pytest.approx([words / 10] * 2, abs=1)
    together = [np.concatenate(both) for both in zip(*parts, strict=True)]
    assert sorted(zip(*together, strict=True)) == sorted(zip(*pairs, strict=True))


def test_found_words_are_those_whose_translation_is_known() -> None:
    problem = planted(300, d=20, noise=0.1, shuffle=True)
    src, tgt = problem.gold.T
    true = Maps(problem.w)
    assert found_words(problem.src, problem.tgt, true, (src, tgt)).all()
    # Each word has two translations; one of them suffices.
    twice = np.concatenate([src, src]), np.concatenate([tgt, np.roll(tgt, 1)])
    found = found_words(problem.src, problem.tgt, true, twice)
    assert found.shape == (300,)
    assert found.all()
    wrong = np.where(src % 4 == 0, np.roll(tgt, 1), tgt)
    expected = np.arange(300) % 4 != 0
    assert (found_words(problem.src, problem.tgt, true, (src, wrong)) == expected).all()
    turn = rotation(20, 5)
    assert found_words(problem.src, problem.tgt, Maps(problem.w @ turn, turn), (src, tgt)).all()
    assert found_words(problem.src, problem.tgt, Maps(turn), (src, tgt)).mean() < 0.1
    strict = found_words(as_strict(problem.src), as_strict(problem.tgt), Maps(as_strict(problem.w)), (src, wrong))
    assert (strict == expected).all()


def flags(both: int, gained: int, lost: int, neither: int) -> tuple[Flags, Flags]:
    """Return which words two maps find: so many are found by both, only the first, only the second, and neither."""
    found = np.repeat([True, True, False, False], [both, gained, lost, neither])
    return found, np.repeat([True, False, True, False], [both, gained, lost, neither])


def test_mcnemar_is_the_sign_test_of_words_that_one_map_finds() -> None:
    for gained, lost in ((1, 0), (5, 0), (8, 2), (30, 20), (2, 9)):
        expected = sum(math.comb(gained + lost, k) for k in range(gained, gained + lost + 1)) / 2 ** (gained + lost)
        for both, neither in ((0, 0), (40, 7)):
            assert mcnemar(*flags(both, gained, lost, neither)) == pytest.approx(expected)
    assert mcnemar(*flags(3, 0, 4, 5)) == mcnemar(*flags(3, 0, 0, 5)) == 1.0


def test_mcnemar_sees_paired_gains_that_two_proportions_hide() -> None:
    # 30 % and 40 % of 100 words: no clear gain for independent samples, a clear one if no word was lost.
    assert mcnemar(*flags(30, 10, 0, 60)) < 0.001
    assert mcnemar(*flags(10, 30, 20, 40)) > 0.05
