"""The linear program of transport."""

from __future__ import annotations

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.transport.costs import check_problem
from qwp.transport.plans import Plan


def exact(cost: Array, a: Array, b: Array) -> Plan:
    """The linear program, by POT's network simplex. cost: (n, m), a: (n,), b: (m,)."""
    import ot  # here, because it takes longer to import than most commands take to run

    xp = arrays.namespace(cost, a, b)
    check_problem(cost, a, b, balanced=True)
    weights_a, weights_b = (np.asarray(arrays.to_numpy(w), dtype=np.float64) for w in (a, b))
    # The simplex wants equal totals to the last digit; float32 weights only agree to about seven.
    weights_b = weights_b * (weights_a.sum() / weights_b.sum())
    costs = np.ascontiguousarray(arrays.to_numpy(cost), dtype=np.float64)
    plan, log = ot.emd(weights_a, weights_b, costs, log=True, numItermax=10_000_000)
    error = np.abs(plan.sum(1) - weights_a).sum() + np.abs(plan.sum(0) - weights_b).sum()
    one = xp.ones_like
    zero = xp.zeros_like
    kernel, converged = arrays.asarray(plan, cost), log["warning"] is None
    return Plan(kernel, one(a), one(b), (), zero(a), zero(b), converged, float(error))
