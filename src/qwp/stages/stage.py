"""The base of all stages: a function of a problem and a state that returns a new state, watched by a monitor."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps
from qwp.ot.coreset_source import BankCache
from qwp.parameters import Settings
from qwp.showing.events import Progress, ProgressCallback
from qwp.stages.problem import Problem, View

logger = logging.getLogger(__name__)

STAGES = ("prepare", "bridges", "initialize", "coresets", "loop", "couple", "learn", "train", "refine", "verdict")
"""The names of all stages in their order. bridges: aligning both sides with third spaces; coresets: drawing them;
couple: Gromov-Wasserstein; learn: dictionary induction; train: gradient descent."""
FINISHED = "finished"
"""The name of the state after the last stage."""

Record: TypeAlias = "dict[str, Any]"
"""A record of the history: the stage, the step and its figures, as plain JSON types."""


@dataclass(frozen=True)
class State:
    """The progress of a fit: the maps, the next or interrupted stage, and an append-only trace.

    maps: (width, width) each; (r, r) between the principal axes if `projected`; (L, width, width) for L languages.
    order: the name of the view in use. done: finished steps of `stage`. tensors, values: the data that the stage needs
    to continue from there; values are plain JSON types.

    The trace: history has the records of the steps, candidates a record of each initial map that was tried.
    initializer: the name of the best candidate. accepted: whether a candidate was accepted; None if none was scored.
    remark: a sentence that follows the verdict.
    """

    maps: Maps | None = None
    projected: bool = False
    order: str = "given"
    stage: str = ""
    done: int = 0
    tensors: Mapping[str, Array] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Record, ...] = ()
    candidates: tuple[Record, ...] = ()
    initializer: str | None = None
    accepted: bool | None = None
    remark: str = ""

    @property
    def map(self) -> Array:
        """The map of the source side."""
        assert self.maps is not None, "an initializer comes first"
        return self.maps.src

    def after_step(
        self,
        stage: str,
        done: int,
        maps: Maps,
        figures: Mapping[str, Any] | None = None,
        *,
        tensors: Mapping[str, Array] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> State:
        """Return the state after step `done` of a stage. figures: a record for the history."""
        state = self if figures is None else self.recorded(stage, done, figures)
        return replace(state, stage=stage, done=done, maps=maps, tensors=tensors or {}, values=values or {})

    def recorded(self, stage: str, step: int, figures: Mapping[str, Any]) -> State:
        """Return the state with one more record in its history."""
        return replace(self, history=(*self.history, {"stage": stage, "step": step, **figures}))

    def on_device(self, like: Array) -> State:
        """Return the state with its arrays on the device and in the library of another array."""

        def moved(array: Array) -> Array:
            host = arrays.to_numpy(array)
            return arrays.asarray(host, like, dtype=host.dtype.name)

        maps = self.maps
        if maps is not None:
            maps = Maps(moved(maps.src), None if maps.tgt is None else moved(maps.tgt))
        return replace(self, maps=maps, tensors={name: moved(each) for name, each in self.tensors.items()})

    def entering(self, stage: str) -> State:
        """Return the state at the beginning of a stage."""
        return replace(self, stage=stage, done=0, tensors={}, values={})


class Monitor:
    """Watch one fit: report progress, save states, and sum the seconds of each stage. No result depends on it.

    save: writes a state with the seconds so far. interval: least seconds between two saved states within a stage.
    bank_cache: banks of coresets that other fits have drawn. clock: returns the time in seconds.
    """

    INTERVAL = 5.0

    def __init__(
        self,
        progress: ProgressCallback | None = None,
        save: Callable[[State, Mapping[str, float]], None] | None = None,
        *,
        interval: float | None = None,
        seconds: Mapping[str, float] | None = None,
        bank_cache: BankCache | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._progress, self._save, self.bank_cache = progress, save, bank_cache
        self._interval = self.INTERVAL if interval is None else interval
        self.seconds: dict[str, float] = dict(seconds or {})
        self.clock = clock
        self._last_save = clock()
        self.totals: dict[str, int] = {}
        self._before_save: Callable[[], object] | None = None

    def report(self, stage: str, done: int, total: int, figures: Mapping[str, Any]) -> None:
        """Report one event to the listener, and remember the number of steps of the stage in `totals`."""
        self.totals[stage] = total
        if self._progress is not None:
            self._progress(Progress(stage, done, total, dict(figures)))

    def step(self, state: State, total: int, *, now: bool = False, save: bool = True) -> None:
        """Report the last record of a state, and save the state. now: even if the last save was recent."""
        record = {name: value for name, value in state.history[-1].items() if name not in ("stage", "step")}
        self.report(state.stage, state.done, total, record)
        if save:
            self.save(state, now=now)

    def due(self, *, now: bool = False) -> bool:
        """Return whether `save` would write a state."""
        return self._save is not None and (now or self.clock() - self._last_save >= self._interval)

    def save(self, state: State, *, now: bool = False) -> None:
        """Save a state unless the last save was recent. now: save it in any case."""
        if self._save is not None and self.due(now=now):
            if self._before_save is not None:
                self._before_save()
            self._save(state, self.seconds)
            self._last_save = self.clock()

    def before_save(self, call: Callable[[], object] | None) -> None:
        """Set what is called before each save, or nothing by None."""
        self._before_save = call

    def move_seconds(self, stage: str, part: str, seconds: float) -> None:
        """Move seconds from a stage to a part of it that is reported as a stage of its own."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) - seconds
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds


