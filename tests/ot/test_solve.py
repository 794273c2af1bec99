"""The settings of the transport, and the solver they choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.ot.solve import SOLVERS, Transport, solve_transport
from qwp.parameters import check, parameters, with_values
from tests.libraries import assert_close, host, pot
from tests.ot.problems import problem, reached_error

SETTINGS = Transport(solver="balanced", epsilon=0.5, cost="sqeuclidean", rho=0.7, tol=1e-9, max_iter=10_000)


def test_each_solver_finds_its_plan() -> None:
    ot = pot()
    cost, a, b = problem(9, 7, 3)
    expected = {
        "balanced": ot.sinkhorn(a, b, cost, 0.5, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11, warn=False),
        "unbalanced": ot.unbalanced.sinkhorn_unbalanced(a, b, cost, 0.5, 0.7, numItermax=20_000, stopThr=1e-14),
        "exact": ot.emd(a, b, cost),
    }
    assert set(expected) == set(SOLVERS)
    for solver, wanted in expected.items():
        plan = solve_transport(cost, a, b, replace(SETTINGS, solver=solver))
        assert plan.converged
        assert_close(plan.matrix, wanted, atol=1e-6)
    # They are different problems.
    assert np.abs(expected["balanced"] - expected["exact"]).max() > 0.01
    assert np.abs(expected["balanced"] - expected["unbalanced"]).max() > 0.01


def test_the_tolerance_and_the_last_sweep_are_obeyed() -> None:
    cost, a, b = problem(9, 7, 3)
    loose = solve_transport(cost, a, b, replace(SETTINGS, epsilon=0.05, tol=0.01))
    assert loose.converged
    assert 1e-6 < reached_error(loose, a, b) <= 0.01
    short = solve_transport(cost, a, b, replace(SETTINGS, epsilon=0.05, max_iter=3))
    assert (short.n_iter, short.converged) == (3, False)


def test_rho_is_for_unbalanced_transport_alone() -> None:
    pot()
    cost, a, b = problem(9, 7, 3)
    for solver in SOLVERS:
        strong, weak = (
            host(solve_transport(cost, a, b, replace(SETTINGS, solver=solver, rho=r)).matrix) for r in (9, 0.1)
        )
        assert (np.abs(strong - weak).max() > 1e-3) == (solver == "unbalanced")


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ot": "sinkhorn"}, "ot='sinkhorn' is not known; expected one of balanced, unbalanced, exact"),
        ({"cost": "cosine"}, "cost='cosine' is not known; expected one of sqeuclidean, dot"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 is out of range; expected above 0"),
        ({"epsilon": float("inf")}, "epsilon=inf is out of range; expected above 0"),
        ({"rho": -1.0}, r"rho=-1\.0 is out of range; expected above 0"),
        ({"sinkhorn_tol": 0.0}, r"sinkhorn_tol=0\.0 is out of range; expected above 0, at most 1"),
        ({"sinkhorn_tol": 1.5}, r"sinkhorn_tol=1\.5 is out of range; expected above 0, at most 1"),
        ({"sinkhorn_max_iter": 0}, "sinkhorn_max_iter=0 is out of range; expected 1 to 1,000,000"),
    ]
    check(SETTINGS)
    for change, message in cases:
        assert change.keys() <= parameters(SETTINGS).keys()
        with pytest.raises(InputError, match=message):
            check(with_values(SETTINGS, change))
