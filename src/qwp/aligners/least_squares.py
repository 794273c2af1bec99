"""The unconstrained linear map (Mikolov, Le, Sutskever 2013): least squares on a seed lexicon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp import start
from qwp.aligners.base import REQUIRED, Aligner, Run, Supervision, timed
from qwp.checks import at_least
from qwp.procrustes import Maps, least_squares


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(Aligner):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over the pairs of a seed lexicon: equation 1 of the paper.

    Mikolov, Le, Sutskever (2013), Exploiting similarities among languages for machine translation.
    """

    method: ClassVar[str] = "least-squares"
    summary: ClassVar[str] = "linear map without constraint from a seed lexicon"
    paper: ClassVar[str] = "Mikolov, Le, Sutskever 2013"
    supervision: ClassVar[str] = REQUIRED

    ridge: float = 0.0

    def _validate(self, supervision: Supervision) -> None:
        super()._validate(supervision)
        at_least(0, ridge=self.ridge)

    def _fit(self, run: Run) -> Maps:
        with timed([run], "start"):
            return Maps(least_squares(*start.matched_rows(run.x, run.y, *run.lexicon_rows()), ridge=self.ridge))
