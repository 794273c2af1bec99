"""Initialize by similarity profiles: match words whose sorted similarities to all other words are similar.

A rotation does not change these profiles. Artetxe et al. (2018) match them by nearest neighbours; here entropic
transport matches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.maps.procrustes import polar
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import MOST_WORDS, START, param
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Report

# --------------------------------------------------------------------------- descriptors of words

# A word is described by quantiles of its similarities to all words, under several spectra of its space. They do not
# change if the space is rotated. Each number is replaced by its normal score within its own space, which removes
# differences between algorithms or corpora and keeps differences between words. The columns of both sides are whitened
# together and reduced to their principal components.

Factor: TypeAlias = tuple[Array, Array]
"""U (n, r) and s (r,) of similarities U diag(s) U^T."""


def similarity_factor(x: Array) -> Factor:
    """Return U (n, r) and s (r,) of K = U diag(s) U^T, where s are the singular values of x (n, d).

    K is the matrix of similarities x x^T with the square roots of its eigenvalues. The factors are computed from the
    small matrix x^T x in float64. Directions without variance are left out.
    """
    xp = arrays.namespace(x)
    wide = xp.astype(x, xp.float64)
    squares, axes = arrays.eigh_to_host(wide.T @ wide)
    nonzero = squares > squares[-1] * x.shape[1] * np.finfo(np.float64).eps * 100
    s = np.sqrt(squares[nonzero])[::-1]
    u = wide @ arrays.asarray(axes[:, nonzero][:, ::-1] / s, wide)
    return xp.astype(u, x.dtype), arrays.asarray(np.ascontiguousarray(s), x)


def descriptors(
    x: Factor,
    y: Factor,
    *,
    spectra: Sequence[float] = (0.5, 1.0, 2.0),
    levels: int = 80,
    components: int = 20,
) -> tuple[Array, Array]:
    """Return descriptors of n and m words from their similarity factors, comparable by distance: (n, c) and (m, c).

    The defaults were set by hand.

    Args:
        x: similarity factor of the source.
        y: similarity factor of the target.
        spectra: powers of the singular values of the spectra.
        levels: quantiles of the similarities under each spectrum.
        components: most principal components of the descriptors.
    """
    xp = arrays.namespace(x[0], y[0])
    n, m = x[0].shape[0], y[0].shape[0]
    shares = _shares(min(n, m) - 1, levels)
    both = xp.concat([normal_scores(_profile(side, shares, spectra)) for side in (x, y)], axis=0)
    both = both - xp.mean(both, axis=0)
    wide = xp.astype(both, xp.float64)
    variances, axes = arrays.eigh_to_host(wide.T @ wide / both.shape[0])
    largest = np.flatnonzero(variances > variances[-1] * 1e-9)[-components:]
    whitened = both @ arrays.asarray(axes[:, largest] / np.sqrt(variances[largest]), both)
    return whitened[:n, :], whitened[n:, :]


def normal_scores(columns: Array) -> Array:
    """Return columns (n, c) with each entry replaced by the normal quantile of its rank in the column."""
    xp = arrays.namespace(columns)
    ranks = xp.argsort(xp.argsort(columns, axis=0, stable=True), axis=0, stable=True)
    quantiles = arrays.asarray(_quantiles(columns.shape[0]), columns)
    return xp.reshape(xp.take(quantiles, xp.reshape(ranks, (-1,))), columns.shape)


@lru_cache(maxsize=32)
def _quantiles(n: int) -> np.ndarray:
    """Return the normal quantiles of n evenly spaced probabilities, (n,)."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / n) for i in range(n)])


def _profile(factor: Factor, shares: np.ndarray, spectra: Sequence[float]) -> Array:
    """Return the quantiles of the similarities of n words at these levels, under each spectrum: (n, c)."""
    u, s = factor
    xp = arrays.namespace(u)
    # The last entry of a sorted row is the word itself: a constant up to rounding.
    levels = arrays.asarray(np.rint(shares * max(0, u.shape[0] - 2)).astype(np.int64), u)
    found = []
    for power in spectra:
        z = unit(u * s**power)
        found.append(xp.take(xp.sort(z @ z.T, axis=1, stable=False), levels, axis=1))
    return xp.concat(found, axis=1)


def _shares(n: int, levels: int, bound: float = 6.0) -> np.ndarray:
    """Return the distinct quantile levels, from 0 to 1, of a sorted row of n similarities.

    They are evenly spaced on the logit scale between -bound and bound, so that they are dense at both ends.
    """
    shares = 1.0 / (1.0 + np.exp(-np.linspace(-bound, bound, levels)))
    shares = (shares - shares[0]) / (shares[-1] - shares[0])
    return np.unique(np.rint(shares * (n - 1))) / max(1, n - 1)


def unit_deviation(values: Array) -> Array:
    """Return values divided by their standard deviation, if they have one."""
    spread = float(arrays.namespace(values).std(values))
    return values / spread if spread > 0 else values


def start_words_param(default: int = 2500) -> Any:
    """Declare the parameter `start_words` of an initializer."""
    return param(
        default,
        "Most frequent words that take part in the initialization.",
        START,
        least=1,
        most=MOST_WORDS,
        option="start_words",
    )


def frequency_prior_param() -> Any:
    """Declare the parameter `frequency_prior` of an initializer."""
    return param(
        4.0,
        "Weight of ranks relative to that of similarities in fused initializations and, half of it and fading out, in "
        "their trials; 0 ignores the ranks.",
        START,
        least=0,
        most=1e4,
    )


# --------------------------------------------------------------------------- the initializer


@dataclass(frozen=True, kw_only=True)
class Profiles(Initializer):
    """Match the similarity profiles of the most frequent words."""

    uses_seed = False

    words: int = start_words_param()
    epsilon: float = 0.1
    """Entropic regularisation, relative to the standard deviation of the cost."""
    neighbours: int = 10
    """Neighbourhood size of the CSLS correction of profile similarities."""
    tol: float = 1e-3
    """Tolerance of the Sinkhorn marginals."""
    max_iter: int = 200

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the initial map of the rows of a view."""
        return self.solve(view.x, view.y)

    def solve(self, x: Array, y: Array) -> Array:
        """Return the map W (d, d). x: (n, d), y: (m, d) normalised rows, most frequent first.

        Profiles are compared by cosine with the CSLS correction for hubs and matched by entropic transport. Procrustes
        on the plan gives the map.
        """
        xp = arrays.namespace(x, y)
        n = min(self.words, x.shape[0], y.shape[0])
        x, y = x[:n, :], y[:n, :]
        similarity = _profile_rows(x) @ _profile_rows(y).T
        near_x, _ = arrays.top_k(similarity, self.neighbours)
        near_y, _ = arrays.top_k(similarity.T, self.neighbours)
        cost = xp.expand_dims(xp.mean(near_x, axis=1), axis=1) + xp.mean(near_y, axis=1) - 2.0 * similarity
        mass = xp.full((n,), 1.0 / n, dtype=x.dtype, device=arrays.device(x))
        epsilon = self.epsilon * float(xp.std(cost)) or 1.0
        plan = sinkhorn(cost, mass, mass, epsilon=epsilon, tol=self.tol, max_iter=self.max_iter)
        return polar(x.T @ plan.apply(y))


def _profile_rows(x: Array) -> Array:
    """Return the sorted rows of the similarity matrix of x (n, d), scaled to unit length, (n, n)."""
    xp = arrays.namespace(x)
    u, s = similarity_factor(x)
    return unit(xp.sort((u * s) @ u.T, axis=1, stable=False))
