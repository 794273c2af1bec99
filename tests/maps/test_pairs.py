"""Known pairs of words."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps.pairs import KnownPairs, ShareFound, from_pairs, identical_rows, lexicon_rows, share_found
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
def test_a_tenth_of_the_words_is_held_out_with_all_their_translations(words: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(words) * 3, rng.integers(1, most + 1, words))
    pairs = src, rng.integers(0, 1000, len(src))
    known = KnownPairs.of(pairs)
    if words < 200:
        assert known == KnownPairs(pairs)
        return
    assert known.held_out is not None
    assert not set(known.used[0]) & set(known.held_out[0])
    assert len(set(known.held_out[0])) == pytest.approx(words / 10, abs=1)
    together = [np.concatenate(both) for both in zip(known.used, known.held_out, strict=True)]
    assert sorted(zip(*together, strict=True)) == sorted(zip(*pairs, strict=True))


def test_the_share_of_words_whose_translation_is_known() -> None:
    problem = planted(300, d=20, noise=0.1, shuffle=True)
    src, tgt = problem.gold.T
    true = Maps(problem.w)
    assert share_found(problem.src, problem.tgt, true, (src, tgt)) == ShareFound(1.0, 300)
    # Each word has two translations; one of them suffices.
    twice = np.concatenate([src, src]), np.concatenate([tgt, np.roll(tgt, 1)])
    assert share_found(problem.src, problem.tgt, true, twice) == ShareFound(1.0, 300)
    wrong = np.where(src % 4 == 0, np.roll(tgt, 1), tgt)
    assert share_found(problem.src, problem.tgt, true, (src, wrong)).share == 0.75
    turn = rotation(20, 5)
    both = Maps(problem.w @ turn, turn)
    assert share_found(problem.src, problem.tgt, both, (src, tgt)).share == 1.0
    assert share_found(problem.src, problem.tgt, Maps(turn), (src, tgt)).share < 0.1
    strict = share_found(as_strict(problem.src), as_strict(problem.tgt), Maps(as_strict(problem.w)), (src, wrong))
    assert strict == ShareFound(0.75, 300)


def test_what_may_be_chance_is_not_clearly_above() -> None:
    assert ShareFound(0.6, 100).clearly_above(ShareFound(0.4, 100))
    assert not ShareFound(0.45, 100).clearly_above(ShareFound(0.4, 100))
    assert ShareFound(0.45, 10_000).clearly_above(ShareFound(0.4, 10_000))
    assert not ShareFound(0.0, 100).clearly_above(ShareFound(0.0, 100))
    assert not ShareFound(0.3, 100).clearly_above(ShareFound(0.9, 100))
