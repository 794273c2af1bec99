"""Many balanced entropic problems at once, whose kernels need no stabilisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.ot.costs import Scalings
from qwp.ot.sinkhorn import Relaxation, relax_in_place, relaxed


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
    relaxations: Sequence[float] | None = None,
    kernel: Array | None = None,
    shift: float = 0.0,
) -> Scalings:
    """Balanced entropic plans between B pairs of point sets, for the kernels exp(scale <x, y>).

    x: (B, n, d), y: (B, m, d), a: (B, n), b: (B, m). That is the kernel of the cost -<x, y> at epsilon 1 / scale and,
    up to factors that the scalings take up, of the squared distance at epsilon 2 / scale. All exponents have to stay
    within what `is_bounded` allows. Stops once every problem meets both marginals to `tol`, relative to the mass.
    relaxations: make just these sweeps, each with its factor, and never look at the error, which would make the host
    wait for a GPU. kernel: memory for the kernels, (B, n, m), to be used again and again. shift: taken off all
    exponents; with their largest value no entry of a kernel exceeds one and no sweep can overflow.
    """
    xp = arrays.namespace(x, y)
    if kernel is None:
        shape = (x.shape[0], x.shape[1], y.shape[1])
        kernel = xp.empty(shape, dtype=x.dtype, device=arrays.device(x))
    x = x * scale
    # One problem after the other stays in the cache of a processor; a GPU wants them all at once.
    size = x.shape[0] if arrays.is_cuda(x) else 1
    groups = [slice(i, i + size) for i in range(0, x.shape[0], size)]
    found = []
    for group in groups:
        _exponentials(x[group, ...], y[group, ...], shift, kernel[group, ...])
        found.append(_sweeps(kernel[group, ...], a[group, :], b[group, :], max_iter, tol, relaxations))
    if len(found) == 1:
        return found[0]
    u, v = (xp.concat([getattr(plans, name) for plans in found]) for name in ("u", "v"))
    return Scalings(kernel, u, v, max((plans.relaxations for plans in found), key=len))


def _exponentials(x: Array, y: Array, shift: float, out: Array) -> None:
    """out = exp(<x, y> - shift). x: (B, n, d), y: (B, m, d), out: (B, n, m)."""
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
    """Scale kernels (B, n, m) to the marginals a (B, n) and b (B, m). See `inner_product_plans`."""
    if isinstance(kernel, np.ndarray) and kernel.shape[0] == 1 and relaxations is None:
        weights = arrays.to_numpy(a)[0], arrays.to_numpy(b)[0]
        if all(w.dtype == kernel.dtype and w.min() > 0 for w in weights):
            return _sweeps_of_one(kernel[0], *weights, max_iter, tol)
    return _sweeps_of_all(kernel, a, b, max_iter, tol, relaxations)


def _sweeps_of_one(kernel: np.ndarray, a: np.ndarray, b: np.ndarray, max_iter: int, tol: float) -> Scalings:
    """`_sweeps_of_all` for one kernel (n, m) and positive marginals a (n,), b (m,), up to rounding.

    Small problems spend more on calls and new arrays than on the numbers: here are as few of both as there can be.
    """
    relaxation = Relaxation()
    taken: list[float] = []
    mass = a.sum()
    floor = _floor(np, a.dtype)
    u, v = np.ones_like(a), np.ones_like(b)
    image, image_t, off, off_t = np.empty_like(a), np.empty_like(b), np.empty_like(a), np.empty_like(b)
    np.dot(kernel, v, out=image)
    while True:
        taken.append(relaxation.factor)
        _move(u, a, image, floor, taken[-1], off)
        np.dot(u, kernel, out=image_t)
        _move(v, b, image_t, floor, taken[-1], off_t)
        if len(taken) < max_iter:
            np.dot(kernel, v, out=image)
            error = float((_distance(u, image, a, off) + _distance(v, image_t, b, off_t)) / mass)
            if not error <= tol:
                relaxation.look(len(taken), error)
                continue
        return Scalings(kernel[None], u[None], v[None], tuple(taken))


def _move(scaling: np.ndarray, weights: np.ndarray, image: np.ndarray, floor: float, factor: float, work: Any) -> None:
    """Scaling (n,) towards weights over image, both (n,), in place; work: (n,), to be written over."""
    np.add(image, floor, out=work)
    if factor == 1.0:
        np.divide(weights, work, out=scaling)
    else:
        np.divide(weights, work, out=work)
        relax_in_place(scaling, work, factor)


def _distance(scaling: np.ndarray, image: np.ndarray, weights: np.ndarray, work: np.ndarray) -> Any:
    """How far a marginal is from what it should be. All (n,); work is written over."""
    np.multiply(scaling, image, out=work)
    np.subtract(work, weights, out=work)
    np.abs(work, out=work)
    return work.sum()


def _floor(xp: Any, dtype: Any) -> float:
    """Below the last digit of any image that matters; keeps the others from zero."""
    return 1e4 * float(xp.finfo(dtype).smallest_normal)


def _sweeps_of_all(
    kernel: Array, a: Array, b: Array, max_iter: int, tol: float, relaxations: Sequence[float] | None
) -> Scalings:
    """Sweeps of B problems in lock-step."""
    xp = arrays.namespace(kernel)
    relaxation = Relaxation()
    taken: list[float] = []
    mass = xp.sum(a, axis=-1)
    u, v = xp.ones_like(a), xp.ones_like(b)
    floor = _floor(xp, a.dtype)
    image = _times(kernel, v)
    last = max_iter if relaxations is None else len(relaxations)
    while True:
        taken.append(relaxation.factor if relaxations is None else relaxations[len(taken)])
        u = relaxed(a / (image + floor), u, taken[-1])
        image_t = _times_transposed(kernel, u)
        v = relaxed(b / (image_t + floor), v, taken[-1])
        if len(taken) == last:
            return Scalings(kernel, u, v, tuple(taken))
        image = _times(kernel, v)
        if relaxations is None:
            off = xp.sum(xp.abs(u * image - a), axis=-1) + xp.sum(xp.abs(v * image_t - b), axis=-1)
            error = float(xp.max(off / mass))
            if error <= tol:
                return Scalings(kernel, u, v, tuple(taken))
            relaxation.look(len(taken), error)


def _times(kernel: Array, v: Array) -> Array:
    """kernel @ v for each of the B problems. kernel: (B, n, m), v: (B, m). Returns (B, n)."""
    if kernel.shape[0] == 1:
        return (kernel[0, ...] @ v[0, :])[None, :]
    return (kernel @ v[..., None])[..., 0]


def _times_transposed(kernel: Array, u: Array) -> Array:
    """kernel.T @ u for each of the B problems. kernel: (B, n, m), u: (B, n). Returns (B, m)."""
    if kernel.shape[0] == 1:
        return (u[0, :] @ kernel[0, ...])[None, :]
    return (u[..., None, :] @ kernel)[..., 0, :]
