"""What a running fit tells whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Progress:
    """One event of a running fit. stage: one of `qwp.stages.stage.STAGES`; figures: what that step measured."""

    stage: str
    done: int
    total: int
    figures: dict[str, Any]


ProgressCallback: TypeAlias = Callable[[Progress], None]
PairCallback: TypeAlias = Callable[[int, Progress], None]
"""For several pairs: gets the number of the pair before the event."""
