"""Ranks of words beside their vectors: words of similar frequency translate each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array

RANK_OFFSET = 10.0
"""Ranks are compared by their logarithms, counted from here: among the first words the order says little."""
# So many evenly spaced ranks of each side show how far they differ.
_RANKS_LOOKED_AT = 500


@dataclass(frozen=True)
class RankPrior:
    """What the ranks of words say of them, for P pairs of spaces.

    log_ranks: (N, 1) and (M, 1), logarithms of the ranks of the words of all sources, one space after the other, and of
    all targets. unit: (P,), by which squared differences of them deviate as much as inner products of mapped words.
    """

    log_ranks: tuple[Array, Array]
    unit: Array

    @classmethod
    def between(cls, xs: Sequence[Array], ys: Sequence[Array], w: Array) -> RankPrior:
        """Of xs (n_p, d) and ys (m_p, d) under the maps w (P, d, d)."""
        xp = arrays.namespace(w)
        units = []
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            # The mean square of all inner products <x W, y>; normalised words have a mean of about zero.
            second = [side.T @ side / side.shape[0] for side in (x @ w[i, ...], y)]
            deviation = xp.sqrt(xp.sum(second[0] * second[1]))
            some = [_log_ranks(np.linspace(0, side.shape[0] - 1, _RANKS_LOOKED_AT)) for side in (x, y)]
            units.append(deviation / (float(np.std((some[0][:, None] - some[1]) ** 2)) or 1.0))
        both = (np.concatenate([_log_ranks(np.arange(side.shape[0])) for side in sides]) for sides in (xs, ys))
        logs = [arrays.asarray(values[:, None], w) for values in both]
        return cls((logs[0], logs[1]), xp.stack(units))


def with_ranks(x: Array, y: Array, log_x: Array, log_y: Array, weight: Array) -> tuple[Array, Array]:
    """Points with three more columns, so that <x, y> is less by weight * (log_x - log_y)^2.

    x: (B, n, d), y: (B, m, d); log_x: (B, n, 1), log_y: (B, m, 1); weight: (P,), B a multiple of P. Returns (B, n, d +
    3) and (B, m, d + 3).
    """
    xp = arrays.namespace(x)
    each = xp.reshape(xp.broadcast_to(weight[:, None], (weight.shape[0], x.shape[0] // weight.shape[0])), (-1, 1, 1))
    ones = xp.ones_like(log_x)
    left = xp.concat([x, -each * log_x * log_x, 2.0 * each * log_x, -each * ones], axis=2)
    return left, xp.concat([y, xp.ones_like(log_y), log_y, log_y * log_y], axis=2)


def _log_ranks(ranks: np.ndarray) -> np.ndarray:
    """Logarithms of ranks from zero on, (n,): among the first words the order says little."""
    return np.log(ranks + RANK_OFFSET)
