"""Bootstrapped Procrustes from a small seed lexicon (Glavas et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp import backend, start
from qwp.aligners.base import REQUIRED, Aligner, Run, Supervision, timed
from qwp.backend import Array
from qwp.checks import at_least
from qwp.procrustes import Maps, procrustes
from qwp.refine import induce_pairs


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

    seed_pairs: int | None = None
    rounds: int = 30
    growth: int = 250
    max_rank: int = 8000

    def _validate(self, supervision: Supervision) -> None:
        super()._validate(supervision)
        at_least(0, rounds=self.rounds, max_rank=self.max_rank)
        at_least(1, growth=self.growth)
        if self.seed_pairs is not None:
            at_least(1, seed_pairs=self.seed_pairs)

    def _fit(self, run: Run) -> Maps:
        with timed([run], "learn"):
            return Maps(self._bootstrap(run))

    def _bootstrap(self, run: Run) -> Array:
        xp = backend.namespace(run.x)
        rows = [rows[: self.seed_pairs] for rows in run.lexicon_rows()]
        seeds = start.matched_rows(run.x, run.y, *rows)
        state = run.resumed("learn")
        w = procrustes(*seeds) if state is None else backend.asarray(state.map, run.x)
        x, y = (side[: self.max_rank or side.shape[0], :] for side in (run.x, run.y))
        for number in range(1 if state is None else state.done + 1, self.rounds + 1):
            pairs = induce_pairs(x, y, Maps(w), csls_k=self.csls_k)
            best = xp.argsort(pairs.scores, descending=True, stable=True)[: self.growth * number]
            induced = (
                xp.take(side, xp.take(rows, best), axis=0) for side, rows in ((run.x, pairs.src), (run.y, pairs.tgt))
            )
            w = procrustes(*(xp.concat(both) for both in zip(seeds, induced, strict=True)))
            run.report("learn", number, self.rounds, {"n_pairs": rows[0].shape[0] + best.shape[0]})
            run.checkpoint("learn", number, w)
        return w
