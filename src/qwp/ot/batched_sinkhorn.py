"""Batched Sinkhorn for problems whose kernels need no stabilisation, balanced and unbalanced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.ot.costs import Scalings
from qwp.ot.sinkhorn import Relaxation, over_relax_in_place, over_relaxed


def is_bounded(largest: float, dtype: Any) -> bool:
    """Return whether a kernel with exponents up to this size needs no stabilisation. dtype: a NumPy dtype."""
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
    relaxations: Sequence[float] | None = None,
    kernel: Array | None = None,
    shift: float = 0.0,
) -> Scalings:
    """Return balanced entropic plans between B pairs of point sets, for the kernels exp(scale <x, y>).

    This is the kernel of the cost -<x, y> with epsilon 1 / scale. Up to factors that the scalings absorb, it is also
    that of the squared distance with epsilon 2 / scale. `is_bounded` has to be true of all exponents.

    Args:
        x: (B, n, d) points.
        y: (B, m, d) points.
        a: (B, n) weights.
        b: (B, m) weights.
        scale: the inverse of epsilon for the cost -<x, y>.
        max_iter: most sweeps.
        tol: the marginal error, relative to the mass, at which all problems stop.
        relaxations: the factors of a fixed number of sweeps, which never read the error. Reading it would make the
            host wait for a GPU.
        kernel: memory for the kernels, (B, n, m), to be reused.
        shift: subtracted from all exponents. If it is their largest value, no sweep can overflow.
    """

    def solve(group: slice, kernel: Array) -> Scalings:
        _exponentials(x[group, ...] * scale, y[group, ...], shift, kernel)
        return _sweeps(kernel, a[group, :], b[group, :], max_iter, tol, relaxations)

    return _in_groups(solve, x, y, kernel)


@dataclass(frozen=True)
class Unbalanced:
    """Unbalanced transport: `rho` times the divergence of each marginal from its weights is part of the cost.

    rho: in units of the cost. cost: "sqeuclidean" or "dot". scale, shift: as in `inner_product_plans`.
    """

    rho: float
    cost: str
    scale: float
    shift: float = 0.0

    @property
    def power(self) -> float:
        """The power of the updates, rho / (rho + epsilon)."""
        return self.rho / (self.rho + (2.0 if self.cost == "sqeuclidean" else 1.0) / self.scale)

    def log_factors(self, x: Array, a: Array) -> Array:
        """Return the logarithms of the factors of one side, (B, n). x: (B, n, d), a: (B, n).

        The factors of both sides turn exp(scale <x, y> - shift) into a b exp(-cost / epsilon), since the entropy is
        relative to the product of the weights.
        """
        xp = arrays.namespace(x)
        found = xp.log(arrays.clamped(a, float(xp.finfo(a.dtype).smallest_normal), math.inf)) + 0.5 * self.shift
        return found - 0.5 * self.scale * xp.sum(x * x, axis=-1) if self.cost == "sqeuclidean" else found


def unbalanced_plans(
    x: Array,
    y: Array,
    a: Array,
    b: Array,
    problem: Unbalanced,
    *,
    max_iter: int,
    tol: float,
    sweeps: int | None = None,
    kernel: Array | None = None,
) -> Scalings:
    """Return unbalanced entropic plans between B pairs of point sets.

    Args:
        x, y, a, b, kernel: as in `inner_product_plans`.
        problem: the cost and the penalty of the marginals.
        max_iter: most sweeps.
        tol: the largest change of a log-scaling at which all problems stop.
        sweeps: a fixed number of sweeps, which never read the change.
    """

    def solve(group: slice, kernel: Array) -> Scalings:
        points = x[group, ...], y[group, ...]
        _exponentials(points[0] * problem.scale, points[1], problem.shift, kernel)
        weights = a[group, :], b[group, :]
        logs = [problem.log_factors(*side) for side in zip(points, weights, strict=True)]
        last, stop = (max_iter, tol) if sweeps is None else (sweeps, None)
        return _unbalanced_sweeps(kernel, weights, logs, problem.power, last, stop)

    return _in_groups(solve, x, y, kernel)


def _in_groups(solve: Callable[[slice, Array], Scalings], x: Array, y: Array, kernel: Array | None) -> Scalings:
    """Solve the problems of a batch one by one on a CPU, whose cache a kernel fits, and all at once on a GPU."""
    xp = arrays.namespace(x, y)
    if kernel is None:
        shape = (x.shape[0], x.shape[1], y.shape[1])
        kernel = xp.empty(shape, dtype=x.dtype, device=arrays.device(x))
    size = x.shape[0] if arrays.is_cuda(x) else 1
    found = [solve(slice(i, i + size), kernel[i : i + size, ...]) for i in range(0, x.shape[0], size)]
    if len(found) == 1:
        return found[0]
    u, v = (xp.concat([getattr(plans, name) for plans in found]) for name in ("u", "v"))
    return Scalings(kernel, u, v, max((plans.relaxations for plans in found), key=len))


def _exponentials(x: Array, y: Array, shift: float, out: Array) -> None:
    """Write exp(<x, y> - shift) into `out` (B, n, m). x: (B, n, d), y: (B, m, d)."""
    arrays.matmul_into(out, x, arrays.namespace(x).matrix_transpose(y))
    rows = arrays.namespace(x).reshape(out, (-1, out.shape[2]))

    def block(which: slice) -> None:
        part = rows[which, :]
        part -= shift
        arrays.exp_in_place(part)

    size = max(1, arrays.CACHE_ELEMENTS // out.shape[2]) if isinstance(out, np.ndarray) else rows.shape[0]
    arrays.map_blocks(block, rows.shape[0], size, out)


def _sweeps(
    kernel: Array, a: Array, b: Array, max_iter: int, tol: float, relaxations: Sequence[float] | None
) -> Scalings:
    """Return the scalings of kernels (B, n, m) to the marginals a (B, n) and b (B, m). See `inner_product_plans`."""
    if isinstance(kernel, np.ndarray) and kernel.shape[0] == 1 and relaxations is None:
        weights = arrays.to_numpy(a)[0], arrays.to_numpy(b)[0]
        if all(w.dtype == kernel.dtype and w.min() > 0 for w in weights):
            return _single_problem_sweeps(kernel[0], *weights, max_iter, tol)
    return _lock_step_sweeps(kernel, a, b, max_iter, tol, relaxations)


def _single_problem_sweeps(kernel: np.ndarray, a: np.ndarray, b: np.ndarray, max_iter: int, tol: float) -> Scalings:
    """Return the result of `_lock_step_sweeps`, up to rounding, for one kernel (n, m) and positive a (n,), b (m,).

    Small problems spend more time on calls and allocations than on arithmetic, so this version has few of both.
    """
    relaxation = Relaxation()
    factors: list[float] = []
    mass = a.sum()
    floor = _floor(np, a.dtype)
    u, v = np.ones_like(a), np.ones_like(b)
    image, image_t, off, off_t = np.empty_like(a), np.empty_like(b), np.empty_like(a), np.empty_like(b)
    np.dot(kernel, v, out=image)
    while True:
        factors.append(relaxation.factor)
        _move(u, a, image, floor, factors[-1], off)
        np.dot(u, kernel, out=image_t)
        _move(v, b, image_t, floor, factors[-1], off_t)
        if len(factors) < max_iter:
            np.dot(kernel, v, out=image)
            error = float((_distance(u, image, a, off) + _distance(v, image_t, b, off_t)) / mass)
            if not error <= tol:
                relaxation.update(len(factors), error)
                continue
        return Scalings(kernel[None], u[None], v[None], tuple(factors))


def _move(scaling: np.ndarray, weights: np.ndarray, image: np.ndarray, floor: float, factor: float, work: Any) -> None:
    """Update a scaling (n,) towards weights / image, in place. weights, image: (n,); work: (n,) scratch memory."""
    np.add(image, floor, out=work)
    if factor == 1.0:
        np.divide(weights, work, out=scaling)
    else:
        np.divide(weights, work, out=work)
        over_relax_in_place(scaling, work, factor)


def _distance(scaling: np.ndarray, image: np.ndarray, weights: np.ndarray, work: np.ndarray) -> Any:
    """Return the L1 distance of a marginal from its weights. All (n,); work: scratch memory."""
    np.multiply(scaling, image, out=work)
    np.subtract(work, weights, out=work)
    np.abs(work, out=work)
    return work.sum()


def _floor(xp: Any, dtype: Any) -> float:
    """Return a number that keeps images above zero and is below the last digit of any image that matters."""
    return 1e4 * float(xp.finfo(dtype).smallest_normal)


def _lock_step_sweeps(
    kernel: Array, a: Array, b: Array, max_iter: int, tol: float, relaxations: Sequence[float] | None
) -> Scalings:
    """Return the scalings of B problems after sweeps in lock-step."""
    xp = arrays.namespace(kernel)
    relaxation = Relaxation()
    factors: list[float] = []
    mass = xp.sum(a, axis=-1)
    u, v = xp.ones_like(a), xp.ones_like(b)
    floor = _floor(xp, a.dtype)
    image = _times(kernel, v)
    last = max_iter if relaxations is None else len(relaxations)
    while True:
        factors.append(relaxation.factor if relaxations is None else relaxations[len(factors)])
        u = over_relaxed(a / (image + floor), u, factors[-1])
        image_t = _times_transposed(kernel, u)
        v = over_relaxed(b / (image_t + floor), v, factors[-1])
        if len(factors) == last:
            return Scalings(kernel, u, v, tuple(factors))
        image = _times(kernel, v)
        if relaxations is None:
            off = xp.sum(xp.abs(u * image - a), axis=-1) + xp.sum(xp.abs(v * image_t - b), axis=-1)
            error = float(xp.max(off / mass))
            if error <= tol:
                return Scalings(kernel, u, v, tuple(factors))
            relaxation.update(len(factors), error)


def _unbalanced_sweeps(
    kernel: Array,
    weights: tuple[Array, Array],
    logs: Sequence[Array],
    power: float,
    max_iter: int,
    tol: float | None,
) -> Scalings:
    """Return the scalings of B unbalanced problems after sweeps in lock-step.

    The scalings contain the factors of `Unbalanced`. After each sweep, both sides move along the direction that leaves
    the plans as they are to the optimum in closed form (Sejourne et al. 2022), which plain sweeps approach slowly.

    weights, logs: (B, n) and (B, m). tol: the largest change of a log-scaling at which to stop; None never reads it.
    """
    xp = arrays.namespace(kernel)
    floor = _floor(xp, kernel.dtype)
    ratio = (1.0 - power) / power
    own = [xp.exp((1.0 - power) * log) for log in logs]
    masses = [w * xp.exp(ratio * log) for w, log in zip(weights, logs, strict=True)]
    u, v = (xp.exp(log) for log in logs)
    image, done = _times(kernel, v), 0
    while True:
        old, done = (u, v), done + 1
        u = own[0] * (weights[0] / (image + floor)) ** power
        v = own[1] * (weights[1] / (_times_transposed(kernel, u) + floor)) ** power
        sums = [
            xp.sum(mass * arrays.clamped(scaling, floor, math.inf) ** -ratio, axis=-1, keepdims=True)
            for mass, scaling in zip(masses, (u, v), strict=True)
        ]
        factor = (sums[0] / sums[1]) ** (0.5 / ratio)
        u, v = u * factor, v / factor
        if done == max_iter or (tol is not None and _largest_change((u, v), old, floor) <= tol):
            return Scalings(kernel, u, v, (1.0,) * done)
        image = _times(kernel, v)


def _largest_change(scalings: Sequence[Array], old: Sequence[Array], floor: float) -> float:
    """Return the largest change of a log-scaling. Scalings below `floor` count as zero."""
    xp = arrays.namespace(*scalings)
    changes = [xp.abs(xp.log((new + floor) / (last + floor))) for new, last in zip(scalings, old, strict=True)]
    return max(arrays.to_floats(*(xp.max(change) for change in changes)))


def _times(kernel: Array, v: Array) -> Array:
    """Return kernel @ v for each of B problems. kernel: (B, n, m), v: (B, m). Returns (B, n)."""
    if kernel.shape[0] == 1:
        return (kernel[0, ...] @ v[0, :])[None, :]
    return (kernel @ v[..., None])[..., 0]


def _times_transposed(kernel: Array, u: Array) -> Array:
    """Return kernel.T @ u for each of B problems. kernel: (B, n, m), u: (B, n). Returns (B, m)."""
    if kernel.shape[0] == 1:
        return (u[0, :] @ kernel[0, ...])[None, :]
    return (u[..., None, :] @ kernel)[..., 0, :]
