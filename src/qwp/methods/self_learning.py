"""Robust self-learning (Artetxe, Labaka, Agirre 2018): stochastic dictionaries, then a re-weighted map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from qwp import arrays
from qwp.arrays import Array, Stream, unit
from qwp.maps.procrustes import Maps, fitted, map_param, procrustes, reweight_param
from qwp.methods.aligner import Aligner
from qwp.methods.settings import OPTIONAL
from qwp.parameters import MOST_STEPS, MOST_WORDS, OTHER, RUN, TRAIN_WORDS, param
from qwp.search.retrieval import Pairs, cross_neighbours, csls_k_param, sampled_neighbours
from qwp.stages.init.given import IdenticalStrings, LexiconPairs
from qwp.stages.init.profiles import Profiles, start_words_param
from qwp.stages.pipeline import Choice, Pipeline
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Monitor, Stage, State, clamped

FIRST_WORDS = 4000
"""Most frequent words in the initialization and in the first dictionaries. Source: the paper."""


@dataclass(frozen=True, kw_only=True)
class StochasticSelfLearning(Stage):
    """Alternate between dictionary and map; a share of the similarities is dropped at random, which falls to zero."""

    name = "learn"

    first_words: int = start_words_param(FIRST_WORDS)
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    keep: float = param(
        0.1,
        "Share of the similarities that the first dictionaries use; the others are dropped at random.",
        OTHER,
        least=0.001,
        most=1,
    )
    keep_growth: float = param(
        2.0, "Factor by which --keep grows when there is no more progress.", OTHER, above=1, most=1000
    )
    patience: int = param(10, "Steps without progress before --keep grows.", OTHER, least=1, most=MOST_STEPS)
    tol: float = param(1e-6, "Rise of the mean CSLS that counts as progress.", OTHER, least=0, most=10)
    max_steps: int = param(1000, "Most steps of self-learning.", OTHER, least=0, most=MOST_STEPS)
    map: str = map_param("reweighted")
    reweight: float = reweight_param(0.5)
    csls_k: int = csls_k_param()

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the maps fitted to the last dictionary."""
        view = problem.view_of(state.order)
        state, pairs = self._learn(problem, view, state, monitor)
        xp = arrays.namespace(view.x)
        matched = xp.take(view.x, pairs.src, axis=0), xp.take(view.y, pairs.tgt, axis=0)
        return replace(state, maps=fitted(self.map, *matched, reweight=self.reweight))

    @property
    def _phases(self) -> int:
        """The number of phases before `keep` reaches one."""
        return math.ceil(-math.log(self.keep) / math.log(self.keep_growth) - 1e-9)

    def _learn(self, problem: Problem, view: View, state: State, monitor: Monitor) -> tuple[State, Pairs]:
        """Return the state after the last step, and the last dictionary."""
        words = clamped("train_words", self.train_words, max(view.x.shape[0], view.y.shape[0]))
        values: dict[str, Any] = {"phase": 0, "best": -math.inf, "waited": 0, **state.values}
        phases, xp = self._phases, arrays.namespace(view.x)
        step = state.done
        while values["phase"] <= phases and step < self.max_steps:
            step += 1
            keep = min(1.0, self.keep * self.keep_growth ** values["phase"])
            x, y = self._vocabulary(view, words, values["phase"] / phases if phases else 1.0)
            rng = arrays.rng(problem.seed, Stream.DROPOUT, step)
            pairs = sampled_neighbours(unit(x @ state.map), y, keep, rng, csls_k=self.csls_k).union()
            w = procrustes(xp.take(x, pairs.src, axis=0), xp.take(y, pairs.tgt, axis=0))
            objective = float(xp.mean(pairs.scores))
            if objective > values["best"] + self.tol:
                values |= {"best": objective, "waited": 0}
            else:
                values["waited"] += 1
            if values["waited"] >= self.patience:
                values = {"phase": values["phase"] + 1, "best": -math.inf, "waited": 0}
            left = (phases - values["phase"]) * self.patience + self.patience - values["waited"]
            figures = {"keep": keep, "words": x.shape[0], "mean_csls": objective}
            state = state.after_step(self.name, step, Maps(w), figures, values=dict(values))
            monitor.step(state, min(self.max_steps, step + left))
        x, y = self._vocabulary(view, words, 1.0)
        return state, cross_neighbours(unit(x @ state.map), y, csls_k=self.csls_k).union()

    def _vocabulary(self, view: View, most: int, progress: float) -> tuple[Array, Array]:
        """Return the frequent words of both sides. progress: of the learning, 0 to 1. most: words at its end."""
        first = min(self.first_words, most)
        words = round(first * (most / first) ** progress)
        return view.x[:words, :], view.y[:words, :]


class SelfLearning(Aligner):
    """Alternate between dictionary and map; most similarities are dropped at first, and none in the end.

    Artetxe, Labaka, Agirre (2018), A robust self-learning method for fully unsupervised cross-lingual mappings of word
    embeddings. The initialization compares sorted similarity distributions (or takes a seed lexicon, or identical
    strings). Each step induces a dictionary by CSLS in both directions, each word compared with a random share `keep`
    of the other side, and refits the orthogonal map. When the mean CSLS has not risen for `patience` steps, `keep`
    grows by `keep_growth` and so does the vocabulary, from `start_words` to `train_words`. The last dictionary gives
    the final map: whitened, symmetrically re-weighted, de-whitened (`map="reweighted"`), or orthogonal.
    """

    method = "self-learning"
    summary = "stochastic dictionary induction both ways, then a whitened, re-weighted map"
    paper = "Artetxe, Labaka, Agirre 2018"
    supervision = OPTIONAL
    pipeline = Pipeline(
        init=Choice(
            start="profiles",
            among={
                "profiles": Profiles(words=FIRST_WORDS),
                "lexicon": LexiconPairs(),
                "identical": IdenticalStrings(),
            },
        ),
        solve=StochasticSelfLearning(),
    )
