"""Pipelines: the order of the stages, interrupted runs, lock-step, cache keys, and the choice of an initializer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from qwp import InputError
from qwp.maps.procrustes import Maps, polar_svd, procrustes
from qwp.ot.coreset_source import Coresets
from qwp.parameters import Settings, check, parameters, with_values
from qwp.showing.events import Progress
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.init.best_of import BestOf
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.given import GivenMatrix, Identity, LexiconPairs
from qwp.stages.init.profiles import Profiles
from qwp.stages.pipeline import Choice, Pipeline
from qwp.stages.problem import Prepare, Problem
from qwp.stages.refinement import WEIGHTED, CslsRefinement
from qwp.stages.stage import FINISHED, Monitor, State
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes
from tests.libraries import assert_close, assert_same
from tests.methods.cases import problem_of, seeds
from tests.problems import Planted, planted, rotation
from tests.stages.problems import StateMemory
from tests.tolerance import rounding

LOOP = WassersteinProcrustes(coresets=Coresets(size=60, bank_size=4, pairs_per_step=1), epochs=2, steps=3)
WHOLE = Pipeline(init=Profiles(), solve=LOOP, refine=CslsRefinement(rounds=3))


def begun(pipeline: Pipeline, problem: Problem) -> State:
    return pipeline.initial_state(problem)


def run(pipeline: Pipeline, problem: Problem, monitor: Monitor | None = None, state: State | None = None) -> State:
    """Return the last state of one problem."""
    first = begun(pipeline, problem) if state is None else state
    return pipeline.run([problem], [first], [Monitor() if monitor is None else monitor])[0]


def wide(noise: float = 0.1) -> Planted:
    """Return a planted rotation of 12 dimensions whose target lies in a space of 15."""
    problem = planted(150, d=12, noise=noise)
    whole = rotation(15, 5)[:12, :]
    return replace(problem, tgt=problem.tgt @ whole, w=problem.w @ whole)


# --------------------------------------------------------------------------- the order of the stages


def test_the_stages_run_in_their_order() -> None:
    events: list[Progress] = []
    monitor, problem = Monitor(events.append), planted(150, noise=0.1)
    last = run(WHOLE, problem_of(problem), monitor)
    assert [(event.stage, event.done) for event in events if event.stage != "coresets"] == [
        *(("loop", step) for step in range(1, 7)),
        *(("refine", number) for number in range(1, 4)),
    ]
    assert [record["stage"] for record in last.history] == ["loop"] * 6 + ["refine"] * 3
    assert (last.stage, last.tensors, last.values) == (FINISHED, {}, {})
    assert list(monitor.seconds) == ["initialize", "loop", "coresets", "refine"]
    assert all(seconds >= 0 for seconds in monitor.seconds.values())
    assert problem.accuracy(last.map) > 0.95


def test_any_stage_may_be_missing() -> None:
    problem = problem_of(planted(150, noise=0.1))
    refined = Pipeline(init=Identity(), refine=CslsRefinement(rounds=2))
    assert [stage.name for stage in refined.stages] == ["initialize", "refine"]
    assert len(run(refined, problem).history) == 2
    assert_same(run(Pipeline(init=Identity()), problem).map, np.eye(12))


def test_a_projected_map_is_unprojected_at_the_end() -> None:
    for pipeline in (WHOLE, replace(WHOLE, refine=None), replace(WHOLE, solve=None)):
        problem = problem_of(wide())
        assert begun(pipeline, problem).projected == (pipeline.solve is not None)
        last = run(pipeline, problem)
        assert last.map.shape == (15, 15)
        assert not last.projected
        assert wide().accuracy(last.map[:12, :]) > 0.95


def test_the_chosen_initializer_is_the_stage() -> None:
    choice = Choice(start="identity", among={"identity": Identity(), "profiles": Profiles()})
    assert Pipeline(init=choice).stages == [Identity()]
    assert not Pipeline(init=choice, refine=CslsRefinement()).compares_orders
    assert Pipeline(init=BestOf(), refine=CslsRefinement()).compares_orders
    assert not WHOLE.holds_out_pairs
    assert Pipeline(init=LexiconPairs(), refine=AnchoredRefinement()).holds_out_pairs


def test_supervision_is_checked_by_the_stages() -> None:
    choice = Choice(start="identity", among={"identity": Identity(), "lexicon": LexiconPairs()})
    Pipeline(init=choice).check_supervision(lexicon=False, matrix=False)
    with pytest.raises(InputError, match="lexicon was given but start='identity' does not use it"):
        Pipeline(init=choice).check_supervision(lexicon=True, matrix=False)
    with pytest.raises(InputError, match="start='lexicon' needs lexicon"):
        Pipeline(init=replace(choice, start="lexicon")).check_supervision(lexicon=False, matrix=False)


# --------------------------------------------------------------------------- interrupted runs


def interrupted(pipeline: Pipeline, problem: Problem, stage: str, step: int) -> State:
    """Return the last saved state of a run that is interrupted in a step of a stage."""
    saved: list[State] = []

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(pipeline, problem, Monitor(interrupt, lambda state, _: saved.append(state), interval=0.0))
    return saved[-1]


@pytest.mark.parametrize("planted_problem", [planted(150, noise=0.2), wide(0.2)], ids=["one width", "two widths"])
@pytest.mark.parametrize(("stage", "step"), [("loop", 1), ("loop", 4), ("refine", 1), ("refine", 3)])
def test_an_interrupted_run_continues_from_its_step(stage: str, step: int, planted_problem: Planted) -> None:
    problem = problem_of(planted_problem)
    pipeline = replace(WHOLE, refine=replace(WEIGHTED, rounds=3, words=0, first_words=80))
    whole = run(pipeline, problem)
    state = interrupted(pipeline, problem, stage, step)
    assert (state.stage, state.done) == (stage, step - 1)
    events: list[Progress] = []
    resumed = run(pipeline, problem, Monitor(events.append), state)
    assert next((event.stage, event.done) for event in events if event.stage != "coresets") == (stage, step)
    assert resumed.maps is not None
    assert whole.maps is not None
    for one, other in zip(resumed.maps, whole.maps, strict=True):
        assert_same(one, other)
    assert resumed.history == whole.history


def test_a_finished_run_is_not_repeated() -> None:
    problem = problem_of(planted(150, noise=0.2))
    saved: list[State] = []
    whole = run(WHOLE, problem, Monitor(save=lambda state, _: saved.append(state), interval=1e9))
    # A state is saved after each stage and after each refinement round, whatever the interval.
    assert [(state.stage, state.done) for state in saved] == [
        ("loop", 0),
        ("refine", 0),
        *(("refine", number) for number in (1, 2, 3)),
        (FINISHED, 0),
    ]
    events: list[Progress] = []
    assert_same(run(WHOLE, problem, Monitor(events.append), saved[-1]).map, whole.map)
    assert events == []


# --------------------------------------------------------------------------- further rounds


def test_only_unaccepted_maps_of_unordered_items_are_refined_further() -> None:
    problem = problem_of(planted(200, noise=0.9))
    halfway = polar_svd(planted(200, noise=0.9).w + rotation(12, 7))
    far = State(maps=Maps(halfway), stage="refine")
    pipeline = Pipeline(init=Identity(), refine=CslsRefinement(rounds=1, words=0, further_rounds=20))
    for ordered in (True, False):
        for accepted in (None, True, False):
            state = replace(far, accepted=accepted)
            last = run(pipeline, replace(problem, ordered=ordered), state=state)
            more = accepted is False and not ordered
            assert (len(last.history) > 2) == more, (ordered, accepted)
            assert len(last.history) == 1 or more


# --------------------------------------------------------------------------- several problems


def test_problems_in_lock_step_have_the_results_of_single_runs() -> None:
    # The second problem has other sizes, so its loop runs separately.
    problems = [problem_of(planted(n, noise=0.1, seed=n), seed=n) for n in (150, 70, 150)]
    monitors = [Monitor() for _ in problems]
    together = WHOLE.run(problems, [begun(WHOLE, problem) for problem in problems], monitors)
    for problem, found, monitor in zip(problems, together, monitors, strict=True):
        alone = run(WHOLE, problem)
        # Equal up to the tolerance of the transport.
        assert_close(found.map, alone.map, atol=1e-4)
        assert [record["step"] for record in found.history] == [record["step"] for record in alone.history]
        assert list(monitor.seconds) == ["initialize", "loop", "coresets", "refine"]


def test_pairs_at_a_time_is_the_maximum_of_the_stages() -> None:
    assert Pipeline(init=Profiles(), refine=CslsRefinement()).pairs_at_a_time(None) == 1
    assert WHOLE.pairs_at_a_time(None) == LOOP.pairs_at_a_time(None) > WHOLE.pairs_at_a_time(0.5) > 1


# --------------------------------------------------------------------------- shared states


KEYS = {"inputs": {"src": "a", "tgt": "b"}}


def keys(pipeline: Pipeline, seed: int = 0, **context: Any) -> dict[str, str]:
    return pipeline.keys({**KEYS, **context}, seed)


def test_a_state_depends_on_the_stages_before_it_alone() -> None:
    given = replace(WHOLE, prepare=Prepare(order="given"))
    assert list(keys(given)) == ["refine", "loop"]
    assert keys(given) == keys(given)
    later = keys(replace(given, refine=CslsRefinement(rounds=1)))
    assert later == keys(given)
    loop = keys(replace(given, solve=replace(LOOP, steps=4)))
    assert loop["loop"] == keys(given)["loop"]
    assert loop["refine"] != keys(given)["refine"]
    first = keys(replace(given, init=Profiles(words=90)))
    prepared = keys(replace(given, prepare=Prepare(order="given", dtype="float64")))
    inputs = keys(given, inputs={"src": "a", "tgt": "c"})
    for others in (first, prepared, inputs):
        assert set(others.values()).isdisjoint(keys(given).values())


@pytest.mark.parametrize("order", ["given", "auto", "none"])
def test_a_state_depends_on_the_seed_if_a_stage_before_it_does(order: str) -> None:
    # Estimating an order samples reference words.
    pipeline = replace(WHOLE, prepare=Prepare(order=order))
    one, other = keys(pipeline, 0), keys(pipeline, 1)
    assert (one["loop"] == other["loop"]) == (order == "given")
    assert one["refine"] != other["refine"]
    searched = replace(pipeline, init=BestOf())
    assert keys(searched, 0)["loop"] != keys(searched, 1)["loop"]


def test_states_after_stages_are_shared() -> None:
    problem, memory = problem_of(planted(150, noise=0.2)), StateMemory()
    names = keys(WHOLE)
    [last] = WHOLE.run([problem], [begun(WHOLE, problem)], [Monitor()], memory, names)
    assert set(memory.states) == set(names.values())
    for name, spent in (("loop", ["initialize"]), ("refine", ["initialize", "loop", "coresets"])):
        state, seconds = memory.states[names[name]]
        assert (state.stage, state.done) == (name, 0)
        assert list(seconds) == spent
        assert_same(run(WHOLE, problem, state=state).map, last.map)


# --------------------------------------------------------------------------- held-out pairs


def test_an_initializer_does_not_learn_from_held_out_pairs() -> None:
    noisy = planted(300, noise=0.3)
    pipeline = Pipeline(init=LexiconPairs(), refine=AnchoredRefinement())
    problem = problem_of(noisy, lexicon=seeds(250), hold_out=pipeline.holds_out_pairs)
    assert problem.known is not None
    assert problem.known.held_out is not None
    src, tgt = problem.known.used
    assert len(src) == 200
    found = run(Pipeline(init=LexiconPairs()), problem)
    assert_close(found.map, procrustes(noisy.src[src], noisy.tgt[tgt]), atol=rounding("float64", 1000))


CHOICE = Choice(
    start="profiles",
    among={
        "profiles": Profiles(),
        "fused": FusedGromovWasserstein(),
        "identity": Identity(),
        "lexicon": LexiconPairs(),
        "matrix": GivenMatrix(),
    },
)


def test_the_initializer_is_chosen_by_name() -> None:
    assert CHOICE.chosen == Profiles()
    assert with_values(CHOICE, {"start": "identity"}).chosen == Identity()


def test_the_choices_of_the_parameter_are_the_initializers() -> None:
    start = parameters(CHOICE)["start"]
    assert start.default == "profiles"
    assert start.declared.help == "The initializer: profiles, fused, identity, lexicon:FILE or matrix:FILE.npy."
    assert start.declared.choices == tuple(CHOICE.among)
    check(CHOICE)
    message = "start='random' is not known; expected one of profiles, fused, identity, lexicon, matrix"
    with pytest.raises(InputError, match=message):
        check(with_values(CHOICE, {"start": "random"}))


def test_a_value_reaches_every_initializer_that_has_the_parameter() -> None:
    changed = with_values(CHOICE, {"start_words": 70, "frequency_prior": 1.5})
    assert changed.among["profiles"] == Profiles(words=70)
    assert changed.among["fused"] == FusedGromovWasserstein(words=70, frequency_prior=1.5)
    assert changed.among["identity"] == Identity()
    assert {"start_words", "frequency_prior"} <= parameters(CHOICE).keys()


@pytest.mark.parametrize(
    ("start", "lexicon", "matrix", "message"),
    [
        ("lexicon", False, False, r"start='lexicon' needs lexicon=\.\.\.; none was given"),
        ("matrix", False, False, r"start='matrix' needs start_matrix=\.\.\.; none was given"),
        ("identity", True, False, "lexicon was given but start='identity' does not use it: set start='lexicon'"),
        ("profiles", False, True, "start_matrix was given but start='profiles' does not use it: set start='matrix'"),
        ("lexicon", True, True, "start_matrix was given but start='lexicon' does not use it: set start='matrix'"),
        ("matrix", True, True, "lexicon was given but start='matrix' does not use it: set start='lexicon'"),
    ],
)
def test_supervision_that_does_not_go_with_the_initializer_is_refused(
    start: str, lexicon: bool, matrix: bool, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        with_values(CHOICE, {"start": start}).check_supervision(lexicon, matrix)


@pytest.mark.parametrize(("start", "lexicon", "matrix"), [("lexicon", True, False), ("matrix", False, True)])
def test_supervision_that_the_initializer_uses_is_accepted(start: str, lexicon: bool, matrix: bool) -> None:
    with_values(CHOICE, {"start": start}).check_supervision(lexicon, matrix)
    CHOICE.check_supervision(lexicon=False, matrix=False)


def test_a_composition_has_the_parameters_of_all_initializers() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Method(Settings):
        init: Choice = CHOICE

    assert {"start", "start_words", "frequency_prior"} == parameters(Method()).keys()
    assert with_values(Method(), {"start": "fused", "start_words": 9}).init.chosen == FusedGromovWasserstein(words=9)
