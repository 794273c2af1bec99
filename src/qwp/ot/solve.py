"""The settings of the transport, and the solver they choose."""

from __future__ import annotations

from dataclasses import dataclass

from qwp.arrays import Array
from qwp.ot.costs import COSTS
from qwp.ot.exact import exact
from qwp.ot.plans import Plan
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import LOOP, MOST_STEPS, Settings, param

SOLVERS = ("balanced", "unbalanced", "exact")


@dataclass(kw_only=True)
class TransportSettings(Settings):
    """How one coreset is transported onto another."""

    epsilon: float = param(0.05, "Entropy of the transport, on the scale of --cost.", LOOP, above=0, most=1e6)
    cost: str = param(
        "sqeuclidean",
        "sqeuclidean (as the paper) or dot (minus the inner product; half the scale).",
        LOOP,
        choices=COSTS,
    )
    ot: str = param("balanced", "Transport: balanced, unbalanced or exact.", LOOP, choices=SOLVERS)
    rho: float = param(1.0, "Strength of the marginals in unbalanced transport.", LOOP, above=0, most=1e6)
    sinkhorn_tol: float = param(
        0.01, "Sinkhorn stops when the marginals are met to this error, relative to the mass.", LOOP, above=0, most=1
    )
    sinkhorn_max_iter: int = param(100, "Most Sinkhorn iterations of one step.", LOOP, least=1, most=MOST_STEPS)


def solve_transport(cost: Array, a: Array, b: Array, settings: TransportSettings) -> Plan:
    """The plan for one pair of coresets by the chosen solver. cost: (n, m), a: (n,), b: (m,)."""
    if settings.ot == "exact":
        return exact(cost, a, b)
    return sinkhorn(
        cost,
        a,
        b,
        epsilon=settings.epsilon,
        rho=settings.rho if settings.ot == "unbalanced" else None,
        max_iter=settings.sinkhorn_max_iter,
        tol=settings.sinkhorn_tol,
    )
