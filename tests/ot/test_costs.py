"""Costs, the checks of transport problems, and the prior on the ranks of words."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.ot.coreset_source import Coresets
from qwp.ot.costs import RANK_OFFSET, RankPrior, Scalings, check_problem, cost_matrix, rank_cost, with_ranks
from qwp.ot.sinkhorn import sinkhorn
from qwp.ot.transport import Transport, exact
from qwp.parameters import with_values
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes, make_schedule
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.ot.problems import Array, problem
from tests.problems import planted, rotation


def test_cost_matrix_known_answer() -> None:
    x, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    assert_close(cost_matrix(x, y), [[25.0, 1.0, 0.0], [0.0, 20.0, 25.0]])
    assert_close(cost_matrix(x, y, "dot"), [[0.0, 0.0, 0.0], [-25.0, -3.0, 0.0]])


def test_squared_distances_are_never_negative() -> None:
    x = np.random.default_rng(0).standard_normal((50, 300)).astype(np.float32)
    assert host(cost_matrix(x, x)).min() >= 0.0


def test_costs_in_another_library() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 4, 3))
    for kind in ("sqeuclidean", "dot"):
        strict_cost = cost_matrix(as_strict(x), as_strict(y), kind)
        assert_close(strict_cost, cost_matrix(x, y, kind), atol=1e-12)


def bad_problem(what: str) -> tuple[Array, Array, Array]:
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


def test_bad_input_is_explained() -> None:
    cases: list[tuple[str, str]] = [
        ("a too long", r"\(4, 3\).*\(5,\)"),
        ("b is a matrix", r"\(3, 1\)"),
        ("cost is a vector", "expected"),
        ("NaN cost", "cost holds NaN"),
        ("infinite cost", "cost holds NaN or inf"),
        ("NaN weight", "b holds NaN"),
        ("negative weight", "negative.*-0.1"),
        ("no mass", "sum to 1 and 0"),
        ("unequal masses", "1 and 2.*rho"),
    ]
    for what, message in cases:
        for solve in (exact, partial(sinkhorn, epsilon=0.1)):
            with pytest.raises(InputError, match=message):
                solve(*bad_problem(what))


@pytest.mark.parametrize("what", ["unequal masses", "fine"])
def test_unequal_masses_are_for_unbalanced_transport_alone(what: str) -> None:
    cost, a, b = bad_problem(what)
    check_problem(cost, a, b, balanced=False)
    if what == "fine":
        check_problem(cost, a, b, balanced=True)


def test_masses_that_agree_to_rounding_are_equal() -> None:
    cost, a, b = bad_problem("fine")
    check_problem(cost, a, 1.0005 * b, balanced=True)
    with pytest.raises(InputError, match=r"equal masses, got 1 and 1\.002"):
        check_problem(cost, a, 1.002 * b, balanced=True)


def test_an_unknown_cost_is_refused() -> None:
    with pytest.raises(InputError, match="'cosine' is not known; expected one of sqeuclidean, dot"):
        cost_matrix(np.ones((2, 2)), np.ones((2, 2)), "cosine")


def test_a_plan_known_answer() -> None:
    kernel, u, v = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]]), np.array([1.0, 2.0, 3.0]), np.array([10.0, 0.5])
    x, y = np.array([[1.0], [0.0], [2.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    for made in (np.asarray, as_strict):
        plan = Scalings(made(kernel), made(u), made(v), (1.0, 1.5))
        assert plan.n_iter == 2
        assert_same(plan.matrix, [[10.0, 1.0], [60.0, 4.0], [0.0, 7.5]])
        assert_same(plan.apply(made(y)), [[10.0, 2.0], [60.0, 8.0], [0.0, 15.0]])
        assert_same(plan.apply_transposed(made(x)), [[10.0], [16.0]])


def test_several_plans_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    kernel, u, v = rng.random((3, 4, 5)), rng.random((3, 4)), rng.random((3, 5))
    x, y = rng.random((3, 4, 2)), rng.random((3, 5, 2))
    several = Scalings(kernel, u, v, ())
    for i in range(3):
        one = Scalings(kernel[i], u[i], v[i], ())
        assert_close(several.matrix[i], one.matrix)
        assert_close(several.apply(y)[i], one.apply(y[i]))
        assert_close(several.apply_transposed(x)[i], one.apply_transposed(x[i]))


def test_n_iter_counts_the_sweeps() -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=0.2, max_iter=4, tol=1e-12)
    assert isinstance(plan, Scalings)
    assert plan.n_iter == len(plan.relaxations) == 4
    equal = np.full(5, 0.2)
    assert exact(cost[:5], equal, equal).n_iter == 0


@pytest.mark.parametrize("rho", [None, 0.5])
def test_apply_equals_the_matrix_product(rho: float | None) -> None:
    cost, a, b = problem(7, 5, 8)
    plan = sinkhorn(cost, a, b, epsilon=0.2, rho=rho)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    assert_close(plan.apply(y), plan.matrix @ y, atol=1e-13)
    assert_close(plan.apply_transposed(x), plan.matrix.T @ x, atol=1e-13)


RANDOM = WassersteinProcrustes(
    coresets=Coresets(kind="random", pairs_per_step=2),
    transport=Transport(epsilon=0.1),
    update="gradient",
    learning_rate=2.0,
)


def test_three_more_columns_take_squared_differences_of_ranks_off() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5, 3)), rng.standard_normal((4, 6, 3))
    log_x, log_y = rng.random((4, 5, 1)) * 9, rng.random((4, 6, 1)) * 9
    weight = np.array([0.5, 2.0])
    left, right = with_ranks(x, y, log_x, log_y, weight)
    # Two pairs of spaces with two plans each.
    each = np.repeat(weight, 2)[:, None, None]
    expected = x @ y.swapaxes(1, 2) - each * (log_x - log_y.swapaxes(1, 2)) ** 2
    assert_close(host(left) @ host(right).swapaxes(1, 2), expected, atol=1e-12)
    strict = with_ranks(*(as_strict(part) for part in (x, y, log_x, log_y, weight)))
    for found, same in zip(strict, (left, right), strict=True):
        assert_close(host(found), same, rtol=1e-12)


def test_ranks_deviate_as_inner_products_do() -> None:
    problems = [planted(400, 300, d=8, seed=seed, dtype="float64") for seed in (0, 1)]
    w = np.stack([rotation(8, 2), rotation(8, 3)])
    prior = RankPrior.between([p.src for p in problems], [p.tgt for p in problems], w)
    log_x, log_y = (host(logs) for logs in prior.log_ranks)
    assert_close(log_x[:, 0], np.tile(np.log(np.arange(400) + RANK_OFFSET), 2))
    assert log_y.shape == (600, 1)
    for i, pair in enumerate(problems):
        products = pair.src @ w[i] @ pair.tgt.T
        differences = (log_x[:400] - log_y[:300].T) ** 2
        assert np.std(host(prior.unit)[i] * differences) == pytest.approx(np.std(products), rel=0.05)


def after(prior: float, words: Any, steps: int) -> Array:
    """Return the map after some steps from a random rotation. words: makes an array of a library."""
    problem = planted(600, d=12, seed=4, dtype="float32")
    found = RANDOM.solve_many(
        [words(problem.src)],
        [words(problem.tgt)],
        words(rotation(12, 9).astype(np.float32)[None]),
        make_schedule("fixed", steps=steps, k=100, epochs=1, n_max=600),
        seeds=[0],
        frequency_prior=prior,
    )
    return np.asarray(host(found)[0])


def test_ranks_speed_up_the_loop_on_ordered_words() -> None:
    problem = planted(600, d=12, seed=4, dtype="float32")
    without, with_prior = (after(prior, np.asarray, 40) for prior in (0.0, 4.0))
    assert problem.accuracy(with_prior) > 2 * problem.accuracy(without)


def test_every_library_goes_the_same_way() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_close(after(1.0, torch.asarray, 5), after(1.0, np.asarray, 5), atol=1e-4)


@pytest.mark.parametrize("change", [{"coreset": "kmeans++"}, {"epsilon": 1e-3}, {"ot": "unbalanced"}])
def test_plans_that_cannot_take_ranks_are_refused(change: dict[str, Any]) -> None:
    problem = planted(300, d=5, seed=0, dtype="float32")
    schedule = make_schedule("fixed", steps=2, k=50, epochs=1, n_max=300)
    settings = with_values(RANDOM, change)
    w = rotation(5, 0).astype(np.float32)[None]
    with pytest.raises(ValueError, match="the frequency prior needs"):
        settings.solve_many([problem.src], [problem.tgt], w, schedule, seeds=[0], frequency_prior=1.0)


def test_ranks_are_compared_by_their_logarithms() -> None:
    cost = host(rank_cost(np.arange(3.0), np.arange(2.0)))
    expected = [[(np.log(i + 10) - np.log(j + 10)) ** 2 for j in range(2)] for i in range(3)]
    assert_close(cost, np.array(expected), atol=1e-12)
