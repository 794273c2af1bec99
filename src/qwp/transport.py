"""Optimal transport between two weighted point sets: entropic (balanced, unbalanced) and exact.

Convention: `epsilon` multiplies sum P log(P / (a b^T)) on the cost exactly as given. With unit vectors the
squared Euclidean cost is 2 - 2<x, y>, so `epsilon` on `sqeuclidean` equals `epsilon / 2` on `dot` (-<x, y>).
Unbalanced transport replaces the two marginal constraints by `rho` times their KL divergences (Chizat et al.
2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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
class Scalings:
    """One transport plan u * kernel * v, or B of them: kernel (..., n, m), u (..., n), v (..., m).

    steps: the relaxation of each sweep that was made; 1 is a plain one.
    """

    kernel: Array
    u: Array
    v: Array
    steps: tuple[float, ...]

    @property
    def n_iter(self) -> int:
        """How many sweeps were made."""
        return len(self.steps)

    @property
    def matrix(self) -> Array:
        """The plan as a dense matrix (..., n, m)."""
        xp = backend.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * self.kernel * xp.expand_dims(self.v, axis=-2)

    def apply(self, y: Array) -> Array:
        """plan @ y without forming the plan. y: (..., m, d). Returns (..., n, d)."""
        xp = backend.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * (self.kernel @ (xp.expand_dims(self.v, axis=-1) * y))

    def apply_transposed(self, x: Array) -> Array:
        """plan.T @ x without forming the plan. x: (..., n, d). Returns (..., m, d)."""
        xp = backend.namespace(self.kernel)
        image = xp.matrix_transpose(self.kernel) @ (xp.expand_dims(self.u, axis=-1) * x)
        return xp.expand_dims(self.v, axis=-1) * image


@dataclass(frozen=True)
class Plan(Scalings):
    """A transport plan and how it was reached. kernel: (n, m); u: (n,); v: (m,).

    marginal_error: L1 distance of both marginals from a and b (unbalanced: largest change of a log-potential in the
    last sweep). log_u, log_v: log-potentials; `log_v` is good for a warm start.
    """

    log_u: Array
    log_v: Array
    converged: bool
    marginal_error: float


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
    kernel, converged = backend.asarray(plan, cost), log["warning"] is None
    return Plan(kernel, one(a), one(b), (), zero(a), zero(b), converged, float(error))


# --------------------------------------------------------------------------- many bounded problems at once


def is_bounded(largest: float, dtype: Any) -> bool:
    """Whether exponents of this size leave a kernel that needs no stabilisation in the dtype (a NumPy one)."""
    return largest <= 0.49 * math.log(float(np.finfo(dtype).max))


def inner_product_plans(
    x: Array,
    y: Array,
    a: Array,
    b: Array,
    *,
    scale: float,
    max_iter: int,
    tol: float,
    steps: Sequence[float] | None = None,
    kernel: Array | None = None,
    shift: float = 0.0,
) -> Scalings:
    """Balanced entropic plans between B pairs of point sets, for the kernels exp(scale <x, y>).

    x: (B, n, d), y: (B, m, d), a: (B, n), b: (B, m). That is the kernel of the cost -<x, y> at epsilon 1 / scale and,
    up to factors that the scalings take up, of the squared distance at epsilon 2 / scale. All exponents have to stay
    within what `is_bounded` allows. Stops once every problem meets both marginals to `tol`, relative to the mass.
    steps: make just these sweeps, each with its relaxation, and never look at the error, which would make the host
    wait for a GPU. kernel: memory for the kernels, (B, n, m), to be used again and again. shift: taken off all
    exponents; with their largest value no entry of a kernel exceeds one and no sweep can overflow.
    """
    xp = backend.namespace(x, y)
    if kernel is None:
        shape = (x.shape[0], x.shape[1], y.shape[1])
        kernel = xp.empty(shape, dtype=x.dtype, device=backend.device(x))
    x = x * scale
    # One problem after the other stays in the cache of a processor; a GPU wants them all at once.
    size = x.shape[0] if backend.is_cuda(x) else 1
    groups = [slice(i, i + size) for i in range(0, x.shape[0], size)]
    found = []
    for group in groups:
        _exponentials(x[group, ...], y[group, ...], shift, kernel[group, ...])
        found.append(_sweeps(kernel[group, ...], a[group, :], b[group, :], max_iter, tol, steps))
    if len(found) == 1:
        return found[0]
    u, v = (xp.concat([getattr(plans, name) for plans in found]) for name in ("u", "v"))
    return Scalings(kernel, u, v, max((plans.steps for plans in found), key=len))


def _exponentials(x: Array, y: Array, shift: float, out: Array) -> None:
    """out = exp(<x, y> - shift). x: (B, n, d), y: (B, m, d), out: (B, n, m)."""
    backend.matmul_into(out, x, backend.namespace(x).matrix_transpose(y))
    rows = backend.namespace(x).reshape(out, (-1, out.shape[2]))

    def block(which: slice) -> None:
        part = rows[which, :]
        part -= shift
        backend.exp_in_place(part)

    size = max(1, backend.CACHE_ELEMENTS // out.shape[2]) if isinstance(out, np.ndarray) else rows.shape[0]
    backend.map_blocks(block, rows.shape[0], size, out)


def _sweeps(kernel: Array, a: Array, b: Array, max_iter: int, tol: float, steps: Sequence[float] | None) -> Scalings:
    """Scale kernels (B, n, m) to the marginals a (B, n) and b (B, m). See `inner_product_plans`."""
    xp = backend.namespace(kernel)
    relaxation = _Relaxation()
    taken: list[float] = []
    mass = xp.sum(a, axis=-1)
    u, v = xp.ones_like(a), xp.ones_like(b)
    # Below the last digit of any image that matters; keeps the others from zero.
    floor = 1e4 * float(xp.finfo(a.dtype).smallest_normal)
    image = _times(kernel, v)
    last = max_iter if steps is None else len(steps)
    while True:
        taken.append(relaxation.factor if steps is None else steps[len(taken)])
        u = relaxed(a / (image + floor), u, taken[-1])
        image_t = _times_transposed(kernel, u)
        v = relaxed(b / (image_t + floor), v, taken[-1])
        if len(taken) == last:
            return Scalings(kernel, u, v, tuple(taken))
        image = _times(kernel, v)
        if steps is None:
            off = xp.sum(xp.abs(u * image - a), axis=-1) + xp.sum(xp.abs(v * image_t - b), axis=-1)
            error = float(xp.max(off / mass))
            if error <= tol:
                return Scalings(kernel, u, v, tuple(taken))
            relaxation.look(len(taken), error)


def relaxed(wanted: Array, old: Array, factor: float) -> Array:
    """The step from an old scaling to the wanted one, made longer (Lehmann et al. 2022)."""
    if factor == 1.0:
        return wanted
    xp = backend.namespace(wanted)
    # Far enough from the largest number for a sum of ten thousand such.
    limit = math.log(float(xp.finfo(wanted.dtype).max)) - math.log(1e4)
    one = xp.ones_like(wanted)
    log_wanted, log_old = (xp.log(xp.where(x > 0, x, one)) for x in (wanted, old))
    longer = xp.exp(xp.clip(factor * log_wanted + (1.0 - factor) * log_old, -limit, limit))
    # A point without weight stays without.
    return xp.where(wanted > 0, longer, xp.zeros_like(wanted))


def _times(kernel: Array, v: Array) -> Array:
    """kernel @ v for each of the B problems. kernel: (B, n, m), v: (B, m). Returns (B, n)."""
    xp = backend.namespace(kernel)
    if kernel.shape[0] == 1:
        return xp.expand_dims(kernel[0, ...] @ v[0, :], axis=0)
    return (kernel @ xp.expand_dims(v, axis=-1))[..., 0]


def _times_transposed(kernel: Array, u: Array) -> Array:
    """kernel.T @ u for each of the B problems. kernel: (B, n, m), u: (B, n). Returns (B, m)."""
    xp = backend.namespace(kernel)
    if kernel.shape[0] == 1:
        return xp.expand_dims(u[0, :] @ kernel[0, ...], axis=0)
    return (xp.expand_dims(u, axis=-2) @ kernel)[..., 0, :]


# --------------------------------------------------------------------------- one problem of any scale


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
        # What stands for a scaling beyond that: not safe, and still no overflow in a product.
        self.outside = math.exp(1.05 * self.limit)
        tiny = float(self.xp.finfo(cost.dtype).smallest_normal)
        self.negligible = tiny * 1e7
        # Images below this count as empty; a weight divided by it is still finite.
        self.floor = tiny * max(1.0, float(self.xp.max(a)), float(self.xp.max(b)))
        # The entropy of the unbalanced problem is relative to a b^T; folding that into the cost leaves the
        # update as it is.
        self.shift_a = None if rho is None else self.xp.log(a)
        self.shift_b = None if rho is None else self.xp.log(b)
        self.log_u: Array = None
        # Looking at the scalings makes the host wait for CUDA.
        self.sweeps_per_look = 10 if backend.is_cuda(cost) else 1
        self.saturated = False
        self.steps: list[float] = []

    @property
    def n_iter(self) -> int:
        return len(self.steps)

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
        relaxation = _Relaxation()
        while True:
            sweeps = min(self.sweeps_per_look, max(1, max_iter - self.n_iter))
            new_u, new_v, new_image, error = self._sweep(kernel, u, v, image, sweeps, relaxation.factor)
            if self._safe(new_u) and self._safe(new_v):
                self.steps += [relaxation.factor] * sweeps
                u, v, image = new_u, new_v, new_image
            else:
                error = self._log_sweep(u, v)
                kernel, u, v = self._kernel()
                image = kernel @ v
                if self.rho is None:
                    error = self._marginal_error(u, image, v, kernel.T @ u)
                relaxation = _Relaxation()
            if error <= tol or self.n_iter >= max_iter:
                log_u, log_v = self.log_u + xp.log(u), self.log_v + xp.log(v)
                converged = error <= tol and not self.saturated
                return Plan(kernel, u, v, tuple(self.steps), log_u, log_v, converged, error)
            if self.rho is None:
                relaxation.look(self.n_iter, error)

    def _sweep(
        self, kernel: Array, u: Array, v: Array, image: Array, sweeps: int, factor: float
    ) -> tuple[Array, Array, Array, float]:
        """New u, v and image = kernel @ v after this many sweeps, and their error."""
        for _ in range(sweeps):
            old_u, old_v = u, v
            u = relaxed(self._update(self.a, image, self.log_u), u, factor)
            image_t = kernel.T @ u
            v = relaxed(self._update(self.b, image_t, self.log_v), v, factor)
            image = kernel @ v
        if self.rho is None:
            return u, v, image, self._marginal_error(u, image, v, image_t)
        return u, v, image, self._change(u, old_u, v, old_v)

    def _marginal_error(self, u: Array, image: Array, v: Array, image_t: Array) -> float:
        """L1 distance of both marginals from the weights."""
        xp = self.xp
        return float(xp.sum(xp.abs(u * image - self.a)) + xp.sum(xp.abs(v * image_t - self.b)))

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
        self.steps.append(1.0)
        change = xp.max(xp.abs(self.log_u - old_u)), xp.max(xp.abs(self.log_v - old_v))
        return max(float(change[0]), float(change[1]))

    def _safe(self, scaling: Array) -> bool:
        return float(self.xp.max(scaling)) < self.high and float(self.xp.min(scaling)) > self.low

    def _change(self, u: Array, old_u: Array, v: Array, old_v: Array) -> float:
        """Largest change of a log-scaling; unbalanced runs stop by it."""
        xp = self.xp
        change = xp.max(xp.abs(xp.log(u / old_u))), xp.max(xp.abs(xp.log(v / old_v)))
        return max(float(change[0]), float(change[1]))


class _Relaxation:
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


def _logsumexp(x: Array, axis: int) -> Array:
    xp = backend.namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis=axis)
