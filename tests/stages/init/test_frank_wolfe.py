"""Initialization by convex relaxation: the formulas against dense ones, and planted problems."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.parameters import check, parameters, with_values
from qwp.showing.events import Progress
from qwp.stages.init.frank_wolfe import FrankWolfe, _half_gradient, _objective
from qwp.stages.init.profiles import similarity_factor
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation
from tests.stages.problems import problem_of

Array = npt.NDArray[Any]


SMALL = FrankWolfe(words=250, steps=30, epsilon=0.2)


@pytest.mark.parametrize(
    ("kind", "least", "dtype"),
    [
        ({}, 0.8, "float32"),
        ({"shuffle": True}, 0.8, "float64"),
        ({"n_tgt": 240, "shuffle": True, "noise": 0.02}, 0.3, "float64"),
    ],
    ids=["plain", "shuffled", "unequal and noisy"],
)
def test_recovers_a_planted_rotation_well_above_chance(kind: dict[str, Any], least: float, dtype: str) -> None:
    problem = planted(250, d=12, seed=1, dtype=dtype, **kind)
    w = SMALL.solve(problem.src, problem.tgt)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    # Chance is 1 in 250.
    assert problem.accuracy(w) > least


def factors(x: Array) -> tuple[Array, Array]:
    """Return the factors of the similarities as NumPy arrays."""
    u, s = similarity_factor(x)
    return host(u), host(s)


def doubly_stochastic(n: int, seed: int) -> Array:
    """Return a convex combination of permutations (n, n)."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(6))
    return np.asarray(sum(w * np.eye(n)[rng.permutation(n)] for w in weights))


@given(n=st.integers(2, 9), d=st.integers(1, 9), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25)
def test_low_rank_formulas_agree_with_the_dense_ones(n: int, d: int, seed: int) -> None:
    x, y = np.random.default_rng(seed).standard_normal((2, n, d))
    (ux, sx), (uy, sy) = factors(x), factors(y)
    kx, ky = (ux * sx) @ ux.T, (uy * sy) @ uy.T
    assert_close(kx @ kx, x @ x.T, atol=1e-9)  # K is the root of the similarities
    p = doubly_stochastic(n, seed)
    dense = p @ kx @ kx - 2 * ky @ p @ kx + ky @ ky @ p
    scale = 1 + float(np.abs(dense).max())
    assert_close(_half_gradient(p @ ux, uy.T @ p, ux, sx, uy, sy), dense, atol=1e-10 * scale)
    objective = float(np.linalg.norm(p @ kx - ky @ p) ** 2)
    assert _objective(p @ ux, uy.T @ p, sx, uy, sy) == pytest.approx(objective, abs=1e-9 * scale)


def test_the_gradient_is_that_of_the_objective() -> None:
    # Central differences of the dense objective, entry by entry.
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5, 3))
    (ux, sx), (uy, sy) = factors(x), factors(y)
    kx, ky = (ux * sx) @ ux.T, (uy * sy) @ uy.T
    p = doubly_stochastic(5, 1)
    gradient = 2 * _half_gradient(p @ ux, uy.T @ p, ux, sx, uy, sy)
    for i in range(5):
        for j in range(5):
            step = np.zeros((5, 5))
            step[i, j] = 1e-5
            up, down = (np.linalg.norm(q @ kx - ky @ q) ** 2 for q in (p + step, p - step))
            assert gradient[i, j] == pytest.approx((up - down) / 2e-5, abs=1e-5)


def test_the_objective_falls_once_it_has_left_the_uniform_plan() -> None:
    # For centred spaces the initial uniform plan has an objective near zero. The first steps leave it, and the
    # objective falls from there on.
    problem = planted(200, d=10, seed=1)
    seen: list[tuple[int, float]] = []
    SMALL.solve(problem.src, problem.tgt, callback=lambda step, value: seen.append((step, value)))
    assert [step for step, _ in seen] == list(range(1, 31))
    values = [value for _, value in seen]
    assert values[-1] < 0.1 * max(values)
    assert max(values) in values[:5]
    # Single entropic steps may rise slightly; the trend falls.
    assert all(later < earlier for earlier, later in pairwise(values[4::5]))


