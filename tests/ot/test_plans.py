"""Transport plans as scalings of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.ot.exact import exact
from qwp.ot.plans import Scalings
from qwp.ot.sinkhorn import sinkhorn
from tests.libraries import as_strict, assert_close, assert_same
from tests.ot.problems import problem


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
