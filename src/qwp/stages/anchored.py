"""CSLS refinement: of unordered items after neighbour means, and with known pairs as anchors if these help.

Validation pairs decide whether anchors help. A refinement with all words usually beats the known pairs alone. Between
spaces that agree little it can drift to a self-consistent but wrong map. Anchors prevent that, and cost a little
accuracy if there is no drift.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.pairs import RowPairs, found_words, from_pairs, mcnemar
from qwp.maps.procrustes import Maps
from qwp.parameters import START, param
from qwp.stages.neighbor_means import NeighborMeans
from qwp.stages.problem import Problem
from qwp.stages.refinement import WEIGHTED, Anchors, CslsRefinement
from qwp.stages.stage import Monitor, Stage, State, unprojected, view_of

logger = logging.getLogger(__name__)

FIFTH = 5
"""Every fifth item is held out."""


@dataclass(frozen=True, kw_only=True)
class AnchoredRefinement(Stage):
    """Refine maps by CSLS, with the pairs of a lexicon as anchors if that finds more validation pairs.

    Unordered items without known pairs may lack counterparts, so neighbour means come first.
    """

    name = "refine"

    refinement: CslsRefinement = replace(WEIGHTED, further_rounds=30)
    neighbor_means: NeighborMeans = NeighborMeans()
    choosing_items: int = 6000
    """Unordered items of each side that decide whether a CSLS refinement follows the neighbour means."""
    choosing_rounds: int = 3
    """Rounds of that CSLS refinement."""
    least_ratio: float = 0.96
    """Least held-out similarity after that refinement, relative to neighbour means. Source: 0.93 to 0.95 where the
    refinement loses 1 to 13 points of top 1 on different texts, 0.96 to 1.02 where it gains."""
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
        if not problem.ordered and problem.known is None and self.refinement.rounds > 0 and state.done == 0:
            state = self._averaged(problem, state, monitor)
        anchors = None
        if self.anchor_weight and problem.known is not None:
            pairs = problem.known_pairs(problem.view_of(state.order))
            anchors = Anchors(*pairs, weight=self.anchor_weight)
        state = self.refinement.refined(problem, state, monitor, anchors)
        if problem.known is None or problem.known.validation is None:
            return state
        return self._better_of(problem, state, problem.known.validation, monitor)

    def _averaged(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map refined by neighbour means, as the last one if no refinement should follow."""
        view = view_of(problem, state)
        total = self.neighbor_means.rounds

        def report(done: int, similarity: float) -> None:
            monitor.report(self.name, done, total, {"round": done, "similarity": similarity})

        w = self.neighbor_means.fit(view.x, view.y, state.map, problem.seed, report)
        ratio = self.held_out_ratio(view.x, view.y, w)
        logger.info("refined by neighbour means; a CSLS dictionary changes the held-out similarity by %.3f", ratio)
        state = unprojected(problem, replace(state, maps=Maps(w)))
        if ratio >= self.least_ratio:
            return state
        assert state.maps is not None
        state = state.after_step(self.name, 1, state.maps, {"held_out_ratio": ratio}, values={"last": True})
        monitor.step(state, 1, now=True)
        return state

    def held_out_ratio(self, x: Array, y: Array, w: Array) -> float:
        """Return the similarity of held-out items after a CSLS refinement, relative to that after neighbour means.

        Every fifth item is held out. Both refinements give orthogonal maps, so the similarities are comparable.
        """
        means, most = self.neighbor_means, self.choosing_items
        x, y = x[:most, :], y[:most, :]
        asked = x[::FIFTH, :], y[::FIFTH, :]
        rest_x, rest_y = _without(x, FIFTH), _without(y, FIFTH)
        by_means = means.sharpened(rest_x, rest_y, w)
        rounds = replace(self.refinement, rounds=self.choosing_rounds, first_words=0, map="orthogonal")
        by_csls = rounds.refine(rest_x, rest_y, Maps(by_means)).src
        found, baseline = (means.similarity(*asked, each, asked) for each in (by_csls, by_means))
        return found / baseline if baseline > 0 else 1.0

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


def _without(side: Array, every: int) -> Array:
    """Return the rows of a side (n, d) that `side[::every]` leaves out."""
    rows = np.flatnonzero(np.arange(side.shape[0]) % every)
    return arrays.namespace(side).take(side, arrays.asarray(rows, side), axis=0)
