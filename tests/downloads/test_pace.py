from __future__ import annotations

import pytest

from qwp.downloads.pace import Pace, TooSlowError


def test_each_period_needs_its_bytes() -> None:
    now = [0.0]
    pace = Pace(100.0, 60.0, clock=lambda: now[0])
    for second in range(1, 181):  # three periods of just enough
        now[0] = float(second)
        pace.received(100)
    now[0] += 59.0
    pace.received(1)  # a part of a period proves nothing
    now[0] += 60.0
    with pytest.raises(TooSlowError, match="2 bytes came in 119 s, less than 100 bytes per second"):
        pace.received(1)
    now[0] += 60.0
    pace.received(6000)  # counted anew


def test_a_long_pause_before_the_first_byte_counts() -> None:
    now = [0.0]
    pace = Pace(100.0, 60.0, clock=lambda: now[0])
    now[0] = 61.0
    with pytest.raises(TooSlowError, match="10 bytes came in 61 s"):
        pace.received(10)
