"""Progress of many jobs: lines, and one table on a terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from qwp.cli.jobs import JobProgress, JobStatus
from qwp.showing import terminal


def test_a_line_estimates_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    with JobProgress("cells", quiet=False) as progress:
        progress(JobStatus(10, 4, 0, 2))
        progress(JobStatus(10, 4, 1, 2, "en-es failed: no"))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "4/10 cells, 2 running, 0 failed"
    assert re.fullmatch(r"5/10 cells, 2 running, 1 failed, about \d+\.\d s left; en-es failed: no", second)


def test_a_terminal_has_one_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "stderr", lambda: Console(file=screen, force_terminal=True, width=120))
    with JobProgress("cells", quiet=False) as progress:
        progress(JobStatus(10, 4, 1, 2))
        progress(JobStatus(10, 5, 1, 2, "en-es [red] \x1b[2J 3.0 s"))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    heads, last = [line.split() for line in plain.splitlines() if line.strip()][-2:]
    assert heads == ["cells", "done", "running", "failed", "time", "left", "last"]
    assert last[:4] == ["10", "5", "2", "1"]
    assert "en-es [red]" in plain
    assert "\x1b[2J" not in screen.getvalue()


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with JobProgress("cells", quiet=True) as progress:
        progress(JobStatus(10, 4, 0, 2))
    assert capsys.readouterr().err == ""
