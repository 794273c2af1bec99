"""One entropic problem of any scale, balanced or unbalanced, by stabilised scaling."""

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


def relaxed(wanted: Array, old: Array, factor: float) -> Array:
    """The step from an old scaling to the wanted one, made longer (Lehmann et al. 2022)."""
    if factor == 1.0:
        return wanted
    xp = arrays.namespace(wanted)
    limit, tiny = _bounds(cast(Any, xp), wanted.dtype)
    # Nothing but what is needed: small problems spend as much on the calls as on the numbers.
    log_wanted = xp.log(arrays.clamped(wanted, tiny, math.inf))
    log_old = xp.log(arrays.clamped(old, tiny, math.inf))
    longer = xp.exp(arrays.clamped(factor * log_wanted + (1.0 - factor) * log_old, -limit, limit))
    # A point without weight stays without.
    return longer * xp.astype(wanted > 0, wanted.dtype)


def relax_in_place(scaling: np.ndarray, wanted: np.ndarray, factor: float) -> None:
    """scaling = relaxed(wanted, scaling, factor), up to rounding, for positive ones; `wanted` is written over."""
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
    """The largest exponent, far enough from the largest number for a sum of ten thousand such; the least number."""
    info = xp.finfo(dtype)
    return math.log(float(info.max)) - math.log(1e4), float(info.smallest_normal)


class Relaxation:
    """How much longer than a Sinkhorn step to make the next ones.

    Sweeps converge linearly in the end, as successive over-relaxation does (Lehmann et al. 2022): with steps longer by
    w the error shrinks by l each sweep, where (l + w - 1)^2 = l w^2 r and r is the rate of plain ones. The best w is
    2 / (1 + sqrt(1 - r)), and its l is w - 1: a rate of 0.9 becomes 0.52. So the rate of every few sweeps tells r, and
    r the next w: it grows as the fast parts of the error die out. Where longer steps do not pay, plain ones come back.
    """

    _SHORTEST_WINDOW = 8
    _MOST_FAILURES = 4
    _LONGEST = 1.98

    def __init__(self) -> None:
        self.factor = 1.0
        self._looked: tuple[int, float] | None = None
        self._settling = False
        self._failures = 0

    @property
    def _window(self) -> int:
        """Sweeps over which to measure the rate: the longer the steps, the longer the error swings."""
        return max(self._SHORTEST_WINDOW, math.ceil(1.0 / (2.0 - self.factor))) << self._failures

    def look(self, n_iter: int, error: float) -> None:
        """Take note of the error after `n_iter` sweeps."""
        if self._looked is None:
            self._looked = n_iter, error
            return
        passed, before = n_iter - self._looked[0], self._looked[1]
        if passed < self._window:
            return
        self._looked = n_iter, error
        if self._settling:
            self._settling = False
            return
        rate = (error / before) ** (1.0 / passed) if before > 0 and error > 0 else 0.0
        if not rate < 1.0:
            if self.factor > 1.0:
                # Sweeps do not converge at one rate yet. Plain ones for longer, then again.
                self.factor, self._failures = 1.0, self._failures + 1
        elif self._failures < self._MOST_FAILURES and rate > self.factor - 1.0:
            plain = min(1.0, (rate + self.factor - 1.0) ** 2 / (rate * self.factor**2))
            best = min(self._LONGEST, 2.0 / (1.0 + math.sqrt(1.0 - plain)))
            if best > self.factor + 0.01:
                self._settling = self.factor > 1.0
                self.factor = best


