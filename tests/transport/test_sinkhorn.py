from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.transport.bounded import inner_product_plans, is_bounded
from qwp.transport.costs import cost_matrix
from qwp.transport.exact import exact
from qwp.transport.plans import Plan, Scalings
from qwp.transport.relaxation import Relaxation, relaxed
from qwp.transport.sinkhorn import sinkhorn

Array = npt.NDArray[Any]

sizes = st.integers(1, 12)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def no_numerical_warning() -> Iterator[None]:
    """An overflow that is repaired later is still a flaw: every warning of NumPy is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def problem(n: int, m: int, seed: int, *, mass: float = 1.0, dtype: str = "float64") -> tuple[Array, Array, Array]:
    """Random points in four dimensions and random weights: cost (n, m), a (n,), b (m,)."""
    rng = np.random.default_rng(seed)
    cost = cost_matrix(rng.standard_normal((n, 4)), rng.standard_normal((m, 4)))
    a, b = rng.uniform(0.05, 1.0, n), rng.uniform(0.05, 1.0, m)
    return cost.astype(dtype), (a / a.sum()).astype(dtype), (b * (mass / b.sum())).astype(dtype)


def reached_error(plan: Plan, a: Array, b: Array) -> float:
    """The L1 marginal error of the plan as anybody would compute it, in float64."""
    matrix = arrays.to_numpy(plan.matrix).astype(np.float64)
    return float(np.abs(matrix.sum(1) - a).sum() + np.abs(matrix.sum(0) - b).sum())


# --------------------------------------------------------------------------- agreement with POT


@given(n=sizes, m=sizes, seed=seeds, epsilon=st.floats(0.05, 10.0))
@settings(deadline=None, max_examples=60)
def test_balanced_agrees_with_pot(n: int, m: int, seed: int, epsilon: float) -> None:
    cost, a, b = problem(n, m, seed)
    ours = sinkhorn(cost, a, b, epsilon=epsilon, tol=1e-10, max_iter=20_000)
    theirs = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11, warn=False)
    assert ours.converged
    np.testing.assert_allclose(ours.matrix, theirs, atol=1e-6, rtol=0)


@given(
    n=sizes,
    m=sizes,
    seed=seeds,
    epsilon=st.floats(0.1, 5.0),
    rho=st.floats(0.05, 20.0),
    mass=st.floats(0.3, 3.0),
)
@settings(deadline=None, max_examples=60)
def test_unbalanced_agrees_with_pot(n: int, m: int, seed: int, epsilon: float, rho: float, mass: float) -> None:
    cost, a, b = problem(n, m, seed, mass=mass)
    ours = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-12, max_iter=20_000)
    theirs = ot.unbalanced.sinkhorn_unbalanced(a, b, cost, epsilon, rho, numItermax=20_000, stopThr=1e-14)
    assert ours.converged
    np.testing.assert_allclose(ours.matrix, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("epsilon", [0.01, 0.03])
@pytest.mark.parametrize("rho", [None, 0.5])
def test_small_epsilon_agrees_with_the_log_domain(epsilon: float, rho: float | None) -> None:
    # A spread of cost / epsilon in the hundreds and more: the annealed, absorbing path.
    cost, a, b = problem(9, 7, 5)
    assert float(cost.max() - cost.min()) / epsilon > 500
    ours = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=10_000)
    assert ours.converged
    power = 1.0 if rho is None else rho / (rho + epsilon)
    f, g = np.zeros(9), np.zeros(7)
    for _ in range(5_000):
        f = -power * _logsumexp(g + np.log(b) - cost / epsilon)
        g = -power * _logsumexp((f + np.log(a))[None, :] - cost.T / epsilon)
    expected = np.exp(f[:, None] + g - cost / epsilon) * np.outer(a, b)
    np.testing.assert_allclose(ours.matrix, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-2), ("float64", 1e-4)])
@pytest.mark.parametrize("rho", [0.02, 0.2, 2.0])
def test_unbalanced_where_most_mass_is_lost(rho: float, dtype: str, rtol: float) -> None:
    # Rows lose a factor exp(-cost / rho): far outside the range in which a float32 kernel can be scaled.
    cost, a, b = problem(9, 7, 5)
    cost, epsilon = cost + 4.0, 0.1
    ours = sinkhorn(
        cost.astype(dtype),
        a.astype(dtype),
        b.astype(dtype),
        epsilon=epsilon,
        rho=rho,
        tol=1e-5,
        max_iter=2000,
    )
    assert ours.converged
    power = rho / (rho + epsilon)
    f, g = np.zeros(9), np.zeros(7)
    for _ in range(2_000):
        f = -power * _logsumexp(g + np.log(b) - cost / epsilon)
        g = -power * _logsumexp((f + np.log(a))[None, :] - cost.T / epsilon)
    log_plan = f[:, None] + g - cost / epsilon + np.log(np.outer(a, b))
    seen = log_plan > np.log(1e-25)
    np.testing.assert_allclose(ours.matrix[seen], np.exp(log_plan[seen]), rtol=rtol, atol=1e-30)
    assert float(ours.matrix[~seen].max(initial=0.0)) < 1e-24


def _logsumexp(x: Array) -> Array:
    top = x.max(axis=1)
    return np.asarray(top + np.log(np.exp(x - top[:, None]).sum(axis=1)))


@given(n=sizes, m=sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_exact_agrees_with_pot(n: int, m: int, seed: int) -> None:
    cost, a, b = problem(n, m, seed)
    plan = exact(cost, a, b)
    assert plan.converged
    assert plan.marginal_error < 1e-9
    np.testing.assert_allclose(plan.matrix, ot.emd(a, b, cost), atol=1e-9)


def test_exact_solves_an_assignment() -> None:
    cost = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [2.0, 2.0, 0.0]])
    third = np.full(3, 1 / 3)
    np.testing.assert_allclose(exact(cost, third, third).matrix, np.eye(3)[[1, 0, 2]] / 3, atol=1e-12)


def test_exact_in_float32_meets_weights_that_do_not_sum_alike() -> None:
    cost, a, b = problem(300, 200, 0, dtype="float32")
    plan = exact(cost, a, b)
    assert plan.matrix.dtype == np.float32
    assert plan.converged
    assert reached_error(plan, a, b) < 1e-4


def test_a_small_epsilon_approaches_the_exact_plan() -> None:
    cost, a, b = problem(8, 8, 1)
    entropic = sinkhorn(cost, a, b, epsilon=1e-3, tol=1e-8, max_iter=50_000)
    assert float((entropic.matrix * cost).sum()) == pytest.approx(
        float((exact(cost, a, b).matrix * cost).sum()), abs=1e-2
    )


def test_a_large_epsilon_gives_the_independent_plan() -> None:
    cost, a, b = problem(6, 5, 2)
    np.testing.assert_allclose(sinkhorn(cost, a, b, epsilon=1e7).matrix, np.outer(a, b), atol=1e-6)


def test_unbalanced_approaches_balanced_as_rho_grows() -> None:
    cost, a, b = problem(6, 5, 2)
    free = sinkhorn(cost, a, b, epsilon=1.0, rho=1e6, tol=1e-12, max_iter=10_000)
    held = sinkhorn(cost, a, b, epsilon=1.0, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(free.matrix, held.matrix, atol=1e-5)


# --------------------------------------------------------------------------- never NaN, always honest


@given(
    n=st.integers(1, 10),
    m=st.integers(1, 10),
    seed=seeds,
    epsilon=st.sampled_from([1e-4, 1e-3, 1e-2, 0.05, 1.0, 10.0]),
    scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
    dtype=st.sampled_from(["float32", "float64"]),
    rho=st.sampled_from([None, 0.01, 1.0, 100.0]),
    empty=st.booleans(),
    max_iter=st.sampled_from([1, 3, 200]),
)
@settings(deadline=None, max_examples=300)
def test_finite_and_honest(
    n: int,
    m: int,
    seed: int,
    epsilon: float,
    scale: float,
    dtype: str,
    rho: float | None,
    empty: bool,
    max_iter: int,
) -> None:
    cost, a, b = problem(n, m, seed, dtype=dtype)
    if empty and n > 1:
        a[0] = 0.0
        a /= a.sum()
    cost = (cost * scale).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        plan = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, max_iter=max_iter, tol=1e-4)
    for part in (plan.matrix, plan.u, plan.v, plan.log_u, plan.log_v):
        assert part.dtype == dtype
        assert np.isfinite(part).all()
    assert (plan.matrix >= 0).all()
    assert 1 <= plan.n_iter <= max_iter
    assert math.isfinite(plan.marginal_error)
    if plan.converged:
        assert plan.marginal_error <= 1.0001e-4
    else:
        assert plan.marginal_error > 1e-4
        assert plan.n_iter == max_iter
    if rho is None:
        slack = 1e-9 if dtype == "float64" else 1e-5
        assert reached_error(plan, a, b) == pytest.approx(plan.marginal_error, rel=1e-6, abs=slack)
    if empty and n > 1:
        assert (plan.matrix[0] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_realistic_problems_converge(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((120, 20)) for _ in range(2))
    x, y = ((z / np.linalg.norm(z, axis=1, keepdims=True)).astype(dtype) for z in (x, y))
    weights = np.full(120, 1 / 120, dtype=dtype)
    for epsilon in (0.02, 0.05, 0.5):
        plan = sinkhorn(cost_matrix(x, y), weights, weights, epsilon=epsilon, tol=1e-4)
        assert plan.converged
        assert reached_error(plan, weights, weights) <= 2e-4


def test_a_problem_larger_than_one_block() -> None:
    # Blocks of rows on threads, and an epsilon small enough that it absorbs as well.
    n, m = 700, 800
    assert n * m > 4 * arrays.CACHE_ELEMENTS
    cost, a, b = problem(n, m, 5)
    with arrays.use_threads(2):
        two = sinkhorn(cost, a, b, epsilon=0.03, tol=1e-6, max_iter=60)
    with arrays.use_threads(1):
        one = sinkhorn(cost, a, b, epsilon=0.03, tol=1e-6, max_iter=60)
    np.testing.assert_allclose(two.matrix, one.matrix, atol=1e-12)
    assert reached_error(two, a, b) == pytest.approx(two.marginal_error, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rho", [None, 1.0])
def test_zero_weights_leave_the_rest_as_it_is(rho: float | None) -> None:
    cost, a, b = problem(6, 5, 4)
    small = sinkhorn(cost, a, b, epsilon=0.3, rho=rho, tol=1e-10)
    rows, columns = [0, 1, 3, 4, 5, 7], [1, 2, 3, 5, 6]
    wide = np.full((8, 7), 0.1)
    wide[np.ix_(rows, columns)] = cost
    wide_a, wide_b = np.zeros(8), np.zeros(7)
    wide_a[rows], wide_b[columns] = a, b
    plan = sinkhorn(wide, wide_a, wide_b, epsilon=0.3, rho=rho, tol=1e-10)
    expected = np.zeros((8, 7))
    expected[np.ix_(rows, columns)] = small.matrix
    np.testing.assert_allclose(plan.matrix, expected, atol=1e-12)
    assert plan.n_iter == small.n_iter
    # The warm start has the full length, and is used.
    again = sinkhorn(wide, wide_a, wide_b, epsilon=0.3, rho=rho, tol=1e-6, init=plan.log_v)
    assert again.n_iter <= 2
    np.testing.assert_allclose(again.matrix, expected, atol=1e-6)


def test_exact_takes_zero_weights() -> None:
    cost, a, b = problem(3, 3, 0)
    a = np.array([0.0, 0.5, 0.5])
    np.testing.assert_allclose(exact(cost, a, b).matrix.sum(axis=1), a, atol=1e-12)


def test_one_by_one_and_one_by_many() -> None:
    one = np.ones(1)
    np.testing.assert_allclose(sinkhorn(np.array([[7.0]]), one, one, epsilon=0.01).matrix, [[1.0]])
    b = np.array([0.2, 0.3, 0.5])
    cost = np.array([[0.0, 5.0, 100.0]])
    np.testing.assert_allclose(sinkhorn(cost, one, b, epsilon=0.1).matrix, [b], atol=1e-12)
    np.testing.assert_allclose(sinkhorn(cost.T, b, one, epsilon=0.1).matrix, b[:, None], atol=1e-12)


def test_one_by_one_unbalanced_known_answer() -> None:
    # Where the derivative of c p + eps KL(p|ab) + rho KL(p|a) + rho KL(p|b) is zero.
    a, b, cost, epsilon, rho = 2.0, 0.5, 1.3, 0.4, 0.7
    expected = math.exp(
        (-cost + epsilon * math.log(a * b) + rho * math.log(a) + rho * math.log(b)) / (epsilon + 2 * rho)
    )
    plan = sinkhorn(
        np.array([[cost]]), np.array([a]), np.array([b]), epsilon=epsilon, rho=rho, tol=1e-13, max_iter=5000
    )
    assert float(plan.matrix[0, 0]) == pytest.approx(expected, rel=1e-9)


def test_masses_far_from_one() -> None:
    cost, a, b = problem(10, 10, 6, dtype="float32")
    plan = sinkhorn(cost, a * 1e6, b * 1e6, epsilon=0.2, tol=1e-4)
    assert plan.converged
    np.testing.assert_allclose(
        plan.matrix, 1e6 * sinkhorn(cost, a, b, epsilon=0.2, tol=1e-4).matrix, rtol=1e-3, atol=1.0
    )


def test_mass_beyond_the_dtype_is_not_called_converged() -> None:
    # Very negative costs make unbalanced transport create mass without bound.
    cost = np.full((2, 2), -1e4, dtype=np.float32)
    half = np.full(2, 0.5, dtype=np.float32)
    plan = sinkhorn(cost, half, half, epsilon=0.1, rho=1.0, max_iter=500)
    assert not plan.converged
    assert np.isfinite(plan.matrix).all()


def test_constant_costs() -> None:
    a, b = np.array([0.3, 0.7]), np.array([0.5, 0.25, 0.25])
    for value in (-1e6, 0.0, 1e6):
        plan = sinkhorn(np.full((2, 3), value), a, b, epsilon=1e-3)
        assert plan.converged
        np.testing.assert_allclose(plan.matrix, np.outer(a, b), atol=1e-6)


# --------------------------------------------------------------------------- many bounded problems at once

Batch = tuple[Array, Array, Array, Array]


def batch(size: int, n: int, m: int, seed: int, *, dtype: str = "float64", empty: bool = False) -> Batch:
    """Unit points and weights: x (size, n, 4), y (size, m, 4), a (size, n), b (size, m)."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((size, n, 4)), rng.standard_normal((size, m, 4))
    a, b = rng.uniform(0.1, 1.0, (size, n)), rng.uniform(0.1, 1.0, (size, m))
    if empty:
        a[:, 1], b[:, 0] = 0.0, 0.0
        a[0, -1] = 0.0
    x, y = (z / np.linalg.norm(z, axis=2, keepdims=True) for z in (x, y))
    a, b = (w / w.sum(axis=1, keepdims=True) for w in (a, b))
    return x.astype(dtype), y.astype(dtype), a.astype(dtype), b.astype(dtype)


