"""CSLS refinement with known pairs as anchors, if held-out pairs show that anchors help.

A refinement with all words usually beats the known pairs alone. Between spaces that agree little it can drift to a
self-consistent but wrong map. Anchors prevent that, and cost a little accuracy if there is no drift.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from qwp.errors import InputError
from qwp.maps.pairs import from_pairs, share_found
from qwp.maps.procrustes import Maps
from qwp.parameters import START, param
from qwp.stages.problem import Problem
from qwp.stages.refinement import WEIGHTED, Anchors, CslsRefinement
from qwp.stages.stage import Monitor, Stage, State

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AnchoredRefinement(Stage):
    """Refine maps by CSLS, with the pairs of a lexicon as anchors if that finds more held-out pairs."""

    name = "refine"
    uses_seed = False

    refinement: CslsRefinement = replace(WEIGHTED, further_rounds=30)
    anchor_weight: float | None = param(
        None,
        "With start lexicon: weight of its pairs in every refinement round, in mean weights of the others; 0 for none.",
        START,
        decided="0 or 10, whichever finds more held-out pairs",
        least=0,
        most=1e6,
    )
    default_weight: float = 10.0
    """The weight of anchors. Source: of 1, 10 and 100, a weight of 1 changed little and 100 drowned the other pairs."""
    share_enough: float = 0.5
    """From this share of held-out pairs found on, anchors helped in no measurement."""

    @property
    def holds_out_pairs(self) -> bool:
        """Whether held-out pairs decide if anchors are used."""
        return self.anchor_weight is None and self.refinement.rounds > 0 and self.refinement.weights == "csls"

    def check_together(self) -> None:
        """Anchors need weighted pairs."""
        if self.anchor_weight and self.refinement.weights != "csls":
            raise InputError(
                f"anchor_weight={self.anchor_weight:g} was given, but with refine_weights={self.refinement.weights!r} "
                "pairs have no weights: set refine_weights='csls'"
            )

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Anchors need a lexicon."""
        if self.anchor_weight and not lexicon:
            raise InputError(
                f"anchor_weight={self.anchor_weight:g} was given, but there are no known pairs: give a lexicon and "
                "start='lexicon'"
            )

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the refined maps."""
        anchors = None
        if self.anchor_weight and problem.known is not None:
            pairs = problem.known_pairs(problem.view_of(state.order))
            anchors = Anchors(*pairs, weight=self.anchor_weight)
        state = self.refinement.refined(problem, state, monitor, anchors)
        if problem.known is None or problem.known.held_out is None:
            return state
        return self._better_of(problem, state, monitor)

    def _better_of(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the better state: the given one, or that of a refinement with anchors."""
        assert problem.known is not None
        assert problem.known.held_out is not None
        view = problem.view_of(state.order)
        pairs, held_out = problem.known_pairs(view), view.positions(problem.known.held_out)
        assert state.maps is not None
        without = share_found(view.x, view.y, state.maps, held_out)
        state = replace(state, held_out=without)
        if without.share >= self.share_enough:
            return state
        logger.info("the maps find %s of the held-out words: refining once more with anchors", without)
        first = replace(state.entering(self.name), maps=Maps(from_pairs(view.x, view.y, *pairs)))
        anchors = Anchors(*pairs, weight=self.default_weight)
        anchored = self.refinement.refined(problem, first, monitor, anchors, save=False)
        assert anchored.maps is not None
        found = share_found(view.x, view.y, anchored.maps, held_out)
        if not found.clearly_above(without):
            return replace(state, history=anchored.history)
        remark = f"The refinement used the known pairs as anchors in every round; without anchors it finds {without}."
        logger.info("%s", remark)
        return replace(anchored, held_out=found, remark=remark)
