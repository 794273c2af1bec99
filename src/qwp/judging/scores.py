"""A measure with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Score:
    """One measure in 0..1 with its bootstrap 95 % interval."""

    value: float
    low: float
    high: float

    def percent(self) -> str:
        """In percent, with the interval where it has one."""
        shown = f"{100 * self.value:.1f}"
        return shown if self.low == self.high else f"{shown} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def to_dict(self) -> dict[str, float]:
        """The three numbers, ready for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def ratios(
    shares: Floats, weights: Floats, resamples: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """sum(shares) / sum(weights) by column, with its percentile interval over resampled rows.

    shares, weights: (n, q). Returns value, low and high, each (q,).
    """
    value = np.sum(shares, axis=0) / np.sum(weights, axis=0)

    def of_samples(counts: Floats) -> Floats:
        # Two matrix products evaluate every resample.
        return np.asarray((counts @ shares) / (counts @ weights))

    low, high = interval(value, of_samples, shares.shape[0], resamples, generator)
    return value, low, high


def interval(
    value: Floats,
    of_samples: Callable[[Floats], Floats],
    n: int,
    resamples: int,
    generator: np.random.Generator,
    *,
    at_once: int = 1 << 20,
) -> tuple[Floats, Floats]:
    """The percentile interval of statistics of n rows, over resampled rows.

    value: (q,) of the rows themselves; the interval holds it, and is no wider without resamples. of_samples: takes how
    often each row was drawn in each of r samples, (r, n), and gives (r, q); NaN, where a sample does not say, counts as
    the value. at_once: numbers in a block of resamples. Returns low and high, (q,) each.
    """
    if resamples == 0:
        return value, value

    def draw(size: int) -> Floats:
        picks = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        return of_samples(np.bincount(picks.reshape(-1), minlength=size * n).reshape(size, n).astype(np.float64))

    estimates = np.concatenate([draw(size) for size in _chunks(resamples, max(1, at_once // n))])
    estimates = np.where(np.isnan(estimates), value, estimates)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(estimates, [tail, 1.0 - tail], axis=0)
    return np.minimum(low, value), np.maximum(high, value)


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]
