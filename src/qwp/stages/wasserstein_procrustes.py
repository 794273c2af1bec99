"""The loop of Wasserstein-Procrustes and of its quantized form: one algorithm with different coresets.

Algorithm 1 of the paper. Repeat: take a coreset of each side, transport one onto the other under the current map, move
the map along the correspondence of the plan, project the map back onto the orthogonal matrices.
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
from qwp.ot.batched_sinkhorn import Unbalanced, inner_product_plans, is_bounded, unbalanced_plans
from qwp.ot.coreset_source import Coresets, CoresetSource, CoresetTable
from qwp.ot.costs import RankPrior, Scalings, cost_matrix, with_ranks
from qwp.ot.transport import Transport, require_pot, solve_transport
from qwp.parameters import LOOP, MOST_STEPS, MOST_WORDS, RUN, TRAIN_WORDS, param
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Monitor, Stage, State, view_of

logger = logging.getLogger(__name__)

SCHEDULES = ("grave", "fixed", "budget")
UPDATES = ("normalized", "gradient")
BUDGET_POINTS = 1000
"""The size of a coreset for which the `budget` schedule makes the given number of steps."""
SYNC_INTERVAL = 512
"""Steps between two reads of the figures on CUDA, where each read makes the host wait. Elsewhere every step is read."""


@dataclass(frozen=True)
class Epochs:
    """`count` consecutive epochs of `steps` steps each, with coresets of `k` points."""

    count: int
    steps: int
    k: int


@dataclass(frozen=True)
class Schedule:
    """The steps and the coreset sizes of all epochs, as runs of equal epochs."""

    epochs: tuple[Epochs, ...]

    @property
    def n_steps(self) -> int:
        """The number of all steps."""
        return sum(run.count * run.steps for run in self.epochs)

    def segments(self, first_step: int) -> list[tuple[int, int, int]]:
        """Return the steps after `first_step` as segments (k, begin, end) with one coreset size each."""
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
        """Return the number of the epoch of a step; both count from one."""
        before = 0
        for run in self.epochs:
            if step <= run.count * run.steps:
                return before + -(-step // run.steps)
            step, before = step - run.count * run.steps, before + run.count
        return before


def make_schedule(kind: str, *, steps: int, k: int, epochs: int, n_max: int) -> Schedule:
    """Return a schedule: `fixed` repeats one epoch, `grave` doubles k and quarters the steps (Grave et al. 2019).

    `budget` repeats one epoch in which coresets of k points see as many points as `steps` coresets of 1000 points.

    n_max: the size of the smaller vocabulary, which k never exceeds. A clamp is logged.
    """
    if k > n_max or (kind == "grave" and k * 2 ** min(epochs - 1, 64) > n_max):
        logger.info("coreset sizes above the %d training words are clamped to it", n_max)
    if kind == "budget":
        steps = max(1, round(steps * BUDGET_POINTS / k))
    if kind != "grave":
        return Schedule((Epochs(epochs, steps, min(k, n_max)),))
    runs: list[Epochs] = []
    while epochs > 0 and (steps > 1 or k < n_max):
        runs.append(Epochs(1, steps, min(k, n_max)))
        epochs, steps, k = epochs - 1, max(1, steps // 4), 2 * k
    return Schedule((*runs, Epochs(epochs, steps, min(k, n_max))) if epochs else tuple(runs))


@dataclass(frozen=True)
class StepFigures:
    """The figures of one step.

    objective: mean squared distance of the transport, sum P_ij |x_i W - y_j|^2 / sum P_ij, under the map before the
    step. marginal_error: L1 distance of the row sums of the plans from the weights.
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
        "fixed (all epochs alike), grave (each doubles the coreset and quarters the steps) or budget (fixed, with "
        "--steps for coresets of 1000 points, more for smaller ones and fewer for larger ones).",
        LOOP,
        choices=SCHEDULES,
    )
    epochs: int = param(5, "Epochs of the loop.", LOOP, least=1, most=MOST_STEPS)
    steps: int = param(30, "Steps of an epoch (grave: of the first).", LOOP, least=1, most=MOST_STEPS)
    update: str = param(
        "normalized",
        "Length of a step: normalized (the rate times the norm of the map) or gradient (the rate times the "
        "correspondence of the plan, which depends on the coresets).",
        LOOP,
        choices=UPDATES,
    )
    learning_rate: float = param(0.8, "Initial learning rate.", LOOP, above=0, most=1e4)
    final_rate: float = param(0.1, "Share of the learning rate that is left at the last step.", LOOP, above=0, most=100)
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    max_records: int = 500
    """About how many records a long loop adds to the history. More would only enlarge the saved result."""
    batch_bytes: int = 8 << 30
    """Memory for the coresets of pairs that run in lock-step if the user sets no limit."""

    def check_together(self) -> None:
        """Exact transport needs POT unless all points have equal weights."""
        power = self.coresets.weight_power
        if self.transport.solver == "exact" and self.coresets.quantized and power != 0:
            require_pot(f"ot='exact' with weight_power={power:g}")

    def rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step (1-based), which falls linearly to `final_rate` times the initial one."""
        passed = (step - 1) / max(1, n_steps - 1)
        return self.learning_rate * (1.0 - passed * (1.0 - self.final_rate))

    def schedule_for(self, words: int) -> Schedule:
        """Return the schedule for a number of training words, that of the smaller vocabulary."""
        return make_schedule(
            self.schedule, steps=self.steps, k=self.coresets.size_for(words), epochs=self.epochs, n_max=words
        )

    def pairs_at_a_time(self, max_memory: float | None) -> int:
        """Return how many pairs to align in lock-step on a GPU. max_memory: in GiB."""
        # A bank has about four arrays (B, n) for each side while it is drawn; the plans have four arrays (k, k).
        k = self.schedule_for(self.train_words).epochs[0].k
        each = 8 * 4 * self.coresets.coresets_in_bank(k) * self.train_words + 16 * k * k * self.coresets.pairs_per_step
        budget = self.batch_bytes if max_memory is None else max_memory * 2**30
        return max(1, int(budget // each))

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
        """Run the loops of several problems with one schedule, from the step of the first state."""
        every = math.ceil(schedule.n_steps / self.max_records)

        def after(figures: list[list[StepFigures]], moved: Array) -> None:
            for i, (monitor, steps) in enumerate(zip(monitors, figures, strict=True)):
                for step in steps:
                    values = asdict(step)
                    done, total = values.pop("step"), values.pop("n_steps")
                    if done % every == 0 or done == total:
                        states[i] = states[i].recorded(self.name, done, values)
                    monitor.report(self.name, done, total, values)
                if monitor.due():
                    w = arrays.namespace(moved).asarray(moved[i, ...], copy=True)
                    monitor.save(states[i].after_step(self.name, steps[-1].step, Maps(w)))

        def drawn(done: int, total: int) -> None:
            for monitor in monitors:
                monitor.report("coresets", done, total, {})

        xs = [view.x[: self.train_words, :] for view in views]
        ys = [view.y[: self.train_words, :] for view in views]
        source = CoresetSource((xs, ys), self.coresets, seeds, drawn, monitors[0].bank_cache)
        maps = self.solve_many(
            xs,
            ys,
            arrays.namespace(xs[0]).stack([state.map for state in states]),
            schedule,
            seeds=seeds,
            first_step=states[0].done,
            callback=after,
            source=source,
        )
        for monitor in monitors:
            monitor.move_seconds(self.name, "coresets", source.seconds / len(monitors))
        return [state.after_step(self.name, schedule.n_steps, Maps(maps[i, ...])) for i, state in enumerate(states)]

    def solve_many(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        w: Array,
        schedule: Schedule,
        *,
        seeds: Sequence[int],
        first_step: int = 0,
        callback: Callable[[list[list[StepFigures]], Array], None] | None = None,
        source: CoresetSource | None = None,
        frequency_prior: float = 0.0,
    ) -> Array:
        """Run the loops of P pairs of spaces in lock-step and return the final orthogonal maps, (P, d, d).

        The small steps of several pairs together use a GPU better than those of one.

        Args:
            xs: P training vocabularies (n_p, d) of the sources; rows normalised.
            ys: P training vocabularies (m_p, d) of the targets; rows normalised.
            w: initial maps, (P, d, d).
            seeds: one for each pair.
            first_step: steps of the schedule that a resumed run has already made.
            callback: called with the figures of each pair and the maps, after every step or on CUDA after many.
            source: source of the coresets; by default one is made from `coresets`.
            frequency_prior: initial weight of ranks relative to similarities, which falls to zero. Random batches only.
        """
        source = source or CoresetSource((xs, ys), self.coresets, seeds)
        n_steps = schedule.n_steps
        radius = max(_radius(x) * _radius(y) for x, y in zip(xs, ys, strict=True))
        w = arrays.namespace(w).asarray(w, copy=True)
        at_a_time = SYNC_INTERVAL if arrays.is_cuda(w) else 1
        prior = RankPrior.between(xs, ys, w) if frequency_prior > 0 else None
        for k, begin, end in schedule.segments(first_step):
            with _Steps(source, w, k, min(at_a_time, end - begin), self, radius, prior=prior) as steps:
                for first in range(begin, end, at_a_time):
                    numbers = range(first + 1, min(first + at_a_time, end) + 1)
                    rates = np.array([self.rate(number, n_steps) for number in numbers])
                    prior_weights = np.array([frequency_prior * (1.0 - (number - 1) / n_steps) for number in numbers])
                    steps.run(first, rates, prior_weights)
                    if callback is not None:
                        callback(steps.figures(numbers, n_steps, schedule), w)
        return w


def _radius(x: Array) -> float:
    """Return the length of the longest row of x (n, d)."""
    xp = arrays.namespace(x)
    return float(xp.sqrt(xp.max(xp.sum(x * x, axis=1))))


class _Steps:
    """Steps with coresets of one size.

    All steps work in place on the same buffers, so that CUDA can record a step (see `arrays.RepeatedStep`). w: the maps
    (P, d, d), updated in place. capacity: most steps of one `run`.
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
        self.transport, self.update = settings.transport, settings.update
        pairs_per_step = settings.coresets.pairs_per_step
        # Both costs have the kernel exp(scale <x W, y>), up to factors that the scalings absorb.
        self.scale = (2.0 if self.transport.cost == "sqeuclidean" else 1.0) / self.transport.epsilon
        precision = str(w.dtype).rpartition(".")[2]
        self.bounded = self.transport.solver != "exact" and is_bounded(self.scale * radius, precision)
        self.unbalanced = None
        if self.transport.solver == "unbalanced":
            self.unbalanced = Unbalanced(self.transport.rho, self.transport.cost, self.scale, self.scale * radius)
        if prior is not None and (settings.coresets.quantized or self.unbalanced or not self.bounded):
            raise ValueError("the frequency prior needs balanced plans of random batches and a larger epsilon")
        device = arrays.device(w)
        pairs = w.shape[0]
        self.tables: list[CoresetTable] = []
        self.numbers = [xp.zeros((capacity, pairs * pairs_per_step), dtype=xp.int64, device=device) for _ in (0, 1)]
        self.rates, self.prior_weights = (xp.zeros((capacity,), dtype=w.dtype, device=device) for _ in range(2))
        self.measured = xp.zeros((capacity, pairs, 3), dtype=w.dtype, device=device)
        self.step_index = xp.zeros((1,), dtype=xp.int64, device=device)
        self.kernel: Array | None = None
        if self.bounded:
            shape = (pairs * pairs_per_step, k, k)
            self.kernel = xp.empty(shape, dtype=w.dtype, device=device)
        # The over-relaxation factors of a fixed number of sweeps; None: sweep until the error is small.
        self.sweeps: tuple[float, ...] | None = None
        like = w if self.bounded else np.zeros(1)
        self.repeated = arrays.RepeatedStep(self._step, like)

    def run(self, first: int, rates: np.ndarray, prior_weights: np.ndarray) -> None:
        """Make the steps after step `first`. rates, prior_weights: a value for each step."""
        count = len(rates)
        self._refill(self.source.tables(self.k, first, count))
        for side in (0, 1):
            numbers = self.source.numbers(side, self.k, first, count)
            self.numbers[side][:count, :] = arrays.asarray(numbers, self.w)
        self.rates[:count] = arrays.asarray(rates, self.w)
        self.prior_weights[:count] = arrays.asarray(prior_weights, self.w)
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
        """Copy new tables into the buffers of the old ones."""
        if not self.tables:
            self.tables = tables
        for old, new in zip(self.tables, tables, strict=True):
            if old is not new:
                old.rows[: new.rows.shape[0], :] = new.rows
                old.weights[: new.weights.shape[0], :] = new.weights

    def _sweeps_needed(self) -> tuple[float, ...]:
        """Return the sweeps of every step on CUDA, where no step reads its error: those of the first step and 25 %."""
        src, a, tgt, b = self._coresets()
        needed = self._plans(self._mapped(src), tgt, a, b).relaxations
        more = math.ceil(0.25 * len(needed)) + 1
        return (*needed, *needed[-1:] * more)[: self.transport.max_iter]

    def _repair(self) -> None:
        """Replace maps that are not orthogonal: `polar_steps` fails on badly conditioned matrices without notice."""
        if arrays.is_cuda(self.w):
            for pair in range(self.w.shape[0]):
                if not orthogonality_error(self.w[pair, ...]) < 1e-3:
                    self.w[pair, ...] = polar_svd(self.w[pair, ...])

    def _coresets(self) -> tuple[Array, Array, Array, Array]:
        """Return the coresets of this step: source points (B, k, d) and weights (B, k), then those of the target."""
        (src, a), (tgt, b) = (table.get(numbers) for table, numbers in self._chosen())
        return src, a, tgt, b

    def _chosen(self) -> Iterator[tuple[CoresetTable, Array]]:
        """Yield the table of each side with the numbers of the coresets of this step, (B,)."""
        for table, numbers in zip(self.tables, self.numbers, strict=True):
            yield table, self.xp.take(numbers, self.step_index, axis=0)[0, :]

    def _mapped(self, src: Array) -> Array:
        """Return source points (B, k, d) under the current map of their pair."""
        xp, (pairs, dim) = self.xp, self.w.shape[:2]
        return xp.reshape(xp.reshape(src, (pairs, -1, dim)) @ self.w, src.shape)

    def _step(self) -> None:
        xp, w = self.xp, self.w
        pairs, dim = w.shape[:2]
        src, a, tgt, b = self._coresets()
        plans = self._plans(self._mapped(src), tgt, a, b)
        # One product gives the images of the points and, in two more columns, the sums that `_figures` needs.
        squares = xp.sum(tgt * tgt, axis=2, keepdims=True)
        images = plans.apply(xp.concat([tgt, squares, xp.ones_like(squares)], axis=2))
        correspondences = xp.matrix_transpose(src) @ images[:, :, :dim]
        correspondence = xp.mean(xp.reshape(correspondences, (pairs, -1, dim, dim)), axis=1)
        figures = self._figures(src, images, a, correspondences, plans.n_iter)
        arrays.put_row(self.measured, self.step_index, figures)
        moved = w + xp.take(self.rates, self.step_index) * self._direction(correspondence)
        w[...] = polar_steps(moved) if arrays.is_cuda(w) else xp.stack([polar(moved[i, ...]) for i in range(pairs)])
        self.step_index += 1

    def _direction(self, correspondence: Array) -> Array:
        """Return the steps of rate one along the correspondences of the plans, (P, d, d)."""
        xp, dim = self.xp, self.w.shape[1]
        if self.update == "gradient":
            # The correspondence of d-dimensional unit vectors has singular values of order 1/d. Scaled by d, the rate
            # means the same in every dimension.
            return dim * correspondence
        # As long as the map, whose norm is sqrt(d). Short centroids, unequal weights and unfinished plans all shrink
        # the correspondence, so that its own length says nothing about how far the map should move.
        squares = xp.sum(correspondence * correspondence, axis=(1, 2), keepdims=True)
        lengths = xp.sqrt(arrays.clamped(squares, float(xp.finfo(squares.dtype).smallest_normal), math.inf))
        directions: Array = correspondence * (dim**0.5 / lengths)
        return directions

    def _plans(self, mapped: Array, tgt: Array, a: Array, b: Array) -> Scalings:
        """Return the plans between coresets. mapped, tgt: (B, k, d) points; a, b: (B, k) weights."""
        transport, xp = self.transport, self.xp
        if self.prior is not None:
            logs = [table.of_points(of, n) for of, (table, n) in zip(self.prior.log_ranks, self._chosen(), strict=True)]
            weight = xp.take(self.prior_weights, self.step_index) * self.prior.unit
            mapped, tgt = with_ranks(mapped, tgt, logs[0], logs[1], weight)
        if self.bounded and self.unbalanced is not None:
            return unbalanced_plans(
                mapped,
                tgt,
                a,
                b,
                self.unbalanced,
                max_iter=transport.max_iter,
                tol=transport.tol,
                sweeps=None if self.sweeps is None else len(self.sweeps),
                kernel=self.kernel,
            )
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
        """Return objective, marginal error and sweeps of each pair, (P, 3).

        Squared norms are weighted by the marginals of the plan, because an unbalanced or unfinished plan does not have
        those of the coresets.
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
        """Return the figures of the last steps, a list for each pair. numbers: of the steps."""
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
    """A short loop on random batches, which shows whether an initial map is promising.

    words: most frequent words of each side. coreset: words in a batch, fewer for small vocabularies. batches: pairs of
    batches per step. frequency_prior: initial weight of ranks relative to similarities, which falls to zero.
    """

    words: int
    steps: int
    coreset: int
    epsilon: float
    batches: int
    frequency_prior: float = 0.0

    def settings(self) -> WassersteinProcrustes:
        """Return the settings of the loop."""
        return WassersteinProcrustes(
            coresets=Coresets(kind="random", pairs_per_step=self.batches),
            transport=Transport(epsilon=self.epsilon),
            update="gradient",
            learning_rate=2.0,
            final_rate=0.5,
        )

    def points(self, x: Array, y: Array) -> int:
        """Return the words in a batch of x (n, d) and y (m, d): at most a quarter, so that batches differ."""
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
        """Return the maps (d, d) after the loops from each of `maps`, which run in lock-step.

        xs: (n, d) each, ys: (m, d) each, normalised rows, most frequent first; all pairs have the same `points`.
        callback: as in `WassersteinProcrustes.solve_many`.
        """
        k = self.points(xs[0], ys[0])
        found = self.settings().solve_many(
            [x[: min(self.words, x.shape[0]), :] for x in xs],
            [y[: min(self.words, y.shape[0]), :] for y in ys],
            arrays.namespace(xs[0]).stack(list(maps)),
            make_schedule("fixed", steps=self.steps, k=k, epochs=1, n_max=k),
            seeds=list(seeds),
            callback=callback,
            frequency_prior=self.frequency_prior,
        )
        return [found[i, ...] for i in range(len(maps))]
