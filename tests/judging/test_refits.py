"""Two refits on different words: what they are made of, and which candidates they prefer."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.judging import refits as module
from qwp.judging.refits import MOST_WORDS, Refits, refits, words_of
from qwp.maps.procrustes import Maps
from tests.libraries import as_strict, assert_close
from tests.problems import Array, planted, rotation


def spaces(n: int = 600, d: int = 12, noise: float = 0.2) -> tuple[Array, Array, Maps]:
    problem = planted(n, d=d, noise=noise)
    return problem.src, problem.tgt, Maps(problem.w)


def test_they_have_no_source_word_in_common() -> None:
    x, y, right = spaces(400)
    made = refits(x, y, right, csls_k=7, most=300)
    for half, found in enumerate(made):
        # The words of the other half, and those beyond the most frequent ones, may be anything.
        others = x.copy()
        others[1 - half : 300 : 2] *= -1.0
        others[300:] = others[:100]
        again = refits(others, np.concatenate([y[:300], -y[300:]]), right, csls_k=7, most=300)[half]
        assert_close(again.src, found.src, atol=1e-9)


def test_they_are_made_once_in_a_process() -> None:
    x, y, right = spaces(300)
    made = refits(x, y, right, csls_k=10)
    assert refits(x.copy(), y.copy(), Maps(np.array(right.src)), csls_k=10) is made
    # Whatever decides them makes others.
    others = [
        refits(x, y, right, csls_k=9),
        refits(x, y[::-1], right, csls_k=10),
        refits(x, y, Maps(rotation(12, 1)), csls_k=10),
        refits(x, y, Maps(right.src, rotation(12, 1)), csls_k=10),
    ]
    assert len({id(each) for each in (made, *others)}) == 5
    # Few are cached: the first are forgotten by now.
    assert refits(x, y, right, csls_k=10) is not made
    strict = [as_strict(side) for side in (x, y, right.src)]
    assert module._key(strict[0], strict[1], Maps(strict[2]), 10) is None


def test_a_single_word_leaves_the_maps_as_they_are() -> None:
    x, y, right = spaces(50)
    assert refits(x[:1], y, right, csls_k=10) == (right, right)
    assert refits(x, y[:1], right, csls_k=10) == (right, right)
    few = refits(x[:2], y[:2], right, csls_k=10)
    assert all(np.isfinite(np.asarray(maps.src)).all() for maps in few)


def test_how_many_words_they_have() -> None:
    many = np.zeros((MOST_WORDS + 5, 2))
    assert words_of(many, many) == MOST_WORDS
    assert words_of(many, many[:70]) == words_of(many[:70], many) == 70


def test_refits_of_a_right_map_prefer_what_it_finds() -> None:
    x, y, right = spaces()
    cosines = (x @ right.src) @ y.T
    candidates = np.argsort(-cosines, axis=1)[:, :10]
    rows = np.arange(len(x))
    good = Refits(x, y, refits(x, y, right, csls_k=10)).preferred(rows, candidates)
    assert good.shape == (len(x), 2)
    assert np.mean(good == 0) > 0.9
    lost = Maps(rotation(12, 5))
    by_chance = np.argsort(-(x @ lost.src) @ y.T, axis=1)[:, :10]
    bad = Refits(x, y, refits(x, y, lost, csls_k=10)).preferred(rows, by_chance)
    assert np.mean(bad == 0) < 0.7


@settings(max_examples=25)
@given(n=st.integers(1, 30), k=st.integers(1, 8), at_once=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_preferred_candidate_is_the_nearest(n: int, k: int, at_once: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    a, b, c = (rng.standard_normal((4, width)) for width in (3, 3, 4))
    rows, candidates = rng.integers(12, size=n), rng.integers(9, size=(n, k))
    found = Refits(x, y, (Maps(a, b), Maps(c)), at_once).preferred(rows, candidates)
    strict_maps = Maps(as_strict(a), as_strict(b)), Maps(as_strict(c))
    strict = Refits(as_strict(x), as_strict(y), strict_maps, at_once).preferred(rows, candidates)
    for column, (src, tgt) in enumerate(((x @ a, y @ b), (x @ c, y))):
        cosines = (src / np.linalg.norm(src, axis=1, keepdims=True)) @ (tgt / np.linalg.norm(tgt, axis=1)[:, None]).T
        among = np.take_along_axis(cosines[rows], candidates, axis=1)
        np.testing.assert_allclose(among[np.arange(n), found[:, column]], among.max(axis=1))
    assert np.array_equal(found, strict)


def test_nothing_asked_is_nothing_preferred() -> None:
    x, y, right = spaces(50)
    found = Refits(x, y, (right, right)).preferred(np.zeros(0, dtype=np.int64), np.zeros((0, 10), dtype=np.int64))
    assert found.shape == (0, 2)
