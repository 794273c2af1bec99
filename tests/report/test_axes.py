"""Axes: round ticks and their labels."""

from __future__ import annotations

from qwp.report import axes


def test_tick_labels() -> None:
    cases: list[tuple[list[float], float, list[str]]] = [
        ([0.0, 2.5, 5.0], 2.5, ["0.0", "2.5", "5.0"]),
        ([0.25, 0.5], 0.25, ["0.25", "0.50"]),
        ([0.0, 200.0], 200.0, ["0", "200"]),
        ([0.0, 1e6, 2e6], 1e6, ["0", "1e+06", "2e+06"]),
        ([1e-5, 1.5e-5], 5e-6, ["1.0e-05", "1.5e-05"]),
        ([-0.0, 0.1], 0.1, ["0.0", "0.1"]),
    ]
    for ticks, step, labels in cases:
        assert axes.tick_labels(ticks, step) == labels


def test_percent_ticks_enclose_the_highest_share() -> None:
    assert [label for _, label in axes.percent_ticks(0.47)] == ["0", "10", "20", "30", "40", "50"]
    assert axes.percent_ticks(1.0)[-1] == (1.0, "100")
    assert axes.percent_ticks(0.0)[-1][0] >= 0.01


def test_long_labels_get_room() -> None:
    frame = axes.Frame()
    assert frame.fitting(["0", "1"]) == frame
    assert frame.fitting(["2.5e-06"]).left > frame.left
