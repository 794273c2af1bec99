"""Initial maps by similarity profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.parameters import check, with_values
from qwp.stages.init.profiles import (
    Profiles,
    _shares,
    descriptors,
    normal_scores,
    similarity_factor,
    unit_deviation,
)
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation
from tests.stages.problems import problem_of

Array = npt.NDArray[Any]


def _described(x: Any, y: Any) -> tuple[Any, Any]:
    return descriptors(similarity_factor(x), similarity_factor(y))


def test_normal_scores_are_the_normal_quantiles_of_ranks() -> None:
    columns = np.random.default_rng(0).standard_normal((50, 3)) ** 3
    expected = norm.ppf((rankdata(columns, axis=0) - 0.5) / 50)
    assert_close(normal_scores(columns), expected, atol=1e-9)


@given(st.integers(1, 60), st.integers(0, 10))
@settings(max_examples=30)
def test_normal_scores_know_the_order_alone(n: int, seed: int) -> None:
    column = np.random.default_rng(seed).standard_normal((n, 1))
    assert_same(normal_scores(column), normal_scores(np.exp(3 * column) + 7))


def test_equal_words_have_equal_descriptions_under_any_rotation() -> None:
    problem = planted(200, d=10, seed=3)
    x, y = problem.src, problem.src @ rotation(10, 1)
    found_x, found_y = (host(d) for d in _described(x, y))
    assert_close(found_x, found_y, atol=1e-4)
    # Each word is nearest to itself, so descriptors are distinct.
    distances = ((found_x[:, None, :] - found_y[None]) ** 2).sum(axis=2)
    assert_same(distances.argmin(axis=1), np.arange(200))


def test_the_columns_of_both_sides_are_white() -> None:
    problem = planted(150, 120, d=8, seed=4)
    both = np.concatenate([host(d) for d in _described(problem.src, problem.tgt)])
    assert both.shape[0] == 270
    assert_close(both.T @ both / 270, np.eye(both.shape[1]), atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 79, 80, 81, 5000])
def test_levels_reach_from_the_least_to_the_most_similar_word(n: int) -> None:
    found = _shares(n, 80)
    assert found[0] == 0
    assert found[-1] == (n > 1)
    assert (np.diff(found * (n - 1)) > 0.99).all()
    if n == 5000:  # dense at both ends
        assert (found < 0.1).sum() > 20
        assert (found >= 0.9).sum() > 20


def test_any_array_library_gives_the_same() -> None:
    problem = planted(60, d=6, seed=5)
    expected = _described(problem.src, problem.tgt)
    found = _described(as_strict(problem.src), as_strict(problem.tgt))
    for a, b in zip(found, expected, strict=True):
        assert_close(np.abs(host(a)), np.abs(host(b)), atol=1e-6)


# --------------------------------------------------------------------------- similarity factors


def test_the_factors_of_a_known_case() -> None:
    # Orthogonal rows of lengths 3 and 2: they are their own axes, longest first.
    u, s = similarity_factor(np.array([[0.0, 2.0], [3.0, 0.0]]))
    assert_close(s, [3.0, 2.0])
    assert_close(np.abs(host(u)), [[0.0, 1.0], [1.0, 0.0]], atol=1e-12)


@given(n=st.integers(1, 9), d=st.integers(1, 9), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25)
def test_the_factors_are_those_of_the_root_of_the_similarities(n: int, d: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d))
    u, s = (host(factor) for factor in similarity_factor(x))
    assert s.shape == (min(n, d),)
    assert (np.diff(s) <= 0).all()
    assert_close(s, np.linalg.svd(x, compute_uv=False)[: len(s)], rtol=1e-6, atol=1e-9)
    assert_close(u.T @ u, np.eye(len(s)), atol=1e-6)
    k = (u * s) @ u.T
    assert_close(k @ k, x @ x.T, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_directions_without_variance_are_left_out(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((20, 3)) @ np.array([[1.0, 0, 0, 0], [0, 1.0, 1.0, 0], [0, 0, 0, 0]])
    u, s = (host(factor) for factor in similarity_factor(x.astype(dtype)))
    assert (u.shape, s.shape) == ((20, 2), (2,))
    assert u.dtype == s.dtype == dtype


def test_another_library_finds_the_same_factors() -> None:
    x = np.random.default_rng(0).standard_normal((12, 5))
    for found, expected in zip(similarity_factor(as_strict(x)), similarity_factor(x), strict=True):
        assert type(found) is type(as_strict(x))
        assert_close(found, expected, atol=1e-12)


def test_values_are_brought_to_unit_deviation_if_they_have_one() -> None:
    assert_close(unit_deviation(np.array([1.0, 3.0])), np.array([1.0, 3.0]), atol=1e-12)
    assert_close(unit_deviation(np.array([2.0, 6.0])), np.array([1.0, 3.0]), atol=1e-12)
    assert_close(unit_deviation(np.full(4, 7.0)), np.full(4, 7.0), atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_profiles_recover_a_planted_rotation(dtype: str) -> None:
    problem = planted(250, d=12, shuffle=True, seed=1, dtype=dtype)
    w = Profiles(words=250).solve(problem.src, problem.tgt)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_profiles_use_the_given_number_of_words() -> None:
    problem = planted(200, 150, d=8, shuffle=True, seed=1)
    few = Profiles(words=60).solve(problem.src, problem.tgt)
    assert_same(few, Profiles(words=60).solve(problem.src[:60], problem.tgt[:60]))
    everything = Profiles(words=9999).solve(problem.src, problem.tgt)
    assert_same(everything, Profiles(words=150).solve(problem.src, problem.tgt))
    assert np.abs(host(few) - host(everything)).max() > 0.01


def test_a_rotated_source_gives_the_rotated_map() -> None:
    problem = planted(120, d=8, seed=1)
    turn = rotation(8, 9)
    one, two = (Profiles(words=120).solve(src, problem.tgt) for src in (problem.src, problem.src @ turn))
    assert_close(turn @ host(two), one, atol=1e-6)


def test_words_that_are_all_alike_still_give_a_map() -> None:
    # All profiles are equal, so the cost is constant.
    x = np.tile([[0.6, 0.8, 0.0]], (5, 1))
    assert orthogonality_error(Profiles(words=5).solve(x, x)) < 1e-8


def test_another_library_finds_the_same_map() -> None:
    problem = planted(60, d=5, seed=1)
    found = Profiles(words=50).solve(as_strict(problem.src), as_strict(problem.tgt))
    assert_close(found, Profiles(words=50).solve(problem.src, problem.tgt), atol=1e-8)


def test_the_stage_takes_the_words_in_the_order_of_the_state() -> None:
    problem = planted(120, 100, d=8, shuffle=True, seed=1)
    estimates = np.random.default_rng(0).permutation(120), np.random.default_rng(1).permutation(100)
    settings = Profiles(words=60)
    for order, src, tgt in (("given", slice(None), slice(None)), ("estimated", *estimates)):
        found = settings(problem_of(problem, estimates=estimates), State(order=order), Monitor())
        assert_same(found.map, settings.solve(problem.src[src], problem.tgt[tgt]))


def test_no_words_are_refused() -> None:
    with pytest.raises(InputError, match="start_words=0 is out of range; expected 1 to 100,000,000"):
        check(with_values(Profiles(), {"start_words": 0}))
