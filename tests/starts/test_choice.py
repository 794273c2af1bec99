"""The choice between the starts: which are tried, in which order of words, and which wins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp import arrays
from qwp.errors import InputError
from qwp.judging.chance import Agreement
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.maps.trials import Trial
from qwp.starts import choice, fused, messages, profiles, votes
from qwp.starts.choice import ITEM_VARIANTS, MESSAGES, VARIANTS, Search, Tried, View, best_starts, try_also
from qwp.starts.fused import FusedSettings, Variant
from tests.problems import planted, rotation

Array = npt.NDArray[Any]
FUSED = [f"fused {i}" for i in range(1, 1 + choice._ROUNDS * len(VARIANTS))]


class Staged:
    """Starts whose maps carry their names and whose verdicts are given: what is tried, and what wins."""

    def __init__(
        self,
        ratios: dict[str, float],
        refined: dict[str, float],
        alike: Sequence[tuple[str, str]] = (),
        votes: bool = False,
    ) -> None:
        self.ratios, self.refined, self.alike, self.votes = ratios, refined, alike, votes
        self.maps: dict[str, Array] = {}
        self.looked_at: list[str] = []
        self.second_looks: list[str] = []

    def map_of(self, name: str) -> Array:
        return self.maps.setdefault(name, rotation(3, len(self.maps)))

    def name(self, w: Any) -> str:
        return next(name for name, matrix in self.maps.items() if (matrix == w).all())

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(profiles, "first_map", lambda x, y, words: self.map_of(f"profiles {x[0, 0]:g}"))
        monkeypatch.setattr(
            messages,
            "first_map",
            lambda x, y, assumed, callback: self.map_of(f"messages {1 + MESSAGES.index(assumed)} {x[0, 0]:g}"),
        )
        monkeypatch.setattr(
            choice,
            "fused_map",
            lambda view, variant, settings, seed, i, told: self.map_of(f"fused {i} {view.x[0, 0]:g}"),
        )
        monkeypatch.setattr(Trial, "run", lambda trial, xs, ys, maps, *_: maps)
        monkeypatch.setattr(choice, "from_both_sides", lambda *args: (self.held_out(*args),) * 2)
        monkeypatch.setattr(choice, "refine", self.refine)
        monkeypatch.setattr(choice._Judge, "_translations", self.translations)
        monkeypatch.setattr(votes, "first_map", self.vote)

    def vote(self, x: Array, y: Array, maps: Sequence[Array], csls_k: int) -> Array | None:
        if not self.votes:
            return None
        return self.map_of(f"votes of {len(maps)} {x[0, 0]:g}")

    def held_out(self, x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
        known = [name for name, matrix in self.maps.items() if (matrix == maps.src).all()]
        if not known:  # the random rotation
            return Agreement(1, 1.0, 1.0)
        name, order = known[0].rsplit(" ", 1)
        key = name if order == "0" else f"{name} estimated"
        if key in self.second_looks:
            return Agreement(1, 1.0, self.refined.get(key, 1.2))
        self.looked_at.append(key)
        return Agreement(1, 1.0, self.ratios.get(key, 1.0))

    def refine(self, x: Array, y: Array, maps: Maps, settings: Any) -> Maps:
        known = [name for name, matrix in self.maps.items() if (matrix == maps.src).all()]
        if known:
            name, order = known[0].rsplit(" ", 1)
            self.second_looks.append(name if order == "0" else f"{name} estimated")
        return maps

    def translations(self, tried: Tried) -> Array:
        together = [group for group in self.alike if tried.name in group]
        return np.zeros(10) if together else np.full(10, 1.0 + list(self.maps).index(self.name(tried.map)))


def search_of(orders: int = 1) -> Search:
    views = [View(name, np.full((50, 3), float(i)), np.zeros((50, 3))) for i, name in enumerate(("given", "estimated"))]
    return Search(views[:orders], 0)


def run(
    monkeypatch: pytest.MonkeyPatch, stage: Staged, orders: int = 1, *, few: bool = False, ordered: bool = True
) -> tuple[str, str, Search]:
    stage.install(monkeypatch)
    # Those of the search have 50 words.
    monkeypatch.setattr(choice, "_FEW_WORDS", 51 if few else 50)
    # The translations are asked from the judge, whose first argument is itself.
    monkeypatch.setattr(choice._Judge, "_translations", lambda self, tried: stage.translations(tried))
    search = search_of(orders)
    search.ordered = ordered
    [best] = best_starts([search], FusedSettings())
    return best.name, best.order, search


def test_a_cheap_start_that_is_clearly_real_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"profiles": 1.9}, {})
    assert run(monkeypatch, stage)[:2] == ("profiles", "given")
    assert stage.looked_at == ["profiles"]
    assert stage.second_looks == []


def test_a_hard_pair_gets_all_rounds_and_its_most_promising_starts_a_second_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Staged({"fused 2": 1.3, "fused 5": 1.2, "fused 9": 1.4}, {"fused 9": 1.45, "fused 2": 1.3})
    name, _, search = run(monkeypatch, stage)
    assert name == "fused 9"
    assert stage.looked_at == ["profiles", *FUSED]
    assert [t.name for t in search.tried] == ["profiles", *FUSED]
    assert list(dict.fromkeys(stage.second_looks))[:4] == ["fused 2", "fused 5", "fused 9", "profiles"]
    # Nothing is clearly real: the best goes on for a while.
    assert stage.second_looks[-choice._CONTINUATIONS :] == ["fused 9"] * choice._CONTINUATIONS
    assert sum(t.refined is not None for t in search.tried) == choice._ROUNDS * choice._PROMISING


@pytest.mark.parametrize(("reached", "looks"), [(1.35, 2), (1.45, 2 + choice._ROUNDS - 1)])
def test_a_start_that_is_nearly_real_goes_on_after_the_second_round(
    reached: float, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Staged({"fused 2": 1.3}, {"fused 2": reached})
    assert run(monkeypatch, stage)[0] == "fused 2"
    assert stage.second_looks.count("fused 2") == looks + choice._CONTINUATIONS


def test_the_ratio_after_the_second_look_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weak but real start is told from chance when it has grown."""
    stage = Staged({"fused 1": 1.25, "fused 3": 1.22}, {"fused 1": 1.28, "fused 3": 1.44})
    assert run(monkeypatch, stage)[0] == "fused 3"


