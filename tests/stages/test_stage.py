"""States are immutable, monitors report, count and save, and an interrupted stage continues."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pytest

from qwp.arrays import Array
from qwp.maps.procrustes import Maps
from qwp.showing.events import Progress
from qwp.stages.problem import Problem, View
from qwp.stages.stage import (
    STAGES,
    Initializer,
    Monitor,
    Report,
    Stage,
    State,
    clamped,
    timed,
    unprojected,
    view_of,
)
from tests.libraries import assert_close, assert_same
from tests.methods.cases import problem_of
from tests.problems import planted, rotation
from tests.tolerance import rounding

LIKE = np.zeros(1)


# --------------------------------------------------------------------------- states


def test_a_state_is_never_changed() -> None:
    first = State(order="estimated", accepted=True)
    second = first.after_step("loop", 3, Maps(np.eye(2)), {"objective": 0.5}, values={"rate": 0.1})
    third = second.recorded("loop", 4, {"objective": 0.25})
    assert first == State(order="estimated", accepted=True)
    assert second.history == ({"stage": "loop", "step": 3, "objective": 0.5},)
    assert third.history == (*second.history, {"stage": "loop", "step": 4, "objective": 0.25})
    assert (second.stage, second.done, second.values, second.order) == ("loop", 3, {"rate": 0.1}, "estimated")
    assert second.accepted
    assert_same(second.map, np.eye(2))
    with pytest.raises(FrozenInstanceError):
        first.done = 1  # type: ignore[misc]


def test_entering_a_stage_clears_the_data_of_the_last_one() -> None:
    maps = Maps(np.eye(2))
    state = State().after_step("loop", 3, maps, tensors={"mean": np.ones(2)}, values={"rate": 0.1})
    state = replace(state, initializer="profiles", candidates=({"initializer": "profiles"},), history=({"step": 1},))
    later = state.entering("refine")
    assert (later.stage, later.done, later.tensors, later.values) == ("refine", 0, {}, {})
    assert later.maps is maps
    assert later.initializer == "profiles"
    assert (later.candidates, later.history) == (({"initializer": "profiles"},), ({"step": 1},))


def test_a_state_moves_to_another_library_with_all_its_arrays() -> None:
    torch = pytest.importorskip("torch")
    state = State().after_step("train", 1, Maps(rotation(3, 0), rotation(3, 1)), tensors={"other": np.arange(3)})
    moved = state.on_device(torch.zeros(1))
    assert moved.maps is not None
    assert moved.maps.tgt is not None
    assert all(isinstance(each, torch.Tensor) for each in (*moved.maps, moved.tensors["other"]))
    back = moved.on_device(LIKE)
    assert back.maps is not None
    assert_same(back.map, rotation(3, 0))
    assert_same(back.maps.tgt, rotation(3, 1))
    assert_same(back.tensors["other"], np.arange(3))
    assert back.tensors["other"].dtype == np.int64
    assert State(order="given").on_device(torch.zeros(1)).maps is None


def wide_problem() -> Problem:
    """Return a problem between 5 and 7 dimensions."""
    narrow, wide = planted(60, d=5), planted(60, d=7)
    return problem_of(replace(narrow, tgt=wide.tgt))


def test_a_projected_map_is_unprojected_once() -> None:
    problem = wide_problem()
    state = State(maps=Maps(rotation(5, 3)), projected=True)
    view = view_of(problem, state)
    assert view.x.shape == view.y.shape == (60, 5)
    whole = unprojected(problem, state)
    assert not whole.projected
    assert whole.map.shape == (7, 7)
    assert view_of(problem, whole).x.shape == (60, 7)
    assert_close(view.project(whole.map), rotation(5, 3), atol=rounding("float64", 100))
    assert unprojected(problem, whole) == whole
    assert unprojected(problem, State(projected=True)) == State()


# --------------------------------------------------------------------------- monitors


def test_events_are_reported() -> None:
    events: list[Progress] = []
    monitor = Monitor(events.append)
    monitor.report("coresets", 3, 9, {})
    monitor.step(State().after_step("loop", 1, Maps(np.eye(2)), {"objective": 0.5}), 2)
    assert events == [Progress("coresets", 3, 9, {}), Progress("loop", 1, 2, {"objective": 0.5})]
    Monitor().report("coresets", 3, 9, {})


def test_seconds_add_up_and_are_shared() -> None:
    times = iter([0.0, 10.0, 14.0, 20.0, 21.0])
    one, two = Monitor(clock=lambda: next(times)), Monitor(seconds={"prepare": 5.0})
    with timed([one, two], "loop", LIKE):
        pass
    with pytest.raises(KeyboardInterrupt), timed([one], "loop", LIKE):
        raise KeyboardInterrupt
    assert (one.seconds, two.seconds) == ({"loop": 3.0}, {"prepare": 5.0, "loop": 2.0})
    one.move_seconds("loop", "coresets", 0.5)
    one.move_seconds("loop", "coresets", 0.25)
    assert one.seconds == {"loop": 2.25, "coresets": 0.75}


def test_stages_log_when_they_begin_and_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"), timed([Monitor(), Monitor()], "loop", LIKE):
        assert caplog.messages == ["loop of 2 pairs begins"]
    assert caplog.messages[1].startswith("loop of 2 pairs ends after ")


class Saved:
    """Collect saved states with their seconds."""

    def __init__(self) -> None:
        self.states: list[tuple[int, dict[str, float]]] = []

    def __call__(self, state: State, seconds: Mapping[str, float]) -> None:
        """Save a state."""
        self.states.append((state.done, dict(seconds)))


@pytest.mark.parametrize("interval", [None, 2.0])
def test_states_are_saved_at_intervals(interval: float | None) -> None:
    now = 100.0
    saved = Saved()
    monitor = Monitor(save=saved, interval=interval, clock=lambda: now)
    wait = Monitor.INTERVAL if interval is None else interval
    monitor.save(State(done=1))
    assert not monitor.due()
    now += wait
    assert monitor.due()
    monitor.save(State(done=2))
    now += 0.9 * wait
    monitor.save(State(done=3))
    assert not monitor.due()
    assert monitor.due(now=True)
    monitor.save(State(done=4), now=True)
    assert [done for done, _ in saved.states] == [2, 4]
    unwatched = Monitor(interval=0.0)
    unwatched.save(State(done=5), now=True)
    assert not unwatched.due(now=True)


def test_a_saved_state_has_the_seconds_of_its_stage_so_far() -> None:
    # Construction, begin, due, count, after the save, end.
    times = iter([0.0, 10.0, 12.0, 14.0, 15.0, 20.0])
    saved = Saved()
    monitor = Monitor(save=saved, interval=0.0, clock=lambda: next(times))
    with timed([monitor], "loop", LIKE):
        monitor.step(State().after_step("loop", 1, Maps(np.eye(2)), {}), 2)
        monitor.step(State().after_step("loop", 2, Maps(np.eye(2)), {}), 2, save=False)
    assert saved.states == [(1, {"loop": 4.0})]
    assert monitor.seconds == {"loop": 10.0}


# --------------------------------------------------------------------------- stages


@dataclass(frozen=True, kw_only=True)
class Told(Initializer):
    """Report two steps and return a rotation."""

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return a rotation of the width of the view."""
        for step in (1, 2):
            report(step, 2, {"objective": 1.0 / step})
        return rotation(view.x.shape[1], 2)


