"""Orthogonal maps: the polar factor of a matrix and the Procrustes solution for matched rows."""

from __future__ import annotations

from qwp import backend
from qwp.backend import Array

_MAX_NEWTON_STEPS = 24


def polar(m: Array) -> Array:
    """The orthogonal matrix nearest to `m`. m: (d, d). Returns (d, d).

    Newton-Schulz iteration: a handful of matrix products when `m` is close to orthogonal, as it is at every
    step of the loop. A matrix too badly conditioned for it goes through the singular value decomposition
    instead.
    """
    xp = backend.namespace(m)
    # sqrt(|m|_1 |m|_inf) bounds the largest singular value, so after scaling all of them lie in (0, 1].
    magnitude = xp.abs(m)
    columns, rows = (float(xp.max(xp.sum(magnitude, axis=axis))) for axis in (0, 1))
    bound = columns**0.5 * rows**0.5
    if not 0.0 < bound < float("inf"):
        return polar_svd(m)
    w = m / bound
    identity = xp.eye(m.shape[0], dtype=m.dtype, device=backend.device(m))
    good_enough = 8.0 * backend.eps(m) * m.shape[0] ** 0.5
    previous = float("inf")
    for _ in range(_MAX_NEWTON_STEPS):
        gram = w.T @ w
        error = float(xp.linalg.vector_norm(gram - identity))
        if error <= good_enough or (error < 0.01 and error >= previous):
            return w
        # Fifth-order step: converges cubically and moves small singular values by 15/8 at a time.
        w = w @ ((15.0 / 8.0) * identity - gram @ ((10.0 / 8.0) * identity - (3.0 / 8.0) * gram))
        previous = error
    return polar_svd(m)


def polar_svd(m: Array) -> Array:
    """The polar factor by SVD in float64 (faster and safer than float32 LAPACK at these sizes). m: (d, d)."""
    xp = backend.namespace(m)
    u, _, vt = xp.linalg.svd(xp.astype(m, xp.float64), full_matrices=False)
    return xp.astype(u @ vt, m.dtype)


def procrustes(x: Array, y: Array, weights: Array | None = None) -> Array:
    """The orthogonal W that minimises |x W - y| for matched rows (Schoenemann 1966).

    x, y: (p, d); weights: (p,) or None. Returns (d, d).
    """
    if weights is not None:
        x = x * backend.namespace(x).expand_dims(weights, axis=1)
    return polar_svd(x.T @ y)


def orthogonality_error(w: Array) -> float:
    """Largest entry of |W^T W - I|. w: (d, d)."""
    xp = backend.namespace(w)
    identity = xp.eye(w.shape[0], dtype=w.dtype, device=backend.device(w))
    return float(xp.max(xp.abs(w.T @ w - identity)))
