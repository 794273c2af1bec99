"""Optimal transport between two weighted point sets: entropic (balanced, unbalanced) and exact.

Convention: `epsilon` multiplies sum P log(P / (a b^T)) on the cost exactly as given. With unit vectors the
squared Euclidean cost is 2 - 2<x, y>, so `epsilon` on `sqeuclidean` equals `epsilon / 2` on `dot` (-<x, y>).
Unbalanced transport replaces the two marginal constraints by `rho` times their KL divergences (Chizat et al.
2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from qwp import backend
from qwp.backend import Array
from qwp.errors import InputError

COSTS = ("sqeuclidean", "dot")
SOLVERS = ("balanced", "unbalanced", "exact")

# Beyond this spread of cost / epsilon the answer is approached through larger epsilons: the kernel alone
# would be zero almost everywhere and plain sweeps would crawl.
_ANNEAL_ABOVE = 200.0
_ANNEAL_SWEEPS = 20

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """A transport plan u * kernel * v and how it was reached.

    kernel: (n, m); u: (n,); v: (m,). marginal_error: L1 distance of both marginals from a and b (unbalanced:
    largest change of a log-potential in the last sweep). log_u, log_v: log-potentials; `log_v` is good for a
    warm start.
    """

    kernel: Array
    u: Array
    v: Array
    log_u: Array
    log_v: Array
    converged: bool
    n_iter: int
    marginal_error: float

    @property
    def matrix(self) -> Array:
        """The plan as a dense matrix (n, m)."""
        xp = backend.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=1) * self.kernel * self.v

    def apply(self, y: Array) -> Array:
        """plan @ y without forming the plan. y: (m, d). Returns (n, d)."""
        xp = backend.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=1) * (self.kernel @ (xp.expand_dims(self.v, axis=1) * y))

    def apply_transposed(self, x: Array) -> Array:
        """plan.T @ x without forming the plan. x: (n, d). Returns (m, d)."""
        xp = backend.namespace(self.kernel)
        return xp.expand_dims(self.v, axis=1) * (self.kernel.T @ (xp.expand_dims(self.u, axis=1) * x))


def cost_matrix(x: Array, y: Array, kind: str = "sqeuclidean") -> Array:
    """Costs between rows: squared distances or minus inner products. x: (n, d), y: (m, d). Returns (n, m)."""
    xp = backend.namespace(x, y)
    if kind == "dot":
        return -(x @ y.T)
    if kind != "sqeuclidean":
        raise InputError(f"cost {kind!r} is not known; expected one of {', '.join(COSTS)}")
    cost = (-2.0 * x) @ y.T
    cost += xp.expand_dims(xp.sum(x * x, axis=1), axis=1)
    cost += xp.sum(y * y, axis=1)
    return xp.clip(cost, 0.0, None)


def exact(cost: Array, a: Array, b: Array) -> Plan:
    """The linear program, by POT's network simplex. cost: (n, m), a: (n,), b: (m,)."""
    import ot  # here, because it takes longer to import than most commands take to run

    xp = backend.namespace(cost, a, b)
    _check(cost, a, b, balanced=True)
    weights_a, weights_b = (np.asarray(backend.to_numpy(w), dtype=np.float64) for w in (a, b))
    # The simplex wants equal totals to the last digit; float32 weights only agree to about seven.
    weights_b = weights_b * (weights_a.sum() / weights_b.sum())
    costs = np.ascontiguousarray(backend.to_numpy(cost), dtype=np.float64)
    plan, log = ot.emd(weights_a, weights_b, costs, log=True, numItermax=10_000_000)
    error = np.abs(plan.sum(1) - weights_a).sum() + np.abs(plan.sum(0) - weights_b).sum()
    one = xp.ones_like
    zero = xp.zeros_like
    return Plan(backend.asarray(plan, cost), one(a), one(b), zero(a), zero(b), log["warning"] is None, 0, float(error))


def sinkhorn(
    cost: Array,
    a: Array,
    b: Array,
    *,
    epsilon: float,
    rho: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    init: Array | None = None,
) -> Plan:
    """Entropic transport by stabilised scaling.

    cost: (n, m); a: (n,), b: (m,) non-negative, equal totals when balanced. rho: None for balanced transport.
    Stops when the marginal error falls to `tol` (relative to the mass) or after `max_iter` sweeps. init:
    `log_v` of an earlier plan, (m,). Sweeps work on a kernel in memory; when a scaling leaves the safe range
    of the dtype it is absorbed into the log-potentials by one log-domain sweep, so no epsilon and no scale of
    the cost yields NaN or inf.
    """
    _check(cost, a, b, balanced=rho is None)
    if init is not None and init.shape != b.shape:
        raise InputError(f"init has shape {init.shape}; expected that of b, {b.shape}")
    if not epsilon > 0:
        raise InputError(f"epsilon={epsilon} should be positive")
    if rho is not None and not rho > 0:
        raise InputError(f"rho={rho} should be positive (leave it out for balanced transport)")
    xp = backend.namespace(cost, a, b)
    if bool(xp.any(a <= 0)) or bool(xp.any(b <= 0)):
        return _without_empty(cost, a, b, init, epsilon=epsilon, rho=rho, max_iter=max_iter, tol=tol)
    return _Scaling(cost, a, b, epsilon, rho, max_iter, tol).solve(init)


def _check(cost: Array, a: Array, b: Array, *, balanced: bool) -> None:
    if cost.ndim != 2 or a.shape != (cost.shape[0],) or b.shape != (cost.shape[1],):
        raise InputError(
            f"cost has shape {cost.shape}, weights {a.shape} and {b.shape}; expected (n, m), (n,) and (m,)"
        )
    xp = backend.namespace(cost)
    for name, x in (("cost", cost), ("a", a), ("b", b)):
        # NaN spreads into both extremes; two quick passes instead of a mask.
        if not (math.isfinite(float(xp.min(x))) and math.isfinite(float(xp.max(x)))):
            raise InputError(f"{name} holds NaN or infinite entries; expected finite numbers")
    for name, x in (("a", a), ("b", b)):
        if not bool(xp.all(x >= 0)):
            raise InputError(f"weights {name} hold negative entries, the least {float(xp.min(x)):g}; expected none")
    total_a, total_b = float(xp.sum(a)), float(xp.sum(b))
    if not (total_a > 0 and total_b > 0):
        raise InputError(f"the weights sum to {total_a:g} and {total_b:g}; expected positive mass on both sides")
    if balanced and abs(total_a - total_b) > 1e-3 * max(total_a, total_b):
        raise InputError(
            f"balanced transport needs equal masses, got {total_a:g} and {total_b:g}: "
            "rescale one side or use unbalanced transport (rho)"
        )


def _without_empty(cost: Array, a: Array, b: Array, init: Array | None, **options: object) -> Plan:
    """Solve on the rows and columns that carry mass, and put zeros back for the others."""
    xp = backend.namespace(cost)
    rows, columns = xp.nonzero(a > 0)[0], xp.nonzero(b > 0)[0]
    small = xp.take(xp.take(cost, rows, axis=0), columns, axis=1)
    options["init"] = None if init is None else xp.take(init, columns)
    plan = sinkhorn(small, xp.take(a, rows), xp.take(b, columns), **options)  # type: ignore[arg-type]
    spread_rows, spread_columns = (
        xp.astype(xp.expand_dims(xp.arange(size, device=backend.device(cost)), axis=1) == kept, cost.dtype)
        for size, kept in ((a.shape[0], rows), (b.shape[0], columns))
    )
    return replace(
        plan,
        kernel=spread_rows @ plan.kernel @ spread_columns.T,
        u=spread_rows @ plan.u,
        v=spread_columns @ plan.v,
        log_u=spread_rows @ plan.log_u,
        log_v=spread_columns @ plan.log_v,
    )


class _Scaling:
    """One entropic problem. Potentials are logarithms, in units of epsilon.

    Passes over the whole cost matrix run by row blocks that stay in the cache: the arithmetic is a few
    operations per entry, so reading each entry from memory once is what counts.
    """

    def __init__(
        self, cost: Array, a: Array, b: Array, epsilon: float, rho: float | None, max_iter: int, tol: float
    ) -> None:
        self.xp = backend.namespace(cost)
        self.cost, self.a, self.b = cost, a, b
        self.epsilon, self.rho = epsilon, rho
        self.max_iter = max_iter
        self.tol = tol * (float(self.xp.sum(a)) if rho is None else 1.0)
        # Scalings stay within exp(+-limit): far from overflow even in a product with a kernel entry.
        self.limit = 0.4 * math.log(float(self.xp.finfo(cost.dtype).max))
        self.low, self.high = math.exp(-self.limit), math.exp(self.limit)
        tiny = float(self.xp.finfo(cost.dtype).smallest_normal)
        self.negligible = tiny * 1e7
        # Images below this count as empty; a weight divided by it is still finite.
        self.floor = tiny * max(1.0, float(self.xp.max(a)), float(self.xp.max(b)))
        # The entropy of the unbalanced problem is relative to a b^T; folding that into the cost leaves the
        # update as it is.
        self.shift_a = None if rho is None else self.xp.log(a)
        self.shift_b = None if rho is None else self.xp.log(b)
        self.log_u: Array = None
        self.saturated = False
        self.n_iter = 0

    def solve(self, init: Array | None) -> Plan:
        xp = self.xp
        self.log_v = xp.zeros_like(self.b) if init is None else init
        least, most = float(xp.min(self.cost)), float(xp.max(self.cost))
        largest = max(abs(least), abs(most)) / self.epsilon
        if largest > 1e-3 * float(xp.finfo(self.cost.dtype).max):
            raise InputError(
                f"cost / epsilon reaches {largest:g}, too large for {self.cost.dtype}: "
                "rescale the cost or raise epsilon"
            )
        spread = (most - least) / self.epsilon
        if init is None and spread > _ANNEAL_ABOVE:
            self._anneal(spread)
        self._set_scale(self.epsilon)
        return self._run(self.max_iter, self.tol)

    def _set_scale(self, epsilon: float) -> None:
        """Work at this epsilon from here on."""
        self.inverse = 1.0 / epsilon
        self.power = 1.0 if self.rho is None else self.rho / (self.rho + epsilon)

    def _exponent(self, rows: slice, log_v: Array) -> Array:
        """log_v - cost / epsilon for a block of rows, in memory of its own."""
        xp = self.xp
        block = self.cost[rows, :] * (-self.inverse)
        block += log_v if self.shift_b is None else log_v + self.shift_b
        if self.shift_a is not None:
            block += xp.expand_dims(self.shift_a[rows], axis=1)
        return block

    def _by_blocks(self, function: Callable[[slice], T]) -> list[T]:
        n, m = self.cost.shape
        # Small problems are in the cache anyway; there the hand-over to threads would cost more than it
        # saves.
        rows = n if n * m <= 4 * backend.CACHE_ELEMENTS else max(1, backend.CACHE_ELEMENTS // m)
        return backend.map_blocks(function, n, rows, self.cost)

    def _anneal(self, spread: float) -> None:
        """A start for the wanted epsilon from a geometric sequence of larger ones."""
        epsilon = self.epsilon * spread / (0.5 * _ANNEAL_ABOVE)
        budget = self.max_iter // 2
        while epsilon > 1.5 * self.epsilon and self.n_iter < budget:
            self._set_scale(epsilon)
            plan = self._run(min(self.n_iter + _ANNEAL_SWEEPS, budget), 1e-3 * float(self.xp.sum(self.a)))
            shrink = min(4.0, epsilon / self.epsilon)
            # The potentials in cost units carry over; their logarithms grow as epsilon shrinks.
            self.log_v = plan.log_v * shrink
            epsilon /= shrink

    def _run(self, max_iter: int, tol: float) -> Plan:
        """Sweeps on the kernel until `tol`, absorbing whenever a scaling leaves the safe range."""
        xp = self.xp
        # Every row's largest entry is one: no row is empty, nothing overflows, whatever the scale of the
        # cost.
        self.log_u = None
        kernel, u, v = self._kernel()
        image = kernel @ v
        while True:
            new_u = self._update(self.a, image, self.log_u)
            safe = self._safe(new_u)
            if safe:
                image_t = kernel.T @ new_u
                new_v = self._update(self.b, image_t, self.log_v)
                safe = self._safe(new_v)
            if safe:
                self.n_iter += 1
                image = kernel @ new_v
                error = self._change(new_u, u, new_v, v)
                u, v = new_u, new_v
            else:
                error = self._log_sweep(u, v)
                kernel, u, v = self._kernel()
                image, image_t = kernel @ v, kernel.T @ u
            if self.rho is None:
                error = float(xp.sum(xp.abs(u * image - self.a)))
                if error <= tol or self.n_iter >= max_iter:
                    # The columns were met just now, to rounding: they need no look at every sweep.
                    error += float(xp.sum(xp.abs(v * image_t - self.b)))
            if error <= tol or self.n_iter >= max_iter:
                log_u, log_v = self.log_u + xp.log(u), self.log_v + xp.log(v)
                converged = error <= tol and not self.saturated
                return Plan(kernel, u, v, log_u, log_v, converged, self.n_iter, error)

    def _update(self, weights: Array, image: Array, absorbed: Array) -> Array:
        """The scaling that meets the marginal, or leans towards it when unbalanced.

        What was absorbed into the kernel has to be leaked again by the unbalanced update: exp((power - 1)
        absorbed).
        """
        xp = self.xp
        # The floor is below the last digit of any image that matters, and keeps the others from zero.
        ratio = weights / (image + self.floor)
        if self.rho is None:
            return ratio
        log_ratio = xp.log(ratio)
        log_scaling = self.power * log_ratio + (self.power - 1.0) * absorbed
        # Beyond the limit the kernel has lost the entries that matter. The power could bring such a ratio
        # back into the safe range: make sure it does not look safe.
        outside = 2.0 * self.limit
        log_scaling = xp.where(xp.abs(log_ratio) < self.limit, log_scaling, outside * xp.ones_like(ratio))
        return xp.exp(xp.clip(log_scaling, -outside, outside))

    def _kernel(self) -> tuple[Array, Array, Array]:
        """The kernel with all potentials absorbed, and scalings of one. Sets `log_u` where there is none."""
        xp = self.xp
        log_u = self.log_u
        kernel = xp.empty_like(self.cost)
        negligible = math.log(self.negligible)

        def block(rows: slice) -> tuple[Array, bool]:
            exponent = self._exponent(rows, self.log_v)
            top = xp.max(exponent, axis=1)
            own = -top if log_u is None else log_u[rows]
            saturated = bool(xp.any(top + own > self.limit))
            exponent += xp.expand_dims(own, axis=1)
            if saturated:
                exponent = xp.clip(exponent, None, self.limit)
            # Subnormal numbers cost ten times a normal one in a matrix product and carry no mass: make them
            # zero, where there are any.
            lost = float(xp.min(exponent)) < negligible
            entries = backend.exp_in_place(exponent)
            if lost:
                entries *= xp.astype(entries >= self.negligible, entries.dtype)
            kernel[rows, :] = entries
            return own, saturated

        blocks = self._by_blocks(block)
        self.log_u = xp.concat([own for own, _ in blocks])
        # Unbalanced transport of very negative costs creates more mass than the dtype can hold.
        self.saturated = any(saturated for _, saturated in blocks)
        return kernel, xp.ones_like(self.a), xp.ones_like(self.b)

    def _log_sweep(self, u: Array, v: Array) -> float:
        """One sweep in the log domain from the last good scalings: exact whatever their range.

        Returns the largest change of a log-potential.
        """
        xp = self.xp
        old_u, old_v = self.log_u + xp.log(u), self.log_v + xp.log(v)

        def row_block(rows: slice) -> Array:
            return _logsumexp(self._exponent(rows, old_v), axis=1)

        self.log_u = self.power * (xp.log(self.a) - xp.concat(self._by_blocks(row_block)))

        def column_block(rows: slice) -> Array:
            exponent = self._exponent(rows, xp.zeros_like(self.b))
            return _logsumexp(exponent + xp.expand_dims(self.log_u[rows], axis=1), axis=0)

        sums = _logsumexp(xp.stack(self._by_blocks(column_block)), axis=0)
        self.log_v = self.power * (xp.log(self.b) - sums)
        self.n_iter += 1
        change = xp.max(xp.abs(self.log_u - old_u)), xp.max(xp.abs(self.log_v - old_v))
        return max(float(change[0]), float(change[1]))

    def _safe(self, scaling: Array) -> bool:
        return float(self.xp.max(scaling)) < self.high and float(self.xp.min(scaling)) > self.low

    def _change(self, u: Array, old_u: Array, v: Array, old_v: Array) -> float:
        """Largest change of a log-scaling; only unbalanced runs stop by it."""
        if self.rho is None:
            return math.inf
        xp = self.xp
        change = xp.max(xp.abs(xp.log(u / old_u))), xp.max(xp.abs(xp.log(v / old_v)))
        return max(float(change[0]), float(change[1]))


def _logsumexp(x: Array, axis: int) -> Array:
    xp = backend.namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis=axis)