def plain_sweeps(kernel: Array, a: Array, b: Array, tol: float) -> tuple[Array, int]:
    """Sinkhorn by the book: the plan (n, m) and the number of sweeps until both marginals are met to `tol`."""
    v = np.ones_like(b)
    for sweep in range(1, 100_000):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
        plan = u[:, None] * kernel * v
        if np.abs(plan.sum(1) - a).sum() + np.abs(plan.sum(0) - b).sum() <= tol:
            return plan, sweep
    raise AssertionError("no convergence")


@given(
    size=st.integers(1, 4),
    n=st.integers(2, 12),
    m=st.integers(2, 12),
    seed=seeds,
    scale=st.floats(0.5, 15.0),
    empty=st.booleans(),
)
@settings(deadline=None, max_examples=40)
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
            np.testing.assert_allclose(found, expected.matrix, atol=1e-8, rtol=0)
        assert (found[a[i] == 0, :] == 0).all()
        assert (found[:, b[i] == 0] == 0).all()


@pytest.mark.parametrize("empty", [False, True])
def test_a_batch_of_plans_is_that_of_each(empty: bool) -> None:
    x, y, a, b = batch(5, 9, 7, 0, empty=empty)
    options: dict[str, Any] = {"scale": 8.0, "max_iter": 500, "tol": 1e-6}
    plans = inner_product_plans(x, y, a, b, **options)
    singles = [inner_product_plans(*(z[i : i + 1] for z in (x, y, a, b)), **options) for i in range(5)]
    np.testing.assert_array_equal(plans.matrix, np.concatenate([single.matrix for single in singles]))
    assert plans.n_iter == max(single.n_iter for single in singles)
    assert len({single.n_iter for single in singles}) > 1
    matrix, rng = plans.matrix, np.random.default_rng(1)
    left, right = rng.standard_normal((5, 9, 3)), rng.standard_normal((5, 7, 3))
    np.testing.assert_allclose(plans.apply(right), matrix @ right, atol=1e-13)
    np.testing.assert_allclose(plans.apply_transposed(left), np.swapaxes(matrix, 1, 2) @ left, atol=1e-13)


