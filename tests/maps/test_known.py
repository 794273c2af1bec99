"""Held-out pairs: all translations of some words, and what maps find of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.maps.known import KnownPairs, ShareFound, share_found
from qwp.maps.procrustes import Maps
from tests.libraries import as_strict
from tests.problems import planted, rotation


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
    # Two translations of each word, of which one is wrong: it is enough that one is found.
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
