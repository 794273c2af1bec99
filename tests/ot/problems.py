"""Random transport problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from qwp import arrays
from qwp.ot.costs import Plan, cost_matrix
from tests.libraries import host

Array = npt.NDArray[Any]


sizes = st.integers(1, 12)


seeds = st.integers(0, 2**32 - 1)


def problem(n: int, m: int, seed: int, *, mass: float = 1.0, dtype: str = "float64") -> tuple[Array, Array, Array]:
    """Return a cost (n, m) of random points in four dimensions and random weights a (n,), b (m,)."""
    rng = np.random.default_rng(seed)
    cost = host(cost_matrix(rng.standard_normal((n, 4)), rng.standard_normal((m, 4))))
    a, b = rng.uniform(0.05, 1.0, n), rng.uniform(0.05, 1.0, m)
    return cost.astype(dtype), (a / a.sum()).astype(dtype), (b * (mass / b.sum())).astype(dtype)


def reached_error(plan: Plan, a: Array, b: Array) -> float:
    """Return the L1 marginal error of a plan, computed in float64."""
    matrix = arrays.to_numpy(plan.matrix).astype(np.float64)
    return float(np.abs(matrix.sum(1) - a).sum() + np.abs(matrix.sum(0) - b).sum())


Batch = tuple[Array, Array, Array, Array]


def batch(size: int, n: int, m: int, seed: int, *, dtype: str = "float64", empty: bool = False) -> Batch:
    """Return unit points and weights: x (size, n, 4), y (size, m, 4), a (size, n), b (size, m)."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((size, n, 4)), rng.standard_normal((size, m, 4))
    a, b = rng.uniform(0.1, 1.0, (size, n)), rng.uniform(0.1, 1.0, (size, m))
    if empty:
        a[:, 1], b[:, 0] = 0.0, 0.0
        a[0, -1] = 0.0
    x, y = (z / np.linalg.norm(z, axis=2, keepdims=True) for z in (x, y))
    a, b = (w / w.sum(axis=1, keepdims=True) for w in (a, b))
    return x.astype(dtype), y.astype(dtype), a.astype(dtype), b.astype(dtype)