def test_plans_stop_at_the_tolerance_or_the_last_sweep() -> None:
    x, y, a, b = batch(3, 9, 7, 0)
    # Masses far from one: the error is relative to them.
    for mass in (1.0, 1000.0):
        matrix = inner_product_plans(x, y, mass * a, mass * b, scale=20.0, max_iter=5000, tol=1e-4).matrix / mass
        error = np.abs(matrix.sum(2) - a).sum(axis=1) + np.abs(matrix.sum(1) - b).sum(axis=1)
        assert 1e-9 < float(error.max()) <= 1.0001e-4
    assert inner_product_plans(x, y, a, b, scale=20.0, max_iter=3, tol=1e-12).n_iter == 3
    assert inner_product_plans(x, y, a, b, scale=20.0, max_iter=1, tol=1e-12).steps == (1.0,)


@pytest.mark.parametrize("empty", [False, True])
def test_fixed_steps_repeat_the_adaptive_result(empty: bool) -> None:
    x, y, a, b = batch(1, 12, 11, 4, empty=empty)
    options: dict[str, Any] = {"scale": 30.0, "max_iter": 3000, "tol": 1e-8}
    adaptive = inner_product_plans(x, y, a, b, **options)
    assert max(adaptive.steps) > 1.0
    again = inner_product_plans(x, y, a, b, **options, steps=adaptive.steps)
    np.testing.assert_array_equal(again.matrix, adaptive.matrix)
    assert again.steps == adaptive.steps
    # Nobody looks at the error or the limit: just these sweeps, be they too few or too many.
    assert inner_product_plans(x, y, a, b, scale=30.0, max_iter=1, tol=1.0, steps=[1.0] * 7).steps == (1.0,) * 7


