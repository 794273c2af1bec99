"""Entropic transport of any scale: against POT, without NaN, with a correct convergence flag."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.ot.batched_sinkhorn import inner_product_plans
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import Relaxation, over_relaxed, sinkhorn
from qwp.ot.transport import exact
from tests.libraries import as_strict, assert_close, assert_same, host, pot
from tests.ot.problems import Array, batch, problem, reached_error, seeds, sizes
from tests.tolerance import rounding


@given(n=sizes, m=sizes, seed=seeds, epsilon=st.floats(0.05, 10.0))
@settings(max_examples=25)
def test_balanced_agrees_with_pot(n: int, m: int, seed: int, epsilon: float) -> None:
    cost, a, b = problem(n, m, seed)
    ours = sinkhorn(cost, a, b, epsilon=epsilon, tol=1e-10, max_iter=20_000)
    theirs = pot().sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11, warn=False)
    assert ours.converged
    assert_close(ours.matrix, theirs, atol=1e-6, rtol=0)


@given(
    n=sizes,
    m=sizes,
    seed=seeds,
    epsilon=st.floats(0.1, 5.0),
    rho=st.floats(0.05, 20.0),
    mass=st.floats(0.3, 3.0),
)
@settings(max_examples=15)
def test_unbalanced_agrees_with_pot(n: int, m: int, seed: int, epsilon: float, rho: float, mass: float) -> None:
    cost, a, b = problem(n, m, seed, mass=mass)
    ours = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-12, max_iter=20_000)
    theirs = pot().unbalanced.sinkhorn_unbalanced(a, b, cost, epsilon, rho, numItermax=20_000, stopThr=1e-12)
    assert ours.converged
    assert_close(ours.matrix, theirs, atol=1e-6, rtol=0)


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
    for _ in range(2_000):
        f = -power * _logsumexp(g + np.log(b) - cost / epsilon)
        g = -power * _logsumexp((f + np.log(a))[None, :] - cost.T / epsilon)
    expected = np.exp(f[:, None] + g - cost / epsilon) * np.outer(a, b)
    assert_close(ours.matrix, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-2), ("float64", 1e-4)])
@pytest.mark.parametrize("rho", [0.02, 2.0])
def test_unbalanced_where_most_mass_is_lost(rho: float, dtype: str, rtol: float) -> None:
    # Rows shrink by a factor exp(-cost / rho), beyond the range of a float32 kernel.
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
    assert_close(ours.matrix[seen], np.exp(log_plan[seen]), rtol=rtol, atol=1e-30)
    assert host(ours.matrix)[~seen].max(initial=0.0) < 1e-24


def _logsumexp(x: Array) -> Array:
    top = x.max(axis=1)
    return np.asarray(top + np.log(np.exp(x - top[:, None]).sum(axis=1)))


def test_a_small_epsilon_approaches_the_exact_plan() -> None:
    pot()
    cost, a, b = problem(8, 8, 1)
    entropic = host(sinkhorn(cost, a, b, epsilon=1e-3, tol=1e-8, max_iter=50_000).matrix)
    assert (entropic * cost).sum() == pytest.approx((host(exact(cost, a, b).matrix) * cost).sum(), abs=1e-2)


def test_a_large_epsilon_gives_the_independent_plan() -> None:
    cost, a, b = problem(6, 5, 2)
    assert_close(sinkhorn(cost, a, b, epsilon=1e7).matrix, np.outer(a, b), atol=1e-6)


@pytest.mark.slow
def test_unbalanced_approaches_balanced_as_rho_grows() -> None:
    cost, a, b = problem(6, 5, 2)
    free = sinkhorn(cost, a, b, epsilon=1.0, rho=1e6, tol=1e-12, max_iter=10_000)
    held = sinkhorn(cost, a, b, epsilon=1.0, tol=1e-12, max_iter=10_000)
    assert_close(free.matrix, held.matrix, atol=1e-5)


@pytest.mark.slow
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
@settings(max_examples=150)
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
        assert np.isfinite(host(part)).all()
    assert (host(plan.matrix) >= 0).all()
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
        assert (host(plan.matrix)[0] == 0).all()


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


@pytest.mark.slow
def test_a_problem_larger_than_one_block() -> None:
    # Blocks of rows on threads, and an epsilon small enough that it absorbs as well.
    n, m = 700, 800
    assert n * m > 4 * arrays.CACHE_ELEMENTS
    cost, a, b = problem(n, m, 5)
    with arrays.use_threads(2):
        two = sinkhorn(cost, a, b, epsilon=0.03, tol=1e-6, max_iter=60)
    with arrays.use_threads(1):
        one = sinkhorn(cost, a, b, epsilon=0.03, tol=1e-6, max_iter=60)
    # Sixty sweeps that end before the tolerance is met, each of them rounded otherwise.
    assert (one.n_iter, two.n_iter) == (60, 60)
    assert_close(two.matrix, one.matrix, atol=60 * rounding("float64", n + m) * float(host(one.matrix).max()))
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
    # Both plans meet their marginals to the tolerance.
    assert_close(plan.matrix, expected, atol=1e-9)
    # The warm start has the full length, and is used.
    again = sinkhorn(wide, wide_a, wide_b, epsilon=0.3, rho=rho, tol=1e-6, init=plan.log_v)
    assert again.n_iter <= 2
    assert_close(again.matrix, expected, atol=1e-6)


def test_one_by_one_and_one_by_many() -> None:
    one = np.ones(1)
    assert_close(sinkhorn(np.array([[7.0]]), one, one, epsilon=0.01).matrix, [[1.0]])
    b = np.array([0.2, 0.3, 0.5])
    cost = np.array([[0.0, 5.0, 100.0]])
    assert_close(sinkhorn(cost, one, b, epsilon=0.1).matrix, [b], atol=1e-12)
    assert_close(sinkhorn(cost.T, b, one, epsilon=0.1).matrix, b[:, None], atol=1e-12)


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
    assert_close(plan.matrix, 1e6 * sinkhorn(cost, a, b, epsilon=0.2, tol=1e-4).matrix, rtol=1e-3, atol=1.0)


def test_mass_beyond_the_dtype_is_not_called_converged() -> None:
    # Very negative costs make unbalanced transport create mass without bound.
    cost = np.full((2, 2), -1e4, dtype=np.float32)
    half = np.full(2, 0.5, dtype=np.float32)
    plan = sinkhorn(cost, half, half, epsilon=0.1, rho=1.0, max_iter=500)
    assert not plan.converged
    assert np.isfinite(host(plan.matrix)).all()


def test_constant_costs() -> None:
    a, b = np.array([0.3, 0.7]), np.array([0.5, 0.25, 0.25])
    for value in (-1e6, 0.0, 1e6):
        plan = sinkhorn(np.full((2, 3), value), a, b, epsilon=1e-3)
        assert plan.converged
        assert_close(plan.matrix, np.outer(a, b), atol=1e-6)


@pytest.mark.parametrize("rho", [None, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_log_potentials_describe_the_plan(rho: float | None, epsilon: float) -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, max_iter=5000)
    exponent = host(plan.log_u)[:, None] + host(plan.log_v) - cost / epsilon
    reference = 1.0 if rho is None else np.outer(a, b)
    assert_close(np.exp(exponent) * reference, plan.matrix, atol=1e-9)


@pytest.mark.parametrize("rho", [None, 2.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_warm_start_gives_the_same_answer_sooner(rho: float | None, epsilon: float) -> None:
    cost, a, b = problem(12, 9, 9)
    cold = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000)
    near = cost + 1e-3 * np.random.default_rng(0).standard_normal(cost.shape)
    warm = sinkhorn(near, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000, init=cold.log_v)
    fresh = sinkhorn(near, a, b, epsilon=epsilon, rho=rho, tol=1e-9, max_iter=50_000)
    assert_close(warm.matrix, fresh.matrix, atol=1e-7)
    assert warm.n_iter <= fresh.n_iter
    assert sinkhorn(cost, a, b, epsilon=epsilon, rho=rho, tol=1e-7, init=cold.log_v).n_iter <= 2


def test_epsilon_scale_between_the_costs() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((8, 5)) for _ in range(2))
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    weights = np.full(8, 1 / 8)
    squared = sinkhorn(cost_matrix(x, y, "sqeuclidean"), weights, weights, epsilon=0.1, tol=1e-12)
    dot = sinkhorn(cost_matrix(x, y, "dot"), weights, weights, epsilon=0.05, tol=1e-12)
    assert_close(squared.matrix, dot.matrix, atol=1e-10)


@pytest.mark.parametrize(("rho", "epsilon", "empty"), [(None, 0.05, False), (None, 0.3, True), (0.5, 0.3, False)])
def test_array_api_strict_gives_the_same_plan(rho: float | None, epsilon: float, empty: bool) -> None:
    cost, a, b = problem(6, 5, 10)
    if empty:
        a[2] = 0.0
        a /= a.sum()
    expected = sinkhorn(cost, a, b, epsilon=epsilon, rho=rho)
    strict = sinkhorn(*(as_strict(z) for z in (cost, a, b)), epsilon=epsilon, rho=rho)
    assert isinstance(strict.matrix, type(array_api_strict.zeros(1)))
    # Both stop at the tolerance, possibly one sweep apart.
    assert_close(arrays.to_numpy(strict.matrix), expected.matrix, atol=2e-6)
    y = array_api_strict.ones((5, 2))
    assert_close(arrays.to_numpy(strict.apply(y)), strict.matrix @ y, atol=1e-12)


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
    with pytest.raises(InputError, match=r"cost / epsilon reaches .*float32"):
        sinkhorn((cost * 1e36).astype("f4"), a.astype("f4"), b.astype("f4"), epsilon=1e-3)


def test_absurd_options_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": math.inf}, "epsilon=inf should be positive and finite"),
        ({"rho": math.inf}, "rho=inf should be positive and finite"),
        ({"rho": math.nan}, "rho=nan should be positive and finite"),
        ({"rho": 0.0}, r"rho=0\.0 should be positive"),
        ({"max_iter": 0}, "max_iter=0 should be at least 1"),
        ({"tol": math.nan}, "tol=nan should be at least 0"),
        ({"tol": -1.0}, r"tol=-1\.0 should be at least 0"),
        ({"init": np.full(3, math.nan)}, "init holds NaN or infinite entries"),
        ({"init": np.array([0.0, math.inf, 0.0])}, "init holds NaN or infinite entries"),
        ({"init": np.array([0.0, -math.inf, 0.0])}, "init holds NaN or infinite entries"),
        ({"init": np.zeros(3, dtype="f2")}, "init has type float16, expected one of float32, float64"),
        ({"init": np.zeros(3, dtype=int)}, "init has type int64"),
    ]
    for options, message in cases:
        cost, a, b = problem(4, 3, 0)
        with pytest.raises(InputError, match=message):
            sinkhorn(cost, a, b, **{"epsilon": 0.1, **options})


@pytest.mark.parametrize("dtype", ["float16", "int64", "int8", "bool", "complex128", "object", "str"])
def test_other_types_of_numbers_are_refused(dtype: str) -> None:
    """Scalings exceed half precision, and integers would be truncated."""
    for which, name in enumerate(("cost", "a", "b")):
        given_arrays = [np.ones((4, 4)), np.ones(4), np.ones(4)]
        given_arrays[which] = given_arrays[which].astype(dtype)
        for solve in (exact, partial(sinkhorn, epsilon=0.1)):
            with pytest.raises(InputError, match=f"{name} has type .*, expected one of float32, float64"):
                solve(*given_arrays)


def test_a_problem_without_points_is_refused() -> None:
    cases: list[tuple[int, int]] = [(0, 3), (3, 0), (0, 0)]
    for shape in cases:
        with pytest.raises(InputError, match="expected at least one row and one column"):
            sinkhorn(np.zeros(shape), np.ones(shape[0]), np.ones(shape[1]), epsilon=0.1)


def test_masses_beyond_the_largest_number_are_refused() -> None:
    cost, a, b = problem(4, 3, 0)
    with pytest.raises(InputError, match="expected positive and finite mass"), np.errstate(over="ignore"):
        sinkhorn(cost, a * 0 + 1e308, b * 0 + 1e308, epsilon=0.1)


@pytest.mark.parametrize("size", [1e3, 1e30, -1e30])
def test_a_random_initial_map_gives_finite_maps(size: float) -> None:
    cost, a, b = problem(4, 3, 0)
    plan = sinkhorn(cost, a, b, epsilon=0.1, init=size * np.array([1.0, -1.0, 0.5]))
    assert np.isfinite(host(plan.matrix)).all()


def test_unequal_masses_are_fine_when_unbalanced() -> None:
    cost, a, b = problem(4, 3, 0, mass=2.5)
    assert sinkhorn(cost, a, b, epsilon=0.1, rho=1.0).converged


def plain_sweeps(kernel: Array, a: Array, b: Array, tol: float) -> tuple[Array, int]:
    """Return the plan (n, m) of plain Sinkhorn and its sweeps until both marginals are met to `tol`."""
    v = np.ones_like(b)
    for sweep in range(1, 100_000):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
        plan = u[:, None] * kernel * v
        if np.abs(plan.sum(1) - a).sum() + np.abs(plan.sum(0) - b).sum() <= tol:
            return plan, sweep
    raise AssertionError("no convergence")


@pytest.mark.parametrize(("scale", "seed"), [(20.0, 0)])
def test_relaxation_reaches_the_plan_of_pot_with_fewer_sweeps(scale: float, seed: int) -> None:
    x, y, a, b = batch(1, 30, 30, seed)
    tol = 1e-6
    plans = inner_product_plans(x, y, a, b, scale=scale, max_iter=50_000, tol=tol)
    cost = host(cost_matrix(x[0], y[0], "dot"))
    expected = pot().sinkhorn(
        a[0], b[0], cost, 1 / scale, method="sinkhorn_log", numItermax=50_000, stopThr=1e-10, warn=False
    )
    assert_close(plans.matrix[0], expected, atol=1e-6, rtol=0)
    by_the_book, sweeps = plain_sweeps(np.exp(-scale * cost), a[0], b[0], tol)
    assert_close(by_the_book, expected, atol=1e-5, rtol=0)
    assert sweeps > 100
    assert plans.n_iter < 0.5 * sweeps
    assert max(plans.relaxations) > 1.0
    # The general solver also over-relaxes.
    general = sinkhorn(cost, a[0], b[0], epsilon=1 / scale, max_iter=50_000, tol=tol)
    assert general.n_iter < 0.5 * sweeps
    assert_close(general.matrix, expected, atol=1e-6, rtol=0)


def test_relaxed_known_answers() -> None:
    wanted, old = np.array([2.0, 8.0, 0.0]), np.array([1.0, 2.0, 0.0])
    assert_same(over_relaxed(wanted, old, 1.0), wanted)
    # The update is old * (wanted / old) ** factor.
    assert_close(over_relaxed(wanted, old, 1.5), [2.0**1.5, 2.0 * 4.0**1.5, 0.0])
    # A point whose weight became zero has a scaling of zero.
    assert_same(over_relaxed(np.zeros(1), np.ones(1), 1.8), [0.0])


def after(rate: float, sweeps: int, start: int = 1, error: float = 1.0) -> Relaxation:
    """Return the relaxation after errors that shrink by `rate` per sweep."""
    relaxation = Relaxation()
    for i in range(sweeps):
        relaxation.update(start + i, error * rate**i)
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
    relaxation.update(17, 2.0)
    assert relaxation.factor == 1.0
    # Plain sweeps for twice as long, then another attempt.
    for i in range(1, 16):
        relaxation.update(17 + i, 2.0 * 0.9**i)
        assert relaxation.factor == 1.0
    relaxation.update(33, 2.0 * 0.9**16)
    assert relaxation.factor > 1.0


def test_longer_steps_that_never_pay_are_given_up() -> None:
    relaxation, error, tries, previous = Relaxation(), 1.0, 0, 1.0
    for i in range(2000):
        error *= 0.9 if relaxation.factor == 1.0 else 1.2
        relaxation.update(i, error)
        tries += relaxation.factor > 1.0 and previous == 1.0
        previous = relaxation.factor
    assert tries == 4
    assert relaxation.factor == 1.0


def test_the_factor_grows_until_the_slow_component_dominates() -> None:
    """Two components of an error, with rates 0.3 and 0.96; the slow one is small at first."""
    relaxation, parts, seen = Relaxation(), {0.3: 1.0, 0.96: 0.01}, []
    for i in range(120):
        for plain, size in parts.items():
            w = relaxation.factor
            b = w * w * plain / 2 - w + 1
            # The larger root of (l + w - 1)^2 = l w^2 r in absolute value.
            rate = b + (b * b - (w - 1) ** 2) ** 0.5 if b * b > (w - 1) ** 2 else w - 1
            parts[plain] = size * max(rate, 0.0)
        relaxation.update(i, sum(parts.values()))
        seen.append(relaxation.factor)
    assert seen == sorted(seen)
    assert seen[9] < 1.4
    # The best factor for a rate of 0.96 is 2 / (1 + 0.2).
    assert seen[-1] == pytest.approx(2 / 1.2, abs=0.03)
