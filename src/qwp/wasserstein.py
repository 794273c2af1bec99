"""The loop: Wasserstein-Procrustes and its quantized form are one algorithm with a different coreset.

Algorithm 1 of the paper. Repeat: take a coreset of each side, transport one onto the other under the current
map, move the map along the transported correspondence, project back onto the orthogonal matrices.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qwp import backend, coreset
from qwp.backend import Array
from qwp.checks import at_least, one_of
from qwp.errors import InputError
from qwp.procrustes import orthogonality_error, polar, polar_steps, polar_svd
from qwp.transport import COSTS, SOLVERS, Plan, Scalings, cost_matrix, exact, inner_product_plans, is_bounded, sinkhorn

logger = logging.getLogger(__name__)

SCHEDULES = ("grave", "fixed")
_BANK_STREAM, _RANDOM_STREAM, _PAIRING_STREAM = 1, 2, 3
# On CUDA the host looks at the figures after this many steps; elsewhere after each.
_STEPS_WITHOUT_A_LOOK = 512


@dataclass(frozen=True)
class Epoch:
    """`steps` steps with coresets of `k` points."""

    steps: int
    k: int


def make_schedule(kind: str, *, steps: int, k: int, epochs: int, n_max: int) -> tuple[Epoch, ...]:
    """`fixed`: every epoch alike. `grave`: each epoch doubles k and quarters the steps (Grave et al. 2019).

    k never exceeds `n_max`, the smaller vocabulary; a clamp is logged.
    """
    one_of(SCHEDULES, schedule=kind)
    at_least(1, steps=steps, coreset_size=k, epochs=epochs)
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
    pairs_per_step: int = 4

    def rate(self, step: int, n_steps: int) -> float:
        """Learning rate of a step (1-based): falls in a straight line to `final_rate` times the first."""
        passed = (step - 1) / max(1, n_steps - 1)
        return self.learning_rate * (1.0 - passed * (1.0 - self.final_rate))

    def coresets_in_bank(self, k: int) -> int:
        """How many coresets of k points to draw: many small or fewer large ones, for about the same work."""
        return min(256, max(32, 128_000 // k)) if self.bank_size is None else self.bank_size

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        one_of(coreset.KINDS, coreset=self.coreset)
        one_of(COSTS, cost=self.cost)
        one_of(SOLVERS, ot=self.ot)
        for name in ("epsilon", "rho", "learning_rate", "final_rate", "sinkhorn_tol"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}={getattr(self, name)} should be positive")
        if not self.weight_power >= 0:
            raise InputError(f"weight_power={self.weight_power} should be 0 or more")
        if self.bank_size is not None:
            at_least(1, bank_size=self.bank_size)
        at_least(1, sinkhorn_max_iter=self.sinkhorn_max_iter, pairs_per_step=self.pairs_per_step)


@dataclass(frozen=True)
class StepFigures:
    """What one step found.

    objective: mean squared distance moved by the plans, sum P_ij |x_i W - y_j|^2 / sum P_ij, under the map
    before the step. marginal_error: L1 distance of the plans' rows from their weights.
    """

    epoch: int
    step: int
    n_steps: int
    k: int
    objective: float
    sinkhorn_iterations: int
    marginal_error: float
    converged: bool


StepsCallback = Callable[[list[StepFigures], Array], None]
"""Called with the figures of one or more steps and the map (d, d) after the last of them."""


@dataclass(frozen=True)
class CoresetTable:
    """R coresets of k points for each of P spaces, looked up by number.

    points: (N, d) vectors of all spaces; rows: (P * R, k) places in `points`; weights: (P * R, k).
    """

    points: Array
    rows: Array
    weights: Array

    def get(self, numbers: Array) -> tuple[Array, Array]:
        """Points (b, k, d) and weights (b, k) of the coresets with these numbers, (b,)."""
        xp = backend.namespace(self.points)
        rows = xp.take(self.rows, numbers, axis=0)
        points = xp.take(self.points, xp.reshape(rows, (-1,)), axis=0)
        return xp.reshape(points, (*rows.shape, -1)), xp.take(self.weights, numbers, axis=0)


class CoresetSource:
    """Coresets of both sides of P pairs of spaces, some for each step.

    Random batches are drawn afresh for every step; quantized ones come from a bank drawn once for each k.
    Draws depend only on (seed, side, k, step), so a resumed run sees the same ones.
    """

    def __init__(
        self,
        sides: tuple[Sequence[Array], Sequence[Array]],
        settings: LoopSettings,
        seeds: Sequence[int],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """sides: the P source spaces and the P target spaces, (n, d) each; seeds: one for each pair.

        progress(done, total) is called while a bank is drawn.
        """
        self._progress = progress
        xp = backend.namespace(sides[0][0])
        self._sides, self._settings, self._seeds = sides, settings, seeds
        self._words = [spaces[0] if len(spaces) == 1 else xp.concat(list(spaces), axis=0) for spaces in sides]
        self._banks: tuple[int, list[CoresetTable]] | None = None
        self.seconds = 0.0
        """Time spent on drawing banks."""

    @property
    def _quantized(self) -> bool:
        return self._settings.coreset != "random"

    def tables(self, k: int, first: int, steps: int) -> list[CoresetTable]:
        """The coresets of `k` points that the steps from `first` on may ask for: source side, target side."""
        if not self._quantized:
            return [self._random_table(side, k, first, steps) for side in (0, 1)]
        if self._banks is None or self._banks[0] != k:
            begin = time.perf_counter()
            self._banks = (k, self._draw_banks(k))
            backend.wait_for(self._words[0])
            self.seconds += time.perf_counter() - begin
        return self._banks[1]

    def numbers(self, side: int, k: int, first: int, steps: int) -> np.ndarray:
        """Which coresets of the table each step takes: (steps, P * pairs_per_step)."""
        n_each = self._settings.pairs_per_step
        draws = np.arange(first * n_each, (first + steps) * n_each)
        columns = []
        for pair, seed in enumerate(self._seeds):
            if self._quantized:
                chosen = self._turns(side, k, seed, draws) + pair * self._settings.coresets_in_bank(k)
            else:
                chosen = draws - draws[0] + pair * len(draws)
            columns.append(chosen.reshape(steps, n_each))
        return np.concatenate(columns, axis=1)

    def _turns(self, side: int, k: int, seed: int, draws: np.ndarray) -> np.ndarray:
        """Every coreset has its turn before any comes again, in a new order each time round. draws: (c,)."""
        size = self._settings.coresets_in_bank(k)
        orders = {
            turn: backend.rng(seed, _PAIRING_STREAM, side, k, turn).permutation(size)
            for turn in range(int(draws[0]) // size, int(draws[-1]) // size + 1)
        }
        return np.array([orders[t // size][t % size] for t in draws.tolist()], dtype=np.int64)

    def _random_table(self, side: int, k: int, first: int, steps: int) -> CoresetTable:
        n_each, offset = self._settings.pairs_per_step, 0
        rows = []
        for pair, space in enumerate(self._sides[side]):
            for draw in range(first * n_each, (first + steps) * n_each):
                rows.append(self._batch(side, pair, k, draw) + offset)
            offset += space.shape[0]
        like = self._words[side]
        weights = np.full((len(rows), k), 1.0 / k)
        return CoresetTable(like, backend.asarray(np.stack(rows), like), backend.asarray(weights, like))

    def _batch(self, side: int, pair: int, k: int, draw: int) -> np.ndarray:
        """Rows of one random batch of k words, (k,)."""
        stream = backend.rng(self._seeds[pair], _RANDOM_STREAM, side, draw)
        return coreset.random_rows(self._sides[side][pair].shape[0], k, stream)

    def _draw_banks(self, k: int) -> list[CoresetTable]:
        settings = self._settings
        spaces = [space for side in self._sides for space in side]
        streams = [backend.rng(seed, _BANK_STREAM, side, k) for side in (0, 1) for seed in self._seeds]
        lloyd = settings.coreset == "lloyd"
        labels = lloyd or settings.weight_power != 0.0
        size = settings.coresets_in_bank(k)
        banks = coreset.kmeans_plusplus_banks(spaces, k, size, streams, labels=labels, progress=self._progress)
        pairs = len(self._seeds)
        return [
            self._table(
                self._words[side], spaces[side * pairs : (side + 1) * pairs], banks[side * pairs : (side + 1) * pairs]
            )
            for side in (0, 1)
        ]

    def _table(self, words: Array, spaces: Sequence[Array], banks: Sequence[coreset.Bank]) -> CoresetTable:
        xp = backend.namespace(words)
        weights = xp.concat([bank.weights(self._settings.weight_power) for bank in banks], axis=0)
        if self._settings.coreset == "lloyd":
            sphere = self._settings.sphere_centroids
            points = xp.concat(
                [
                    bank.centroids(x, i, on_sphere=sphere)
                    for x, bank in zip(spaces, banks, strict=True)
                    for i in range(len(bank))
                ]
            )
            rows = xp.reshape(xp.arange(points.shape[0], device=backend.device(points)), weights.shape)
            return CoresetTable(points, rows, weights)
        offsets = np.cumsum([0, *(x.shape[0] for x in spaces)]).tolist()
        rows = xp.concat([bank.centres + offset for bank, offset in zip(banks, offsets, strict=False)], axis=0)
        return CoresetTable(words, rows, weights)


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
    callback: StepsCallback | None = None,
) -> Array:
    """Run the loop from `w` and return the final orthogonal map.

    x: (n, d), y: (m, d) normalised training words; w: (d, d). first_step: how many steps of the schedule `w`
    has already seen (a resumed run). callback(figures, w) is called after every step, on CUDA after many.
    """
    xp = backend.namespace(x, y, w)

    def report(figures: list[list[StepFigures]], maps: Array) -> None:
        if callback is not None:
            callback(figures[0], xp.asarray(maps[0, ...], copy=True))

    start = xp.expand_dims(w, axis=0)
    return wasserstein_procrustes_many(
        [x], [y], start, schedule, settings, seeds=[seed], first_step=first_step, callback=report
    )[0, ...]


def wasserstein_procrustes_many(
    xs: Sequence[Array],
    ys: Sequence[Array],
    w: Array,
    schedule: tuple[Epoch, ...],
    settings: LoopSettings,
    *,
    seeds: Sequence[int],
    first_step: int = 0,
    callback: Callable[[list[list[StepFigures]], Array], None] | None = None,
    source: CoresetSource | None = None,
) -> Array:
    """The loop for P pairs of spaces in lock-step: small steps of many pairs fill a GPU that those of one do not.

    xs: P times (n_p, d), ys: P times (m_p, d); w: (P, d, d); seeds: one for each pair. callback gets a list of
    figures for each pair and the maps. source: where the coresets come from, if not made here. Returns (P, d, d).
    """
    settings.check()
    source = source or CoresetSource((xs, ys), settings, seeds)
    n_steps = sum(e.steps for e in schedule)
    radius = max(_radius(x) * _radius(y) for x, y in zip(xs, ys, strict=True))
    w = backend.namespace(w).asarray(w, copy=True)
    at_a_time = _STEPS_WITHOUT_A_LOOK if backend.is_cuda(w) else 1
    for k, begin, end in _stretches(schedule, first_step):
        with _Steps(source, w, k, min(at_a_time, end - begin), settings, radius) as steps:
            for first in range(begin, end, at_a_time):
                numbers = range(first + 1, min(first + at_a_time, end) + 1)
                steps.run(first, np.array([settings.rate(number, n_steps) for number in numbers]))
                if callback is not None:
                    callback(steps.figures(numbers, n_steps, schedule), w)
    return w


def _stretches(schedule: tuple[Epoch, ...], first_step: int) -> list[tuple[int, int, int]]:
    """The steps after `first_step` as (k, begin, end), epochs with the same k in one stretch."""
    stretches: list[tuple[int, int, int]] = []
    end = 0
    for epoch in schedule:
        begin, end = max(end, first_step), end + epoch.steps
        if begin >= end:
            continue
        if stretches and stretches[-1][0] == epoch.k:
            stretches[-1] = (epoch.k, stretches[-1][1], end)
        else:
            stretches.append((epoch.k, begin, end))
    return stretches


def _epoch_of(step: int, schedule: tuple[Epoch, ...]) -> int:
    """The number of the epoch that a step belongs to; both count from one."""
    ends = np.cumsum([epoch.steps for epoch in schedule])
    return int(np.searchsorted(ends, step)) + 1


def _radius(x: Array) -> float:
    """Length of the longest row. x: (n, d)."""
    xp = backend.namespace(x)
    return float(xp.sqrt(xp.max(xp.sum(x * x, axis=1))))


class _Steps:
    """Steps with coresets of one size, on buffers that stay where they are (see `backend.Repeated`).

    w: (P, d, d), moved in place.
    """

    def __init__(
        self, source: CoresetSource, w: Array, k: int, capacity: int, settings: LoopSettings, radius: float
    ) -> None:
        xp = self.xp = backend.namespace(w)
        self.source, self.w, self.k, self.settings, self.radius = source, w, k, settings, radius
        # Both costs lead to kernels exp(scale <x W, y>), up to factors that balanced scalings take up.
        self.scale = (2.0 if settings.cost == "sqeuclidean" else 1.0) / settings.epsilon
        precision = str(w.dtype).rpartition(".")[2]
        self.bounded = settings.ot == "balanced" and is_bounded(self.scale * radius, precision)
        device = backend.device(w)
        pairs = w.shape[0]
        self.tables: list[CoresetTable] = []
        self.numbers = [
            xp.zeros((capacity, pairs * settings.pairs_per_step), dtype=xp.int64, device=device) for _ in (0, 1)
        ]
        self.rates = xp.zeros((capacity,), dtype=w.dtype, device=device)
        self.measured = xp.zeros((capacity, pairs, 3), dtype=w.dtype, device=device)
        self.place = xp.zeros((1,), dtype=xp.int64, device=device)
        self.kernel: Array = None
        if self.bounded:
            shape = (pairs * settings.pairs_per_step, k, k)
            self.kernel = xp.empty(shape, dtype=w.dtype, device=device)
        # The sweeps of a step that never looks at the error; None: until the error is small enough.
        self.sweeps: tuple[float, ...] | None = None
        like = w if self.bounded else np.zeros(1)
        self.repeated = backend.Repeated(self._step, like)

    def run(self, first: int, rates: np.ndarray) -> None:
        """Do the steps after number `first` with these learning rates, one for each."""
        count = len(rates)
        self._refill(self.source.tables(self.k, first, count))
        for side in (0, 1):
            numbers = self.source.numbers(side, self.k, first, count)
            self.numbers[side][:count, :] = backend.asarray(numbers, self.w)
        self.rates[:count] = backend.asarray(rates, self.w)
        self.place *= 0
        if self.sweeps is None and self.bounded and backend.is_cuda(self.w):
            self.sweeps = self._sweeps_needed()
        self.repeated.run(count)
        self._repair()

    def __enter__(self) -> _Steps:
        self.repeated.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.repeated.__exit__(*error)

    def _refill(self, tables: list[CoresetTable]) -> None:
        """Take up new tables, in the place of the old ones if there are any."""
        if not self.tables:
            self.tables = tables
        for old, new in zip(self.tables, tables, strict=True):
            if old is not new:
                old.rows[: new.rows.shape[0], :] = new.rows
                old.weights[: new.weights.shape[0], :] = new.weights

    def _sweeps_needed(self) -> tuple[float, ...]:
        """The sweeps to make in each step where nobody looks: those that the first one needs, and some more."""
        src, a, tgt, b = self._coresets()
        needed = self._plans(self._mapped(src), tgt, a, b).steps
        more = math.ceil(0.25 * len(needed)) + 1
        return (*needed, *needed[-1:] * more)[: self.settings.sinkhorn_max_iter]

    def _repair(self) -> None:
        """Steps that nobody looked at may have met a matrix too badly conditioned for them."""
        if backend.is_cuda(self.w):
            for pair in range(self.w.shape[0]):
                if not orthogonality_error(self.w[pair, ...]) < 1e-3:
                    self.w[pair, ...] = polar_svd(self.w[pair, ...])

    def _coresets(self) -> tuple[Array, Array, Array, Array]:
        """The coresets of this step: source points (B, k, d) and weights (B, k), target points and weights."""
        (src, a), (tgt, b) = (
            table.get(self.xp.take(numbers, self.place, axis=0)[0, :])
            for table, numbers in zip(self.tables, self.numbers, strict=True)
        )
        return src, a, tgt, b

    def _mapped(self, src: Array) -> Array:
        """Source points under the current map of their pair, (B, k, d)."""
        xp, (pairs, dim) = self.xp, self.w.shape[:2]
        return xp.reshape(xp.reshape(src, (pairs, -1, dim)) @ self.w, src.shape)

    def _step(self) -> None:
        xp, w = self.xp, self.w
        pairs, dim = w.shape[:2]
        src, a, tgt, b = self._coresets()
        plans = self._plans(self._mapped(src), tgt, a, b)
        # One product gives the images of the points and, in two more columns, what the figures need.
        squares = xp.sum(tgt * tgt, axis=2, keepdims=True)
        images = plans.apply(xp.concat([tgt, squares, xp.ones_like(squares)], axis=2))
        correspondences = xp.matrix_transpose(src) @ images[:, :, :dim]
        correspondence = xp.mean(xp.reshape(correspondences, (pairs, -1, dim, dim)), axis=1)
        figures = self._figures(src, images, a, correspondences, plans.n_iter)
        backend.put_row(self.measured, self.place, figures)
        # The correspondence of d-dimensional unit vectors has singular values of order 1/d; scaled by d
        # the learning rate means the same in every dimension.
        moved = w + (dim * xp.take(self.rates, self.place)) * correspondence
        w[...] = polar_steps(moved) if backend.is_cuda(w) else xp.stack([polar(moved[i, ...]) for i in range(pairs)])
        self.place += 1

    def _plans(self, mapped: Array, tgt: Array, a: Array, b: Array) -> Scalings:
        """Plans between coresets: mapped (B, k, d) with weights a (B, k), tgt (B, k, d) with weights b (B, k)."""
        settings, xp = self.settings, self.xp
        if self.bounded:
            return inner_product_plans(
                mapped,
                tgt,
                a,
                b,
                scale=self.scale,
                max_iter=settings.sinkhorn_max_iter,
                tol=settings.sinkhorn_tol,
                steps=self.sweeps,
                kernel=self.kernel,
                shift=self.scale * self.radius,
            )
        found = [
            solve_transport(cost_matrix(mapped[i, ...], tgt[i, ...], settings.cost), a[i, :], b[i, :], settings)
            for i in range(a.shape[0])
        ]
        kernel, u, v = (xp.stack([getattr(plan, name) for plan in found]) for name in ("kernel", "u", "v"))
        return Scalings(kernel, u, v, max((plan.steps for plan in found), key=len))

    def _figures(self, src: Array, images: Array, a: Array, correspondences: Array, n_iter: int) -> Array:
        """Objective, marginal error and sweeps of each pair, (P, 3).

        The plan's own marginals weigh the squares: an unbalanced or unfinished plan does not meet the coresets'.
        """
        xp, w = self.xp, self.w
        pairs, dim = w.shape[0], w.shape[1]
        squares_tgt, mass = images[:, :, dim], images[:, :, dim + 1]
        squares_src = xp.sum(src * src, axis=2)
        by_pair = xp.reshape(correspondences, (pairs, -1, dim, dim))
        overlap = xp.reshape(xp.sum(by_pair * xp.expand_dims(w, axis=1), axis=(2, 3)), (-1,))
        total = xp.sum(squares_tgt + squares_src * mass, axis=1) - 2.0 * overlap
        error = xp.sum(xp.abs(mass - a), axis=1)
        objective, error = (
            xp.mean(xp.reshape(values, (pairs, -1)), axis=1) for values in (total / xp.sum(mass, axis=1), error)
        )
        return xp.stack([objective, error, xp.full_like(error, float(n_iter))], axis=1)

    def figures(self, numbers: range, n_steps: int, schedule: tuple[Epoch, ...]) -> list[list[StepFigures]]:
        """What was measured in the last steps, which have these numbers; a list for each pair."""
        measured = backend.to_numpy(self.measured)[: len(numbers)].tolist()
        tol = self.settings.sinkhorn_tol
        return [
            [
                StepFigures(
                    _epoch_of(number, schedule), number, n_steps, self.k, objective, int(n_iter), error, error <= tol
                )
                for number, (objective, error, n_iter) in zip(numbers, (row[pair] for row in measured), strict=True)
            ]
            for pair in range(self.w.shape[0])
        ]