def test_the_memory_of_the_kernels_is_used_again() -> None:
    x, y, a, b = batch(2, 6, 5, 1)
    memory = np.full((2, 6, 5), np.nan)
    options: dict[str, Any] = {"scale": 5.0, "max_iter": 500, "tol": 1e-9}
    plans = inner_product_plans(x, y, a, b, **options, kernel=memory)
    assert np.shares_memory(plans.kernel, memory)
    np.testing.assert_allclose(memory, np.exp(5.0 * x @ np.swapaxes(y, 1, 2)), rtol=1e-12)
    np.testing.assert_array_equal(plans.matrix, inner_product_plans(x, y, a, b, **options).matrix)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_libraries_find_the_same_plans(library: str) -> None:
    xp = pytest.importorskip(library)
    arrays = batch(4, 9, 7, 2, empty=True)
    options: dict[str, Any] = {"scale": 20.0, "max_iter": 5000, "tol": 1e-9}
    expected = inner_product_plans(*arrays, **options)
    found = inner_product_plans(*(xp.asarray(z) for z in arrays), **options)
    # All at once: they stop together.
    np.testing.assert_allclose(arrays.to_numpy(found.matrix), expected.matrix, atol=1e-7)
    repeated = inner_product_plans(*(xp.asarray(z) for z in arrays), **options, steps=found.steps)
    np.testing.assert_allclose(arrays.to_numpy(repeated.matrix), arrays.to_numpy(found.matrix), atol=1e-14)


