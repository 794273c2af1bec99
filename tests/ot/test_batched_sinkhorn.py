"""Batches of problems, balanced and unbalanced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.ot.batched_sinkhorn import Unbalanced, inner_product_plans, is_bounded, unbalanced_plans
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import sinkhorn
from tests.libraries import assert_close, assert_same, host
from tests.ot.problems import batch, seeds
from tests.tolerance import rounding


@given(
    size=st.integers(1, 4),
    n=st.integers(2, 12),
    m=st.integers(2, 12),
    seed=seeds,
    scale=st.floats(0.5, 15.0),
    empty=st.booleans(),
)
@settings(max_examples=20)
def test_inner_product_plans_are_those_of_sinkhorn(
    size: int, n: int, m: int, seed: int, scale: float, empty: bool
) -> None:
    x, y, a, b = batch(size, n + 1, m, seed, empty=empty)
    plans = inner_product_plans(x, y, a, b, scale=scale, max_iter=20_000, tol=1e-10)
    assert plans.matrix.shape == (size, n + 1, m)
    for i, found in enumerate(plans.matrix):
        for kind, epsilon in (("dot", 1.0 / scale), ("sqeuclidean", 2.0 / scale)):
            cost = cost_matrix(x[i], y[i], kind)
            expected = sinkhorn(cost, a[i], b[i], epsilon=epsilon, max_iter=20_000, tol=1e-10)
            assert_close(found, expected.matrix, atol=1e-8, rtol=0)
        assert (found[a[i] == 0, :] == 0).all()
        assert (found[:, b[i] == 0] == 0).all()


@pytest.mark.parametrize("empty", [False, True])
def test_a_batch_of_plans_is_that_of_each(empty: bool) -> None:
    x, y, a, b = batch(5, 9, 7, 0, empty=empty)
    options: dict[str, Any] = {"scale": 8.0, "max_iter": 500, "tol": 1e-6}
    plans = inner_product_plans(x, y, a, b, **options)
    singles = [inner_product_plans(*(z[i : i + 1] for z in (x, y, a, b)), **options) for i in range(5)]
    # Both plans meet their marginals to the tolerance.
    assert_close(plans.matrix, np.concatenate([single.matrix for single in singles]), atol=2e-6, rtol=0)
    assert plans.n_iter >= max(single.n_iter for single in singles) - 1
    assert len({single.n_iter for single in singles}) > 1
    matrix, rng = host(plans.matrix), np.random.default_rng(1)
    left, right = rng.standard_normal((5, 9, 3)), rng.standard_normal((5, 7, 3))
    assert_close(plans.apply(right), matrix @ right, atol=1e-13)
    assert_close(plans.apply_transposed(left), np.swapaxes(matrix, 1, 2) @ left, atol=1e-13)


@given(n=st.integers(2, 40), m=st.integers(2, 40), seed=seeds, scale=st.floats(0.5, 15.0), max_iter=st.integers(1, 300))
@settings(max_examples=20)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_single_problem_has_the_plan_that_it_has_in_a_batch(
    n: int, m: int, seed: int, scale: float, max_iter: int, dtype: str
) -> None:
    """A single NumPy problem with positive weights has its own code; fixed relaxations use the general code."""
    x, y, a, b = (z.astype(dtype) for z in batch(1, n, m, seed))
    options: dict[str, Any] = {"scale": scale, "max_iter": max_iter, "tol": 1e-6}
    found = inner_product_plans(x, y, a, b, **options)
    expected = inner_product_plans(x, y, a, b, **options, relaxations=found.relaxations)
    # Each sweep adds the rounding of two products, and a balanced plan does not accumulate it.
    assert_close(found.matrix, expected.matrix, rtol=found.n_iter * rounding(dtype, n + m), atol=0)
    if max_iter > 50 and found.n_iter > 40:
        assert max(found.relaxations) > 1  # longer steps are among what is compared


def test_plans_stop_at_the_tolerance_or_the_last_sweep() -> None:
    x, y, a, b = batch(3, 9, 7, 0)
    # The error is relative to the mass.
    for mass in (1.0, 1000.0):
        plans = inner_product_plans(x, y, mass * a, mass * b, scale=20.0, max_iter=5000, tol=1e-4)
        matrix = host(plans.matrix) / mass
        error = np.abs(matrix.sum(2) - a).sum(axis=1) + np.abs(matrix.sum(1) - b).sum(axis=1)
        assert 1e-9 < float(error.max()) <= 1.0001e-4
    assert inner_product_plans(x, y, a, b, scale=20.0, max_iter=3, tol=1e-12).n_iter == 3
    assert inner_product_plans(x, y, a, b, scale=20.0, max_iter=1, tol=1e-12).relaxations == (1.0,)


@pytest.mark.parametrize("empty", [False, True])
def test_given_relaxations_repeat_the_adaptive_result(empty: bool) -> None:
    x, y, a, b = batch(1, 12, 11, 4, empty=empty)
    options: dict[str, Any] = {"scale": 30.0, "max_iter": 3000, "tol": 1e-8}
    adaptive = inner_product_plans(x, y, a, b, **options)
    assert max(adaptive.relaxations) > 1.0
    again = inner_product_plans(x, y, a, b, **options, relaxations=adaptive.relaxations)
    assert_close(again.matrix, adaptive.matrix, rtol=adaptive.n_iter * rounding("float64", 23), atol=0)
    assert again.relaxations == adaptive.relaxations
    # Neither the error nor the limit matters: exactly these sweeps are made.
    assert (
        inner_product_plans(x, y, a, b, scale=30.0, max_iter=1, tol=1.0, relaxations=[1.0] * 7).relaxations
        == (1.0,) * 7
    )


def test_the_memory_of_the_kernels_is_used_again() -> None:
    x, y, a, b = batch(2, 6, 5, 1)
    memory = np.full((2, 6, 5), np.nan)
    options: dict[str, Any] = {"scale": 5.0, "max_iter": 500, "tol": 1e-9}
    plans = inner_product_plans(x, y, a, b, **options, kernel=memory)
    assert np.shares_memory(plans.kernel, memory)
    assert_close(memory, np.exp(5.0 * x @ np.swapaxes(y, 1, 2)), rtol=1e-12)
    assert_same(plans.matrix, inner_product_plans(x, y, a, b, **options).matrix)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_libraries_find_the_same_plans(library: str) -> None:
    xp = pytest.importorskip(library)
    given = batch(4, 9, 7, 2, empty=True)
    options: dict[str, Any] = {"scale": 8.0, "max_iter": 5000, "tol": 1e-9}
    expected = inner_product_plans(*given, **options)
    found = inner_product_plans(*(xp.asarray(z) for z in given), **options)
    # A batch stops when its last problem converges.
    assert_close(found.matrix, expected.matrix, atol=1e-7)
    repeated = inner_product_plans(*(xp.asarray(z) for z in given), **options, relaxations=found.relaxations)
    assert_close(repeated.matrix, found.matrix, atol=1e-14)


@given(
    n=st.integers(2, 12),
    m=st.integers(2, 12),
    seed=seeds,
    rho=st.floats(0.05, 5.0),
    length=st.sampled_from([0.4, 1.0]),
    empty=st.booleans(),
)
@settings(max_examples=20)
@pytest.mark.parametrize("cost", ["sqeuclidean", "dot"])
def test_unbalanced_plans_are_those_of_sinkhorn(
    n: int, m: int, seed: int, rho: float, length: float, empty: bool, cost: str
) -> None:
    scale, epsilon = 8.0, 0.25 if cost == "sqeuclidean" else 0.125
    x, y, a, b = batch(3, n + 1, m + 1, seed, empty=empty)
    problem = Unbalanced(rho, cost, scale, shift=scale)
    plans = unbalanced_plans(length * x, length * y, a, b, problem, max_iter=20_000, tol=1e-9)
    for i, found in enumerate(plans.matrix):
        costs = cost_matrix(length * x[i], length * y[i], cost)
        expected = sinkhorn(costs, a[i], b[i], epsilon=epsilon, rho=rho, max_iter=20_000, tol=1e-11)
        assert_close(found, expected.matrix, atol=1e-6, rtol=0)
        assert (found[a[i] == 0, :] == 0).all()
        assert plans.n_iter <= expected.n_iter + 3  # the total mass needs no sweeps


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
def test_a_fixed_number_of_unbalanced_sweeps(library: str) -> None:
    xp = pytest.importorskip(library)
    x, y, a, b = batch(2, 9, 7, 2)
    problem = Unbalanced(1.0, "sqeuclidean", 8.0)
    expected = unbalanced_plans(x, y, a, b, problem, max_iter=500, tol=1e-6)
    assert expected.n_iter > 5
    given: Any = [xp.asarray(part) for part in (x, y, a, b)]
    found = unbalanced_plans(given[0], given[1], given[2], given[3], problem, max_iter=1, tol=0, sweeps=expected.n_iter)
    assert found.relaxations == (1.0,) * expected.n_iter
    assert_close(found.matrix, expected.matrix, atol=1e-5)
    assert unbalanced_plans(x, y, a, b, problem, max_iter=3, tol=0.0).n_iter == 3


def test_is_bounded() -> None:
    # Half of the exponents that overflow: 88.7 in float32, 709.8 in float64.
    assert is_bounded(43.0, "float32")
    assert not is_bounded(44.0, "float32")
    assert is_bounded(347.0, np.float64)
    assert not is_bounded(349.0, np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_bounded_exponents_are_safe(dtype: str) -> None:
    # Opposite and equal points: exponents at both ends of the valid range.
    x = np.array([[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]], dtype=dtype)
    weights = np.array([[0.25, 0.25, 0.5]], dtype=dtype)
    scale = 0.489 * math.log(float(np.finfo(dtype).max))
    assert is_bounded(scale, dtype)
    plans = inner_product_plans(x, x, weights, weights, scale=scale, max_iter=200, tol=1e-5)
    assert_close(plans.matrix[0], np.diag(weights[0]), atol=1e-5)
