from __future__ import annotations

import time

import pytest

from qwp.cli.stopwatch import Stopwatch


def test_parts_are_counted_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 12.0, 15.0, 16.0, 20.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = Stopwatch()
    clock.lap("read")
    clock.skip()
    clock.lap("save")
    clock.lap("read")
    assert clock.seconds == {"read": 2.0 + 4.0, "save": 1.0}
