"""Bootstrapped Procrustes from a small seed lexicon (Glavas et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.pairs import matched_rows
from qwp.maps.procrustes import Maps, procrustes
from qwp.maps.refinement import induce_pairs
from qwp.methods.base import Aligner
from qwp.methods.run import Run, timed
from qwp.methods.supervision import REQUIRED
from qwp.parameters import MOST_STEPS, MOST_WORDS, OTHER, RUN, TRAIN_WORDS, param


@dataclass(kw_only=True, eq=False, repr=False)
class ProcB(Aligner):
    """Procrustes on the seeds; then, in each round, on the seeds and the pairs that both directions agree on.

    Glavas, Litschko, Ruder, Vulic (2019), How to (properly) evaluate cross-lingual word embeddings: PROC-B. The seeds
    stay in the dictionary of every round; of the induced pairs the `growth` with the highest CSLS join them in the
    first round, twice as many in the second, and so on. An orthogonal map and its transpose are the two directions.
    """

    method: ClassVar[str] = "proc-b"
    summary: ClassVar[str] = "Procrustes that bootstraps a small seed lexicon by mutual translations"
    paper: ClassVar[str] = "Glavas et al. 2019"
    supervision: ClassVar[str] = REQUIRED

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

    def find_maps(self, run: Run) -> Maps:
        """Procrustes on the seeds, then bootstrapping."""
        with timed([run], "learn"):
            return Maps(self._bootstrap(run))

    def _bootstrap(self, run: Run) -> Array:
        xp = arrays.namespace(run.x)
        rows = [rows[: self.seed_pairs] for rows in run.lexicon_rows()]
        seeds = matched_rows(run.x, run.y, *rows)
        state = run.resumed("learn")
        w = procrustes(*seeds) if state is None else arrays.asarray(state.map, run.x)
        x, y = (side[: self.train_words, :] for side in (run.x, run.y))
        for number in range(1 if state is None else state.done + 1, self.rounds + 1):
            pairs = induce_pairs(x, y, Maps(w), csls_k=self.csls_k)
            best = xp.argsort(-pairs.scores, stable=True)[: self.growth * number]
            induced = (
                xp.take(side, xp.take(rows, best), axis=0) for side, rows in ((run.x, pairs.src), (run.y, pairs.tgt))
            )
            w = procrustes(*(xp.concat(both) for both in zip(seeds, induced, strict=True)))
            run.report("learn", number, self.rounds, {"n_pairs": rows[0].shape[0] + best.shape[0]})
            run.checkpoint("learn", number, w)
        return w
