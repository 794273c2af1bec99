"""How far many jobs are: one live table on a terminal, a line for each job elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType

from rich.live import Live
from rich.table import Table
from rich.text import Text

from qwp.cli import console
from qwp.showing import terminal
from qwp.showing.terminal import visible

_REFRESHES = 2.0
"""Of a second, so that the clock goes on while nothing else does."""


@dataclass(frozen=True)
class Standing:
    """Where a run is. done, failed: of all jobs, now and before; last: the one that just came, in words."""

    total: int
    done: int
    failed: int
    running: int
    last: str | None = None

    @property
    def over(self) -> int:
        """Jobs that nothing is left to do for."""
        return self.done + self.failed


class Shown:
    """Shows where a run is. noun: what its jobs are called. As a context manager it starts and stops the table."""

    def __init__(self, noun: str, *, quiet: bool) -> None:
        self._noun, self._quiet, self._console = noun, quiet, terminal.stderr()
        self._begin, self._before = time.monotonic(), -1
        self._standing = Standing(0, 0, 0, 0)
        self._last = ""
        self._live: Live | None = None
        if self._console.is_terminal and not quiet:
            self._live = Live(console=self._console, refresh_per_second=_REFRESHES, get_renderable=self._table)

    def __enter__(self) -> Shown:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, now: Standing) -> None:
        """Show where a run is."""
        if self._before < 0:
            self._before = now.over
        self._standing, self._last = now, now.last or self._last
        if self._live is not None:
            self._live.refresh()
        elif not self._quiet:
            left = self._left()
            text = f"{now.over}/{now.total} {self._noun}, {now.running} running, {now.failed} failed"
            text += f", about {left} left" if left else ""
            terminal.note(f"{text}; {now.last}" if now.last else text, on=self._console)

    def _table(self) -> Table:
        now = self._standing
        table = Table(box=None, padding=(0, 2, 0, 0))
        row = {
            self._noun: str(now.total),
            "done": str(now.done),
            "running": str(now.running),
            "failed": str(now.failed),
            "time": console.seconds(time.monotonic() - self._begin),
            "left": self._left() or "",
            "last": self._last,
        }
        for name in row:
            table.add_column(name, no_wrap=name != "last", overflow="fold", header_style="dim")
        table.add_row(*(Text(visible(value)) for value in row.values()), style="bold red" if now.failed else "")
        return table

    def _left(self) -> str:
        """An estimate once there is something to make it from."""
        now, computed = self._standing, self._standing.over - self._before
        if computed <= 0 or now.over >= now.total:
            return ""
        return console.seconds((time.monotonic() - self._begin) / computed * (now.total - now.over))
