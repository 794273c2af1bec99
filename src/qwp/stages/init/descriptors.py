"""Descriptions of words that do not change under a rotation, and that can be compared between spaces of another origin.

A word is described by its sorted similarities to all words, at some levels, under several spectra of its space. Each of
these numbers is replaced by its normal score, that is by its rank within its own space: what differs between two
algorithms or two corpora as a whole is gone, what differs between words stays. The columns of both sides are then
whitened together and the main components kept.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.stages.init.similarities import Factor

# Powers of the singular values under which similarities are taken.
_SPECTRA = (0.5, 1.0, 2.0)
_LEVELS = 80
# The levels are evenly spaced on the logistic scale between these bounds: dense at both ends.
_LOGISTIC_BOUND = 6.0
_COMPONENTS = 20


def descriptors(x: Factor, y: Factor) -> tuple[Array, Array]:
    """Descriptions of n and m words by the factors of their similarities: (n, c) and (m, c), comparable by distance."""
    xp = arrays.namespace(x[0], y[0])
    n, m = x[0].shape[0], y[0].shape[0]
    shares = _shares(min(n, m) - 1)
    both = xp.concat([normal_scores(_profile(side, shares)) for side in (x, y)], axis=0)
    both = both - xp.mean(both, axis=0)
    wide = xp.astype(both, xp.float64)
    variances, axes = arrays.eigh_to_host(wide.T @ wide / both.shape[0])
    kept = np.flatnonzero(variances > variances[-1] * 1e-9)[-_COMPONENTS:]
    whitened = both @ arrays.asarray(axes[:, kept] / np.sqrt(variances[kept]), both)
    return whitened[:n, :], whitened[n:, :]


def normal_scores(columns: Array) -> Array:
    """Each entry of the columns (n, c) replaced by the normal quantile of its rank in its column."""
    xp = arrays.namespace(columns)
    ranks = xp.argsort(xp.argsort(columns, axis=0, stable=True), axis=0, stable=True)
    quantiles = arrays.asarray(_quantiles(columns.shape[0]), columns)
    return xp.reshape(xp.take(quantiles, xp.reshape(ranks, (-1,))), columns.shape)


@lru_cache(maxsize=32)
def _quantiles(n: int) -> np.ndarray:
    """The normal quantiles of n evenly spaced shares, (n,)."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / n) for i in range(n)])


def _profile(factor: Factor, shares: np.ndarray) -> Array:
    """Similarities of each of n words to the others, sorted, at these levels, under each spectrum: (n, c)."""
    u, s = factor
    xp = arrays.namespace(u)
    # The last of a sorted row is the word itself: equal for all but for rounding, it would be a column of noise.
    levels = arrays.asarray(np.rint(shares * max(0, u.shape[0] - 2)).astype(np.int64), u)
    found = []
    for power in _SPECTRA:
        z = unit(u * s**power)
        found.append(xp.take(xp.sort(z @ z.T, axis=1, stable=False), levels, axis=1))
    return xp.concat(found, axis=1)


def _shares(n: int) -> np.ndarray:
    """Levels, from 0 to 1, that differ in a sorted row of n similarities."""
    shares = 1.0 / (1.0 + np.exp(-np.linspace(-_LOGISTIC_BOUND, _LOGISTIC_BOUND, _LEVELS)))
    shares = (shares - shares[0]) / (shares[-1] - shares[0])
    return np.unique(np.rint(shares * (n - 1))) / max(1, n - 1)
