"""Whether one system is better than another: paired bootstrap over queries.

All systems on the same queries see the same resamples, so the difference of two is resampled as a whole: what makes a
query hard for both cancels. Seeds are averaged query by query before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Name = TypeVar("Name", bound=Hashable)

RESAMPLES, LEVEL = 1000, 0.05
BEST, LEVEL_WITH_BEST, WORSE = "best", "level", "worse"
# Numbers held by one block of resamples: 16 MB.
BLOCK_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Estimate:
    """A measure, and what it is in each resample, (B,)."""

    value: float
    resamples: Floats

    def less(self, other: Estimate) -> Estimate:
        """The difference of two on the same resamples."""
        return Estimate(self.value - other.value, self.resamples - other.resamples)

    def interval(self) -> tuple[float, float]:
        """95 % of the resamples, pad where needed to hold the value."""
        low, high = np.quantile(self.resamples, [LEVEL / 2, 1 - LEVEL / 2])
        return min(float(low), self.value), max(float(high), self.value)

    def p_value(self) -> float:
        """Two-sided, of the hypothesis that the value is not different from zero."""
        count = len(self.resamples)
        against = min(np.count_nonzero(self.resamples <= 0), np.count_nonzero(self.resamples >= 0))
        return min(1.0, 2 * (1 + int(against)) / (1 + count))


@dataclass(frozen=True)
class Mark:
    """Where a system stands: best, level (not significantly worse at 5 %) or worse. p: of being worse than the best."""

    rank: str
    p: float


def mean(estimates: list[Estimate]) -> Estimate:
    """Of estimates on the same resamples, or on those of different queries, which are independent."""
    values = float(np.mean([each.value for each in estimates]))
    return Estimate(values, np.mean([each.resamples for each in estimates], axis=0))


def resample(
    shares: Floats, weights: Floats, generator: np.random.Generator, *, block_elements: int = BLOCK_ELEMENTS
) -> list[Estimate]:
    """Estimates of q systems on the same w queries. shares, weights: (w, q); a measure is the ratio of their sums."""
    n = shares.shape[0]
    block, parts = max(1, block_elements // n), []
    for begin in range(0, RESAMPLES, block):
        size = min(RESAMPLES - begin, block)
        picks = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(picks.reshape(-1), minlength=size * n).reshape(size, n).astype(np.float64)
        parts.append((counts @ shares) / (counts @ weights))
    found = np.concatenate(parts)
    values = shares.sum(axis=0) / weights.sum(axis=0)
    return [Estimate(float(value), found[:, i]) for i, value in enumerate(values)]


def marks(estimates: Mapping[Name, Estimate]) -> dict[Name, Mark]:
    """The best system, and which others are not significantly worse. One alone is not marked."""
    if len(estimates) < 2:
        return {}
    best = max(estimates, key=lambda name: estimates[name].value)
    found = {best: Mark(BEST, 1.0)}
    for name, estimate in estimates.items():
        if name != best:
            p = estimates[best].less(estimate).p_value()
            found[name] = Mark(WORSE if p < LEVEL else LEVEL_WITH_BEST, p)
    return found
