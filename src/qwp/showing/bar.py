"""Progress of a running alignment: bars on a terminal, plain lines elsewhere, and one line per epoch in both."""

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

STAGE_NAMES = {
    "bridges": "bridges",
    "initialize": "initialization",
    "coresets": "coresets",
    "loop": "transport loop",
    "couple": "Gromov-Wasserstein",
    "learn": "self-learning",
    "train": "training",
    "refine": "refinement",
    "verdict": "verdict",
}
_FIGURE_NAMES = {
    "n_pairs": "pairs",
    "n_words": "words",
    "mean_csls": "mean CSLS",
    "best_mean_csls": "best mean CSLS",
    "gromov_wasserstein": "distance",
}
# Stages of hundreds of steps: without a bar they print only some steps, with a bar none.
_LONG_STAGES = ("initialize", "learn")


B = TypeVar("B", bound="BarContext")


class NameColumn(ProgressColumn):
    """The name of a task as plain text without markup, because it may be a file name. width: minimum width."""

    def __init__(self, width: int = 0) -> None:
        super().__init__()
        self._width = width

    def render(self, task: Task) -> Text:
        """Return the description of a task."""
        return Text(visible(task.description).ljust(self._width))


class RateColumn(ProgressColumn):
    """Steps, or other units, per second."""

    def __init__(self, unit: str = "") -> None:
        super().__init__()
        self._unit = f" {unit}" if unit else ""

    def render(self, task: Task) -> Text:
        """Return the rate of a task, or nothing if it is unknown."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}{self._unit}/s", style="progress.data.speed")


class BarContext:
    """Context manager that starts and stops a progress bar, if there is one."""

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


class AlignProgress(BarContext):
    """A progress callback for `fit`.

    Args:
        quiet: show nothing.
        console: where to show progress; standard error by default.
        line_every: without a bar, a stage of hundreds of steps prints a line after this number of steps.
    """

    def __init__(self, *, quiet: bool = False, console: Console | None = None, line_every: int = 10) -> None:
        self._line_every = line_every
        self._quiet = quiet or sys.stderr is None  # a windowed program on Windows has no standard error
        self._console: Console = console or terminal.stderr()
        self._bar = _make_bar(self._console) if self._console.is_terminal and not self._quiet else None
        self._tasks: dict[str, TaskID] = {}
        self._epoch: list[Progress] = []
        self._last: Progress | None = None

    def __call__(self, event: Progress) -> None:
        """Show an event."""
        if self._quiet:
            return
        # The number of candidates of a search is unknown, so they have lines and no bar.
        if self._bar is not None and "candidates" not in event.figures:
            self._advance(self._bar, event)
        if not self._repeats(event):
            for line in self._lines(event):
                self.note(line)
        self._last = event

    def note(self, line: str) -> None:
        """Print a line above the bar."""
        if not self._quiet:
            terminal.note(line, on=self._console)

    def _advance(self, bar: Bar, event: Progress) -> None:
        if event.stage not in self._tasks:
            name = STAGE_NAMES.get(event.stage, event.stage)
            # A resumed stage starts at its last step: earlier steps must not count towards the rate.
            self._tasks[event.stage] = bar.add_task(name, total=event.total, completed=event.done - 1)
        task = bar.tasks[self._tasks[event.stage]]
        if event.done < task.completed:  # the same stage for the next language
            bar.reset(task.id, total=event.total, completed=event.done - 1)
        if not task.finished:
            # `update` resets the rate when the total changes, as it does at almost every step of self-learning.
            task.total = event.total
        bar.update(task.id, completed=event.done, total=event.total)
        if event.stage == "verdict" and event.done == event.total:
            _close(bar)

    def _repeats(self, event: Progress) -> bool:
        """Return whether this step was just shown: a step for several languages is reported for each of them."""
        last = self._last
        return last is not None and (event.stage, event.done, event.total) == (last.stage, last.done, last.total)

    def _lines(self, event: Progress) -> list[str]:
        if "candidates" in event.figures:
            return [_search_line(event)]
        if event.stage == "loop":
            return self._epoch_lines(event)
        if event.stage == "verdict":
            return []
        if event.stage == "coresets":
            # A terminal shows a bar; elsewhere one line is enough.
            return [] if self._bar is not None or event.done < event.total else ["coresets drawn"]
        if event.stage in _LONG_STAGES:
            due = event.done % self._line_every == 0 or event.done == event.total
            if self._bar is not None or not due:
                return []
        return [f"{STAGE_NAMES.get(event.stage, event.stage)} {event.done}/{event.total}: {_figures(event)}"]

    def _epoch_lines(self, event: Progress) -> list[str]:
        """Return the line of a finished epoch, when the next one begins or at the last step."""
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
    """Complete the bars of stages that stopped before their last step."""
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


def _search_line(event: Progress) -> str:
    """Return the line about the candidates of a search so far."""
    found = event.figures
    n, of = found["candidates"], f" of {found['searches']:.0f}" if "searches" in found else ""
    line = f"{n} {'candidate' if n == 1 else 'candidates'} tried, search {found['search']}{of}: best ratio "
    line += f"{found['best_ratio']:.2f}, accepted from {found['accept_ratio']:.2f}"
    return line + (f", {terminal.seconds(found['seconds_left'])} left" if "seconds_left" in found else "")


def _figures(event: Progress) -> str:
    shown = []
    for name, value in event.figures.items():
        label = _FIGURE_NAMES.get(name, name.replace("_", " "))
        shown.append(f"{label} {value:.4f}" if isinstance(value, float) else f"{label} {value}")
    return ", ".join(shown)


def words_bar(quiet: bool, console: Console | None = None) -> Bar:
    """Return a bar that counts words while a file is read or written; it is shown on a terminal only."""
    on = console or terminal.stderr()
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
