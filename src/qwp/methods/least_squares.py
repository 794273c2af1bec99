"""The unconstrained linear map (Mikolov, Le, Sutskever 2013): least squares on a seed lexicon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp.maps.pairs import matched_rows
from qwp.maps.procrustes import Maps, least_squares
from qwp.methods.base import Aligner
from qwp.methods.run import Run, timed
from qwp.methods.supervision import REQUIRED
from qwp.parameters import OTHER, param


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(Aligner):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over the pairs of a seed lexicon: equation 1 of the paper.

    Mikolov, Le, Sutskever (2013), Exploiting similarities among languages for machine translation.
    """

    method: ClassVar[str] = "least-squares"
    summary: ClassVar[str] = "linear map without constraint from a seed lexicon"
    paper: ClassVar[str] = "Mikolov, Le, Sutskever 2013"
    supervision: ClassVar[str] = REQUIRED

    ridge: float = param(0.0, "Penalty on the squared entries of the map.", OTHER, least=0, most=1e12)

    def find_maps(self, run: Run) -> Maps:
        """Least squares on the lexicon."""
        with timed([run], "start"):
            return Maps(least_squares(*matched_rows(run.x, run.y, *run.lexicon_rows()), ridge=self.ridge))
