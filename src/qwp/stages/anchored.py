"""CSLS refinement with known pairs as anchors, if validation pairs show that anchors help.

A refinement with all words usually beats the known pairs alone. Between spaces that agree little it can drift to a
self-consistent but wrong map. Anchors prevent that, and cost a little accuracy if there is no drift.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from qwp.errors import InputError
from qwp.maps.pairs import RowPairs, found_words, from_pairs, mcnemar
from qwp.maps.procrustes import Maps
from qwp.parameters import START, param
from qwp.stages.problem import Problem
from qwp.stages.refinement import WEIGHTED, Anchors, CslsRefinement
from qwp.stages.stage import Monitor, Stage, State

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AnchoredRefinement(Stage):
    """Refine maps by CSLS, with the pairs of a lexicon as anchors if that finds more validation pairs."""

    name = "refine"
    uses_seed = False

    refinement: CslsRefinement = replace(WEIGHTED, further_rounds=30)
    anchor_weight: float | None = param(
        None,
        "With start lexicon: weight of its pairs in every refinement round, in mean weights of the others; 0 for none.",
        START,
        decided="0 or 10, whichever finds more validation pairs",
        least=0,
        most=1e6,
    )
    default_weight: float = 10.0
    """The weight of anchors. Source: of 1, 10 and 100, a weight of 1 changed little and 100 drowned the other pairs."""
    share_enough: float = 0.5
    """From this share of validation pairs found on, anchors helped in no measurement."""
    level: float = 0.025
    """Anchors must find more validation pairs at this one-sided level of McNemar's exact test."""

    @property
    def holds_out_pairs(self) -> bool:
        """Whether known pairs are split, so that some decide if anchors are used and others measure the result."""
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
        if problem.known is None or problem.known.validation is None:
            return state
        return self._better_of(problem, state, problem.known.validation, monitor)

    def _better_of(self, problem: Problem, state: State, validation: RowPairs, monitor: Monitor) -> State:
        """Return the better state: the given one, or that of a refinement with anchors."""
        view = problem.view_of(state.order)
        pairs, validation = problem.known_pairs(view), view.positions(validation)
        assert state.maps is not None
        without = found_words(view.x, view.y, state.maps, validation)
        if without.mean() >= self.share_enough:
            return state
        found_without = f"{100 * without.mean():.0f} %"
        logger.info("the maps find %s of the validation words: refining once more with anchors", found_without)
        first = replace(state.entering(self.name), maps=Maps(from_pairs(view.x, view.y, *pairs)))
        anchors = Anchors(*pairs, weight=self.default_weight)
        anchored = self.refinement.refined(problem, first, monitor, anchors, save=False)
        assert anchored.maps is not None
        found = found_words(view.x, view.y, anchored.maps, validation)
        if mcnemar(found, without) > self.level:
            return replace(state, history=anchored.history)
        remark = (
            "The refinement used the known pairs as anchors in every round: it finds "
            f"{100 * found.mean():.0f} % of {len(found)} validation words, and {found_without} without anchors."
        )
        logger.info("%s", remark)
        return replace(anchored, remark=remark)
