"""How a running alignment is shown: a bar on a terminal, plain lines elsewhere, a line per epoch in both."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from qwp.showing import terminal
from qwp.showing.events import Progress
from qwp.showing.terminal import visible

_NAMES = {
    "initialize": "initialization",
    "coresets": "coresets",
    "loop": "transport loop",
    "couple": "Gromov-Wasserstein",
    "learn": "self-learning",
    "train": "training",
    "refine": "refinement",
    "verdict": "verdict",
}
_FIGURES = {
    "n_pairs": "pairs",
    "n_words": "words",
    "mean_csls": "mean CSLS",
    "best_mean_csls": "best mean CSLS",
    "gromov_wasserstein": "distance",
}
# Stages of hundreds of steps: without a bar a line now and then, beside one none.
_MANY_STEPS = ("initialize", "learn")
_LINE_EVERY = 10


B = TypeVar("B", bound="OnABar")


class NameColumn(ProgressColumn):
    """What a bar is about, never read as markup: it may hold the name of a file. width: at least so many columns."""

    def __init__(self, width: int = 0) -> None:
        super().__init__()
        self._width = width

    def render(self, task: Task) -> Text:
        """The description of a task."""
        return Text(visible(task.description).ljust(self._width))


class RateColumn(ProgressColumn):
    """Steps (or words) per second."""

    def __init__(self, unit: str = "") -> None:
        super().__init__()
        self._unit = f" {unit}" if unit else ""

    def render(self, task: Task) -> Text:
        """The rate of a task that has one."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}{self._unit}/s", style="progress.data.speed")


class OnABar:
    """What shows itself on a bar, if it has one. As a context manager it starts and stops the bar."""

    _bar: Bar | None

    def __enter__(self: B) -> B:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class AlignProgress(OnABar):
    """A progress callback for `fit`.

    quiet: show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet or sys.stderr is None  # a program without a console has no standard error
        self._console: Console = terminal.stderr()
        self._bar = _make_bar(self._console) if self._console.is_terminal and not self._quiet else None
        self._tasks: dict[str, TaskID] = {}
        self._epoch: list[Progress] = []
        self._last: Progress | None = None

    def __call__(self, event: Progress) -> None:
        """Show one event."""
        if self._quiet:
            return
        if self._bar is not None:
            self._advance(self._bar, event)
        if not self._repeats(event):
            for line in self._lines(event):
                self.note(line)
        self._last = event

    def note(self, line: str) -> None:
        """A line of its own, above the bar."""
        if not self._quiet:
            terminal.note(line, on=self._console)

    def _advance(self, bar: Bar, event: Progress) -> None:
        if event.stage not in self._tasks:
            name = _NAMES.get(event.stage, event.stage)
            # A resumed stage starts where it was left: what was done before must not count into the rate.
            self._tasks[event.stage] = bar.add_task(name, total=event.total, completed=event.done - 1)
        task = bar.tasks[self._tasks[event.stage]]
        if event.done < task.completed:  # the same stage for the next language
            bar.reset(task.id, total=event.total, completed=event.done - 1)
        if not task.finished:
            # `update` forgets the rate when it is told another total, which self-learning has at almost every step.
            task.total = event.total
        bar.update(task.id, completed=event.done, total=event.total)
        if event.stage == "verdict" and event.done == event.total:
            _close(bar)

    def _repeats(self, event: Progress) -> bool:
        """Whether this step was just shown: one that moves several languages at once is reported for each."""
        last = self._last
        return last is not None and (event.stage, event.done, event.total) == (last.stage, last.done, last.total)

    def _lines(self, event: Progress) -> list[str]:
        if event.stage == "loop":
            return self._epoch_lines(event)
        if event.stage == "verdict":
            return []
        if event.stage == "coresets":
            # On a terminal the bar says it; elsewhere one line is enough.
            return [] if self._bar is not None or event.done < event.total else ["coresets drawn"]
        if event.stage in _MANY_STEPS:
            due = event.done % _LINE_EVERY == 0 or event.done == event.total
            if self._bar is not None or not due:
                return []
        return [f"{_NAMES.get(event.stage, event.stage)} {event.done}/{event.total}: {_figures(event)}"]

    def _epoch_lines(self, event: Progress) -> list[str]:
        """A line when an epoch is over: when the next one begins, or at the last step."""
        found = []
        if self._epoch and self._epoch[-1].figures.get("epoch") != event.figures.get("epoch"):
            found.append(_epoch_line(self._epoch))
            self._epoch = []
        self._epoch.append(event)
        if event.done == event.total:
            found.append(_epoch_line(self._epoch))
            self._epoch = []
        return found


def _close(bar: Bar) -> None:
    """End the stages that stopped before their last step."""
    for task in bar.tasks:
        bar.update(task.id, total=task.completed)


def _make_bar(on: Console) -> Bar:
    return Bar(
        NameColumn(18),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn("steps"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=on,
    )


def _epoch_line(events: list[Progress]) -> str:
    event, last = events[-1], events[-1].figures
    iterations = [e.figures["sinkhorn_iterations"] for e in events if "sinkhorn_iterations" in e.figures]
    line = (
        f"epoch {last.get('epoch')} (step {event.done}/{event.total}): coreset size {last.get('k')}, "
        f"objective {last.get('objective', float('nan')):.4f}"
    )
    return line + (f", Sinkhorn iterations {sum(iterations) / len(iterations):.1f} a step" if iterations else "")


def _figures(event: Progress) -> str:
    shown = []
    for name, value in event.figures.items():
        label = _FIGURES.get(name, name.replace("_", " "))
        shown.append(f"{label} {value:.4f}" if isinstance(value, float) else f"{label} {value}")
    return ", ".join(shown)


def words_bar(quiet: bool) -> Bar:
    """A bar that counts words, for reading and writing files; it shows itself only on a terminal."""
    on = terminal.stderr()
    return Bar(
        NameColumn(),
        BarColumn(),
        TextColumn("{task.completed:,.0f} words"),
        RateColumn("words"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=on,
        disable=quiet or not on.is_terminal,
    )
