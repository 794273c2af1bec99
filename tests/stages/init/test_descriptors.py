"""Descriptions of words: unchanged by rotations and by what differs between whole spaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from qwp.stages.init.descriptors import _shares, descriptors, normal_scores
from qwp.stages.init.similarities import similarity_factor
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation

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
    # And different words have different ones: each is nearest to itself.
    distances = ((found_x[:, None, :] - found_y[None]) ** 2).sum(axis=2)
    assert_same(distances.argmin(axis=1), np.arange(200))


def test_the_columns_of_both_sides_are_white() -> None:
    problem = planted(150, 120, d=8, seed=4)
    both = np.concatenate([host(d) for d in _described(problem.src, problem.tgt)])
    assert both.shape[0] == 270
    assert_close(both.T @ both / 270, np.eye(both.shape[1]), atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 79, 80, 81, 5000])
def test_levels_reach_from_the_least_to_the_most_similar_word(n: int) -> None:
    found = _shares(n)
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
