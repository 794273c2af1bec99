"""Durations for people."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Seconds, or minutes and seconds."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {value % 60:.0f} s"