# Beyond this spread of cost / epsilon the answer is approached through larger epsilons: the kernel alone
# would be zero almost everywhere and plain sweeps would crawl.
_ANNEAL_ABOVE = 200.0
_ANNEAL_SWEEPS = 20

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
    """Entropic transport by stabilised scaling.

    cost: (n, m); a: (n,), b: (m,) non-negative, equal totals when balanced. rho: None for balanced transport.
    Stops when the marginal error falls to `tol` (relative to the mass) or after `max_iter` sweeps. init:
    `log_v` of an earlier plan, (m,). Sweeps work on a kernel in memory; when a scaling leaves the safe range
    of the dtype it is absorbed into the log-potentials by one log-domain sweep, so no epsilon and no scale of
    the cost yields NaN or inf.
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
    """Solve on the rows and columns that carry mass, and put zeros back for the others."""
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
    """One entropic problem. Potentials are logarithms, in units of epsilon.

    Passes over the whole cost matrix run by row blocks that stay in the cache: the arithmetic is a few
    operations per entry, so reading each entry from memory once is what counts.
    """

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
        # Scalings stay within exp(+-limit): far from overflow even in a product with a kernel entry.
        self.limit = 0.4 * math.log(float(self.xp.finfo(cost.dtype).max))
        self.low, self.high = math.exp(-self.limit), math.exp(self.limit)
        # What stands for a scaling beyond that: not safe, and still no overflow in a product.
        self.outside = math.exp(1.05 * self.limit)
        tiny = float(self.xp.finfo(cost.dtype).smallest_normal)
        self.negligible = tiny * 1e7
        # Images below this count as empty; a weight divided by it is still finite.
        self.floor = tiny * max(1.0, magnitudes.most_a, magnitudes.most_b)
        # The entropy of the unbalanced problem is relative to a b^T; folding that into the cost leaves the
        # update as it is.
        self.shift_a = None if rho is None else self.xp.log(a)
        self.shift_b = None if rho is None else self.xp.log(b)
        # Nothing is absorbed at first: the rows of the first kernel say what is.
        self.log_u = self.xp.zeros_like(a)
        self.absorbed = False
        # Looking at the scalings makes the host wait for CUDA.
        self.sweeps_per_look = 10 if arrays.is_cuda(cost) else 1
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
        if not isinstance(self.cost, np.ndarray):
            # Other libraries share a whole array out by themselves, and on a GPU every block makes the host wait.
            rows = arrays.block_rows(m, self.cost)
        elif n * m <= 4 * arrays.CACHE_ELEMENTS:
            rows = n  # in the cache anyway: the hand-over to threads would cost more than it saves
        else:
            rows = max(1, arrays.CACHE_ELEMENTS // m)
        return arrays.map_blocks(function, n, rows, self.cost)

    def _anneal(self, spread: float) -> None:
        """A start for the wanted epsilon from a geometric sequence of larger ones."""
        epsilon = self.epsilon * spread / (0.5 * _ANNEAL_ABOVE)
        budget = self.max_iter // 2
        while epsilon > 1.5 * self.epsilon and self.n_iter < budget:
            self._set_scale(epsilon)
            plan = self._run(min(self.n_iter + _ANNEAL_SWEEPS, budget), 1e-3 * self.magnitudes.total_a)
            shrink = min(4.0, epsilon / self.epsilon)
            # The potentials in cost units carry over; their logarithms grow as epsilon shrinks.
            self.log_v = plan.log_v * shrink
            epsilon /= shrink

    def _run(self, max_iter: int, tol: float) -> Plan:
        """Sweeps on the kernel until `tol`, absorbing whenever a scaling leaves the safe range."""
        xp = self.xp
        # Every row's largest entry is one: no row is empty, nothing overflows, whatever the scale of the
        # cost.
        self.absorbed = False
        kernel, u, v = self._kernel()
        image = kernel @ v
        relaxation = Relaxation()
        while True:
            sweeps = min(self.sweeps_per_look, max(1, max_iter - self.n_iter))
            new_u, new_v, new_image, off = self._sweep(kernel, u, v, image, sweeps, relaxation.factor)
            error, *extremes = arrays.read(off, *(extreme(x) for x in (new_u, new_v) for extreme in (xp.min, xp.max)))
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
                relaxation.look(self.n_iter, error)

    def _sweep(
        self, kernel: Array, u: Array, v: Array, image: Array, sweeps: int, factor: float
    ) -> tuple[Array, Array, Array, Array]:
        """New u, v and image = kernel @ v after this many sweeps, and their error, a number."""
        for _ in range(sweeps):
            old_u, old_v = u, v
            u = relaxed(self._update(self.a, image, self.log_u), u, factor)
            image_t = kernel.T @ u
            v = relaxed(self._update(self.b, image_t, self.log_v), v, factor)
            image = kernel @ v
        if self.rho is None:
            return u, v, image, self._marginal_error(u, image, v, image_t)
        return u, v, image, self._change(u, old_u, v, old_v)

    def _marginal_error(self, u: Array, image: Array, v: Array, image_t: Array) -> Array:
        """L1 distance of both marginals from the weights, a number."""
        xp = self.xp
        return xp.sum(xp.abs(u * image - self.a)) + xp.sum(xp.abs(v * image_t - self.b))

    def _update(self, weights: Array, image: Array, absorbed: Array) -> Array:
        """The scaling that meets the marginal, or leans towards it when unbalanced.

        What was absorbed into the kernel has to be leaked again by the unbalanced update: exp((power - 1)
        absorbed).
        """
        xp = self.xp
        # The floor is below the last digit of any image that matters, and keeps the others from zero.
        ratio = weights / (image + self.floor)
        if self.rho is None:
            return xp.clip(ratio, None, self.outside)
        log_ratio = xp.log(ratio)
        log_scaling = self.power * log_ratio + (self.power - 1.0) * absorbed
        # Beyond the limit the kernel has lost the entries that matter. The power could bring such a ratio
        # back into the safe range: make sure it does not look safe.
        outside = math.log(self.outside)
        log_scaling = xp.where(xp.abs(log_ratio) < self.limit, log_scaling, outside * xp.ones_like(ratio))
        return xp.exp(xp.clip(log_scaling, -outside, outside))

    def _kernel(self) -> tuple[Array, Array, Array]:
        """The kernel with all potentials absorbed, and scalings of one. Sets `log_u` where nothing was absorbed."""
        xp = self.xp
        log_u = self.log_u if self.absorbed else None
        kernel = xp.empty_like(self.cost)
        negligible = math.log(self.negligible)

        def block(rows: slice) -> tuple[Array, bool]:
            exponent = self._exponent(rows, self.log_v)
            top = xp.max(exponent, axis=1)
            own = -top if log_u is None else log_u[rows]
            exponent += xp.expand_dims(own, axis=1)
            most, least = arrays.read(xp.max(top + own), xp.min(exponent))
            saturated = most > self.limit
            if saturated:
                exponent = xp.clip(exponent, None, self.limit)
            # Subnormal numbers cost ten times a normal one in a matrix product and carry no mass: make them
            # zero, where there are any.
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
        self.relaxations.append(1.0)
        change = xp.max(xp.abs(self.log_u - old_u)), xp.max(xp.abs(self.log_v - old_v))
        return max(arrays.read(*change))

    def _change(self, u: Array, old_u: Array, v: Array, old_v: Array) -> Array:
        """Largest change of a log-scaling, a number; unbalanced runs stop by it."""
        xp = self.xp
        return xp.maximum(xp.max(xp.abs(xp.log(u / old_u))), xp.max(xp.abs(xp.log(v / old_v))))


def _logsumexp(x: Array, axis: int) -> Array:
    xp = arrays.namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis=axis)