def test_the_first_objective_is_that_of_the_first_step() -> None:
    # One step: P = uniform / 3 + 2/3 of the plan. The reported value belongs to this P.
    problem = planted(40, d=4, seed=2)
    seen: list[float] = []
    FrankWolfe(steps=1, epsilon=1e6).solve(problem.src, problem.tgt, lambda _, value: seen.append(value))
    # An epsilon this large makes the plan uniform again.
    (ux, sx), (uy, sy) = factors(problem.src), factors(problem.tgt)
    sy = sy * np.linalg.norm(sx) / np.linalg.norm(sy)
    p = np.full((40, 40), 1 / 40)
    expected = float(np.linalg.norm(p @ (ux * sx) @ ux.T - (uy * sy) @ uy.T @ p) ** 2)
    assert seen[0] == pytest.approx(expected, rel=1e-3)


def test_the_scale_of_a_space_does_not_matter() -> None:
    problem = planted(120, d=8, seed=1)
    one, two = (SMALL.solve(problem.src, factor * problem.tgt) for factor in (1.0, 50.0))
    assert_close(one, two, atol=1e-6)


def test_a_rotated_source_gives_the_rotated_map() -> None:
    problem = planted(120, d=8, seed=1)
    turn = rotation(8, 9)
    one = SMALL.solve(problem.src, problem.tgt)
    two = SMALL.solve(problem.src @ turn, problem.tgt)
    assert_close(turn @ two, one, atol=1e-5)


def test_only_the_first_words_take_part() -> None:
    problem = planted(120, d=8, seed=1)
    few = FrankWolfe(words=60, steps=5, epsilon=0.2)
    assert_same(few.solve(problem.src, problem.tgt), few.solve(problem.src[:60], problem.tgt[:60]))


def test_fewer_words_than_dimensions() -> None:
    problem = planted(6, d=10, seed=1)
    assert orthogonality_error(SMALL.solve(problem.src, problem.tgt)) < 1e-8


def test_array_api_strict() -> None:
    problem = planted(60, d=5, seed=1)
    few = FrankWolfe(words=60, steps=4, epsilon=0.3)
    strict = few.solve(as_strict(problem.src), as_strict(problem.tgt), lambda *_: None)
    assert_close(arrays.to_numpy(strict), few.solve(problem.src, problem.tgt), atol=1e-8)


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"start_words": 0}, "start_words=0 is out of range; expected 1 to 100,000,000"),
        ({"start_steps": 0}, "start_steps=0 is out of range; expected 1 to 1,000,000"),
        ({"start_epsilon": 0.0}, r"start_epsilon=0\.0 is out of range; expected above 0"),
        ({"start_epsilon": float("nan")}, "start_epsilon=nan is out of range"),
    ]
    check(SMALL)
    for change, message in cases:
        assert change.keys() <= parameters(SMALL).keys()
        with pytest.raises(InputError, match=message):
            check(with_values(SMALL, change))


def test_the_stage_records_the_objective_of_every_step() -> None:
    problem = planted(80, d=6, seed=1)
    few = FrankWolfe(words=60, steps=5, epsilon=0.3)
    objectives: list[float] = []
    expected = few.solve(problem.src, problem.tgt, lambda _, value: objectives.append(value))
    events: list[Progress] = []
    found = few(problem_of(problem), State(), Monitor(events.append))
    assert_same(found.map, expected)
    assert found.history == tuple(
        {"stage": "initialize", "step": step, "objective": value} for step, value in enumerate(objectives, start=1)
    )
    assert [(event.stage, event.done, event.total) for event in events] == [
        ("initialize", step, 5) for step in range(1, 6)
    ]
    assert not few.uses_seed
