"""Refinement with known pairs as anchors, if validation pairs show that anchors help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.maps.pairs import KnownPairs, RowPairs, found_words, from_pairs
from qwp.maps.procrustes import Maps
from qwp.parameters import check, with_values
from qwp.showing.events import Progress
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.neighbor_means import NeighborMeans
from qwp.stages.problem import Problem
from qwp.stages.refinement import WEIGHTED, Anchors, CslsRefinement
from qwp.stages.stage import Monitor, State
from tests.libraries import assert_same
from tests.problems import Planted, planted, rotation, space
from tests.stages.problems import problem_of, refine_rounds

ROUND = replace(WEIGHTED, rounds=1, words=0, first_words=0, map="orthogonal")
STAGE = AnchoredRefinement(refinement=ROUND)


def problem_with(planted_problem: Planted, pairs: int, *, hold_out: bool = True) -> Problem:
    """Return a planted problem with this many known pairs."""
    rows: RowPairs = (planted_problem.gold[:pairs, 0], planted_problem.gold[:pairs, 1])
    return problem_of(planted_problem, known=KnownPairs.of(rows) if hold_out else KnownPairs(rows))


def known_pairs(problem: Problem) -> KnownPairs:
    assert problem.known is not None
    return problem.known


def lost(planted_problem: Planted) -> State:
    """Return a state with a random rotation."""
    return State(maps=Maps(rotation(planted_problem.w.shape[0], 7)), stage="refine")


def anchored_by_hand(planted_problem: Planted, problem: Problem, settings: CslsRefinement, weight: float) -> Maps:
    """Return the maps refined from the map of the known pairs, with these as anchors."""
    pairs = known_pairs(problem).used
    first = Maps(from_pairs(planted_problem.src, planted_problem.tgt, *pairs))
    return refine_rounds(
        planted_problem.src, planted_problem.tgt, first, settings, anchors=Anchors(*pairs, weight=weight)
    )


def test_anchors_are_used_if_the_refinement_loses_known_pairs() -> None:
    planted_problem = planted(400, d=12, noise=0.1)
    problem = problem_with(planted_problem, 250)
    found = STAGE(problem, lost(planted_problem), Monitor())
    without = STAGE.refinement(problem, lost(planted_problem), Monitor())
    assert without.maps is not None
    validation = known_pairs(problem).validation
    assert validation is not None
    share = found_words(planted_problem.src, planted_problem.tgt, without.maps, validation).mean()
    assert share < 0.2
    assert found.remark == (
        "The refinement used the known pairs as anchors in every round: it finds 100 % of 25 validation words, and "
        f"{100 * share:.0f} % without anchors."
    )
    assert_same(found.map, anchored_by_hand(planted_problem, problem, ROUND, 10.0).src)
    assert planted_problem.accuracy(found.map) > 0.95
    # The history also has the rounds without anchors.
    assert [record["step"] for record in found.history] == [1, 1]


def test_a_refinement_that_finds_the_validation_pairs_is_not_repeated() -> None:
    planted_problem = planted(400, d=12, noise=0.1)
    problem = problem_with(planted_problem, 250)
    start = State(maps=Maps(planted_problem.w), stage="refine")
    found = STAGE(problem, start, Monitor())
    assert found.remark == ""
    assert len(found.history) == 1
    assert_same(found.map, ROUND(problem, start, Monitor()).map)
    # The threshold is a field.
    assert len(replace(STAGE, share_enough=1.01)(problem, start, Monitor()).history) == 2


def test_held_out_pairs_take_no_part_in_the_choice() -> None:
    planted_problem = planted(400, d=12, noise=0.1)
    problem = problem_with(planted_problem, 250)
    known = known_pairs(problem)
    assert known.held_out is not None
    wrong = replace(known, held_out=(known.held_out[0], known.held_out[1][::-1]))
    found, other = (STAGE(replace(problem, known=each), lost(planted_problem), Monitor()) for each in (known, wrong))
    assert_same(found.map, other.map)
    assert found.remark == other.remark


def test_anchors_that_are_no_clear_gain_are_dropped() -> None:
    # So noisy that neither refinement finds many validation words.
    planted_problem = planted(300, d=12, noise=2.0)
    problem = problem_with(planted_problem, 250)
    found = STAGE(problem, lost(planted_problem), Monitor())
    assert found.remark == ""
    assert_same(found.map, ROUND(problem, lost(planted_problem), Monitor()).map)
    assert len(found.history) == 2


def test_an_interrupted_refinement_with_anchors_has_the_same_result() -> None:
    planted_problem = planted(400, d=12, noise=0.1)
    problem = problem_with(planted_problem, 250)
    stage = replace(STAGE, refinement=replace(ROUND, rounds=2))
    saved: list[State] = []
    events: list[Progress] = []
    monitor = Monitor(events.append, lambda state, _: saved.append(state))
    whole = stage(problem, lost(planted_problem), monitor)
    assert whole.remark != ""
    assert [event.done for event in events] == [1, 2, 1, 2]
    # An interrupted run repeats the rounds with anchors, so they are not saved.
    assert [state.done for state in saved] == [1, 2]
    for state in saved:
        resumed = stage(problem, state, Monitor())
        assert_same(resumed.map, whole.map)
        assert (resumed.remark, resumed.history) == (whole.remark, whole.history)


@pytest.mark.parametrize("weight", [0.0, 20.0])
def test_with_a_given_weight_no_pairs_are_held_out(weight: float) -> None:
    planted_problem = planted(400, d=12, noise=0.5)
    stage = replace(STAGE, anchor_weight=weight)
    assert not stage.holds_out_pairs
    problem = problem_with(planted_problem, 40, hold_out=stage.holds_out_pairs)
    start = State(maps=Maps(planted_problem.w), stage="refine")
    found = stage(problem, start, Monitor())
    assert found.remark == ""
    anchors = Anchors(*known_pairs(problem).used, weight=weight) if weight else None
    expected = refine_rounds(planted_problem.src, planted_problem.tgt, Maps(planted_problem.w), ROUND, anchors=anchors)
    assert_same(found.map, expected.src)


def test_without_enough_pairs_none_is_held_out() -> None:
    planted_problem = planted(300, d=12, noise=0.1)
    expected = ROUND(problem_of(planted_problem), lost(planted_problem), Monitor())
    for problem in (problem_with(planted_problem, 150), problem_of(planted_problem)):
        found = STAGE(problem, lost(planted_problem), Monitor())
        assert found.remark == ""
        assert_same(found.map, expected.map)


@pytest.mark.parametrize(
    ("options", "holds_out"),
    [
        ({}, True),
        ({"refine": 0}, False),
        ({"refine_weights": "equal"}, False),
        ({"anchor_weight": 0.0}, False),
        ({"anchor_weight": 3.0}, False),
    ],
)
def test_pairs_are_held_out_if_weights_are_by_csls(options: dict[str, Any], holds_out: bool) -> None:
    assert with_values(AnchoredRefinement(), options).holds_out_pairs == holds_out


def test_anchors_without_pairs_or_weights_are_refused() -> None:
    stage = replace(STAGE, anchor_weight=3.0)
    check(stage)
    stage.check_supervision(lexicon=True, matrix=False)
    with pytest.raises(InputError, match=r"anchor_weight=3 was given, but .*start='lexicon'"):
        stage.check_supervision(lexicon=False, matrix=False)
    with pytest.raises(
        InputError, match="with refine_weights='equal' pairs have no weights: set refine_weights='csls'"
    ):
        check(with_values(stage, {"refine_weights": "equal"}))
    with pytest.raises(InputError, match=r"anchor_weight=-1\.0 is out of range; expected 0 to 1,000,000"):
        check(replace(STAGE, anchor_weight=-1.0))
    # Neither weight needs known pairs.
    for weight in (None, 0.0):
        replace(STAGE, anchor_weight=weight).check_supervision(lexicon=False, matrix=False)
        check(with_values(replace(STAGE, anchor_weight=weight), {"refine_weights": "equal"}))


# --------------------------------------------------------------------------- unordered items


def samples(n: int = 300, d: int = 8) -> Planted:
    """Return two samples of clusters without a common item, (n, d) each, the second one rotated."""
    words, w = space(2 * n, d, 0), rotation(d, 1)
    return Planted(words[:n], words[n:] @ w, w, np.zeros((0, 2), dtype=np.int64))


MEANS = NeighborMeans(queries=100, neighbours=10, rounds=20, interval=10, last_neighbours=5)


def test_neighbor_means_come_before_the_dictionaries_of_unordered_items() -> None:
    planted_problem = planted(300, d=8, noise=0.1)
    stage = replace(STAGE, neighbor_means=MEANS, least_ratio=0.0)
    problem = problem_of(planted_problem, ordered=False)
    start = State(maps=Maps(planted_problem.w), stage="refine")
    events: list[Progress] = []
    found = stage(problem, start, Monitor(events.append))
    means = MEANS.fit(planted_problem.src, planted_problem.tgt, planted_problem.w, 0)
    assert_same(found.map, ROUND(problem, replace(start, maps=Maps(means)), Monitor()).map)
    assert {"round", "similarity"} <= set(events[0].figures)
    # Ordered words, known pairs, and a method without a refinement have no neighbour means.
    ordered = problem_of(planted_problem)
    assert_same(stage(ordered, start, Monitor()).map, ROUND(ordered, start, Monitor()).map)
    known = replace(problem, known=KnownPairs((planted_problem.gold[:9, 0], planted_problem.gold[:9, 1])))
    assert_same(stage(known, start, Monitor()).map, ROUND(known, start, Monitor()).map)
    no_rounds = replace(stage, refinement=replace(ROUND, rounds=0))
    assert_same(no_rounds(problem, start, Monitor()).map, planted_problem.w)


def test_no_dictionary_follows_if_held_out_items_come_less_near() -> None:
    planted_problem = samples()
    stage = replace(STAGE, neighbor_means=MEANS, least_ratio=10.0)
    problem = problem_of(planted_problem, ordered=False)
    start = State(maps=Maps(planted_problem.w), stage="refine")
    saved: list[State] = []
    found = stage(problem, start, Monitor(save=lambda state, _: saved.append(state), interval=0.0))
    assert_same(found.map, MEANS.fit(planted_problem.src, planted_problem.tgt, planted_problem.w, 0))
    assert [set(record) for record in found.history] == [{"stage", "step", "held_out_ratio"}]
    # A resumed run does not repeat the choice.
    assert_same(stage(problem, saved[-1], Monitor()).map, found.map)


def test_dictionaries_bring_items_with_counterparts_nearer_than_others() -> None:
    stage = AnchoredRefinement(neighbor_means=MEANS)
    same, different = planted(500, d=30, noise=0.1), samples(500, 30)
    ratios = [stage.held_out_ratio(each.src, each.tgt, each.w) for each in (same, different)]
    assert ratios[0] > 0.998
    assert ratios[1] < 0.993
