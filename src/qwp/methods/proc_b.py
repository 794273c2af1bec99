"""Bootstrapped Procrustes from a small seed lexicon (Glavas et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from qwp import arrays
from qwp.maps.pairs import matched_rows
from qwp.maps.procrustes import Maps, procrustes
from qwp.methods.aligner import Aligner
from qwp.methods.settings import REQUIRED
from qwp.parameters import MOST_STEPS, MOST_WORDS, OTHER, RUN, TRAIN_WORDS, param
from qwp.search.retrieval import csls_k_param
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem
from qwp.stages.refinement import induce_pairs
from qwp.stages.stage import Monitor, Stage, State


@dataclass(frozen=True, kw_only=True)
class Bootstrapping(Stage):
    """Fit Procrustes to the seeds, then in each round to the seeds and the best mutual translations."""

    name = "learn"
    uses_seed = False

    seed_pairs: int | None = param(
        None,
        "Use only the first N covered pairs of the seed lexicon.",
        OTHER,
        least=1,
        most=MOST_WORDS,
        decided="all",
    )
    rounds: int = param(30, "Rounds of bootstrapping; 0 for none.", OTHER, least=0, most=MOST_STEPS)
    growth: int = param(
        250,
        "Induced pairs that join the seeds in the first round; twice as many in the second, and so on.",
        OTHER,
        least=1,
        most=MOST_WORDS,
    )
    train_words: int = param(8000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    csls_k: int = csls_k_param()

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map of the last round."""
        view = problem.view_of(state.order)
        xp = arrays.namespace(view.x)
        rows = [side[: self.seed_pairs] for side in problem.known_pairs(view)]
        seeds = matched_rows(view.x, view.y, rows[0], rows[1])
        if state.maps is None:
            state = state.after_step(self.name, 0, Maps(procrustes(*seeds)))
        x, y = (side[: self.train_words, :] for side in (view.x, view.y))
        for number in range(state.done + 1, self.rounds + 1):
            pairs = induce_pairs(x, y, Maps(state.map), csls_k=self.csls_k)
            best = xp.argsort(-pairs.scores, stable=True)[: self.growth * number]
            induced = (xp.take(side, xp.take(found, best), axis=0) for side, found in ((x, pairs.src), (y, pairs.tgt)))
            w = procrustes(*(xp.concat(both) for both in zip(seeds, induced, strict=True)))
            figures = {"n_pairs": rows[0].shape[0] + best.shape[0]}
            state = state.after_step(self.name, number, Maps(w), figures)
            monitor.step(state, self.rounds)
        return state


class ProcB(Aligner):
    """Procrustes on the seeds; then, in each round, on the seeds and the pairs that both directions agree on.

    Glavas, Litschko, Ruder, Vulic (2019), How to (properly) evaluate cross-lingual word embeddings: PROC-B. The seeds
    stay in the dictionary of every round; of the induced pairs the `growth` with the highest CSLS join them in the
    first round, twice as many in the second, and so on. An orthogonal map and its transpose are the two directions.
    """

    method = "proc-b"
    summary = "Procrustes that bootstraps a small seed lexicon by mutual translations"
    paper = "Glavas et al. 2019"
    supervision = REQUIRED
    pipeline = Pipeline(solve=Bootstrapping())
