"""Options and progress of commands that run many jobs: `qwp align-many` and `qwp experiment`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType

from rich.live import Live
from rich.table import Table
from rich.text import Text

from qwp.cli.options import count, option
from qwp.experiments.engines import ENGINES, LOCAL, EngineChoice
from qwp.showing import terminal
from qwp.showing.terminal import visible

_REFRESHES = 2.0
"""Per second, so that the clock of the table runs while no job ends."""


@dataclass(frozen=True)
class EngineOptions:
    """Options that say where to run jobs, and how many at a time."""

    engine: str = option("Processes of this machine (local), or a Ray cluster (ray).", default=LOCAL, choices=ENGINES)
    address: str | None = option("The Ray cluster to join. (default: a temporary one on this machine)", "HOST:PORT")
    workers: int | None = count("Number of jobs at a time. (default: one for each core, or for each GPU)", most=10_000)

    def checked(self, device: str) -> EngineChoice:
        """Return the engine choice. Raises an InputError for contradictory options."""
        chosen = EngineChoice(self.engine, self.address, device, self.workers)
        chosen.check()
        return chosen


@dataclass(frozen=True)
class JobStatus:
    """Number of jobs by state.

    Args:
        done: jobs that succeeded, in this run or an earlier one.
        failed: jobs that failed, in this run or an earlier one.
        last: a sentence on the job that ended last.
    """

    total: int
    done: int
    failed: int
    running: int
    last: str | None = None

    @property
    def ended(self) -> int:
        """Number of jobs that succeeded or failed."""
        return self.done + self.failed


class JobProgress:
    """Show the status of jobs: one live table on a terminal, a line for each status elsewhere.

    noun: what the jobs are called, in the plural.
    """

    def __init__(self, noun: str, *, quiet: bool) -> None:
        self._noun, self._quiet, self._console = noun, quiet, terminal.stderr()
        self._begin, self._ended_before = time.monotonic(), -1
        self._status = JobStatus(0, 0, 0, 0)
        self._last = ""
        self._live: Live | None = None
        if self._console.is_terminal and not quiet:
            self._live = Live(console=self._console, refresh_per_second=_REFRESHES, get_renderable=self._table)

    def __enter__(self) -> JobProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, now: JobStatus) -> None:
        """Show a new status."""
        if self._ended_before < 0:
            self._ended_before = now.ended
        self._status, self._last = now, now.last or self._last
        if self._live is not None:
            self._live.refresh()
        elif not self._quiet:
            left = self._left()
            text = f"{now.ended}/{now.total} {self._noun}, {now.running} running, {now.failed} failed"
            text += f", about {left} left" if left else ""
            terminal.note(f"{text}; {now.last}" if now.last else text, on=self._console)

    def _table(self) -> Table:
        now = self._status
        table = Table(box=None, padding=(0, 2, 0, 0))
        row = {
            self._noun: str(now.total),
            "done": str(now.done),
            "running": str(now.running),
            "failed": str(now.failed),
            "time": terminal.seconds(time.monotonic() - self._begin),
            "left": self._left() or "",
            "last": self._last,
        }
        for name in row:
            table.add_column(name, no_wrap=name != "last", overflow="fold", header_style="dim")
        table.add_row(*(Text(visible(value)) for value in row.values()), style="bold red" if now.failed else "")
        return table

    def _left(self) -> str:
        """Return the estimated time left; "" before the first job has ended."""
        now, computed = self._status, self._status.ended - self._ended_before
        if computed <= 0 or now.ended >= now.total:
            return ""
        return terminal.seconds((time.monotonic() - self._begin) / computed * (now.total - now.ended))
