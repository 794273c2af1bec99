"""The start by fused Gromov-Wasserstein: its formulas against dense ones, and what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.stages.init import fused
from qwp.stages.init.fused import FusedSettings, Variant, _linear_cost, _standardised, initial_map
from qwp.stages.init.similarities import similarity_factor
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted

Array = npt.NDArray[Any]

WHOLE = Variant(sample=1.0)


def ranks(problem: Any) -> tuple[Array, Array]:
    return np.arange(len(problem.src)), np.arange(len(problem.tgt))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_factors_are_those_of_standardised_similarities(power: float) -> None:
    x = planted(40, d=6, seed=0, dtype="float64").src
    u, s = (host(part) for part in similarity_factor(x))
    z = u * s**power
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    similarities = z @ z.T
    rows = (similarities - similarities.mean(axis=1, keepdims=True)) / similarities.std(axis=1, keepdims=True)
    left, right = _standardised(similarity_factor(x), power)
    assert_close(left @ right.T / 2, (rows + rows.T) / 2, atol=1e-9)


def test_the_linear_cost_adds_descriptors_and_ranks_of_equal_deviation() -> None:
    problem = planted(80, d=6, seed=1, dtype="float64")
    factors = similarity_factor(problem.src), similarity_factor(problem.tgt)
    alone, with_ranks = (host(_linear_cost(factors, ranks(problem), prior)) for prior in (0.0, 4.0))
    for cost in (alone, with_ranks):
        assert_close(np.std(cost), np.sqrt(2), atol=1e-9)
    logs = np.log(np.arange(80) + 10.0)
    by_rank = (logs[:, None] - logs) ** 2
    expected = alone / alone.std() + 4 * by_rank / by_rank.std()
    assert_close(with_ranks, np.sqrt(2) * expected / expected.std(), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recovers_a_planted_rotation_of_words_in_order(dtype: str) -> None:
    problem = planted(250, d=12, seed=1, dtype=dtype)
    w = initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 4.0)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_recovers_one_without_ranks_where_the_order_says_nothing() -> None:
    problem = planted(250, d=12, seed=1, shuffle=True)
    assert problem.accuracy(initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 0.0)) > 0.8


def test_ranks_help_where_words_are_in_order_and_noisy() -> None:
    problem = planted(300, d=12, seed=2, noise=0.15)
    by = {
        prior: problem.accuracy(initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, prior))
        for prior in (0.0, 8.0)
    }
    assert by[8.0] > by[0.0]


def test_sides_may_differ_in_size_and_tell_of_their_steps() -> None:
    problem = planted(60, 80, d=5, seed=3)
    seen: list[tuple[int, int]] = []
    w = initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 4.0, lambda *step: seen.append(step))
    assert orthogonality_error(w) < 1e-5
    assert seen == [(step, fused._STEPS) for step in range(1, fused._STEPS + 1)]


def test_hardly_any_words() -> None:
    for n in (2, 3, 5):
        problem = planted(n, d=3, seed=4)
        assert orthogonality_error(initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 4.0)) < 1e-5


def test_words_that_are_all_alike() -> None:
    x = np.ones((20, 4), dtype=np.float32) / 2
    w = initial_map(x, x, (np.arange(20), np.arange(20)), WHOLE, 4.0)
    assert np.isfinite(host(w)).all()


def test_any_array_library_gives_the_same() -> None:
    problem = planted(60, d=5, seed=5, dtype="float64")
    expected = initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 4.0)
    x, y, *places = (as_strict(a) for a in (problem.src, problem.tgt, *ranks(problem)))
    assert_close(host(initial_map(x, y, (places[0], places[1]), WHOLE, 4.0)), expected, atol=1e-6)
    assert_same(initial_map(problem.src, problem.tgt, ranks(problem), WHOLE, 4.0), expected)


def test_a_negative_prior_is_refused() -> None:
    with pytest.raises(InputError, match="frequency_prior=-1 is out of range"):
        FusedSettings(frequency_prior=-1).check()