def test_is_bounded() -> None:
    # Half of what overflows: exp(88.7) in float32, exp(709.8) in float64.
    assert is_bounded(43.0, "float32")
    assert not is_bounded(44.0, "float32")
    assert is_bounded(347.0, np.float64)
    assert not is_bounded(349.0, np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_bounded_exponents_are_safe(dtype: str) -> None:
    # Opposite and equal points: exponents at both ends of what is allowed.
    x = np.array([[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]], dtype=dtype)
    weights = np.array([[0.25, 0.25, 0.5]], dtype=dtype)
    scale = 0.489 * math.log(float(np.finfo(dtype).max))
    assert is_bounded(scale, dtype)
    plans = inner_product_plans(x, x, weights, weights, scale=scale, max_iter=200, tol=1e-5)
    np.testing.assert_allclose(plans.matrix[0], np.diag(weights[0]), atol=1e-5)


# --------------------------------------------------------------------------- longer steps


@pytest.mark.parametrize(("scale", "seed"), [(20.0, 0), (80.0, 1)])
def test_relaxation_reaches_the_plan_of_pot_with_fewer_sweeps(scale: float, seed: int) -> None:
    x, y, a, b = batch(1, 30, 30, seed)
    tol = 1e-7
    plans = inner_product_plans(x, y, a, b, scale=scale, max_iter=50_000, tol=tol)
    cost = cost_matrix(x[0], y[0], "dot")
    expected = ot.sinkhorn(
        a[0], b[0], cost, 1 / scale, method="sinkhorn_log", numItermax=50_000, stopThr=1e-10, warn=False
    )
    np.testing.assert_allclose(plans.matrix[0], expected, atol=1e-6, rtol=0)
    by_the_book, sweeps = plain_sweeps(np.exp(-scale * cost), a[0], b[0], tol)
    np.testing.assert_allclose(by_the_book, expected, atol=1e-5, rtol=0)
    assert sweeps > 100
    assert plans.n_iter < 0.5 * sweeps
    assert max(plans.steps) > 1.0
    # The general solver makes longer steps as well.
    general = sinkhorn(cost, a[0], b[0], epsilon=1 / scale, max_iter=50_000, tol=tol)
    assert general.n_iter < 0.5 * sweeps
    np.testing.assert_allclose(general.matrix, expected, atol=1e-6, rtol=0)


def test_relaxed_known_answers() -> None:
    wanted, old = np.array([2.0, 8.0, 0.0]), np.array([1.0, 2.0, 0.0])
    np.testing.assert_array_equal(relaxed(wanted, old, 1.0), wanted)
    # In logarithms the step is longer by the factor: old * (wanted / old) ** factor.
    np.testing.assert_allclose(relaxed(wanted, old, 1.5), [2.0**1.5, 2.0 * 4.0**1.5, 0.0])
    # A point that was there and has no weight goes to zero.
    np.testing.assert_array_equal(relaxed(np.zeros(1), np.ones(1), 1.8), [0.0])


def after(rate: float, sweeps: int, start: int = 1, error: float = 1.0) -> Relaxation:
    """What is made of errors that shrink by `rate` with each of so many sweeps."""
    relaxation = Relaxation()
    for i in range(sweeps):
        relaxation.look(start + i, error * rate**i)
    return relaxation


@pytest.mark.parametrize(("rate", "factor"), [(0.0, 1.0), (0.75, 4 / 3), (0.9, 2 / (1 + 0.1**0.5)), (0.9999, 1.98)])
def test_the_relaxation_fits_the_rate(rate: float, factor: float) -> None:
    assert after(rate, 8).factor == 1.0
    assert after(rate, 9).factor == pytest.approx(factor)
    assert 1.0 <= factor < 2.0


def test_errors_that_do_not_fall_bring_no_longer_steps() -> None:
    assert after(1.0, 30).factor == 1.0
    assert after(1.1, 30).factor == 1.0


def test_longer_steps_that_do_not_pay_are_taken_back() -> None:
    relaxation = after(0.9, 9)
    assert relaxation.factor > 1.0
    relaxation.look(17, 2.0)
    assert relaxation.factor == 1.0
    # Plain ones for twice as long, then another try.
    for i in range(1, 16):
        relaxation.look(17 + i, 2.0 * 0.9**i)
        assert relaxation.factor == 1.0
    relaxation.look(33, 2.0 * 0.9**16)
    assert relaxation.factor > 1.0


def test_longer_steps_that_never_pay_are_given_up() -> None:
    relaxation, error, tries, previous = Relaxation(), 1.0, 0, 1.0
    for i in range(2000):
        error *= 0.9 if relaxation.factor == 1.0 else 1.2
        relaxation.look(i, error)
        tries += relaxation.factor > 1.0 and previous == 1.0
        previous = relaxation.factor
    assert tries == 4
    assert relaxation.factor == 1.0


def test_the_factor_grows_as_the_slow_part_of_the_error_comes_out() -> None:
    """Two parts of an error under over-relaxation: rates of plain sweeps 0.3 and 0.96, the slow one small at first."""
    relaxation, parts, seen = Relaxation(), {0.3: 1.0, 0.96: 0.01}, []
    for i in range(120):
        for plain, size in parts.items():
            w = relaxation.factor
            b = w * w * plain / 2 - w + 1
            # The larger root of (l + w - 1)^2 = l w^2 r in absolute value.
            rate = b + (b * b - (w - 1) ** 2) ** 0.5 if b * b > (w - 1) ** 2 else w - 1
            parts[plain] = size * max(rate, 0.0)
        relaxation.look(i, sum(parts.values()))
        seen.append(relaxation.factor)
    assert seen == sorted(seen)
    assert seen[9] < 1.4
    # The best factor for a rate of 0.96 is 2 / (1 + 0.2).
    assert seen[-1] == pytest.approx(2 / 1.2, abs=0.03)


# --------------------------------------------------------------------------- parts of the interface


def test_n_iter_counts_the_steps() -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=0.2, max_iter=4, tol=1e-12)
    assert isinstance(plan, Scalings)
    assert plan.n_iter == len(plan.steps) == 4
    assert exact(cost, a, b).n_iter == 0


