"""Durations for people."""

from __future__ import annotations

import pytest

from qwp.showing.durations import seconds


@pytest.mark.parametrize(("value", "shown"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (61.0, "1 min 1 s")])
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown
