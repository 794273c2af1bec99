"""Stabilised Sinkhorn for a single entropic problem of any scale, balanced or unbalanced."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError, at_least, positive
from qwp.ot.costs import Magnitudes, Plan, check_numbers, check_problem


def over_relaxed(wanted: Array, old: Array, factor: float) -> Array:
    """Return the over-relaxed update of a scaling: wanted^factor * old^(1 - factor) (Lehmann et al. 2022)."""
    if factor == 1.0:
        return wanted
    xp = arrays.namespace(wanted)
    limit, tiny = _bounds(cast(Any, xp), wanted.dtype)
    # Few calls, because small problems spend as much time on calls as on arithmetic.
    log_wanted = xp.log(arrays.clamped(wanted, tiny, math.inf))
    log_old = xp.log(arrays.clamped(old, tiny, math.inf))
    longer = xp.exp(arrays.clamped(factor * log_wanted + (1.0 - factor) * log_old, -limit, limit))
    # A point without weight keeps a scaling of zero.
    return longer * xp.astype(wanted > 0, wanted.dtype)


def over_relax_in_place(scaling: np.ndarray, wanted: np.ndarray, factor: float) -> None:
    """Write over_relaxed(wanted, scaling, factor) into a positive `scaling`, up to rounding. Overwrites `wanted`."""
    limit, tiny = _bounds(np, scaling.dtype)
    for values, share in ((wanted, factor), (scaling, 1.0 - factor)):
        np.maximum(values, tiny, out=values)
        np.log(values, out=values)
        np.multiply(values, share, out=values)
    np.add(wanted, scaling, out=scaling)
    np.maximum(scaling, -limit, out=scaling)
    np.minimum(scaling, limit, out=scaling)
    np.exp(scaling, out=scaling)


@lru_cache(maxsize=8)
def _bounds(xp: Any, dtype: Any) -> tuple[float, float]:
    """Return the largest exponent of which a sum of ten thousand terms is finite, and the least normal number."""
    info = xp.finfo(dtype)
    return math.log(float(info.max)) - math.log(1e4), float(info.smallest_normal)


class Relaxation:
    """Adapt the over-relaxation factor of Sinkhorn sweeps (Lehmann et al. 2022).

    Sweeps converge linearly, as successive over-relaxation does. With a factor w the error shrinks by l each sweep,
    where (l + w - 1)^2 = l w^2 r and r is the rate of plain sweeps. The best w is 2 / (1 + sqrt(1 - r)), with
    l = w - 1: a rate of 0.9 becomes 0.52. So `update` measures the rate of every few sweeps, computes r, and chooses
    the next w, which grows while the fast components of the error vanish. Plain sweeps follow if over-relaxation does
    not converge.
    """

    _SHORTEST_WINDOW = 8
    _MOST_FAILURES = 4
    _LONGEST = 1.98

    def __init__(self) -> None:
        self.factor = 1.0
        self._measured: tuple[int, float] | None = None
        self._settling = False
        self._failures = 0

    @property
    def _window(self) -> int:
        """The number of sweeps over which to measure the rate: with larger factors the error oscillates longer."""
        return max(self._SHORTEST_WINDOW, math.ceil(1.0 / (2.0 - self.factor))) << self._failures

    def update(self, n_iter: int, error: float) -> None:
        """Adapt the factor to the error after `n_iter` sweeps."""
        if self._measured is None:
            self._measured = n_iter, error
            return
        passed, before = n_iter - self._measured[0], self._measured[1]
        if passed < self._window:
            return
        self._measured = n_iter, error
        if self._settling:
            self._settling = False
            return
        rate = (error / before) ** (1.0 / passed) if before > 0 and error > 0 else 0.0
        if not rate < 1.0:
            if self.factor > 1.0:
                # No constant rate yet: make plain sweeps for longer before the next attempt.
                self.factor, self._failures = 1.0, self._failures + 1
        elif self._failures < self._MOST_FAILURES and rate > self.factor - 1.0:
            plain = min(1.0, (rate + self.factor - 1.0) ** 2 / (rate * self.factor**2))
            best = min(self._LONGEST, 2.0 / (1.0 + math.sqrt(1.0 - plain)))
            if best > self.factor + 0.01:
                self._settling = self.factor > 1.0
                self.factor = best


T = TypeVar("T")


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
    """Return the plan of an entropic problem by stabilised scaling.

    Sweeps use a kernel in memory. A scaling that leaves the safe range of the dtype is absorbed into the log-potentials
    by one sweep in the log domain, so that no epsilon and no scale of the cost gives NaN or inf.

    Args:
        cost: (n, m).
        a: (n,) non-negative weights.
        b: (m,) non-negative weights, with the total of `a` if balanced.
        epsilon: entropic regularisation.
        rho: strength of the marginals in unbalanced transport; None for balanced transport.
        max_iter: most sweeps.
        tol: the marginal error, relative to the mass, at which to stop.
        init: `log_v` of an earlier plan, (m,).
    """
    magnitudes = check_problem(cost, a, b, balanced=rho is None)
    positive(epsilon=epsilon)
    at_least(1, max_iter=max_iter)
    at_least(0, tol=tol)
    if rho is not None and not 0 < rho < math.inf:
        raise InputError(f"rho={rho} should be positive and finite (leave it out for balanced transport)")
    if init is not None:
        if init.shape != b.shape:
            raise InputError(f"init has shape {init.shape}; expected that of b, {b.shape}")
        check_numbers("init", init)
    if magnitudes.least_a <= 0 or magnitudes.least_b <= 0:
        return _without_empty(cost, a, b, init, epsilon=epsilon, rho=rho, max_iter=max_iter, tol=tol)
    return _Scaling(cost, a, b, magnitudes, epsilon=epsilon, rho=rho, max_iter=max_iter, tol=tol).solve(init)


def _without_empty(cost: Array, a: Array, b: Array, init: Array | None, **options: object) -> Plan:
    """Solve the problem on the rows and columns with mass, and fill in zeros for the others."""
    xp = arrays.namespace(cost)
    rows, columns = xp.nonzero(a > 0)[0], xp.nonzero(b > 0)[0]
    small = xp.take(xp.take(cost, rows, axis=0), columns, axis=1)
    options["init"] = None if init is None else xp.take(init, columns)
    plan = sinkhorn(small, xp.take(a, rows), xp.take(b, columns), **options)  # type: ignore[arg-type]
    spread_rows, spread_columns = (
        xp.astype(xp.expand_dims(xp.arange(size, device=arrays.device(cost)), axis=1) == kept, cost.dtype)
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
    """The solver of one entropic problem. Potentials are logarithms, in units of epsilon.

    Passes over the whole cost matrix run by blocks of rows that fit the cache, because memory bandwidth limits them.
    """

    ANNEAL_ABOVE = 200.0
    """Epsilon is annealed if cost / epsilon spreads further than this: the kernel would be zero almost everywhere, and
    plain sweeps would converge slowly. Set by hand."""
    ANNEAL_SWEEPS = 20
    """Sweeps for each epsilon of the annealing. Set by hand."""

    def __init__(
        self,
        cost: Array,
        a: Array,
        b: Array,
        magnitudes: Magnitudes,
        *,
        epsilon: float,
        rho: float | None,
        max_iter: int,
        tol: float,
    ) -> None:
        self.xp = arrays.namespace(cost)
        self.cost, self.a, self.b = cost, a, b
        self.magnitudes = magnitudes
        self.epsilon, self.rho = epsilon, rho
        self.max_iter = max_iter
        self.tol = tol * (magnitudes.total_a if rho is None else 1.0)
        # Scalings stay within exp(+-limit), so that products with kernel entries cannot overflow.
        self.limit = 0.4 * math.log(float(self.xp.finfo(cost.dtype).max))
        self.low, self.high = math.exp(-self.limit), math.exp(self.limit)
        # A value for scalings beyond the limit: detected as unsafe, but finite in products.
        self.outside = math.exp(1.05 * self.limit)
        tiny = float(self.xp.finfo(cost.dtype).smallest_normal)
        self.negligible = tiny * 1e7
        # Added to images: a weight divided by it is still finite.
        self.floor = tiny * max(1.0, magnitudes.most_a, magnitudes.most_b)
        # The entropy of the unbalanced problem is relative to a b^T, which is added to the exponents.
        self.shift_a = None if rho is None else self.xp.log(a)
        self.shift_b = None if rho is None else self.xp.log(b)
        # The first kernel chooses its own row potentials.
        self.log_u = self.xp.zeros_like(a)
        self.absorbed = False
        # Reading the scalings makes the host wait for CUDA.
        self.sweeps_per_check = 10 if arrays.is_cuda(cost) else 1
        self.saturated = False
        self.relaxations: list[float] = []

    @property
    def n_iter(self) -> int:
        return len(self.relaxations)

    def solve(self, init: Array | None) -> Plan:
        xp = self.xp
        self.log_v = xp.zeros_like(self.b) if init is None else init
        least, most = self.magnitudes.least_cost, self.magnitudes.most_cost
        largest = max(abs(least), abs(most)) / self.epsilon
        if largest > 1e-3 * float(xp.finfo(self.cost.dtype).max):
            raise InputError(
                f"cost / epsilon reaches {largest:g}, too large for {self.cost.dtype}: "
                "rescale the cost or raise epsilon"
            )
        spread = (most - least) / self.epsilon
        if init is None and spread > self.ANNEAL_ABOVE:
            self._anneal(spread)
        self._set_scale(self.epsilon)
        return self._run(self.max_iter, self.tol)

    def _set_scale(self, epsilon: float) -> None:
        """Set the epsilon of the following sweeps."""
        self.inverse = 1.0 / epsilon
        self.power = 1.0 if self.rho is None else self.rho / (self.rho + epsilon)

    def _exponent(self, rows: slice, log_v: Array) -> Array:
        """Return log_v - cost / epsilon for a block of rows, as a new array."""
        xp = self.xp
        block = self.cost[rows, :] * (-self.inverse)
        block += log_v if self.shift_b is None else log_v + self.shift_b
        if self.shift_a is not None:
            block += xp.expand_dims(self.shift_a[rows], axis=1)
        return block

    def _by_blocks(self, function: Callable[[slice], T]) -> list[T]:
        n, m = self.cost.shape
        if not isinstance(self.cost, np.ndarray):
            # Other libraries parallelise whole arrays, and on a GPU every block makes the host wait.
            rows = arrays.block_rows(m, self.cost)
        elif n * m <= 4 * arrays.CACHE_ELEMENTS:
            rows = n  # fits the cache: threads would cost more than they save
        else:
            rows = max(1, arrays.CACHE_ELEMENTS // m)
        return arrays.map_blocks(function, n, rows, self.cost)

    def _anneal(self, spread: float) -> None:
        """Initialise `log_v` by a geometric sequence of larger epsilons."""
        epsilon = self.epsilon * spread / (0.5 * self.ANNEAL_ABOVE)
        budget = self.max_iter // 2
        while epsilon > 1.5 * self.epsilon and self.n_iter < budget:
            self._set_scale(epsilon)
            plan = self._run(min(self.n_iter + self.ANNEAL_SWEEPS, budget), 1e-3 * self.magnitudes.total_a)
            shrink = min(4.0, epsilon / self.epsilon)
            # Potentials in units of the cost carry over, so the log-potentials grow as epsilon shrinks.
            self.log_v = plan.log_v * shrink
            epsilon /= shrink

    def _run(self, max_iter: int, tol: float) -> Plan:
        """Sweep on the kernel until `tol`; absorb scalings that leave the safe range."""
        xp = self.xp
        # The largest entry of every row of the first kernel is one, so no row is empty and nothing overflows.
        self.absorbed = False
        kernel, u, v = self._kernel()
        image = kernel @ v
        relaxation = Relaxation()
        while True:
            sweeps = min(self.sweeps_per_check, max(1, max_iter - self.n_iter))
            new_u, new_v, new_image, off = self._sweep(kernel, u, v, image, sweeps, relaxation.factor)
            error, *extremes = arrays.to_floats(
                off, *(extreme(x) for x in (new_u, new_v) for extreme in (xp.min, xp.max))
            )
            if all(self.low < extreme < self.high for extreme in extremes):
                self.relaxations += [relaxation.factor] * sweeps
                u, v, image = new_u, new_v, new_image
            else:
                error = self._log_sweep(u, v)
                kernel, u, v = self._kernel()
                image = kernel @ v
                if self.rho is None:
                    error = float(self._marginal_error(u, image, v, kernel.T @ u))
                relaxation = Relaxation()
            if error <= tol or self.n_iter >= max_iter:
                log_u, log_v = self.log_u + xp.log(u), self.log_v + xp.log(v)
                converged = error <= tol and not self.saturated
                return Plan(kernel, u, v, tuple(self.relaxations), log_u, log_v, converged, error)
            if self.rho is None:
                relaxation.update(self.n_iter, error)

    def _sweep(
        self, kernel: Array, u: Array, v: Array, image: Array, sweeps: int, factor: float
    ) -> tuple[Array, Array, Array, Array]:
        """Return u, v, kernel @ v and the error after this many sweeps."""
        for _ in range(sweeps):
            old_u, old_v = u, v
            u = over_relaxed(self._update(self.a, image, self.log_u), u, factor)
            image_t = kernel.T @ u
            v = over_relaxed(self._update(self.b, image_t, self.log_v), v, factor)
            image = kernel @ v
        if self.rho is None:
            return u, v, image, self._marginal_error(u, image, v, image_t)
        return u, v, image, self._change(u, old_u, v, old_v)

    def _marginal_error(self, u: Array, image: Array, v: Array, image_t: Array) -> Array:
        """Return the L1 distance of both marginals from the weights."""
        xp = self.xp
        return xp.sum(xp.abs(u * image - self.a)) + xp.sum(xp.abs(v * image_t - self.b))

    def _update(self, weights: Array, image: Array, absorbed: Array) -> Array:
        """Return the scaling that meets the marginal, or approaches it if unbalanced.

        The unbalanced update includes the absorbed potential by the factor exp((power - 1) absorbed).
        """
        xp = self.xp
        # The floor keeps images above zero and is below the last digit of any image that matters.
        ratio = weights / (image + self.floor)
        if self.rho is None:
            return xp.clip(ratio, None, self.outside)
        log_ratio = xp.log(ratio)
        log_scaling = self.power * log_ratio + (self.power - 1.0) * absorbed
        # Beyond the limit the kernel has lost the entries that matter. The power could bring such a ratio back into the
        # safe range, so it is replaced by an unsafe value.
        outside = math.log(self.outside)
        log_scaling = xp.where(xp.abs(log_ratio) < self.limit, log_scaling, outside * xp.ones_like(ratio))
        return xp.exp(xp.clip(log_scaling, -outside, outside))

    def _kernel(self) -> tuple[Array, Array, Array]:
        """Return the kernel with all potentials absorbed, and scalings of one. The first kernel sets `log_u`."""
        xp = self.xp
        log_u = self.log_u if self.absorbed else None
        kernel = xp.empty_like(self.cost)
        negligible = math.log(self.negligible)

        def block(rows: slice) -> tuple[Array, bool]:
            exponent = self._exponent(rows, self.log_v)
            top = xp.max(exponent, axis=1)
            own = -top if log_u is None else log_u[rows]
            exponent += xp.expand_dims(own, axis=1)
            most, least = arrays.to_floats(xp.max(top + own), xp.min(exponent))
            saturated = most > self.limit
            if saturated:
                exponent = xp.clip(exponent, None, self.limit)
            # Subnormal numbers carry no mass and are ten times slower in matrix products: set them to zero.
            lost = least < negligible
            entries = arrays.exp_in_place(exponent)
            if lost:
                entries *= xp.astype(entries >= self.negligible, entries.dtype)
            kernel[rows, :] = entries
            return own, saturated

        blocks = self._by_blocks(block)
        self.log_u, self.absorbed = xp.concat([own for own, _ in blocks]), True
        # Unbalanced transport of very negative costs creates more mass than the dtype can hold.
        self.saturated = any(saturated for _, saturated in blocks)
        return kernel, xp.ones_like(self.a), xp.ones_like(self.b)

    def _log_sweep(self, u: Array, v: Array) -> float:
        """Sweep once in the log domain from the last safe scalings; return the largest change of a log-potential."""
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
        self.relaxations.append(1.0)
        change = xp.max(xp.abs(self.log_u - old_u)), xp.max(xp.abs(self.log_v - old_v))
        return max(arrays.to_floats(*change))

    def _change(self, u: Array, old_u: Array, v: Array, old_v: Array) -> Array:
        """Return the largest change of a log-scaling, the stopping criterion of unbalanced problems."""
        xp = self.xp
        return xp.maximum(xp.max(xp.abs(xp.log(u / old_u))), xp.max(xp.abs(xp.log(v / old_v))))


def _logsumexp(x: Array, axis: int) -> Array:
    xp = arrays.namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis=axis)