@pytest.mark.parametrize("rho", [None, 0.5])
def test_apply_equals_the_matrix_product(rho: float | None) -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=0.2, rho=rho)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    np.testing.assert_allclose(plan.apply(y), plan.matrix @ y, atol=1e-13)
    np.testing.assert_allclose(plan.apply_transposed(x), plan.matrix.T @ x, atol=1e-13)


@pytest.mark.parametrize("rho", [None, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_log_potentials_describe_the_plan(rho: float | None, epsilon: float) -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, max_iter=5000)
    exponent = plan.log_u[:, None] + plan.log_v - cost / epsilon
    reference = 1.0 if rho is None else np.outer(a, b)
    np.testing.assert_allclose(np.exp(exponent) * reference, plan.matrix, atol=1e-9)


@pytest.mark.parametrize("rho", [None, 2.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_warm_start_gives_the_same_answer_sooner(rho: float | None, epsilon: float) -> None:
    cost, a, b = problem(12, 9, 9)
    cold = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000)
    near = cost + 1e-3 * np.random.default_rng(0).standard_normal(cost.shape)
    warm = sinkhorn(near, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000, init=cold.log_v)
    fresh = sinkhorn(near, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000)
    np.testing.assert_allclose(warm.matrix, fresh.matrix, atol=1e-7)
    assert warm.n_iter <= fresh.n_iter
    assert sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-7, init=cold.log_v).n_iter <= 2


def test_epsilon_scale_between_the_costs() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((8, 5)) for _ in range(2))
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    weights = np.full(8, 1 / 8)
    squared = sinkhorn(cost_matrix(x, y, "sqeuclidean"), weights, weights, epsilon=0.1, tol=1e-12)
    dot = sinkhorn(cost_matrix(x, y, "dot"), weights, weights, epsilon=0.05, tol=1e-12)
    np.testing.assert_allclose(squared.matrix, dot.matrix, atol=1e-10)


