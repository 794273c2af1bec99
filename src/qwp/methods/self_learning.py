"""Robust self-learning (Artetxe, Labaka, Agirre 2018): stochastic dictionaries, then a re-weighted map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from qwp import arrays
from qwp.arrays import Array, Stream, unit
from qwp.errors import InputError
from qwp.maps.pairs import from_pairs
from qwp.maps.procrustes import Maps, MapSettings, fitted, procrustes
from qwp.methods.base import Aligner
from qwp.methods.run import Run, clamped, timed
from qwp.methods.supervision import OPTIONAL, Supervision
from qwp.parameters import MOST_STEPS, MOST_WORDS, OTHER, RUN, START, TRAIN_WORDS, param
from qwp.search.retrieval import Pairs, cross_neighbours, sampled_neighbours
from qwp.stages.init import profiles
from qwp.stages.init.profiles import ProfileSettings

STARTS = ("profiles", "lexicon", "identical")


@dataclass(kw_only=True, eq=False, repr=False)
class SelfLearning(Aligner, MapSettings, ProfileSettings):
    """Dictionary and map in turns, where most similarities are dropped at first and ever fewer later on.

    Artetxe, Labaka, Agirre (2018), A robust self-learning method for fully unsupervised cross-lingual mappings of word
    embeddings. The start compares sorted similarity distributions (or takes a seed lexicon, or identical strings).
    Each step induces a dictionary by CSLS in both directions, each word seeing a random share `keep` of the other side,
    and refits the orthogonal map. When the mean CSLS has not risen for `patience` steps, `keep` grows by `keep_growth`
    and so does the vocabulary, from `start_words` to `train_words`. The last dictionary gives the final map: whitened,
    symmetrically re-weighted, de-whitened (`map="reweighted"`), or orthogonal.
    """

    method: ClassVar[str] = "self-learning"
    summary: ClassVar[str] = "stochastic dictionary induction both ways, then a whitened, re-weighted map"
    paper: ClassVar[str] = "Artetxe, Labaka, Agirre 2018"
    supervision: ClassVar[str] = OPTIONAL

    start: str = param(
        "profiles",
        "The first map: profiles, identical (shared strings) or lexicon:FILE.",
        START,
        choices=STARTS,
    )
    start_words: int = 4000
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    keep: float = param(
        0.1,
        "Share of the similarities that the first dictionaries see; the others are dropped at random.",
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
    map: str = "reweighted"
    reweight: float = 0.5

    def check_supervision(self, supervision: Supervision) -> None:
        """A lexicon and the start from one belong together."""
        given = supervision.lexicon is not None
        if given != (self.start == "lexicon"):
            said = "a lexicon was given" if given else "no lexicon was given"
            raise InputError(f"{said}, but start={self.start!r}: start='lexicon' and a lexicon belong together")

    def find_maps(self, run: Run) -> Maps:
        """The start, the learning, and the final map of its last dictionary."""
        if run.state is not None:
            w = arrays.asarray(run.state.map, run.x)
        else:
            with timed([run], "start"):
                w = self._start(run)
            run.checkpoint("start", 1, w)
        with timed([run], "learn"):
            w, pairs = self._learn(run, w)
            xp = arrays.namespace(run.x)
            matched = xp.take(run.x, pairs.src, axis=0), xp.take(run.y, pairs.tgt, axis=0)
            return fitted(self.map, *matched, reweight=self.reweight)

    def _start(self, run: Run) -> Array:
        if self.start == "profiles":
            return profiles.initial_map(run.x, run.y, self.start_words)
        return from_pairs(run.x, run.y, *(run.lexicon_rows() if self.start == "lexicon" else run.identical_rows()))

    def _phases(self) -> int:
        """How many different shares `keep` goes through before it is one."""
        return math.ceil(-math.log(self.keep) / math.log(self.keep_growth) - 1e-9)

    def _learn(self, run: Run, w: Array) -> tuple[Array, Pairs]:
        """Self-learning from `w` (d, d). Returns the map and the last dictionary."""
        words = clamped("train_words", self.train_words, max(run.x.shape[0], run.y.shape[0]))
        state = run.resumed("learn")
        values: dict[str, Any] = {"phase": 0, "best": -math.inf, "waited": 0} if state is None else dict(state.values)
        phases, xp = self._phases(), arrays.namespace(run.x)
        step = 0 if state is None else state.done
        while values["phase"] <= phases and step < self.max_steps:
            step += 1
            keep = min(1.0, self.keep * self.keep_growth ** values["phase"])
            x, y = self._vocabulary(run, words, values["phase"] / phases if phases else 1.0)
            found = sampled_neighbours(
                unit(x @ w), y, keep, arrays.rng(self.seed, Stream.DROPOUT, step), csls_k=self.csls_k
            )
            pairs = found.union()
            w = procrustes(xp.take(x, pairs.src, axis=0), xp.take(y, pairs.tgt, axis=0))
            objective = float(xp.mean(pairs.scores))
            if objective > values["best"] + self.tol:
                values |= {"best": objective, "waited": 0}
            else:
                values["waited"] += 1
            if values["waited"] >= self.patience:
                values = {"phase": values["phase"] + 1, "best": -math.inf, "waited": 0}
            left = (phases - values["phase"]) * self.patience + self.patience - values["waited"]
            run.report(
                "learn",
                step,
                min(self.max_steps, step + left),
                {"keep": keep, "words": x.shape[0], "mean_csls": objective},
            )
            run.checkpoint("learn", step, w, values=values)
        x, y = self._vocabulary(run, words, 1.0)
        return w, cross_neighbours(unit(x @ w), y, csls_k=self.csls_k).union()

    def _vocabulary(self, run: Run, most: int, progress: float) -> tuple[Array, Array]:
        """The frequent words of both sides that take part at this point, 0 to 1, of the learning; `most` at its end."""
        first = min(self.start_words, most)
        words = round(first * (most / first) ** progress)
        return run.x[:words, :], run.y[:words, :]
