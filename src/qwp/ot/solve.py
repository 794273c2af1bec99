"""The settings of the transport, and the solver they choose."""

from __future__ import annotations

from dataclasses import dataclass

from qwp.arrays import Array
from qwp.ot.costs import COSTS, Plan
from qwp.ot.exact import exact
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
    """The plan for one pair of coresets by the chosen solver. cost: (n, m), a: (n,), b: (m,)."""
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