def test_cost_matrix_known_answer() -> None:
    x, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(cost_matrix(x, y), [[25.0, 1.0, 0.0], [0.0, 20.0, 25.0]])
    np.testing.assert_allclose(cost_matrix(x, y, "dot"), [[0.0, 0.0, 0.0], [-25.0, -3.0, 0.0]])


def test_squared_distances_are_never_negative() -> None:
    x = np.random.default_rng(0).standard_normal((50, 300)).astype(np.float32)
    assert float(cost_matrix(x, x).min()) >= 0.0


@pytest.mark.parametrize("rho", [None, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
@pytest.mark.parametrize("empty", [False, True])
def test_array_api_strict_gives_the_same_plan(rho: float | None, epsilon: float, empty: bool) -> None:
    cost, a, b = problem(6, 5, 10)
    if empty:
        a[2] = 0.0
        a /= a.sum()
    expected = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho)
    strict = sinkhorn(*(array_api_strict.asarray(z) for z in (cost, a, b)), epsilon=epsilon, rho=rho)
    assert isinstance(strict.matrix, type(array_api_strict.zeros(1)))
    np.testing.assert_allclose(arrays.to_numpy(strict.matrix), expected.matrix, atol=1e-12)
    assert strict.n_iter == expected.n_iter
    y = array_api_strict.ones((5, 2))
    np.testing.assert_allclose(arrays.to_numpy(strict.apply(y)), expected.apply(np.ones((5, 2))), atol=1e-12)


def test_array_api_strict_exact_and_costs() -> None:
    cost, a, b = problem(6, 5, 10)
    strict = exact(*(array_api_strict.asarray(z) for z in (cost, a, b)))
    np.testing.assert_allclose(arrays.to_numpy(strict.matrix), exact(cost, a, b).matrix, atol=1e-12)
    x, y = np.random.default_rng(0).standard_normal((2, 4, 3))
    for kind in ("sqeuclidean", "dot"):
        strict_cost = cost_matrix(array_api_strict.asarray(x), array_api_strict.asarray(y), kind)
        np.testing.assert_allclose(arrays.to_numpy(strict_cost), cost_matrix(x, y, kind), atol=1e-12)


# --------------------------------------------------------------------------- errors


def _bad(what: str) -> tuple[Array, Array, Array]:
    cost, a, b = problem(4, 3, 0)
    if what == "a too long":
        a = np.full(5, 0.2)
    elif what == "b is a matrix":
        b = b[:, None]
    elif what == "cost is a vector":
        cost = cost[0]
    elif what == "NaN cost":
        cost[1, 1] = np.nan
    elif what == "infinite cost":
        cost[1, 1] = np.inf
    elif what == "NaN weight":
        b[0] = np.nan
    elif what == "negative weight":
        a[0] = -0.1
    elif what == "no mass":
        b[:] = 0.0
    elif what == "unequal masses":
        b = 2 * b
    return cost, a, b


@pytest.mark.parametrize("solver", ["sinkhorn", "exact"])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a too long", r"\(4, 3\).*\(5,\)"),
        ("b is a matrix", r"\(3, 1\)"),
        ("cost is a vector", "expected"),
        ("NaN cost", "cost holds NaN"),
        ("infinite cost", "cost holds NaN or inf"),
        ("NaN weight", "b holds NaN"),
        ("negative weight", "negative.*-0.1"),
        ("no mass", "sum to 1 and 0"),
        ("unequal masses", "1 and 2.*rho"),
    ],
)
def test_bad_input_is_explained(solver: str, what: str, message: str) -> None:
    solve = exact if solver == "exact" else partial(sinkhorn, epsilon=0.1)
    bad = _bad(what)
    with pytest.raises(InputError, match=message):
        solve(*bad)


