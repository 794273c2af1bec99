"""Gromov-Wasserstein alignment (Alvarez-Melis and Jaakkola 2018): couple words by their mutual similarities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, polar
from qwp.methods.aligner import Aligner
from qwp.ot.transport import load_pot
from qwp.parameters import LOOP, MOST_STEPS, OTHER, RUN, TRAIN_WORDS, param
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem
from qwp.stages.refinement import CslsRefinement
from qwp.stages.stage import Monitor, Stage, State, clamped


@dataclass(frozen=True, kw_only=True)
class GromovWasserstein(Stage):
    """Compute a coupling by the entropic solver of POT with decreasing epsilon; Procrustes on it gives the map."""

    name = "couple"
    uses_seed = False

    train_words: int = param(1500, TRAIN_WORDS, RUN, least=1, most=100_000)
    epsilon: float = param(
        0.12,
        "Entropic regularisation of the first stage, relative to the mean square of the similarities.",
        LOOP,
        above=0,
        most=1e6,
    )
    anneal: float = param(0.6, "Factor by which --epsilon falls from one stage to the next.", OTHER, least=0.01, most=1)
    stages: int = param(3, "Stages of decreasing epsilon.", OTHER, least=1, most=1000)
    steps: int = param(30, "Most steps of a stage.", LOOP, least=1, most=MOST_STEPS)
    sinkhorn_tol: float = param(1e-5, "Sinkhorn stops when the marginals are met to this error.", LOOP, above=0, most=1)
    sinkhorn_max_iter: int = param(100, "Most Sinkhorn iterations of one step.", LOOP, least=1, most=MOST_STEPS)

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map of the last coupling."""
        view = problem.view_of(state.order)
        xp = arrays.namespace(view.x)
        sizes = [clamped("train_words", self.train_words, side.shape[0]) for side in (view.x, view.y)]
        # The kernels of the last stage exceed the range of float32.
        x, y = (xp.astype(side[:n, :], xp.float64) for side, n in zip((view.x, view.y), sizes, strict=True))
        similarities = [side @ side.T for side in (x, y)]
        scale = float(xp.sqrt(xp.mean(similarities[0] ** 2) * xp.mean(similarities[1] ** 2)))
        if not scale > 0:
            raise InputError(
                "the words of one side are all alike, and method 'gromov' compares only their similarities: "
                "expected different vectors; see `qwp info`"
            )
        masses = [xp.full(s.shape[0], 1.0 / s.shape[0], dtype=x.dtype, device=arrays.device(x)) for s in similarities]
        coupling = state.tensors.get("coupling")
        for stage in range(state.done + 1, self.stages + 1):
            epsilon = scale * self.epsilon * self.anneal ** (stage - 1)
            coupling, log = self._solve(similarities, masses, epsilon, coupling)
            maps = Maps(xp.astype(polar(x.T @ (coupling @ y)), view.x.dtype))
            figures = {"gromov_wasserstein": float(log["gw_dist"])}
            state = state.after_step(self.name, stage, maps, figures, tensors={"coupling": coupling})
            monitor.step(state, self.stages)
        return state

    def _solve(
        self, similarities: list[Array], masses: list[Array], epsilon: float, init: Array | None
    ) -> tuple[Array, dict[str, Array]]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # Early steps need no exact projection, and the next stage continues from an unfinished one.
            for message in ("Sinkhorn did not converge", "Warning: numerical errors", "Solver failed to produce"):
                warnings.filterwarnings("ignore", message=message)
            coupling, log = load_pot().gromov.entropic_gromov_wasserstein(
                *similarities,
                *masses,
                "square_loss",
                epsilon=epsilon,
                symmetric=True,
                G0=init,
                max_iter=self.steps,
                solver="PGD",
                log=True,
                numItermax=self.sinkhorn_max_iter,
                stopThr=self.sinkhorn_tol,
            )
        # A coupling has a mass of one; if its kernel underflows, the mass is zero or NaN.
        if not float(arrays.namespace(coupling).sum(coupling)) > 0.5:
            raise InputError(
                f"no coupling was found with an entropic regularisation of {epsilon:g}: raise epsilon (now "
                f"{self.epsilon:g}), or leave out words whose vectors are zero or far longer than the others"
            )
        return coupling, log


class Gromov(Aligner):
    """Gromov-Wasserstein coupling of the two similarity matrices, Procrustes on it, then refinement on all words.

    Alvarez-Melis, Jaakkola (2018), Gromov-Wasserstein alignment of word embedding spaces. The coupling of the
    `train_words` most frequent words comes from the entropic solver of POT (projected gradient), in `stages` of `steps`
    steps; the entropic regularisation falls from `epsilon` by `anneal` from one stage to the next. It is relative to
    the mean square of the similarities, so that it means the same in 50 and in 300 dimensions.
    """

    method = "gromov"
    summary = "Gromov-Wasserstein coupling of the similarity matrices, then refinement"
    paper = "Alvarez-Melis, Jaakkola 2018"
    needs_pot = True
    pipeline = Pipeline(solve=GromovWasserstein(), refine=CslsRefinement())
