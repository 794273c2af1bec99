"""Where the loop begins: a first orthogonal map.

`frank-wolfe` needs nothing but the two spaces: the convex relaxation of Grave et al. (2019), minimising |P Kx
- Ky P| over doubly stochastic P on the most frequent words. The others take what the user has: `identity`
(spaces already close), a matrix, a seed lexicon, or the strings both vocabularies share.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qwp import backend
from qwp.backend import Array
from qwp.errors import InputError
from qwp.procrustes import orthogonality_error, polar_svd, procrustes
from qwp.transport import sinkhorn

logger = logging.getLogger(__name__)

STARTS = ("frank-wolfe", "identity", "identical", "lexicon", "matrix")


@dataclass(frozen=True)
class FrankWolfe:
    """Settings of the convex relaxation.

    words: how many of the most frequent words of each side take part; steps: Frank-Wolfe steps; epsilon:
    entropy of each linear step, as a fraction of the standard deviation of its gradient, so that it means the
    same on every pair of spaces.
    """

    words: int = 2500
    steps: int = 100
    epsilon: float = 0.3
    tol: float = 1e-3
    max_iter: int = 200

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        for name in ("words", "steps", "max_iter"):
            if getattr(self, name) < 1:
                raise InputError(f"start_{name}={getattr(self, name)} should be at least 1")
        if not self.epsilon > 0:
            raise InputError(f"start_epsilon={self.epsilon} should be positive")


def frank_wolfe(
    x: Array, y: Array, settings: FrankWolfe, callback: Callable[[int, float], None] | None = None
) -> Array:
    """First map by Frank-Wolfe. x: (n, d), y: (m, d) normalised rows, most frequent first. Returns W (d, d).

    P appears only through P Ux, Uy^T P and P^T Y, which are linear in P, so the n x n iterate itself is never
    kept; with K = U diag(s) U^T the gradient is two rank-d products. callback(step, objective) is called
    after every step.
    """
    xp = backend.namespace(x, y)
    n = min(settings.words, x.shape[0], y.shape[0])
    x, y = x[:n, :], y[:n, :]
    ux, sx = _similarity_factor(x)
    uy, sy = _similarity_factor(y)
    # Equal scale: the relaxation compares the shapes of the two similarity matrices, not their sizes.
    sy = sy * (xp.linalg.vector_norm(sx) / xp.linalg.vector_norm(sy))
    mass = xp.ones(n, dtype=x.dtype, device=backend.device(x))

    # P (n_y, n_x) starts as the uniform doubly stochastic matrix.
    p_ux = xp.broadcast_to(xp.mean(ux, axis=0), ux.shape)
    uy_p = xp.broadcast_to(xp.expand_dims(xp.mean(uy, axis=0), axis=1), (uy.shape[1], n))
    pt_y = xp.broadcast_to(xp.mean(y, axis=0), y.shape)
    init: Array | None = None
    for step in range(1, settings.steps + 1):
        gradient = _half_gradient(p_ux, uy_p, ux, sx, uy, sy)
        epsilon = settings.epsilon * float(xp.std(gradient))
        if not epsilon > 0:
            break
        plan = sinkhorn(
            gradient, mass, mass, epsilon=epsilon, tol=settings.tol, max_iter=settings.max_iter, init=init
        )
        init = plan.log_v
        size = 2.0 / (2.0 + step)
        p_ux = (1 - size) * p_ux + size * plan.apply(ux)
        uy_p = (1 - size) * uy_p + size * plan.apply_transposed(uy).T
        pt_y = (1 - size) * pt_y + size * plan.apply_transposed(y)
        if callback is not None:
            callback(step, _objective(p_ux, uy_p, sx, uy, sy))
    return polar_svd(x.T @ pt_y)


def _half_gradient(p_ux: Array, uy_p: Array, ux: Array, sx: Array, uy: Array, sy: Array) -> Array:
    """Half the gradient of |P Kx - Ky P|^2, that is P Kx^2 - 2 Ky P Kx + Ky^2 P, without forming P or K.

    p_ux: (n, r), uy_p: (r, n) the two images of P; ux, uy: (n, r) and sx, sy: (r,) factors of Kx and Ky.
    Returns (n, n).
    """
    xp = backend.namespace(p_ux)
    core = xp.expand_dims(sy, axis=1) * (uy.T @ p_ux) * sx
    gradient = (p_ux * (sx * sx) - 2.0 * (uy @ core)) @ ux.T
    gradient += uy @ (xp.expand_dims(sy * sy, axis=1) * uy_p)
    return gradient


def _objective(p_ux: Array, uy_p: Array, sx: Array, uy: Array, sy: Array) -> float:
    """|P Kx - Ky P|^2 from the two images of P; shapes as in `_half_gradient`."""
    xp = backend.namespace(p_ux)
    column = xp.expand_dims(sy, axis=1)
    mixed = xp.sum(column * (uy.T @ p_ux) ** 2 * sx)
    return float(xp.sum((p_ux * sx) ** 2) + xp.sum((column * uy_p) ** 2) - 2.0 * mixed)


def _similarity_factor(x: Array) -> tuple[Array, Array]:
    """U (n, r) and s (r,) of K = U diag(s) U^T, where s are the singular values of x (n, d).

    K is the matrix of similarities x x^T with its eigenvalues square-rooted.
    """
    xp = backend.namespace(x)
    u, s, _ = xp.linalg.svd(xp.astype(x, xp.float64), full_matrices=False)
    return xp.astype(u, x.dtype), xp.astype(s, x.dtype)


def from_pairs(x: Array, y: Array, src_rows: Sequence[int], tgt_rows: Sequence[int], what: str) -> Array:
    """Procrustes on given pairs of rows. x: (n, d), y: (m, d). Returns W (d, d)."""
    if not src_rows:
        raise InputError(
            f"{what}: no pair is covered by the two vocabularies; expected at least one to start from"
        )
    if len(src_rows) < x.shape[1]:
        logger.warning(
            "%s: %d pairs for %d dimensions leave part of the map undetermined",
            what,
            len(src_rows),
            x.shape[1],
        )
    xp = backend.namespace(x)
    rows = (backend.asarray(np.asarray(r, dtype=np.int64), x) for r in (src_rows, tgt_rows))
    return procrustes(*(xp.take(side, r, axis=0) for side, r in zip((x, y), rows, strict=True)))


def identical_rows(src_words: Sequence[str], tgt_words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Rows of the words that both vocabularies hold, numbers and names mostly."""
    tgt_index = {word: j for j, word in enumerate(tgt_words)}
    found = [(i, tgt_index[word]) for i, word in enumerate(src_words) if word in tgt_index]
    return [i for i, _ in found], [j for _, j in found]


def given_matrix(matrix: np.ndarray, dim: int) -> np.ndarray:
    """Check a user's matrix: (d, d), finite, orthogonal to 1e-3; returned exactly orthogonal."""
    if matrix.shape != (dim, dim):
        raise InputError(f"the start matrix has shape {matrix.shape}; the vectors need ({dim}, {dim})")
    if not np.isfinite(matrix).all():
        raise InputError("the start matrix holds NaN or infinite entries; expected finite numbers")
    error = orthogonality_error(matrix)
    if error > 1e-3:
        raise InputError(
            f"the start matrix is not orthogonal (largest entry of |W^T W - I| is {error:.2g}, "
            "at most 0.001 expected): project it with qwp.procrustes.polar first"
        )
    return np.asarray(polar_svd(matrix))