def test_bad_options_are_explained() -> None:
    cost, a, b = problem(4, 3, 0)
    with pytest.raises(InputError, match=r"epsilon=0\.0 should be positive"):
        sinkhorn(cost, a, b, epsilon=0.0)
    with pytest.raises(InputError, match="epsilon=nan"):
        sinkhorn(cost, a, b, epsilon=math.nan)
    with pytest.raises(InputError, match="rho=-1"):
        sinkhorn(cost, a, b, epsilon=0.1, rho=-1.0)
    with pytest.raises(InputError, match=r"init has shape \(4,\).*\(3,\)"):
        sinkhorn(cost, a, b, epsilon=0.1, init=np.zeros(4))
    with pytest.raises(InputError, match="'cosine' is not known; expected one of sqeuclidean, dot"):
        cost_matrix(cost, cost, "cosine")
    with pytest.raises(InputError, match=r"cost / epsilon reaches .*float32"):
        sinkhorn((cost * 1e36).astype("f4"), a.astype("f4"), b.astype("f4"), epsilon=1e-3)


def test_unequal_masses_are_fine_when_unbalanced() -> None:
    cost, a, b = problem(4, 3, 0, mass=2.5)
    assert sinkhorn(cost, a, b, epsilon=0.1, rho=1.0).converged
