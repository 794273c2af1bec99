"""Two refits on different words: what they are made of, and which candidates they prefer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.judging import refits as module
from qwp.judging.refits import MOST_WORDS, Refits, refits, words_of
from qwp.maps.procrustes import Maps
from qwp.maps.refinement import RefineSettings
from tests.libraries import as_strict
from tests.problems import Array, planted, rotation


def spaces(n: int = 600, d: int = 12, noise: float = 0.2) -> tuple[Array, Array, Maps]:
    problem = planted(n, d=d, noise=noise)
    return problem.src, problem.tgt, Maps(problem.w)


def test_they_have_no_source_word_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, right = spaces(400)
    seen = []

    def refine(some: Array, others: Array, maps: Maps, settings: RefineSettings) -> Maps:
        seen.append((some, others, settings.csls_k))
        return maps

    monkeypatch.setattr(module, "refine", refine)
    monkeypatch.setattr(module, "MOST_WORDS", 300)
    assert refits(x, y, right, csls_k=7) == (right, right)
    [(even, others, csls_k), (odd, _, _)] = seen
    assert np.array_equal(even, x[:300:2])
    assert np.array_equal(odd, x[1:300:2])
    assert np.array_equal(others, y[:300])
    assert csls_k == 7


def test_they_are_made_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, right = spaces(300)
    made = refits(x, y, right, csls_k=10)
    calls: list[int] = []

    def refine(some: Array, others: Array, maps: Maps, settings: RefineSettings) -> Maps:
        calls.append(settings.csls_k)
        return maps

    monkeypatch.setattr(module, "refine", refine)
    assert refits(x.copy(), y.copy(), Maps(np.array(right.src)), csls_k=10) is made
    assert not calls
    # Whatever decides them makes others.
    refits(x, y, right, csls_k=9)
    refits(x, y[::-1], right, csls_k=10)
    refits(x, y, Maps(rotation(12, 1)), csls_k=10)
    refits(x, y, Maps(right.src, rotation(12, 1)), csls_k=10)
    assert calls == [9, 9, 10, 10, 10, 10, 10, 10]
    # Few are remembered: the first are forgotten by now.
    refits(x, y, right, csls_k=10)
    assert calls[8:] == [10, 10]
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


@given(n=st.integers(1, 30), k=st.integers(1, 8), at_once=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_preferred_candidate_is_the_nearest(n: int, k: int, at_once: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    a, b, c = (rng.standard_normal((4, width)) for width in (3, 3, 4))
    rows, candidates = rng.integers(12, size=n), rng.integers(9, size=(n, k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CANDIDATES_AT_ONCE", at_once)
        found = Refits(x, y, (Maps(a, b), Maps(c))).preferred(rows, candidates)
        strict_maps = Maps(as_strict(a), as_strict(b)), Maps(as_strict(c))
        strict = Refits(as_strict(x), as_strict(y), strict_maps).preferred(rows, candidates)
    for column, (src, tgt) in enumerate(((x @ a, y @ b), (x @ c, y))):
        cosines = (src / np.linalg.norm(src, axis=1, keepdims=True)) @ (tgt / np.linalg.norm(tgt, axis=1)[:, None]).T
        among = np.take_along_axis(cosines[rows], candidates, axis=1)
        np.testing.assert_allclose(among[np.arange(n), found[:, column]], among.max(axis=1))
    assert np.array_equal(found, strict)


def test_nothing_asked_is_nothing_preferred() -> None:
    x, y, right = spaces(50)
    found = Refits(x, y, (right, right)).preferred(np.zeros(0, dtype=np.int64), np.zeros((0, 10), dtype=np.int64))
    assert found.shape == (0, 2)
