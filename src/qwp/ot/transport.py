"""Optimal transport between two coresets: its settings, the choice of the solver, and the linear program."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Floats
from qwp.errors import installed
from qwp.ot.costs import COSTS, Plan, check_problem
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import LOOP, MOST_STEPS, Settings, param

SOLVERS = ("balanced", "unbalanced", "exact")


@dataclass(frozen=True, kw_only=True)
class Transport(Settings):
    """How one coreset is transported onto another."""

    solver: str = param("balanced", "Transport: balanced, unbalanced or exact.", LOOP, choices=SOLVERS, option="ot")
    epsilon: float = param(0.05, "Entropic regularisation, on the scale of --cost.", LOOP, above=0, most=1e6)
    cost: str = param(
        "sqeuclidean",
        "sqeuclidean (as the paper) or dot (minus the inner product; half the scale).",
        LOOP,
        choices=COSTS,
    )
    rho: float = param(1.0, "Strength of the marginals in unbalanced transport.", LOOP, above=0, most=1e6)
    tol: float = param(
        0.01,
        "Sinkhorn stops when the marginals are met to this error, relative to the mass.",
        LOOP,
        above=0,
        most=1,
        option="sinkhorn_tol",
    )
    max_iter: int = param(
        100, "Most Sinkhorn iterations of one step.", LOOP, least=1, most=MOST_STEPS, option="sinkhorn_max_iter"
    )


def solve_transport(cost: Array, a: Array, b: Array, settings: Transport) -> Plan:
    """Return the plan of one pair of coresets by the chosen solver. cost: (n, m), a: (n,), b: (m,)."""
    if settings.solver == "exact":
        return exact(cost, a, b)
    return sinkhorn(
        cost,
        a,
        b,
        epsilon=settings.epsilon,
        rho=settings.rho if settings.solver == "unbalanced" else None,
        max_iter=settings.max_iter,
        tol=settings.tol,
    )


UNUSED = {
    "jax": "POT_BACKEND_DISABLE_JAX",
    "cupy": "POT_BACKEND_DISABLE_CUPY",
    "tensorflow": "POT_BACKEND_DISABLE_TENSORFLOW",
}
"""Array libraries that POT would import besides NumPy and Torch, with the environment variable that prevents it."""


def require_pot(what: str) -> None:
    """Raise an InputError if POT is not installed. what: the feature that needs it."""
    installed("pot", what)


def load_pot() -> ModuleType:
    """Import and return POT without its optional array libraries, unless they are in use.

    At its first import POT loads every installed one, which takes seconds. JAX would also reserve three quarters of the
    memory of every GPU.
    """
    before = {variable: os.environ.get(variable) for variable in UNUSED.values()}
    os.environ.update({variable: "1" for module, variable in UNUSED.items() if module not in sys.modules})
    try:
        return importlib.import_module("ot")
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def exact(cost: Array, a: Array, b: Array) -> Plan:
    """Return the plan of the unregularised problem, by linear programming. cost: (n, m), a: (n,), b: (m,).

    Equal weights on equally many points make it an assignment problem, which SciPy solves three times as fast as the
    network simplex of POT. All other weights need POT.
    """
    xp = arrays.namespace(cost, a, b)
    check_problem(cost, a, b, balanced=True)
    weights_a, weights_b = (np.asarray(arrays.to_numpy(w), dtype=np.float64) for w in (a, b))
    # The simplex needs exactly equal totals; float32 weights agree to about seven digits.
    weights_b = weights_b * (weights_a.sum() / weights_b.sum())
    costs = np.ascontiguousarray(arrays.to_numpy(cost), dtype=np.float64)
    plan, converged = _solve(costs, weights_a, weights_b)
    error = np.abs(plan.sum(1) - weights_a).sum() + np.abs(plan.sum(0) - weights_b).sum()
    one = xp.ones_like
    zero = xp.zeros_like
    kernel = arrays.asarray(plan, cost)
    return Plan(kernel, one(a), one(b), (), zero(a), zero(b), converged, float(error))


def _solve(costs: Floats, a: Floats, b: Floats) -> tuple[Floats, bool]:
    """Return the plan (n, m) of least cost, and whether the solver converged."""
    if len(a) == len(b) and np.ptp(a) == np.ptp(b) == 0:
        # Imported here because the import takes longer than most commands.
        from scipy.optimize import linear_sum_assignment

        plan = np.zeros_like(costs)
        plan[linear_sum_assignment(costs)] = a[0]
        return plan, True
    require_pot("exact transport of points with unequal weights")
    plan, log = load_pot().emd(a, b, costs, log=True, numItermax=10_000_000)
    return plan, log["warning"] is None