@pytest.mark.parametrize(
    ("when", "at_once", "tried"), [("at once", False, 4), ("at once", True, len(VARIANTS)), ("later", False, 6)]
)
def test_a_fused_start_that_is_clearly_real_ends_the_search_at_once_or_with_its_round(
    when: str, at_once: bool, tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor stops there; a GPU tries all of a round at once."""
    monkeypatch.setattr(arrays, "is_cuda", lambda x: at_once)
    stage = Staged({"fused 4": 1.6 if when == "at once" else 1.3}, {"fused 4": 1.7})
    name, _, search = run(monkeypatch, stage)
    assert name == "fused 4"
    assert [t.name for t in search.tried] == ["profiles", *FUSED[:tried]]


def test_a_cheap_start_of_few_words_is_refined_where_it_may_be_real(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"profiles": 1.3}, {"profiles": 1.6})
    name, _, search = run(monkeypatch, stage, few=True)
    assert name == "profiles"
    assert [t.record()["refined_ratio"] for t in search.tried] == [1.6]
    assert stage.second_looks == ["profiles"]


@pytest.mark.parametrize(("ratio", "few"), [(1.3, False), (1.2, True)])
def test_it_is_not_where_there_are_many_or_it_is_like_chance(
    ratio: float, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Staged({"profiles": ratio, "fused 1": 1.6}, {"profiles": 1.6})
    name, _, search = run(monkeypatch, stage, few=few)
    assert name == "fused 1"
    assert [t.name for t in search.tried] == ["profiles", "fused 1"]
    assert stage.second_looks == []


def test_two_starts_that_translate_alike_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"fused 1": 1.3}, {"fused 1": 1.35}, alike=[("fused 1", "fused 6")])
    name, _, search = run(monkeypatch, stage)
    assert name == "fused 1"
    assert search.consensus
    assert len(search.tried) == 1 + len(VARIANTS)


def test_what_the_starts_of_a_round_found_together_is_one_more_start(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"fused 2": 1.2}, {"votes of 7": 1.8}, votes=True)
    name, _, search = run(monkeypatch, stage)
    assert name == "votes of 7"
    assert search.tried[-1].record() == {
        "start": "votes of 7",
        "order": "given",
        "ratio": 1.0,
        "refined_ratio": 1.8,
    }
    # It is clearly real, so that no other start gets a second look.
    assert set(stage.second_looks) == {"votes of 7"}
    assert len(search.tried) == 2 + len(VARIANTS)


def test_votes_are_cast_in_each_order_and_count_what_was_voted_before(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({}, {"votes of 14 estimated": 1.6}, votes=True)
    name, order, search = run(monkeypatch, stage, orders=2)
    assert (name, order) == ("votes of 14", "estimated")
    voted = [(t.name, t.order) for t in search.tried if t.voted]
    assert voted == [(f"votes of {n}", order) for n in (7, 14) for order in ("given", "estimated")]


def test_a_start_that_translates_like_the_votes_is_no_consensus(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be one of those who voted."""
    stage = Staged({"fused 1": 1.3}, {}, alike=[("fused 1", "votes of 7")], votes=True)
    assert not run(monkeypatch, stage)[2].consensus


def test_few_items_without_order_send_messages_before_fused_starts_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"messages 2": 1.6}, {})
    name, _, search = run(monkeypatch, stage, few=True, ordered=False)
    assert name == "messages 2"
    assert [t.name for t in search.tried] == ["profiles", "messages 1", "messages 2"]


