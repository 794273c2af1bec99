"""The unconstrained linear map (Mikolov, Le, Sutskever 2013): least squares on a seed lexicon."""

from __future__ import annotations

from dataclasses import dataclass

from qwp.arrays import Array
from qwp.maps.pairs import matched_rows
from qwp.maps.procrustes import least_squares
from qwp.methods.aligner import Aligner
from qwp.methods.supervision import REQUIRED
from qwp.parameters import OTHER, param
from qwp.stages.init.given import Given
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Report


@dataclass(frozen=True, kw_only=True)
class RidgeRegression(Given):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over known pairs."""

    ridge: float = param(0.0, "Penalty on the squared entries of the map.", OTHER, least=0, most=1e12)

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map of the known pairs."""
        return least_squares(*matched_rows(view.x, view.y, *problem.known_pairs(view)), ridge=self.ridge)


class LeastSquares(Aligner):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over the pairs of a seed lexicon: equation 1 of the paper.

    Mikolov, Le, Sutskever (2013), Exploiting similarities among languages for machine translation.
    """

    method = "least-squares"
    summary = "linear map without constraint from a seed lexicon"
    paper = "Mikolov, Le, Sutskever 2013"
    supervision = REQUIRED
    pipeline = Pipeline(init=RidgeRegression())
