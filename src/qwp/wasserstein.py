"""The loop: Wasserstein-Procrustes and its quantized form are one algorithm with a different coreset.

Algorithm 1 of the paper. Repeat: take a coreset of each side, transport one onto the other under the current
map, move the map along the transported correspondence, project back onto the orthogonal matrices.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from qwp import backend, coreset
from qwp.backend import Array
from qwp.coreset import Coreset
from qwp.errors import InputError
from qwp.procrustes import polar
from qwp.transport import COSTS, SOLVERS, Plan, cost_matrix, exact, sinkhorn

logger = logging.getLogger(__name__)

SCHEDULES = ("grave", "fixed")
_BANK_STREAM, _RANDOM_STREAM, _PAIRING_STREAM = 1, 2, 3


@dataclass(frozen=True)
class Epoch:
    """`steps` steps with coresets of `k` points."""

    steps: int
    k: int


def make_schedule(kind: str, *, steps: int, k: int, epochs: int, n_max: int) -> tuple[Epoch, ...]:
    """`fixed`: every epoch alike. `grave`: each epoch doubles k and quarters the steps (Grave et al. 2019).

    k never exceeds `n_max`, the smaller vocabulary; a clamp is logged.
    """
    if kind not in SCHEDULES:
        raise InputError(f"schedule {kind!r} is not known; expected one of {', '.join(SCHEDULES)}")
    for name, value in (("steps", steps), ("coreset_size", k), ("epochs", epochs)):
        if value < 1:
            raise InputError(f"{name}={value} should be at least 1")
    plan = [Epoch(max(1, steps // 4**e), k * 2**e) if kind == "grave" else Epoch(steps, k) for e in range(epochs)]
    if plan[-1].k > n_max:
        logger.info("coreset sizes above the %d training words are clamped to it", n_max)
    return tuple(Epoch(e.steps, min(e.k, n_max)) for e in plan)


@dataclass(frozen=True)
class LoopSettings:
    """What a step does. See docs/parameters.md for the meaning and the measured effect of each."""

    coreset: str = "kmeans++"
    epsilon: float = 0.05
    cost: str = "sqeuclidean"
    ot: str = "balanced"
    rho: float = 1.0
    learning_rate: float = 2.0
    final_rate: float = 0.1
    bank_size: int | None = None
    weight_power: float = 0.0
    sphere_centroids: bool = True
    sinkhorn_tol: float = 0.01
    sinkhorn_max_iter: int = 100

    def rate(self, step: int, n_steps: int) -> float:
        """Learning rate of a step (1-based): falls in a straight line to `final_rate` times the first."""
        passed = (step - 1) / max(1, n_steps - 1)
        return self.learning_rate * (1.0 - passed * (1.0 - self.final_rate))

    def coresets_in_bank(self, k: int) -> int:
        """How many coresets of k points to draw: many small or fewer large ones, for about the same work."""
        return min(256, max(32, 128_000 // k)) if self.bank_size is None else self.bank_size

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        if self.coreset not in coreset.KINDS:
            raise InputError(f"coreset {self.coreset!r} is not known; expected one of {', '.join(coreset.KINDS)}")
        if self.cost not in COSTS:
            raise InputError(f"cost {self.cost!r} is not known; expected one of {', '.join(COSTS)}")
        if self.ot not in SOLVERS:
            raise InputError(f"ot {self.ot!r} is not known; expected one of {', '.join(SOLVERS)}")
        for name in ("epsilon", "rho", "learning_rate", "final_rate", "sinkhorn_tol"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}={getattr(self, name)} should be positive")
        if not self.weight_power >= 0:
            raise InputError(f"weight_power={self.weight_power} should be 0 or more")
        for name in ("bank_size", "sinkhorn_max_iter"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} should be at least 1")


@dataclass(frozen=True)
class StepFigures:
    """What one step found.

    objective: mean squared distance moved by the plan, sum P_ij |x_i W - y_j|^2 / sum P_ij, under the map
    before the step.
    """

    epoch: int
    step: int
    n_steps: int
    k: int
    objective: float
    sinkhorn_iterations: int
    marginal_error: float
    converged: bool


StepCallback = Callable[[StepFigures, Array], None]


class CoresetSource:
    """Coresets of one side, one for each step.

    Random batches are drawn afresh for every step; quantized ones come from a bank drawn once for each k.
    Draws depend only on (seed, side, k, step), so a resumed run sees the same ones.
    """

    def __init__(self, x: Array, side: int, settings: LoopSettings, seed: int) -> None:
        self._x, self._side, self._settings, self._seed = x, side, settings, seed
        self._bank: tuple[int, coreset.Bank] | None = None

    def get(self, k: int, step: int) -> Coreset:
        """The coreset of `k` points for this step."""
        settings = self._settings
        if settings.coreset == "random":
            return coreset.random_coreset(self._x, k, backend.rng(self._seed, _RANDOM_STREAM, self._side, step))
        if self._bank is None or self._bank[0] != k:
            stream = backend.rng(self._seed, _BANK_STREAM, self._side, k)
            self._bank = (k, coreset.kmeans_plusplus_bank(self._x, k, settings.coresets_in_bank(k), stream))
        bank = self._bank[1]
        # Every coreset has its turn before any comes again, in a new order each time round.
        turn, place = divmod(step, len(bank))
        which = int(backend.rng(self._seed, _PAIRING_STREAM, self._side, k, turn).permutation(len(bank))[place])
        return coreset.coreset_from_bank(
            self._x,
            bank,
            which,
            lloyd=settings.coreset == "lloyd",
            on_sphere=settings.sphere_centroids,
            weight_power=settings.weight_power,
        )


def solve_transport(cost: Array, a: Array, b: Array, settings: LoopSettings) -> Plan:
    """The plan for one pair of coresets by the chosen solver."""
    if settings.ot == "exact":
        return exact(cost, a, b)
    return sinkhorn(
        cost,
        a,
        b,
        epsilon=settings.epsilon,
        rho=settings.rho if settings.ot == "unbalanced" else None,
        max_iter=settings.sinkhorn_max_iter,
        tol=settings.sinkhorn_tol,
    )


def wasserstein_procrustes(
    x: Array,
    y: Array,
    w: Array,
    schedule: tuple[Epoch, ...],
    settings: LoopSettings,
    *,
    seed: int = 0,
    first_step: int = 0,
    callback: StepCallback | None = None,
) -> Array:
    """Run the loop from `w` and return the final orthogonal map.

    x: (n, d), y: (m, d) normalised training words; w: (d, d). first_step: how many steps of the schedule `w`
    has already seen (a resumed run). callback(figures, w) is called after every step.
    """
    settings.check()
    n_steps = sum(e.steps for e in schedule)
    sources = CoresetSource(x, 0, settings, seed), CoresetSource(y, 1, settings, seed)
    step = 0
    for epoch_number, epoch in enumerate(schedule):
        for _ in range(epoch.steps):
            step += 1
            if step <= first_step:
                continue
            src, tgt = (s.get(epoch.k, step) for s in sources)
            plan = solve_transport(
                cost_matrix(src.points @ w, tgt.points, settings.cost), src.weights, tgt.weights, settings
            )
            images = plan.apply(tgt.points)
            correspondence = src.points.T @ images
            # The correspondence of d-dimensional unit vectors has singular values of order 1/d; scaled by d
            # the learning rate means the same in every dimension.
            rate = settings.rate(step, n_steps) * w.shape[0]
            moved = polar(w + rate * correspondence)
            if callback is not None:
                objective = _objective(src, tgt, plan, correspondence, w)
                callback(
                    StepFigures(
                        epoch_number + 1,
                        step,
                        n_steps,
                        epoch.k,
                        objective,
                        plan.n_iter,
                        plan.marginal_error,
                        plan.converged,
                    ),
                    moved,
                )
            w = moved
    return w


def _objective(src: Coreset, tgt: Coreset, plan: Plan, correspondence: Array, w: Array) -> float:
    """Mean squared distance under the plan, without forming it.

    The plan's own marginals weigh the squares: an unbalanced or unfinished plan does not meet the coresets'.
    """
    xp = backend.namespace(w)
    squares_src = xp.sum(src.points**2, axis=1, keepdims=True)
    squares_tgt = xp.sum(tgt.points**2, axis=1, keepdims=True)
    moved = plan.apply(xp.concat([squares_tgt, xp.ones_like(squares_tgt)], axis=1))
    mass = xp.sum(moved[:, 1])
    total = xp.sum(moved[:, 0]) + xp.sum(squares_src[:, 0] * moved[:, 1]) - 2.0 * xp.sum(correspondence * w)
    return float(total / mass) if float(mass) > 0 else math.nan
