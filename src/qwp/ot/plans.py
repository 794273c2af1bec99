"""Transport plans, as scalings of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array


@dataclass(frozen=True)
class Scalings:
    """One transport plan u * kernel * v, or B of them: kernel (..., n, m), u (..., n), v (..., m).

    relaxations: the factor of each sweep that was made; 1 is a plain one.
    """

    kernel: Array
    u: Array
    v: Array
    relaxations: tuple[float, ...]

    @property
    def n_iter(self) -> int:
        """How many sweeps were made."""
        return len(self.relaxations)

    @property
    def matrix(self) -> Array:
        """The plan as a dense matrix (..., n, m)."""
        xp = arrays.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * self.kernel * xp.expand_dims(self.v, axis=-2)

    def apply(self, y: Array) -> Array:
        """plan @ y without forming the plan. y: (..., m, d). Returns (..., n, d)."""
        xp = arrays.namespace(self.kernel)
        return xp.expand_dims(self.u, axis=-1) * (self.kernel @ (xp.expand_dims(self.v, axis=-1) * y))

    def apply_transposed(self, x: Array) -> Array:
        """plan.T @ x without forming the plan. x: (..., n, d). Returns (..., m, d)."""
        xp = arrays.namespace(self.kernel)
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