@contextmanager
def timed(monitors: Sequence[Monitor], stage: str, like: Array) -> Iterator[None]:
    """Divide the seconds of the block among the monitors as time of this stage, and log its beginning and end.

    like: an array on the device whose pending work counts as part of the block.
    """
    of = f" of {len(monitors)} pairs" if len(monitors) > 1 else ""
    logger.info("%s%s begins", stage, of)
    clock = monitors[0].clock
    begin = last = clock()

    def count() -> None:
        nonlocal last
        arrays.synchronize(like)
        now = clock()
        for monitor in monitors:
            monitor.seconds[stage] = monitor.seconds.get(stage, 0.0) + (now - last) / len(monitors)
        last = now

    for monitor in monitors:
        monitor.before_save(count)
    try:
        yield
    finally:
        count()
        for monitor in monitors:
            monitor.before_save(None)
    logger.info("%s%s ends after %.1f s", stage, of, last - begin)


class Stage(Settings):
    """One stage of a method: a frozen dataclass of its parameters.

    An interrupted stage continues from `state.done`, `state.tensors` and `state.values`.
    """

    name: ClassVar[str]
    projects: ClassVar[bool] = False
    """Whether its steps are cubic in the width, so that this stage and the preceding ones use projected views."""
    uses_seed: ClassVar[bool] = True
    """Whether its result depends on the seed."""
    compares_orders: ClassVar[bool] = False
    """Whether it compares an estimated order of the words with the given one."""

    @property
    def chosen(self) -> Stage:
        """The stage that runs: this one, unless it is a choice among several."""
        return self

    @property
    def holds_out_pairs(self) -> bool:
        """Whether it needs some of the known pairs to be held out."""
        return False

    def named(self, name: str) -> str:
        """Return the name of the stage in a choice, as --help shows it."""
        return name

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Raise an InputError for a lexicon or a matrix that the stage does not use, or that it lacks."""

    def pairs_at_a_time(self, max_memory: float | None) -> int:
        """Return the number of problems to run in lock-step on a GPU. max_memory: in GiB."""
        del max_memory
        return 1

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state after this stage. A stage overrides this method or `run_many`."""
        return self.run_many([problem], [state], [monitor])[0]

    def run_many(
        self, problems: Sequence[Problem], states: Sequence[State], monitors: Sequence[Monitor]
    ) -> list[State]:
        """Return the states of several problems. A stage that runs them in lock-step overrides this method instead."""
        return [self(*one) for one in zip(problems, states, monitors, strict=True)]


def view_of(problem: Problem, state: State) -> View:
    """Return the two spaces in the order of the state, projected if the state is."""
    view = problem.view_of(state.order)
    return view.projected if state.projected else view


def unprojected(problem: Problem, state: State) -> State:
    """Return the state with its map in all dimensions."""
    if not state.projected or state.maps is None:
        return replace(state, projected=False)
    projection = problem.view_of(state.order).projected.projection
    assert projection is not None
    return replace(state, projected=False, maps=Maps(projection.unproject(state.map)))


Report: TypeAlias = "Callable[[int, int, dict[str, Any]], None]"
"""Called with a finished step, the number of steps and the figures of the step."""


class Initializer(Stage):
    """A stage that computes an initial map of the source side."""

    name = "initialize"

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the initial map (d, d) of the rows of a view."""
        raise NotImplementedError

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the initial map."""
        history = list(state.history)

        def report(step: int, total: int, figures: dict[str, Any]) -> None:
            history.append({"stage": self.name, "step": step, **figures})
            monitor.report(self.name, step, total, figures)

        w = self.initial_map(problem, view_of(problem, state), report)
        return replace(state, maps=Maps(w), history=tuple(history))


def clamped(name: str, wanted: int, available: int) -> int:
    """Return the wanted size, or the available size if that is smaller; log a message in that case."""
    if wanted <= available:
        return wanted
    logger.info("%s=%d is more than the data holds: %d is used", name, wanted, available)
    return available
