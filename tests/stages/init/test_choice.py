"""The choice between the starts on planted problems: which are tried, in which order of words, and which wins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.maps.trials import Trial
from qwp.stages.init import belief_propagation
from qwp.stages.init.choice import (
    ITEM_VARIANTS,
    MESSAGES,
    VARIANTS,
    Candidate,
    Search,
    SearchSettings,
    View,
    _groups,
    _Judge,
    any_clearly_real,
    best_starts,
    fused_map,
    try_also,
)
from qwp.stages.init.fused import FusedSettings
from tests.libraries import assert_same, host
from tests.problems import planted, rotation, space

Array = npt.NDArray[Any]

N, DIM = 200, 20
NEVER = 99.0
# Trials without steps leave the maps as they are; no ratio and no agreement ends the search.
TO_THE_END = SearchSettings(
    brief=Trial(words=N, steps=0, coreset=500, epsilon=0.05, batches=1),
    long=Trial(words=N, steps=0, coreset=500, epsilon=0.1, batches=1),
    rounds=2,
    continuations=0,
    accept_ratio=NEVER,
    rescore_ratio=NEVER,
    continue_ratio=NEVER,
    consensus=NEVER,
)
WORDS = FusedSettings(start_words=N)
FUSED = [f"fused {i}" for i in range(1, 1 + 2 * len(VARIANTS))]


def easy(noise: float = 0.05, order: str = "given") -> View:
    """Two spaces of which every cheap start finds the rotation."""
    problem = planted(N, d=DIM, noise=noise, seed=1)
    return View(order, problem.src, problem.tgt)


def hopeless(order: str = "given", n: int = N) -> View:
    """Two spaces that have nothing in common."""
    return View(order, space(n, DIM, 5), space(n, DIM, 6))


def search(*views: View, settings: SearchSettings = TO_THE_END, ordered: bool = True) -> Search:
    return Search(views, 0, ordered=ordered, settings=settings)


def searched(*views: View, settings: SearchSettings = TO_THE_END, ordered: bool = True) -> tuple[Candidate, Search]:
    """The best start, and the search that has tried them all."""
    made = search(*views, settings=settings, ordered=ordered)
    [best] = best_starts([made], WORDS)
    return best, made


def names(made: Search) -> list[str]:
    """Of the starts that were tried, votes aside."""
    return [tried.name for tried in made.tried if not tried.voted]


# --------------------------------------------------------------------------- words in order


def test_a_cheap_start_that_is_clearly_real_ends_the_search() -> None:
    best, made = searched(easy(), settings=replace(TO_THE_END, accept_ratio=1.5))
    assert (best.name, best.order, best.refined) == ("profiles", "given", None)
    assert best.ratio >= 1.5
    assert made.over
    assert names(made) == ["profiles"]
    assert any_clearly_real([best.record()])
    assert not any_clearly_real([{**best.record(), "ratio": 1.4}])


def test_a_hard_pair_gets_all_rounds_and_its_most_promising_starts_a_second_look() -> None:
    best, made = searched(hopeless())
    assert names(made) == ["profiles", *FUSED]
    again = [tried for tried in made.tried if tried.refined is not None and not tried.voted]
    assert len(again) == TO_THE_END.rounds * TO_THE_END.promising
    # The two of the first round are the best of those that it knew.
    first = sorted(made.tried[: 1 + len(VARIANTS)], key=lambda tried: -tried.ratio)[:2]
    assert all(tried in again for tried in first)
    # Of those that were refined, the one that the second look found best.
    assert best is max((tried for tried in made.tried if tried.refined is not None), key=lambda tried: tried.score)
    assert not made.over


def test_the_best_start_continues_where_none_is_accepted() -> None:
    settings = replace(TO_THE_END, rounds=0)
    scores = [searched(easy(noise=0.6), settings=replace(settings, continuations=n))[0].score for n in (0, 3)]
    # Measured: 1.18 and 1.57.
    assert scores[1] > scores[0] + 0.2


@pytest.mark.parametrize(("continue_ratio", "refined"), [(NEVER, False), (0.0, True)])
def test_a_start_that_is_nearly_real_continues_before_another_round(continue_ratio: float, refined: bool) -> None:
    settings = replace(TO_THE_END, rounds=0, continue_ratio=continue_ratio)
    best, made = searched(easy(noise=0.6), settings=settings)
    _Judge(made, 10).last_look()
    assert (best.refined is not None) == refined


@pytest.mark.parametrize(
    ("few_words", "rescore_ratio", "refined"), [(N + 1, 0.0, True), (N, 0.0, False), (N + 1, NEVER, False)]
)
def test_a_cheap_start_of_few_words_is_refined_where_it_may_be_real(
    few_words: int, rescore_ratio: float, refined: bool
) -> None:
    settings = replace(TO_THE_END, rounds=0, few_words=few_words, rescore_ratio=rescore_ratio)
    best, made = searched(easy(noise=0.4), settings=settings)
    assert names(made) == ["profiles"]
    assert (best.refined is not None) == refined


def test_two_starts_that_translate_alike_end_the_search() -> None:
    best, made = searched(easy(), settings=replace(TO_THE_END, consensus=0.5))
    assert made.consensus
    assert made.over
    assert names(made) == ["profiles", *FUSED[: len(VARIANTS)]]
    assert best.refined is not None


@pytest.mark.parametrize(
    ("other", "score", "found"),
    [
        ({}, 1.0, True),
        # Votes may come from the start itself.
        ({"voted": True}, 1.0, False),
        ({"order": "estimated"}, 1.0, False),
        ({"map": rotation(DIM, 9)}, 1.0, False),
        # Starts of one kind fail alike: what they find alike counts where they may be real.
        ({"kind": "messages"}, 1.2, False),
        ({"kind": "messages"}, 1.3, True),
        ({"kind": "another"}, 1.2, True),
    ],
)
def test_which_starts_make_a_consensus(other: dict[str, Any], score: float, found: bool) -> None:
    problem = planted(N, d=DIM, noise=0.05, seed=1)
    made = search(View("given", problem.src, problem.tgt), settings=SearchSettings())
    one = Candidate("messages 1", "given", problem.w, score, kind="messages")
    made.tried = [one, replace(Candidate("another", "given", problem.w, 1.0), **other)]
    assert _Judge(made, 10)._consensus(one) == found


def test_what_the_starts_of_a_round_found_together_is_one_more_start() -> None:
    order = np.random.default_rng(0).permutation(N)
    given = easy(noise=0.3)
    views = given, View("estimated", given.x[order], given.y[order])
    _, made = searched(*views, settings=replace(TO_THE_END, rounds=1))
    voted = [(tried.name, tried.order) for tried in made.tried if tried.voted]
    assert voted == [(f"votes of {1 + len(VARIANTS)}", order) for order in ("given", "estimated")]
    for tried in made.tried:
        if tried.voted:
            assert tried.refined is not None
            assert tried.score > 1.5  # measured: 1.75 and more


def test_a_given_order_that_works_is_kept() -> None:
    best, made = searched(easy(), hopeless("estimated"), settings=replace(TO_THE_END, accept_ratio=1.5))
    assert (best.name, best.order) == ("profiles", "given")
    assert [(tried.name, tried.order) for tried in made.tried] == [("profiles", "given")]


def test_an_estimated_order_competes_with_one_that_does_not_work() -> None:
    best, made = searched(hopeless(), easy(order="estimated"), settings=replace(TO_THE_END, accept_ratio=1.5))
    assert (best.name, best.order) == ("profiles", "estimated")
    assert [(tried.name, tried.order) for tried in made.tried] == [("profiles", "given"), ("profiles", "estimated")]


def test_an_estimated_order_takes_more_words_in_later_rounds() -> None:
    settings, few = replace(TO_THE_END, promising=0), FusedSettings(start_words=40)
    views = hopeless(n=80), hopeless("estimated", n=80)
    made = search(*views, settings=settings)
    best_starts([made], few)
    tried = {(tried.name, tried.order): tried.map for tried in made.tried}
    for view in views:
        for number in (1, 7):
            wider = 1.5 if number == 7 and view.order == "estimated" else 1.0
            variant = replace(VARIANTS[0], words=wider * VARIANTS[0].words)
            expected = fused_map(view, variant, few, made.seed, number)
            assert_same(tried[f"fused {number}", view.order], expected)


def test_each_pair_goes_on_by_itself() -> None:
    settings = replace(TO_THE_END, rounds=0, accept_ratio=1.5)
    one, other = search(easy(), settings=settings), search(hopeless(), settings=settings)
    assert [best.name for best in best_starts([one, other], WORDS)] == ["profiles", "profiles"]
    assert (one.over, other.over) == (True, False)
    assert (len(one.tried), len(other.tried)) == (1, 1)


def test_one_more_start_is_tried_like_the_others() -> None:
    problem = planted(N, d=DIM, noise=0.05, seed=1)
    made = search(View("given", problem.src, problem.tgt))
    made.tried.append(Candidate("fused 1", "given", rotation(DIM, 3), ratio=1.2, refined=1.25))
    best = try_also(made, Candidate("identical", "given", problem.w))
    assert best.name == "identical"
    assert best.ratio > 1.5
    assert best.refined is not None
    assert best.record() == {
        "start": "identical",
        "order": "given",
        "ratio": best.ratio,
        "refined_ratio": best.refined,
    }


@pytest.mark.parametrize(("at_once", "sizes"), [(False, [2, 2, 1]), (True, [5])])
def test_a_processor_tries_one_start_of_each_pair_after_the_other(at_once: bool, sizes: list[int]) -> None:
    searches = [search(easy()), search(easy())]

    def candidates(count: int) -> Iterator[Candidate]:
        return (Candidate(f"start {i}", "given", np.eye(DIM)) for i in range(count))

    groups = list(_groups(searches, {0: candidates(3), 1: candidates(2)}, at_once=at_once))
    assert [len(group) for group in groups] == sizes
    assert sorted((number, tried.name) for group in groups for number, tried in group) == [
        *((0, f"start {i}") for i in range(3)),
        *((1, f"start {i}") for i in range(2)),
    ]


def test_a_processor_stops_as_soon_as_one_start_is_accepted() -> None:
    made = search(easy(), settings=replace(TO_THE_END, accept_ratio=1.5))
    candidates = iter([Candidate("start 1", "given", np.eye(DIM)), Candidate("start 2", "given", np.eye(DIM))])
    groups = _groups([made], {0: candidates}, at_once=False)
    [(_, first)] = next(groups)
    first.ratio = 1.6
    made.tried.append(first)
    assert list(groups) == []


def test_fused_starts_take_a_random_part_of_the_frequent_words() -> None:
    view, few = hopeless(), FusedSettings(start_words=50)
    variant = replace(VARIANTS[1], words=0.8)
    # Rows beyond 0.8 * 50 have no say.
    garbage = View("given", np.concatenate([view.x[:40], view.x[:1]]), np.concatenate([view.y[:40], view.y[:1]]))
    one = fused_map(view, variant, few, 0, 1)
    assert_same(fused_map(garbage, variant, few, 0, 1), one)
    # Another number, or another seed, draws other words.
    for seed, number in ((0, 2), (1, 1)):
        assert float(np.abs(host(fused_map(view, variant, few, seed, number)) - host(one)).max()) > 1e-3


def test_trials_are_reported_by_the_name_of_their_start() -> None:
    settings = replace(
        TO_THE_END,
        rounds=1,
        brief=replace(TO_THE_END.brief, steps=3),
        long=replace(TO_THE_END.long, steps=3),
    )
    problem = planted(N, d=DIM, noise=0.05, seed=1)
    seen: list[tuple[int, str, int, int]] = []
    made = search(View("given", problem.src, problem.tgt), settings=settings)
    [best] = best_starts(
        [made],
        WORDS,
        callback=lambda pair, name, step, total, figures: seen.append((pair, name, step, total)) if figures else None,
    )
    tried = ["profiles", *FUSED[: len(VARIANTS)]]
    assert sorted(seen) == sorted((0, name, step, 3) for name in tried for step in range(1, 4))
    assert orthogonality_error(best.map) < 1e-5
    assert problem.accuracy(best.map) > 0.5  # chance is 1 in 200


# --------------------------------------------------------------------------- items without order


def test_few_items_without_order_send_messages_before_fused_starts_are_tried() -> None:
    by_messages = [f"messages {i}" for i in range(1, 1 + len(MESSAGES))]
    by_transport = [f"fused {i}" for i in range(1, 1 + len(ITEM_VARIANTS))]
    for few_words, expected in ((41, [*by_messages, *by_transport]), (40, by_transport)):
        _, made = searched(hopeless(n=40), settings=replace(TO_THE_END, few_words=few_words), ordered=False)
        assert names(made) == ["profiles", *expected]


def test_not_more_items_than_their_cost_allows_send_messages() -> None:
    view = hopeless(n=60)
    settings = replace(TO_THE_END, message_items=20, promising=0)
    _, made = searched(view, settings=settings, ordered=False)
    found = {tried.name: tried for tried in made.tried}
    assert_same(found["messages 1"].map, belief_propagation.initial_map(view.x[:20], view.y[:20], MESSAGES[0]))
    assert found["messages 1"].kind == "messages"


def test_many_items_take_part_in_two_rounds() -> None:
    view = hopeless(n=90)
    settings = replace(TO_THE_END, items=(40, 80), promising=0, few_words=1)
    _, made = searched(view, settings=settings, ordered=False)
    assert names(made) == ["profiles", *(f"fused {i}" for i in range(1, 1 + 2 * len(ITEM_VARIANTS)))]
    found = {tried.name: tried.map for tried in made.tried}
    for number, items in ((1, 40), (5, 80)):
        expected = fused_map(view, ITEM_VARIANTS[0], FusedSettings(start_words=items, frequency_prior=0.0), 0, number)
        assert_same(found[f"fused {number}"], expected)


# --------------------------------------------------------------------------- states


def test_a_search_goes_on_from_its_state() -> None:
    views = hopeless(), hopeless("estimated")
    before, after = search(*views), search(*views)
    before.tried = [
        Candidate("profiles", "given", rotation(DIM, 1), 1.1),
        Candidate("votes of 3", "estimated", rotation(DIM, 2), 1.2, 1.3, voted=True, kind="votes"),
    ]
    before.consensus, before.stages_done = True, 3
    maps, values = before.state()
    after.restore(np.asarray(maps), json.loads(json.dumps(values)))
    assert (after.consensus, after.stages_done) == (True, 3)
    for one, other in zip(before.tried, after.tried, strict=True):
        assert (other.record(), other.voted, other.kind) == (one.record(), one.voted, one.kind)
        assert_same(other.map, one.map)


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values.pop("tried"),
        lambda values: values.update(tried=[]),
        lambda values: values["tried"][0].pop("ratio"),
        lambda values: values["tried"][0].update(order="none"),
        lambda values: values["tried"][0].update(ratio="much"),
        lambda values: values.update(stages_done="three"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(damage: Any) -> None:
    made = search(hopeless())
    made.tried = [Candidate("profiles", "given", rotation(DIM, 1), 1.1)]
    maps, values = made.state()
    damage(values)
    with pytest.raises(InputError, match="the checkpoint of the search for a start cannot be used"):
        search(hopeless()).restore(np.asarray(maps), values)
