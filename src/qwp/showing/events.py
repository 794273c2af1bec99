"""Progress events of a running fit, and the callbacks that receive them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Progress:
    """A progress event.

    Attributes:
        stage: one of `qwp.stages.stage.STAGES`.
        done: number of finished steps.
        total: number of steps; it may grow.
        figures: measurements of the last step.
    """

    stage: str
    done: int
    total: int
    figures: dict[str, Any]


ProgressCallback: TypeAlias = Callable[[Progress], None]
PairCallback: TypeAlias = Callable[[int, Progress], None]
"""Callback for several pairs; receives the number of the pair and the event."""
