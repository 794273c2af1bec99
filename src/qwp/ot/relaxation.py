"""Longer steps for Sinkhorn: over-relaxation that follows the observed rate."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, cast

import numpy as np

from qwp import arrays
from qwp.arrays import Array


def relaxed(wanted: Array, old: Array, factor: float) -> Array:
    """The step from an old scaling to the wanted one, made longer (Lehmann et al. 2022)."""
    if factor == 1.0:
        return wanted
    xp = arrays.namespace(wanted)
    limit, tiny = _bounds(cast(Any, xp), wanted.dtype)
    # Nothing but what is needed: small problems spend as much on the calls as on the numbers.
    log_wanted = xp.log(arrays.clamped(wanted, tiny, math.inf))
    log_old = xp.log(arrays.clamped(old, tiny, math.inf))
    longer = xp.exp(arrays.clamped(factor * log_wanted + (1.0 - factor) * log_old, -limit, limit))
    # A point without weight stays without.
    return longer * xp.astype(wanted > 0, wanted.dtype)


def relax_in_place(scaling: np.ndarray, wanted: np.ndarray, factor: float) -> None:
    """scaling = relaxed(wanted, scaling, factor), up to rounding, for positive ones; `wanted` is written over."""
    limit, tiny = _bounds(np, scaling.dtype)
    for values, share in ((wanted, factor), (scaling, 1.0 - factor)):
        np.maximum(values, tiny, out=values)
        np.log(values, out=values)
        np.multiply(values, share, out=values)
    np.add(wanted, scaling, out=scaling)
    np.maximum(scaling, -limit, out=scaling)
    np.minimum(scaling, limit, out=scaling)
    np.exp(scaling, out=scaling)


@lru_cache(maxsize=8)
def _bounds(xp: Any, dtype: Any) -> tuple[float, float]:
    """The largest exponent, far enough from the largest number for a sum of ten thousand such; the least number."""
    info = xp.finfo(dtype)
    return math.log(float(info.max)) - math.log(1e4), float(info.smallest_normal)


class Relaxation:
    """How much longer than a Sinkhorn step to make the next ones.

    Sweeps converge linearly in the end, as successive over-relaxation does (Lehmann et al. 2022): with steps longer by
    w the error shrinks by l each sweep, where (l + w - 1)^2 = l w^2 r and r is the rate of plain ones. The best w is
    2 / (1 + sqrt(1 - r)), and its l is w - 1: a rate of 0.9 becomes 0.52. So the rate of every few sweeps tells r, and
    r the next w: it grows as the fast parts of the error die out. Where longer steps do not pay, plain ones come back.
    """

    _SHORTEST_WINDOW = 8
    _MOST_FAILURES = 4
    _LONGEST = 1.98

    def __init__(self) -> None:
        self.factor = 1.0
        self._looked: tuple[int, float] | None = None
        self._settling = False
        self._failures = 0

    @property
    def _window(self) -> int:
        """Sweeps over which to measure the rate: the longer the steps, the longer the error swings."""
        return max(self._SHORTEST_WINDOW, math.ceil(1.0 / (2.0 - self.factor))) << self._failures

    def look(self, n_iter: int, error: float) -> None:
        """Take note of the error after `n_iter` sweeps."""
        if self._looked is None:
            self._looked = n_iter, error
            return
        passed, before = n_iter - self._looked[0], self._looked[1]
        if passed < self._window:
            return
        self._looked = n_iter, error
        if self._settling:
            self._settling = False
            return
        rate = (error / before) ** (1.0 / passed) if before > 0 and error > 0 else 0.0
        if not rate < 1.0:
            if self.factor > 1.0:
                # Sweeps do not converge at one rate yet. Plain ones for longer, then again.
                self.factor, self._failures = 1.0, self._failures + 1
        elif self._failures < self._MOST_FAILURES and rate > self.factor - 1.0:
            plain = min(1.0, (rate + self.factor - 1.0) ** 2 / (rate * self.factor**2))
            best = min(self._LONGEST, 2.0 / (1.0 + math.sqrt(1.0 - plain)))
            if best > self.factor + 0.01:
                self._settling = self.factor > 1.0
                self.factor = best
