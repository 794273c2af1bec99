"""Costs between two point sets, checks of transport problems, and transport plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError, one_of

COSTS = ("sqeuclidean", "dot")
RANK_OFFSET = 10.0
"""Added to ranks before their logarithms are compared: the order of the first words is hardly informative."""


def cost_matrix(x: Array, y: Array, kind: str = "sqeuclidean") -> Array:
    """Return the costs between rows, squared distances or minus inner products. x: (n, d), y: (m, d). (n, m)."""
    xp = arrays.namespace(x, y)
    if kind == "dot":
        return -(x @ y.T)
    one_of(COSTS, cost=kind)
    cost = (-2.0 * x) @ y.T
    cost += xp.expand_dims(xp.sum(x * x, axis=1), axis=1)
    cost += xp.sum(y * y, axis=1)
    return xp.clip(cost, 0.0, None)


class Magnitudes(NamedTuple):
    """The extremes of the cost and of the weights of a transport problem, and the sums of the weights."""

    least_cost: float
    most_cost: float
    least_a: float
    most_a: float
    least_b: float
    most_b: float
    total_a: float
    total_b: float


def check_problem(cost: Array, a: Array, b: Array, *, balanced: bool) -> Magnitudes:
    """Raise an InputError for a transport problem without a solution. cost: (n, m), a: (n,), b: (m,)."""
    if cost.ndim != 2 or a.shape != (cost.shape[0],) or b.shape != (cost.shape[1],):
        raise InputError(
            f"cost has shape {cost.shape}, weights {a.shape} and {b.shape}; expected (n, m), (n,) and (m,)"
        )
    if 0 in cost.shape:
        raise InputError(f"cost has shape {cost.shape}; expected at least one row and one column")
    xp = arrays.namespace(cost)
    named = {"cost": cost, "a": a, "b": b}
    for name, x in named.items():
        _check_precision(name, x)
    extremes = [extreme(x) for x in named.values() for extreme in (xp.min, xp.max)]
    found = Magnitudes(*arrays.to_floats(*extremes, xp.sum(a), xp.sum(b)))
    for i, name in enumerate(named):
        _check_finite(name, *found[2 * i : 2 * i + 2])
    for name, least in (("a", found.least_a), ("b", found.least_b)):
        if least < 0:
            raise InputError(f"weights {name} hold negative entries, the least {least:g}; expected none")
    total_a, total_b = found.total_a, found.total_b
    if not (0 < total_a < math.inf and 0 < total_b < math.inf):
        raise InputError(
            f"the weights sum to {total_a:g} and {total_b:g}; expected positive and finite mass on both sides"
        )
    if balanced and abs(total_a - total_b) > 1e-3 * max(total_a, total_b):
        raise InputError(
            f"balanced transport needs equal masses, got {total_a:g} and {total_b:g}: "
            "rescale one side or use unbalanced transport (rho)"
        )
    return found


def check_numbers(name: str, x: Array) -> None:
    """Raise an InputError unless x, of any shape, holds finite numbers of a precision that is computed in."""
    _check_precision(name, x)
    xp = arrays.namespace(x)
    _check_finite(name, *arrays.to_floats(xp.min(x), xp.max(x)))


def _check_precision(name: str, x: Array) -> None:
    precision = str(x.dtype).rpartition(".")[2]
    if precision not in arrays.DTYPES:
        raise InputError(
            f"{name} has type {precision}, expected one of {', '.join(arrays.DTYPES)}: convert it, integers overflow "
            "and half precision does not hold the scalings"
        )


def _check_finite(name: str, least: float, most: float) -> None:
    """Raise an InputError for extremes that are not finite. Both are NaN if any entry is."""
    if not (math.isfinite(least) and math.isfinite(most)):
        raise InputError(f"{name} holds NaN or infinite entries; expected finite numbers")


@dataclass(frozen=True)
class Scalings:
    """A transport plan u * kernel * v, or a batch of them: kernel (..., n, m), u (..., n), v (..., m).

    relaxations: the over-relaxation factor of each sweep; 1 is a plain Sinkhorn sweep.
    """

    kernel: Array
    u: Array
    v: Array
    relaxations: tuple[float, ...]

    @property
    def n_iter(self) -> int:
        """The number of sweeps."""
        return len(self.relaxations)

    @property
    def matrix(self) -> Array:
        """The plan as a dense matrix (..., n, m)."""
        xp = arrays.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * self.kernel * xp.expand_dims(self.v, axis=-2)

    def apply(self, y: Array) -> Array:
        """Return plan @ y without forming the plan. y: (..., m, d). Returns (..., n, d)."""
        xp = arrays.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * (self.kernel @ (xp.expand_dims(self.v, axis=-1) * y))

    def apply_transposed(self, x: Array) -> Array:
        """Return plan.T @ x without forming the plan. x: (..., n, d). Returns (..., m, d)."""
        xp = arrays.namespace(self.kernel)
        image = xp.matrix_transpose(self.kernel) @ (xp.expand_dims(self.u, axis=-1) * x)
        return xp.expand_dims(self.v, axis=-1) * image


@dataclass(frozen=True)
class Plan(Scalings):
    """A transport plan with the diagnostics of the solver. kernel: (n, m); u: (n,); v: (m,).

    marginal_error: L1 distance of both marginals from a and b (unbalanced: largest change of a log-potential in the
    last sweep). log_u, log_v: log-potentials; `log_v` serves as a warm start.
    """

    log_u: Array
    log_v: Array
    converged: bool
    marginal_error: float


# --------------------------------------------------------------------------- ranks


def rank_cost(x: Array, y: Array) -> Array:
    """Return squared differences of log-ranks, (n, m). x: (n,), y: (m,) ranks from zero, floating-point."""
    xp = arrays.namespace(x, y)
    log_x, log_y = (xp.expand_dims(xp.log(ranks + RANK_OFFSET), axis=1) for ranks in (x, y))
    return cost_matrix(log_x, log_y)


@dataclass(frozen=True)
class RankPrior:
    """A prior on pairs of words by their ranks, for P pairs of spaces: translations have similar frequencies.

    log_ranks: (N, 1) and (M, 1), logarithms of the ranks of the words of all sources, concatenated, and of all targets.
    unit: (P,), scales squared differences of log-ranks to the standard deviation of inner products of mapped words.
    """

    log_ranks: tuple[Array, Array]
    unit: Array

    @classmethod
    def between(cls, xs: Sequence[Array], ys: Sequence[Array], w: Array) -> RankPrior:
        """Return the prior of xs (n_p, d) and ys (m_p, d) under the maps w (P, d, d)."""
        xp = arrays.namespace(w)
        units = []
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            # The root mean square of all inner products <x W, y>, whose mean is about zero for normalised words.
            second = [side.T @ side / side.shape[0] for side in (x @ w[i, ...], y)]
            deviation = xp.sqrt(xp.sum(second[0] * second[1]))
            # 500 evenly spaced ranks of each side give the deviation of rank differences.
            some = [_log_ranks(np.linspace(0, side.shape[0] - 1, 500)) for side in (x, y)]
            units.append(deviation / (float(np.std((some[0][:, None] - some[1]) ** 2)) or 1.0))
        both = (np.concatenate([_log_ranks(np.arange(side.shape[0])) for side in sides]) for sides in (xs, ys))
        logs = [arrays.asarray(values[:, None], w) for values in both]
        return cls((logs[0], logs[1]), xp.stack(units))


def with_ranks(x: Array, y: Array, log_x: Array, log_y: Array, weight: Array) -> tuple[Array, Array]:
    """Append three columns to points, so that <x, y> decreases by weight * (log_x - log_y)^2.

    x: (B, n, d), y: (B, m, d); log_x: (B, n, 1), log_y: (B, m, 1); weight: (P,), where B is a multiple of P. Returns
    (B, n, d + 3) and (B, m, d + 3).
    """
    xp = arrays.namespace(x)
    each = xp.reshape(xp.broadcast_to(weight[:, None], (weight.shape[0], x.shape[0] // weight.shape[0])), (-1, 1, 1))
    ones = xp.ones_like(log_x)
    left = xp.concat([x, -each * log_x * log_x, 2.0 * each * log_x, -each * ones], axis=2)
    return left, xp.concat([y, xp.ones_like(log_y), log_y, log_y * log_y], axis=2)


def _log_ranks(ranks: np.ndarray) -> np.ndarray:
    """Return the logarithms of ranks from zero, (n,)."""
    return np.log(ranks + RANK_OFFSET)
