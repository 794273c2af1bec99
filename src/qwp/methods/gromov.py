"""Gromov-Wasserstein alignment (Alvarez-Melis and Jaakkola 2018): couple words by their similarities to each other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, polar
from qwp.methods.refined import RefinedAligner
from qwp.methods.run import Run, clamped, timed
from qwp.ot.pot import load_pot
from qwp.parameters import LOOP, MOST_STEPS, OTHER, RUN, TRAIN_WORDS, param


@dataclass(kw_only=True, eq=False, repr=False)
class Gromov(RefinedAligner):
    """Gromov-Wasserstein coupling of the two similarity matrices, Procrustes on it, then refinement on all words.

    Alvarez-Melis, Jaakkola (2018), Gromov-Wasserstein alignment of word embedding spaces. The coupling of the
    `train_words` most frequent words comes from the entropic solver of POT (projected gradient), in `stages` of `steps`
    steps; the entropy falls from `epsilon` by `anneal` from one stage to the next. `epsilon` is relative to the mean
    square of the similarities, so that it means the same in 50 and in 300 dimensions.
    """

    method: ClassVar[str] = "gromov"
    summary: ClassVar[str] = "Gromov-Wasserstein coupling of the similarity matrices, then refinement"
    paper: ClassVar[str] = "Alvarez-Melis, Jaakkola 2018"
    needs_pot: ClassVar[bool] = True

    train_words: int = param(1500, TRAIN_WORDS, RUN, least=1, most=100_000)
    epsilon: float = param(
        0.12,
        "Entropy of the first stage, relative to the mean square of the similarities.",
        LOOP,
        above=0,
        most=1e6,
    )
    anneal: float = param(0.6, "Factor by which --epsilon falls from one stage to the next.", OTHER, least=0.01, most=1)
    stages: int = param(3, "Stages of falling entropy.", OTHER, least=1, most=1000)
    steps: int = param(30, "Most steps of a stage.", LOOP, least=1, most=MOST_STEPS)
    sinkhorn_tol: float = param(1e-5, "Sinkhorn stops when the marginals are met to this error.", LOOP, above=0, most=1)
    sinkhorn_max_iter: int = param(100, "Most Sinkhorn iterations of one step.", LOOP, least=1, most=MOST_STEPS)

    def find_maps(self, run: Run) -> Maps:
        """The coupling, Procrustes on it, then the rounds."""
        return self.refined_from(run, lambda: self._initial_map(run))

    def _initial_map(self, run: Run) -> Array:
        xp = arrays.namespace(run.x)
        sizes = [clamped("train_words", self.train_words, side.shape[0]) for side in (run.x, run.y)]
        # Float64: the kernels of the last stage span more than float32 can hold.
        x, y = (xp.astype(side[:n, :], xp.float64) for side, n in zip((run.x, run.y), sizes, strict=True))
        with timed([run], "couple"):
            coupling = self._couple(run, x, y)
            return xp.astype(_map_of(coupling, x, y), run.x.dtype)

    def _couple(self, run: Run, x: Array, y: Array) -> Array:
        """The coupling (n, m) of x (n, d) and y (m, d)."""
        xp = arrays.namespace(x)
        similarities = [side @ side.T for side in (x, y)]
        scale = float(xp.sqrt(xp.mean(similarities[0] ** 2) * xp.mean(similarities[1] ** 2)))
        if not scale > 0:
            raise InputError(
                "the words of one side are all alike, and method 'gromov' compares nothing but their similarities: "
                "expected different vectors; look at them with `qwp info`"
            )
        masses = [xp.full(s.shape[0], 1.0 / s.shape[0], dtype=x.dtype, device=arrays.device(x)) for s in similarities]
        state = run.resumed("couple")
        coupling = None if state is None else arrays.asarray(state.tensors["coupling"], x)
        for stage in range(1 if state is None else state.done + 1, self.stages + 1):
            coupling, log = self._solve(
                similarities, masses, scale * self.epsilon * self.anneal ** (stage - 1), coupling
            )
            run.report("couple", stage, self.stages, {"gromov_wasserstein": float(log["gw_dist"])})
            run.checkpoint("couple", stage, _map_of(coupling, x, y), tensors={"coupling": coupling})
        assert coupling is not None, "there is at least one stage"
        return coupling

    def _solve(
        self, similarities: list[Array], masses: list[Array], epsilon: float, start: Array | None
    ) -> tuple[Array, dict[str, Array]]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # Early steps need no exact projection, and the next stage goes on where this one stopped.
            for message in ("Sinkhorn did not converge", "Warning: numerical errors", "Solver failed to produce"):
                warnings.filterwarnings("ignore", message=message)
            coupling, log = load_pot().gromov.entropic_gromov_wasserstein(
                *similarities,
                *masses,
                "square_loss",
                epsilon=epsilon,
                symmetric=True,
                G0=start,
                max_iter=self.steps,
                solver="PGD",
                log=True,
                numItermax=self.sinkhorn_max_iter,
                stopThr=self.sinkhorn_tol,
            )
        # A coupling has a mass of one; where its kernel underflows nothing or NaN is left of it.
        if not float(arrays.namespace(coupling).sum(coupling)) > 0.5:
            raise InputError(
                f"no coupling was found at an entropy of {epsilon:g}: raise epsilon (now {self.epsilon:g}), or leave "
                "out words whose vectors are zero or far longer than the others"
            )
        return coupling, log


def _map_of(coupling: Array, x: Array, y: Array) -> Array:
    """The orthogonal map (d, d) that a coupling (n, m) of x (n, d) and y (m, d) stands for."""
    return polar(x.T @ (coupling @ y))
