"""The linear program."""

from __future__ import annotations

import importlib.util
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from qwp.errors import InputError
from qwp.ot.exact import exact
from tests.libraries import as_strict, assert_close, host, pot
from tests.ot.problems import problem, reached_error, seeds, sizes


@given(n=sizes, m=sizes, seed=seeds)
@settings(max_examples=20)
def test_exact_agrees_with_pot(n: int, m: int, seed: int) -> None:
    ot = pot()
    cost, a, b = problem(n, m, seed)
    plan = exact(cost, a, b)
    assert plan.converged
    assert plan.marginal_error < 1e-9
    assert_close(plan.matrix, ot.emd(a, b, cost), atol=1e-9)


@given(n=sizes, seed=seeds)
@settings(max_examples=20)
def test_equal_weights_are_an_assignment_of_the_same_cost_as_with_pot(n: int, seed: int) -> None:
    ot = pot()
    cost, _, _ = problem(n, n, seed)
    equal = np.full(n, 1 / n)
    plan = exact(cost, equal, equal)
    assert plan.converged
    assert plan.marginal_error < 1e-12
    assert_close((host(plan.matrix) * cost).sum(), (ot.emd(equal, equal, cost) * cost).sum(), atol=1e-12)


def test_equal_weights_need_no_pot_and_others_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ot" else find(name))
    cost, a, b = problem(4, 4, 0)
    quarter = np.full(4, 0.25, dtype=np.float32)
    assert exact(cost, quarter, quarter).converged
    message = 'exact transport of points with unequal weights needs POT, which is not installed: pip install "qwp[pot]"'
    with pytest.raises(InputError, match=re.escape(message)):
        exact(cost, a, b)


def test_exact_solves_an_assignment() -> None:
    cost = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [2.0, 2.0, 0.0]])
    third = np.full(3, 1 / 3)
    assert_close(exact(cost, third, third).matrix, np.eye(3)[[1, 0, 2]] / 3, atol=1e-12)


def test_exact_in_float32_meets_weights_that_do_not_sum_alike() -> None:
    pot()
    cost, a, b = problem(300, 200, 0, dtype="float32")
    plan = exact(cost, a, b)
    assert plan.matrix.dtype == np.float32
    assert plan.converged
    assert reached_error(plan, a, b) < 1e-4


def test_exact_takes_zero_weights() -> None:
    pot()
    cost, a, b = problem(3, 3, 0)
    a = np.array([0.0, 0.5, 0.5])
    assert_close(host(exact(cost, a, b).matrix).sum(axis=1), a, atol=1e-12)


def test_another_library_finds_the_same_plan() -> None:
    pot()
    cost, a, b = problem(6, 5, 10)
    strict = exact(*(as_strict(z) for z in (cost, a, b)))
    assert_close(strict.matrix, exact(cost, a, b).matrix, atol=1e-12)
