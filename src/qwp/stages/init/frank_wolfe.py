"""Initialize by the convex relaxation of Grave et al. (2019): minimise |P Kx - Ky P| over doubly stochastic P."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import polar
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import MOST_STEPS, START, param
from qwp.stages.init.profiles import similarity_factor, start_words_param
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Report


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(Initializer):
    """Minimise the convex relaxation by Frank-Wolfe; each linear step is solved by Sinkhorn."""

    uses_seed = False

    words: int = start_words_param()
    steps: int = param(100, "Frank-Wolfe steps.", START, least=1, most=MOST_STEPS, option="start_steps")
    epsilon: float = param(
        0.3,
        "Entropic regularisation of each Frank-Wolfe step, relative to the standard deviation of its gradient.",
        START,
        above=0,
        most=1e6,
        option="start_epsilon",
    )
    tol: float = 1e-3
    """Tolerance of the Sinkhorn marginals. A linear step need not be exact, because the next step corrects it."""
    max_iter: int = 200

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the initial map of the rows of a view."""
        return self.solve(view.x, view.y, lambda step, value: report(step, self.steps, {"objective": value}))

    def solve(self, x: Array, y: Array, callback: Callable[[int, float], None] | None = None) -> Array:
        """Return the map W (d, d). x: (n, d), y: (m, d) normalised rows, most frequent first.

        The iterate P (n, n) is never stored: only P Ux, Uy^T P and P^T Y are, which are linear in P. With
        K = U diag(s) U^T the gradient is two products of rank d. callback(step, objective) is called after every step.
        """
        xp = arrays.namespace(x, y)
        n = min(self.words, x.shape[0], y.shape[0])
        x, y = x[:n, :], y[:n, :]
        ux, sx = similarity_factor(x)
        uy, sy = similarity_factor(y)
        # Scale Ky to the norm of Kx: the relaxation compares the shapes of the similarity matrices, not their sizes.
        norm = xp.linalg.vector_norm(sy)
        if float(norm) > 0:  # zero if all words have the same vector
            sy = sy * (xp.linalg.vector_norm(sx) / norm)
        mass = xp.ones(n, dtype=x.dtype, device=arrays.device(x))

        # P (n_y, n_x) starts as the uniform doubly stochastic matrix.
        p_ux = xp.broadcast_to(xp.mean(ux, axis=0), ux.shape)
        uy_p = xp.broadcast_to(xp.expand_dims(xp.mean(uy, axis=0), axis=1), (uy.shape[1], n))
        pt_y = xp.broadcast_to(xp.mean(y, axis=0), y.shape)
        init: Array | None = None
        for step in range(1, self.steps + 1):
            gradient = _half_gradient(p_ux, uy_p, ux, sx, uy, sy)
            epsilon = self.epsilon * float(xp.std(gradient))
            if not epsilon > 0:
                break
            plan = sinkhorn(gradient, mass, mass, epsilon=epsilon, tol=self.tol, max_iter=self.max_iter, init=init)
            init = plan.log_v
            size = 2.0 / (2.0 + step)
            p_ux = (1 - size) * p_ux + size * plan.apply(ux)
            uy_p = (1 - size) * uy_p + size * plan.apply_transposed(uy).T
            pt_y = (1 - size) * pt_y + size * plan.apply_transposed(y)
            if callback is not None:
                callback(step, _objective(p_ux, uy_p, sx, uy, sy))
        return polar(x.T @ pt_y)


def _half_gradient(p_ux: Array, uy_p: Array, ux: Array, sx: Array, uy: Array, sy: Array) -> Array:
    """Return half the gradient of |P Kx - Ky P|^2, that is P Kx^2 - 2 Ky P Kx + Ky^2 P, without forming P or K.

    p_ux: (n, r), uy_p: (r, n) products with P; ux, uy: (n, r) and sx, sy: (r,) factors of Kx and Ky. Returns (n, n).
    """
    xp = arrays.namespace(p_ux)
    core = xp.expand_dims(sy, axis=1) * (uy.T @ p_ux) * sx
    gradient = (p_ux * (sx * sx) - 2.0 * (uy @ core)) @ ux.T
    gradient += uy @ (xp.expand_dims(sy * sy, axis=1) * uy_p)
    return gradient


def _objective(p_ux: Array, uy_p: Array, sx: Array, uy: Array, sy: Array) -> float:
    """Return |P Kx - Ky P|^2 from the products with P; shapes as in `_half_gradient`."""
    xp = arrays.namespace(p_ux)
    column = xp.expand_dims(sy, axis=1)
    mixed = xp.sum(column * (uy.T @ p_ux) ** 2 * sx)
    return float(xp.sum((p_ux * sx) ** 2) + xp.sum((column * uy_p) ** 2) - 2.0 * mixed)