def test_an_initializer_records_its_steps() -> None:
    events: list[Progress] = []
    problem = problem_of(planted(20, d=3))
    begun = State(history=({"stage": "earlier"},), stage="initialize")
    state = Told()(problem, begun, Monitor(events.append))
    assert_same(state.map, rotation(3, 2))
    records = [{"stage": "initialize", "step": step, "objective": 1.0 / step} for step in (1, 2)]
    assert state.history == ({"stage": "earlier"}, *records)
    assert events == [Progress("initialize", step, 2, {"objective": 1.0 / step}) for step in (1, 2)]
    assert begun.maps is None


def test_an_initializer_sees_the_view_of_the_state() -> None:
    state = Told()(wide_problem(), State(projected=True), Monitor())
    assert state.map.shape == (5, 5)
    assert state.projected


def test_a_stage_runs_several_problems_one_after_the_other() -> None:
    problems = [problem_of(planted(20, d=d)) for d in (3, 4)]
    states = Told().run_many(problems, [State(), State()], [Monitor(), Monitor()])
    assert [state.map.shape for state in states] == [(3, 3), (4, 4)]


def test_what_a_stage_is_unless_it_says_otherwise() -> None:
    plain = Stage()
    assert plain.chosen is plain
    assert plain.uses_seed
    assert not plain.compares_orders
    assert not plain.holds_out_pairs
    assert plain.pairs_at_a_time(None) == 1
    plain.check_supervision(lexicon=True, matrix=True)


def test_sizes_are_clamped_to_the_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        assert clamped("train_words", 5, 5) == 5
        assert caplog.text == ""
        assert clamped("train_words", 6, 5) == 5
    assert "train_words=6 is more than the data holds: 5 is used" in caplog.text


def test_stages_are_named_once() -> None:
    assert len(set(STAGES)) == len(STAGES)
    assert (STAGES[0], STAGES[-1]) == ("prepare", "verdict")
