"""The loop: Wasserstein-Procrustes and its quantized form are one algorithm with different coresets.

Algorithm 1 of the paper. Repeat: take a coreset of each side, transport one onto the other under the current
map, move the map along the transported correspondence, project back onto the orthogonal matrices.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps, orthogonality_error, polar, polar_steps, polar_svd
from qwp.ot.batched_sinkhorn import inner_product_plans, is_bounded
from qwp.ot.coreset_source import Coresets, CoresetSource, CoresetTable
from qwp.ot.costs import RankPrior, Scalings, cost_matrix, with_ranks
from qwp.ot.transport import Transport, require_pot, solve_transport
from qwp.parameters import LOOP, MOST_STEPS, MOST_WORDS, RUN, TRAIN_WORDS, param
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Monitor, Stage, State, view_of

logger = logging.getLogger(__name__)

SCHEDULES = ("grave", "fixed")
# On CUDA the host looks at the figures after this many steps; elsewhere after each.
SYNC_INTERVAL = 512


@dataclass(frozen=True)
class Epochs:
    """`count` epochs in a row of `steps` steps each, with coresets of `k` points."""

    count: int
    steps: int
    k: int


@dataclass(frozen=True)
class Schedule:
    """How many steps with coresets of which size, as runs of equal epochs: however many, they take no memory."""

    epochs: tuple[Epochs, ...]

    @property
    def n_steps(self) -> int:
        """All steps."""
        return sum(run.count * run.steps for run in self.epochs)

    def segments(self, first_step: int) -> list[tuple[int, int, int]]:
        """The steps after `first_step` as (k, begin, end), epochs with the same k in one stretch."""
        found: list[tuple[int, int, int]] = []
        end = 0
        for run in self.epochs:
            begin, end = max(end, first_step), end + run.count * run.steps
            if begin >= end:
                continue
            if found and found[-1][0] == run.k:
                found[-1] = (run.k, found[-1][1], end)
            else:
                found.append((run.k, begin, end))
        return found

    def epoch_of(self, step: int) -> int:
        """The number of the epoch that a step belongs to; both count from one."""
        before = 0
        for run in self.epochs:
            if step <= run.count * run.steps:
                return before + -(-step // run.steps)
            step, before = step - run.count * run.steps, before + run.count
        return before


def make_schedule(kind: str, *, steps: int, k: int, epochs: int, n_max: int) -> Schedule:
    """`fixed`: every epoch alike. `grave`: each epoch doubles k and quarters the steps (Grave et al. 2019).

    k never exceeds `n_max`, the smaller vocabulary; a clamp is logged.
    """
    if k > n_max or (kind == "grave" and k * 2 ** min(epochs - 1, 64) > n_max):
        logger.info("coreset sizes above the %d training words are clamped to it", n_max)
    if kind == "fixed":
        return Schedule((Epochs(epochs, steps, min(k, n_max)),))
    runs: list[Epochs] = []
    while epochs > 0 and (steps > 1 or k < n_max):
        runs.append(Epochs(1, steps, min(k, n_max)))
        epochs, steps, k = epochs - 1, max(1, steps // 4), 2 * k
    return Schedule((*runs, Epochs(epochs, steps, min(k, n_max))) if epochs else tuple(runs))


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


@dataclass(frozen=True, kw_only=True)
class WassersteinProcrustes(Stage):
    """Algorithm 1: transport coresets onto each other under the current map, move the map along the plan, repeat."""

    name = "loop"
    projects = True

    coresets: Coresets = Coresets()
    transport: Transport = Transport()
    schedule: str = param(
        "fixed",
        "fixed (all epochs alike) or grave (each doubles the coreset and quarters the steps).",
        LOOP,
        choices=SCHEDULES,
    )
    epochs: int = param(5, "Epochs of the loop.", LOOP, least=1, most=MOST_STEPS)
    steps: int = param(15, "Steps of an epoch (grave: of the first).", LOOP, least=1, most=MOST_STEPS)
    learning_rate: float = param(2.0, "Initial learning rate.", LOOP, above=0, most=1e4)
    final_rate: float = param(0.1, "Share of the learning rate that is left at the last step.", LOOP, above=0, most=100)
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    kept_steps: int = 500
    """Long loops keep about this many records; the rest would only fatten the saved result."""
    batch_bytes: int = 8 << 30
    """Memory for the coresets of pairs that are aligned in lock-step, unless the user says."""

    def check_together(self) -> None:
        """Exact transport needs POT unless all points weigh the same."""
        power = self.coresets.weight_power
        if self.transport.solver == "exact" and self.coresets.quantized and power != 0:
            require_pot(f"ot='exact' with weight_power={power:g}")

    def rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step (1-based): it falls linearly to `final_rate` times the first."""
        passed = (step - 1) / max(1, n_steps - 1)
        return self.learning_rate * (1.0 - passed * (1.0 - self.final_rate))

    def schedule_for(self, words: int) -> Schedule:
        """Return the schedule when the smaller training vocabulary has so many words."""
        return make_schedule(
            self.schedule, steps=self.steps, k=self.coresets.size_for(words), epochs=self.epochs, n_max=words
        )

    def pairs_at_a_time(self, max_memory: float | None) -> int:
        """Return how many pairs to align in lock-step on a GPU. max_memory: in GiB."""
        # The bank keeps a few arrays of (B, n) for each side; together they should stay within a few gigabytes.
        k = self.schedule_for(self.train_words).epochs[0].k
        each = 8 * 4 * self.coresets.coresets_in_bank(k) * self.train_words + 16 * k * k * self.coresets.pairs_per_step
        budget = self.batch_bytes if max_memory is None else max_memory * 2**30
        return max(1, int(budget // each))

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map after the loop."""
        return self.run_many([problem], [state], [monitor])[0]

    def run_many(
        self, problems: Sequence[Problem], states: Sequence[State], monitors: Sequence[Monitor]
    ) -> list[State]:
        """Return the states of several problems, those with the same schedule in lock-step."""
        views = [view_of(*both) for both in zip(problems, states, strict=True)]
        groups: dict[tuple[int, Schedule], list[int]] = {}
        for i, view in enumerate(views):
            words = min(self.train_words, view.x.shape[0], view.y.shape[0])
            groups.setdefault((view.x.shape[1], self.schedule_for(words)), []).append(i)
        found: dict[int, State] = {}
        for (_, schedule), group in groups.items():
            ran = self._lock_step(
                schedule,
                [problems[i].seed for i in group],
                [views[i] for i in group],
                [states[i] for i in group],
                [monitors[i] for i in group],
            )
            found.update(zip(group, ran, strict=True))
        return [found[i] for i in range(len(problems))]

    def _lock_step(
        self,
        schedule: Schedule,
        seeds: Sequence[int],
        views: list[View],
        states: list[State],
        monitors: list[Monitor],
    ) -> list[State]:
        """Run the loops of several problems with one schedule, from where the first of them is."""
        every = math.ceil(schedule.n_steps / self.kept_steps)

        def after(figures: list[list[StepFigures]], moved: Array) -> None:
            for i, (monitor, steps) in enumerate(zip(monitors, figures, strict=True)):
                for step in steps:
                    values = asdict(step)
                    done, total = values.pop("step"), values.pop("n_steps")
                    if done % every == 0 or done == total:
                        states[i] = states[i].recorded(self.name, done, values)
                    monitor.tell(self.name, done, total, values)
                if monitor.due():
                    w = arrays.namespace(moved).asarray(moved[i, ...], copy=True)
                    monitor.save(states[i].reached(self.name, steps[-1].step, Maps(w)))

        def drawn(done: int, total: int) -> None:
            for monitor in monitors:
                monitor.tell("coresets", done, total, {})

        xs = [view.x[: self.train_words, :] for view in views]
        ys = [view.y[: self.train_words, :] for view in views]
        source = CoresetSource((xs, ys), self.coresets, seeds, drawn, monitors[0].banks)
        maps = wasserstein_procrustes_many(
            xs,
            ys,
            arrays.namespace(xs[0]).stack([state.map for state in states]),
            schedule,
            self,
            seeds=seeds,
            first_step=states[0].done,
            callback=after,
            source=source,
        )
        for monitor in monitors:
            monitor.move_seconds(self.name, "coresets", source.seconds / len(monitors))
        return [state.reached(self.name, schedule.n_steps, Maps(maps[i, ...])) for i, state in enumerate(states)]


StepsCallback = Callable[[list[StepFigures], Array], None]
"""Called with the figures of one or more steps and the map (d, d) after the last of them."""


def wasserstein_procrustes(
    x: Array,
    y: Array,
    w: Array,
    schedule: Schedule,
    settings: WassersteinProcrustes,
    *,
    seed: int = 0,
    first_step: int = 0,
    callback: StepsCallback | None = None,
) -> Array:
    """Run the loop from `w` and return the final orthogonal map.

    x: (n, d), y: (m, d) normalised training words; w: (d, d). first_step: how many steps of the schedule `w`
    has already seen (a resumed run). callback(figures, w) is called after every step, on CUDA after many.
    """
    xp = arrays.namespace(x, y, w)

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
    schedule: Schedule,
    settings: WassersteinProcrustes,
    *,
    seeds: Sequence[int],
    first_step: int = 0,
    callback: Callable[[list[list[StepFigures]], Array], None] | None = None,
    source: CoresetSource | None = None,
    frequency_prior: float = 0.0,
) -> Array:
    """The loop for P pairs of spaces in lock-step: small steps of many pairs fill a GPU that those of one do not.

    xs: P times (n_p, d), ys: P times (m_p, d); w: (P, d, d); seeds: one for each pair. callback gets a list of
    figures for each pair and the maps. source: where the coresets come from, if not made here. frequency_prior: weight
    of ranks beside that of similarities in the first step; it fades out (random batches only). Returns (P, d, d).
    """
    source = source or CoresetSource((xs, ys), settings.coresets, seeds)
    n_steps = schedule.n_steps
    radius = max(_radius(x) * _radius(y) for x, y in zip(xs, ys, strict=True))
    w = arrays.namespace(w).asarray(w, copy=True)
    at_a_time = SYNC_INTERVAL if arrays.is_cuda(w) else 1
    prior = RankPrior.between(xs, ys, w) if frequency_prior > 0 else None
    for k, begin, end in schedule.segments(first_step):
        with _Steps(source, w, k, min(at_a_time, end - begin), settings, radius, prior=prior) as steps:
            for first in range(begin, end, at_a_time):
                numbers = range(first + 1, min(first + at_a_time, end) + 1)
                rates = np.array([settings.rate(number, n_steps) for number in numbers])
                fading = np.array([frequency_prior * (1.0 - (number - 1) / n_steps) for number in numbers])
                steps.run(first, rates, fading)
                if callback is not None:
                    callback(steps.figures(numbers, n_steps, schedule), w)
    return w


def _radius(x: Array) -> float:
    """Length of the longest row. x: (n, d)."""
    xp = arrays.namespace(x)
    return float(xp.sqrt(xp.max(xp.sum(x * x, axis=1))))


class _Steps:
    """Steps with coresets of one size, on buffers that stay where they are (see `arrays.Repeated`).

    w: (P, d, d), moved in place.
    """

    def __init__(
        self,
        source: CoresetSource,
        w: Array,
        k: int,
        capacity: int,
        settings: WassersteinProcrustes,
        radius: float,
        *,
        prior: RankPrior | None,
    ) -> None:
        xp = self.xp = arrays.namespace(w)
        self.prior = prior
        self.source, self.w, self.k, self.radius = source, w, k, radius
        self.transport, pairs_per_step = settings.transport, settings.coresets.pairs_per_step
        # Both costs lead to kernels exp(scale <x W, y>), up to factors that balanced scalings take up.
        self.scale = (2.0 if self.transport.cost == "sqeuclidean" else 1.0) / self.transport.epsilon
        precision = str(w.dtype).rpartition(".")[2]
        self.bounded = self.transport.solver == "balanced" and is_bounded(self.scale * radius, precision)
        if prior is not None and (settings.coresets.quantized or not self.bounded):
            raise ValueError(
                "ranks are compared in balanced plans of random batches alone, with an epsilon not too small"
            )
        device = arrays.device(w)
        pairs = w.shape[0]
        self.tables: list[CoresetTable] = []
        self.numbers = [xp.zeros((capacity, pairs * pairs_per_step), dtype=xp.int64, device=device) for _ in (0, 1)]
        self.rates, self.fading = (xp.zeros((capacity,), dtype=w.dtype, device=device) for _ in range(2))
        self.measured = xp.zeros((capacity, pairs, 3), dtype=w.dtype, device=device)
        self.step_index = xp.zeros((1,), dtype=xp.int64, device=device)
        self.kernel: Array | None = None
        if self.bounded:
            shape = (pairs * pairs_per_step, k, k)
            self.kernel = xp.empty(shape, dtype=w.dtype, device=device)
        # The sweeps of a step that never looks at the error; None: until the error is small enough.
        self.sweeps: tuple[float, ...] | None = None
        like = w if self.bounded else np.zeros(1)
        self.repeated = arrays.Repeated(self._step, like)

    def run(self, first: int, rates: np.ndarray, fading: np.ndarray) -> None:
        """Do the steps after number `first` with these learning rates and weights of ranks, one for each."""
        count = len(rates)
        self._refill(self.source.tables(self.k, first, count))
        for side in (0, 1):
            numbers = self.source.numbers(side, self.k, first, count)
            self.numbers[side][:count, :] = arrays.asarray(numbers, self.w)
        self.rates[:count] = arrays.asarray(rates, self.w)
        self.fading[:count] = arrays.asarray(fading, self.w)
        self.step_index *= 0
        if self.sweeps is None and self.bounded and arrays.is_cuda(self.w):
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
        needed = self._plans(self._mapped(src), tgt, a, b).relaxations
        more = math.ceil(0.25 * len(needed)) + 1
        return (*needed, *needed[-1:] * more)[: self.transport.max_iter]

    def _repair(self) -> None:
        """Steps that nobody looked at may have met a matrix too badly conditioned for them."""
        if arrays.is_cuda(self.w):
            for pair in range(self.w.shape[0]):
                if not orthogonality_error(self.w[pair, ...]) < 1e-3:
                    self.w[pair, ...] = polar_svd(self.w[pair, ...])

    def _coresets(self) -> tuple[Array, Array, Array, Array]:
        """The coresets of this step: source points (B, k, d) and weights (B, k), target points and weights."""
        (src, a), (tgt, b) = (table.get(numbers) for table, numbers in self._chosen())
        return src, a, tgt, b

    def _chosen(self) -> Iterator[tuple[CoresetTable, Array]]:
        """The tables of both sides, and which coresets of them this step takes, (B,)."""
        for table, numbers in zip(self.tables, self.numbers, strict=True):
            yield table, self.xp.take(numbers, self.step_index, axis=0)[0, :]

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
        arrays.put_row(self.measured, self.step_index, figures)
        # The correspondence of d-dimensional unit vectors has singular values of order 1/d; scaled by d
        # the learning rate means the same in every dimension.
        moved = w + (dim * xp.take(self.rates, self.step_index)) * correspondence
        w[...] = polar_steps(moved) if arrays.is_cuda(w) else xp.stack([polar(moved[i, ...]) for i in range(pairs)])
        self.step_index += 1

    def _plans(self, mapped: Array, tgt: Array, a: Array, b: Array) -> Scalings:
        """Plans between coresets: mapped (B, k, d) with weights a (B, k), tgt (B, k, d) with weights b (B, k)."""
        transport, xp = self.transport, self.xp
        if self.prior is not None:
            logs = [table.of_points(of, n) for of, (table, n) in zip(self.prior.log_ranks, self._chosen(), strict=True)]
            weight = xp.take(self.fading, self.step_index) * self.prior.unit
            mapped, tgt = with_ranks(mapped, tgt, logs[0], logs[1], weight)
        if self.bounded:
            return inner_product_plans(
                mapped,
                tgt,
                a,
                b,
                scale=self.scale,
                max_iter=transport.max_iter,
                tol=transport.tol,
                relaxations=self.sweeps,
                kernel=self.kernel,
                shift=self.scale * self.radius,
            )
        found = [
            solve_transport(cost_matrix(mapped[i, ...], tgt[i, ...], transport.cost), a[i, :], b[i, :], transport)
            for i in range(a.shape[0])
        ]
        kernel, u, v = (xp.stack([getattr(plan, name) for plan in found]) for name in ("kernel", "u", "v"))
        return Scalings(kernel, u, v, max((plan.relaxations for plan in found), key=len))

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

    def figures(self, numbers: range, n_steps: int, schedule: Schedule) -> list[list[StepFigures]]:
        """What was measured in the last steps, which have these numbers; a list for each pair."""
        measured = arrays.to_numpy(self.measured)[: len(numbers)].tolist()
        tol = self.transport.tol
        return [
            [
                StepFigures(
                    schedule.epoch_of(number), number, n_steps, self.k, objective, int(n_iter), error, error <= tol
                )
                for number, (objective, error, n_iter) in zip(numbers, (row[pair] for row in measured), strict=True)
            ]
            for pair in range(self.w.shape[0])
        ]


@dataclass(frozen=True)
class Trial:
    """A short loop. words: the most frequent ones that take part; coreset: words in a batch, if there are many.

    frequency_prior: weight of ranks beside that of similarities at its beginning; it fades out.
    """

    words: int
    steps: int
    coreset: int
    epsilon: float
    batches: int
    frequency_prior: float = 0.0

    def settings(self) -> WassersteinProcrustes:
        """Return the settings of its steps."""
        return WassersteinProcrustes(
            coresets=Coresets(kind="random", pairs_per_step=self.batches),
            transport=Transport(epsilon=self.epsilon),
            learning_rate=2.0,
            final_rate=0.5,
        )

    def points(self, x: Array, y: Array) -> int:
        """Words in a batch of x (n, d) and y (m, d): of few words a part, so that batches differ and cost little."""
        n = min(self.words, x.shape[0], y.shape[0])
        return min(n, max(Coresets.fewest_points, min(self.coreset, n // 4)))

    def run(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        maps: Sequence[Array],
        seeds: Sequence[int],
        callback: Callable[[list[list[StepFigures]], Array], None] | None = None,
    ) -> list[Array]:
        """The maps (d, d) after the loop from each of `maps`, in lock-step; all pairs have the same `points`.

        xs: (n, d) each, ys: (m, d) each, normalised rows, most frequent first. callback: as that of the loop.
        """
        k = self.points(xs[0], ys[0])
        found = wasserstein_procrustes_many(
            [x[: min(self.words, x.shape[0]), :] for x in xs],
            [y[: min(self.words, y.shape[0]), :] for y in ys],
            arrays.namespace(xs[0]).stack(list(maps)),
            make_schedule("fixed", steps=self.steps, k=k, epochs=1, n_max=k),
            self.settings(),
            seeds=list(seeds),
            callback=callback,
            frequency_prior=self.frequency_prior,
        )
        return [found[i, ...] for i in range(len(maps))]
