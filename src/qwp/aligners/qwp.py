"""Quantized Wasserstein-Procrustes (Aboagye et al., AMTA 2022): start, loop over coresets, CSLS refinement."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from qwp import backend, start
from qwp.aligners.base import Aligner, Run
from qwp.backend import Array
from qwp.embeddings import Embeddings, FloatArray
from qwp.errors import InputError
from qwp.lexicon import Lexicon
from qwp.normalization import DEFAULT, parse_steps
from qwp.refine import RefineSettings, RoundFigures, refine
from qwp.wasserstein import Epoch, LoopSettings, StepFigures, make_schedule, wasserstein_procrustes

_STAGES = ("start", "loop", "refine")
# Long loops keep about this many records; the rest would only fatten the saved result.
_KEPT_STEPS = 500


class QWP(Aligner):
    """Quantized Wasserstein-Procrustes. docs/parameters.md says what each parameter does and what was measured.

    Examples:
        >>> import qwp
        >>> aligner = qwp.QWP(seed=1).fit("en.vec", "es.vec")  # doctest: +SKIP
        >>> aligner.alignment_.translate("house")  # doctest: +SKIP
    """

    method = "qwp"

    def __init__(
        self,
        *,
        coreset: str = "kmeans++",
        coreset_size: int | None = None,
        weight_power: float = 0.0,
        sphere_centroids: bool = True,
        bank_size: int | None = None,
        epsilon: float = 0.05,
        cost: str = "sqeuclidean",
        ot: str = "balanced",
        rho: float = 1.0,
        sinkhorn_tol: float = 0.01,
        sinkhorn_max_iter: int = 100,
        start: str = "auto",
        start_words: int = 2500,
        start_steps: int = 100,
        start_epsilon: float = 0.3,
        schedule: str = "fixed",
        epochs: int = 5,
        steps: int = 60,
        learning_rate: float = 2.0,
        final_rate: float = 0.1,
        refine: int = 5,
        refine_max_rank: int = 15_000,
        refine_directions: str = "mutual",
        csls_k: int = 10,
        train_vocab: int = 20_000,
        normalize: str = DEFAULT,
        dtype: str = "float32",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.coreset = coreset
        self.coreset_size = coreset_size
        self.weight_power = weight_power
        self.sphere_centroids = sphere_centroids
        self.bank_size = bank_size
        self.epsilon = epsilon
        self.cost = cost
        self.ot = ot
        self.rho = rho
        self.sinkhorn_tol = sinkhorn_tol
        self.sinkhorn_max_iter = sinkhorn_max_iter
        self.start = start
        self.start_words = start_words
        self.start_steps = start_steps
        self.start_epsilon = start_epsilon
        self.schedule = schedule
        self.epochs = epochs
        self.steps = steps
        self.learning_rate = learning_rate
        self.final_rate = final_rate
        self.refine = refine
        self.refine_max_rank = refine_max_rank
        self.refine_directions = refine_directions
        self.csls_k = csls_k
        self.train_vocab = train_vocab
        self.normalize = normalize
        self.dtype = dtype
        self.threads = threads
        self.seed = seed

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
        )

    def _refine_settings(self) -> RefineSettings:
        return RefineSettings(self.refine, self.csls_k, self.refine_max_rank, self.refine_directions)

    def _schedule(self, n_max: int) -> tuple[Epoch, ...]:
        # By default a fifth of the words, within what was measured to work: more points cost quadratically.
        k = min(2000, max(500, n_max // 5)) if self.coreset_size is None else self.coreset_size
        return make_schedule(self.schedule, steps=self.steps, k=k, epochs=self.epochs, n_max=n_max)

    def _validate(self, lexicon: Lexicon | None, start_matrix: FloatArray | None) -> None:
        if self.start not in start.STARTS:
            raise InputError(f"start {self.start!r} is not known; expected one of {', '.join(start.STARTS)}")
        for name, given in (("lexicon", lexicon), ("matrix", start_matrix)):
            argument = "lexicon" if name == "lexicon" else "start_matrix"
            if self.start == name and given is None:
                raise InputError(f"start={name!r} needs {argument}=...; none was given")
            if self.start != name and given is not None:
                raise InputError(f"{argument} was given but start={self.start!r} does not use it: set start={name!r}")
        if self.train_vocab < 1:
            raise InputError(f"train_vocab={self.train_vocab} should be at least 1")
        parse_steps(self.normalize)
        backend.check_dtype(self.dtype)
        self._frank_wolfe().check()
        self._loop_settings().check()
        self._refine_settings().check()
        self._schedule(self.train_vocab)

    # ----------------------------------------------------------------- the three stages

    def _fit(
        self,
        run: Run,
        src: Embeddings,
        tgt: Embeddings,
        lexicon: Lexicon | None,
        start_matrix: FloatArray | None,
    ) -> Array:
        x, y = run.x[: self.train_vocab, :], run.y[: self.train_vocab, :]
        stage, done = (run.state.stage, run.state.done) if run.state else ("", 0)
        if run.state is None:
            with run.timed("start"):
                w = self._start(run, src, tgt, lexicon, start_matrix)
            run.checkpoint("start", 1, w, now=True)
        else:
            w = backend.asarray(run.state.map, x)
            if stage not in _STAGES:
                raise InputError(f"the checkpoint is in an unknown stage {stage!r}: run without --resume")
        if stage != "refine":
            with run.timed("loop"):
                w = self._loop(run, x, y, w, first_step=done if stage == "loop" else 0)
            run.checkpoint("refine", 0, w, now=True)
        with run.timed("refine"):
            return self._refine(run, w, first_round=done if stage == "refine" else 0)

    def _frank_wolfe(self) -> start.FrankWolfe:
        return start.FrankWolfe(words=self.start_words, steps=self.start_steps, epsilon=self.start_epsilon)

    def _start(
        self,
        run: Run,
        src: Embeddings,
        tgt: Embeddings,
        lexicon: Lexicon | None,
        start_matrix: FloatArray | None,
    ) -> Array:
        x, y = run.x, run.y
        settings = self._frank_wolfe()
        if self.start == "auto":
            return start.best_start(
                x,
                y,
                settings,
                seed=self.seed,
                csls_k=self.csls_k,
                callback=lambda name, step, total, value: run.report(
                    "start", step, total, {"start": name, "objective": value}
                ),
            )
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
            assert start_matrix is not None
            return backend.asarray(start.given_matrix(np.asarray(start_matrix, dtype=np.float64), src.dim), x)
        if self.start == "identical":
            return start.from_pairs(x, y, *start.identical_rows(src.words, tgt.words), "identical strings")
        assert lexicon is not None
        covered = [(src.index[a], tgt.index[b]) for a, b in lexicon if a in src and b in tgt]
        return start.from_pairs(x, y, [i for i, _ in covered], [j for _, j in covered], "seed lexicon")

    def _loop(self, run: Run, x: Array, y: Array, w: Array, first_step: int) -> Array:
        schedule = self._schedule(min(x.shape[0], y.shape[0]))
        every = math.ceil(sum(e.steps for e in schedule) / _KEPT_STEPS)

        def after(figures: StepFigures, moved: Array) -> None:
            values = asdict(figures)
            done, total = values.pop("step"), values.pop("n_steps")
            run.report("loop", done, total, values, keep=done % every == 0 or done == total)
            run.checkpoint("loop", done, moved)

        return wasserstein_procrustes(
            x, y, w, schedule, self._loop_settings(), seed=self.seed, first_step=first_step, callback=after
        )

    def _refine(self, run: Run, w: Array, first_round: int) -> Array:
        def after(figures: RoundFigures, refined: Array) -> None:
            values = asdict(figures)
            done, total = values.pop("round"), values.pop("n_rounds")
            run.report("refine", done, total, values)
            run.checkpoint("refine", done, refined, now=True)

        return refine(run.x, run.y, w, self._refine_settings(), first_round=first_round, callback=after)
