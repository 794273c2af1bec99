"""Quantized Wasserstein-Procrustes (Aboagye et al., AMTA 2022): start, loop over coresets, CSLS refinement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from qwp import backend, start
from qwp.aligners.base import OPTIONAL, RefinedAligner, Run, Supervision, timed
from qwp.backend import Array
from qwp.checks import at_least, one_of
from qwp.errors import InputError
from qwp.procrustes import Maps
from qwp.refine import WEIGHTED
from qwp.start import FrankWolfe
from qwp.wasserstein import CoresetSource, Epoch, LoopSettings, StepFigures, make_schedule, wasserstein_procrustes_many

# Long loops keep about this many records; the rest would only fatten the saved result.
_KEPT_STEPS = 500
# Memory for the banks of pairs that are aligned in lock-step.
_BATCH_BYTES = 8 << 30


@dataclass(kw_only=True, eq=False, repr=False)
class QWP(RefinedAligner):
    """Quantized Wasserstein-Procrustes. docs/parameters.md says what each parameter does and what was measured.

    Examples:
        >>> import qwp
        >>> aligner = qwp.QWP(seed=1).fit("en.vec", "es.vec")  # doctest: +SKIP
        >>> aligner.alignment_.translate("house")  # doctest: +SKIP
    """

    method: ClassVar[str] = "qwp"
    summary: ClassVar[str] = "optimal transport between quantized spaces (k-means++ or Lloyd), then refinement"
    paper: ClassVar[str] = "Aboagye et al. 2022"
    supervision: ClassVar[str] = OPTIONAL

    coreset: str = "kmeans++"
    coreset_size: int | None = None
    weight_power: float = 0.0
    sphere_centroids: bool = True
    bank_size: int | None = None
    epsilon: float = 0.05
    cost: str = "sqeuclidean"
    ot: str = "balanced"
    rho: float = 1.0
    sinkhorn_tol: float = 0.01
    sinkhorn_max_iter: int = 100
    pairs_per_step: int = 4
    start: str = "auto"
    start_words: int = 2500
    start_steps: int = 100
    start_epsilon: float = 0.3
    schedule: str = "fixed"
    epochs: int = 5
    steps: int = 15
    learning_rate: float = 2.0
    final_rate: float = 0.1
    train_vocab: int = 20_000
    refine: int = WEIGHTED.rounds
    refine_max_rank: int = WEIGHTED.max_rank
    refine_first_rank: int = WEIGHTED.first_rank
    refine_directions: str = WEIGHTED.directions
    refine_weights: str = WEIGHTED.weights
    refine_map: str = WEIGHTED.learn_map
    map: str = WEIGHTED.map

    # ----------------------------------------------------------------- settings of the stages

    def _loop_settings(self) -> LoopSettings:
        return LoopSettings(
            coreset=self.coreset,
            epsilon=self.epsilon,
            cost=self.cost,
            ot=self.ot,
            rho=self.rho,
            learning_rate=self.learning_rate,
            final_rate=self.final_rate,
            bank_size=self.bank_size,
            weight_power=self.weight_power,
            sphere_centroids=self.sphere_centroids,
            sinkhorn_tol=self.sinkhorn_tol,
            sinkhorn_max_iter=self.sinkhorn_max_iter,
            pairs_per_step=self.pairs_per_step,
        )

    def _schedule(self, n_max: int) -> tuple[Epoch, ...]:
        # By default a fifth of the words, within what was measured to work: more points cost quadratically.
        k = min(2000, max(500, n_max // 5)) if self.coreset_size is None else self.coreset_size
        return make_schedule(self.schedule, steps=self.steps, k=k, epochs=self.epochs, n_max=n_max)

    def _takes_matrix(self) -> bool:
        return True

    def _validate(self, supervision: Supervision) -> None:
        super()._validate(supervision)
        lexicon, start_matrix = supervision.lexicon, supervision.start_matrix
        one_of(start.STARTS, start=self.start)
        for name, given in (("lexicon", lexicon), ("matrix", start_matrix)):
            argument = "lexicon" if name == "lexicon" else "start_matrix"
            if self.start == name and given is None:
                raise InputError(f"start={name!r} needs {argument}=...; none was given")
            if self.start != name and given is not None:
                raise InputError(f"{argument} was given but start={self.start!r} does not use it: set start={name!r}")
        at_least(1, train_vocab=self.train_vocab)
        self._frank_wolfe().check()
        self._loop_settings().check()
        self._schedule(self.train_vocab)

    # ----------------------------------------------------------------- the three stages

    def _first_map(self, run: Run) -> Array:
        state = run.state
        if state is None:
            w = self._starts([run])
            run.checkpoint("start", 1, w[0, ...], now=True)
        else:
            w = backend.asarray(state.map, run.x)[None, ...]
        return self._loops([run], w, first_step=state.done if state is not None and state.stage == "loop" else 0)[
            0, ...
        ]

    def _fit_many(self, runs: Sequence[Run]) -> list[Maps]:
        groups: dict[tuple[int, tuple[Epoch, ...]], list[int]] = {}
        for i, run in enumerate(runs):
            groups.setdefault((run.x.shape[1], self._run_schedule(run)), []).append(i)
        found: dict[int, Maps] = {}
        for group in groups.values():
            members = [runs[i] for i in group]
            maps = self._loops(members, self._starts(members))
            found.update((i, self._refined(runs[i], Maps(maps[place, ...]))) for place, i in enumerate(group))
        return [found[i] for i in range(len(runs))]

    def _pairs_at_a_time(self) -> int:
        # The bank keeps a few arrays of (B, n) for each side; together they should stay within a few gigabytes.
        if not self._place().device.startswith("cuda"):
            return 1
        k = self._schedule(self.train_vocab)[0].k
        each = 8 * 4 * self._loop_settings().coresets_in_bank(k) * self.train_vocab + 16 * k * k * self.pairs_per_step
        budget = _BATCH_BYTES if self.max_memory is None else self.max_memory * 2**30
        return max(1, int(budget // each))

    def _frank_wolfe(self) -> FrankWolfe:
        return FrankWolfe(words=self.start_words, steps=self.start_steps, epsilon=self.start_epsilon)

    def _starts(self, runs: Sequence[Run]) -> Array:
        """First maps of all runs, (P, d, d)."""
        with timed(runs, "start"):
            if self.start != "auto":
                return backend.namespace(runs[0].x).stack([self._start(run) for run in runs])

            def after(pair: int, name: str, step: int, total: int, objective: float) -> None:
                runs[pair].report("start", step, total, {"start": name, "objective": objective})

            return start.best_starts(
                [run.x for run in runs],
                [run.y for run in runs],
                self._frank_wolfe(),
                seeds=[self.seed] * len(runs),
                csls_k=self.csls_k,
                callback=after,
            )

    def _start(self, run: Run) -> Array:
        x, y = run.x, run.y
        settings = self._frank_wolfe()
        if self.start == "profiles":
            return start.profiles(x, y, self.start_words)
        if self.start == "frank-wolfe":
            return start.frank_wolfe(
                x,
                y,
                settings,
                lambda step, value: run.report("start", step, settings.steps, {"objective": value}),
            )
        if self.start == "identity":
            return backend.namespace(x).eye(x.shape[1], dtype=x.dtype, device=backend.device(x))
        if self.start == "matrix":
            given = np.asarray(run.supervision.start_matrix, dtype=np.float64)
            return backend.asarray(start.given_matrix(given, x.shape[1]), x)
        if self.start == "identical":
            return start.from_pairs(x, y, *run.identical_rows())
        return start.from_pairs(x, y, *run.lexicon_rows())

    def _run_schedule(self, run: Run) -> tuple[Epoch, ...]:
        return self._schedule(min(self.train_vocab, run.x.shape[0], run.y.shape[0]))

    def _loops(self, runs: Sequence[Run], w: Array, first_step: int = 0) -> Array:
        """The loop of several runs with one schedule from the maps `w` (P, d, d). Returns (P, d, d)."""
        schedule = self._run_schedule(runs[0])
        every = math.ceil(sum(e.steps for e in schedule) / _KEPT_STEPS)

        def after(figures: list[list[StepFigures]], moved: Array) -> None:
            for number, (run, steps) in enumerate(zip(runs, figures, strict=True)):
                for step in steps:
                    values = asdict(step)
                    done, total = values.pop("step"), values.pop("n_steps")
                    run.report("loop", done, total, values, keep=done % every == 0 or done == total)
                run.checkpoint("loop", steps[-1].step, moved[number, ...])

        settings, seeds = self._loop_settings(), [self.seed] * len(runs)
        xs = [run.x[: self.train_vocab, :] for run in runs]
        ys = [run.y[: self.train_vocab, :] for run in runs]

        def drawn(done: int, total: int) -> None:
            for run in runs:
                run.report("bank", done, total, {}, keep=False)

        source = CoresetSource((xs, ys), settings, seeds, drawn)
        with timed(runs, "loop"):
            w = wasserstein_procrustes_many(
                xs, ys, w, schedule, settings, seeds=seeds, first_step=first_step, callback=after, source=source
            )
        for run in runs:
            run.move_seconds("loop", "bank", source.seconds / len(runs))
        return w