def test_not_more_items_than_their_cost_allows_send_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({}, {})
    seen: list[tuple[int, int]] = []
    stage.install(monkeypatch)
    monkeypatch.setattr(choice, "_MOST_MESSAGES", 20)

    def first_map(x: Array, y: Array, assumed: Any, callback: Any) -> Array:
        seen.append((x.shape[0], y.shape[0]))
        return stage.map_of(f"messages {len(seen)} 0")

    monkeypatch.setattr(messages, "first_map", first_map)
    search = search_of()
    search.ordered = False
    best_starts([search], FusedSettings())
    assert seen == [(20, 20)] * len(MESSAGES)


@pytest.mark.parametrize(("few", "ordered"), [(False, False), (True, True)])
def test_neither_many_items_nor_words_do(few: bool, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [t.name for t in run(monkeypatch, Staged({}, {}), few=few, ordered=ordered)[2].tried]
    assert not [name for name in names if name.startswith("messages")]
    assert len(names) == 1 + (choice._ROUNDS * len(VARIANTS) if ordered else len(ITEM_VARIANTS))


@pytest.mark.parametrize(("reached", "over"), [(1.2, False), (1.3, True)])
def test_messages_that_say_the_same_are_a_consensus_only_where_they_may_be_real(
    reached: float, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share their kernels, so that they fail alike."""
    stage = Staged({"messages 1": 1.22}, {"messages 1": reached}, alike=[("messages 1", "messages 3")])
    search = run(monkeypatch, stage, few=True, ordered=False)[2]
    assert search.consensus == over
    assert (len(search.tried) == 1 + len(MESSAGES)) == over


def test_messages_and_another_kind_of_start_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"fused 1": 1.1}, {"fused 1": 1.1}, alike=[("messages 1", "fused 1")])
    assert run(monkeypatch, stage, few=True, ordered=False)[2].consensus


def test_a_given_order_that_works_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"profiles": 1.6, "profiles estimated": 2.0}, {})
    assert run(monkeypatch, stage, orders=2)[:2] == ("profiles", "given")
    assert stage.looked_at == ["profiles"]


def test_an_estimated_order_competes_with_one_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"profiles": 1.1, "profiles estimated": 2.0}, {})
    assert run(monkeypatch, stage, orders=2)[:2] == ("profiles", "estimated")
    stage = Staged({"fused 2 estimated": 1.7}, {})
    name, order, search = run(monkeypatch, stage, orders=2)
    assert (name, order) == ("fused 2", "estimated")
    assert len(search.tried) == 2 + len(VARIANTS) + 2


def test_each_pair_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"profiles": 1.6}, {})
    stage.install(monkeypatch)
    easy, other = search_of(), Search([View("given", np.full((50, 3), 1.0), np.zeros((50, 3)))], 1)
    monkeypatch.setattr(choice, "_ROUNDS", 0)
    monkeypatch.setattr(choice, "_CONTINUATIONS", 0)
    assert [best.name for best in best_starts([easy, other], FusedSettings())] == ["profiles", "profiles"]
    assert [t.ratio for t in easy.tried] == [1.6]
    assert [t.ratio for t in other.tried] == [1.0]


def test_one_more_start_is_tried_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({"identical": 1.4}, {"identical": 1.8})
    stage.install(monkeypatch)
    search = search_of()
    search.tried.append(Tried("fused 1", "given", stage.map_of("fused 1 0"), ratio=1.2, refined=1.25))
    best = try_also(search, Tried("identical", "given", stage.map_of("identical 0")))
    assert (best.name, best.ratio, best.refined) == ("identical", 1.4, 1.8)
    assert best.record() == {"start": "identical", "order": "given", "ratio": 1.4, "refined_ratio": 1.8}


def test_fused_starts_take_a_random_part_of_the_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, tuple[int, ...]]] = []

    def first_map(x: Array, y: Array, ranks: tuple[Array, Array], *_: Any) -> Array:
        assert (x[:, 0] == ranks[0]).all()
        assert (y[:, 0] == ranks[1]).all()
        seen.append((len(x), len(y), tuple(ranks[0])))
        return rotation(1, 0)

    monkeypatch.setattr(fused, "first_map", first_map)
    view = View("given", np.arange(100.0)[:, None], np.arange(60.0)[:, None])
    for number in (1, 2, 1):
        choice.fused_map(view, replace(VARIANTS[1], words=0.8), FusedSettings(start_words=100), 0, number)
    assert [sizes for *sizes, _ in seen] == [[64, 48]] * 3
    assert max(seen[0][2]) < 80
    assert list(seen[0][2]) == sorted(set(seen[0][2]))
    assert seen[0] == seen[2] != seen[1]


def test_an_estimated_order_takes_more_words_in_later_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Staged({}, {})
    stage.install(monkeypatch)
    monkeypatch.setattr(choice._Judge, "_translations", lambda self, tried: stage.translations(tried))
    taken: dict[str, list[float]] = {"given": [], "estimated": []}

    def fused_map(view: View, variant: Variant, *_: Any) -> Array:
        taken[view.order].append(variant.words)
        return stage.map_of(f"fused {sum(map(len, taken.values()))} {view.x[0, 0]:g}")

    monkeypatch.setattr(choice, "fused_map", fused_map)
    best_starts([search_of(2)], FusedSettings())
    words = [variant.words for variant in VARIANTS]
    assert taken["given"] == words * choice._ROUNDS
    assert taken["estimated"] == [wider * w for wider in (1.0, 1.5, 2.0) for w in words]


@pytest.mark.slow
def test_trials_are_reported_by_the_name_of_their_start(short_trials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is ever clearly real, so that all get their trial; and the best of them is still the answer.
    monkeypatch.setattr(choice, "CLEARLY_REAL", 99.0)
    monkeypatch.setattr(choice, "_CONSENSUS", 99.0)
    problem = planted(250, d=12, noise=0.05, seed=1)
    seen: list[tuple[int, str, int, int]] = []
    search = Search([View("given", problem.src, problem.tgt)], 0)
    [best] = best_starts(
        [search],
        FusedSettings(start_words=250),
        callback=lambda pair, name, step, total, figures: seen.append((pair, name, step, total)) if figures else None,
    )
    names = ["profiles", *FUSED[: len(VARIANTS)]]
    assert sorted(seen) == sorted((0, name, step, 20) for name in names for step in range(1, 21))
    assert orthogonality_error(best.map) < 1e-5
    assert problem.accuracy(best.map) > 0.5  # chance is 1 in 250


def test_a_search_goes_on_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of(orders=2)
    first, second = rotation(search.views[0].x.shape[1], 1), rotation(search.views[0].x.shape[1], 2)
    search.tried = [
        Tried("profiles", search.views[0].order, first, 1.1),
        Tried("votes of 3", search.views[1].order, second, 1.2, 1.3, voted=True, kind="votes"),
    ]
    search.consensus, search.stages_done = True, 3
    maps, values = search.state()
    again = search_of(orders=2)
    again.restore(np.asarray(maps), json.loads(json.dumps(values)))
    assert (again.consensus, again.stages_done) == (True, 3)
    for one, other in zip(search.tried, again.tried, strict=True):
        assert (other.record(), other.voted, other.kind) == (one.record(), one.voted, one.kind)
        assert np.array_equal(np.asarray(other.map), np.asarray(one.map))


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
    search = search_of()
    search.tried = [Tried("profiles", search.views[0].order, rotation(search.views[0].x.shape[1], 1), 1.1)]
    maps, values = search.state()
    damage(values)
    with pytest.raises(InputError, match="the checkpoint of the search for a start cannot be used"):
        search_of().restore(np.asarray(maps), values)
