"""Start by similarity profiles.

Words are matched whose sorted similarities to all other words look alike, because that profile does not change under a
rotation (the idea of Artetxe et al. 2018, here with entropic transport instead of nearest neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.maps.procrustes import polar
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import MOST_WORDS, START, Settings, param
from qwp.stages.init.similarities import similarity_factor


@dataclass(kw_only=True)
class ProfileSettings(Settings):
    """Which words the profiles are made of."""

    start_words: int = param(2500, "Most frequent words that take part in the start.", START, least=1, most=MOST_WORDS)


# Entropy of the profile plan, as a fraction of the spread of its cost.
_PROFILE_EPSILON = 0.1
_PROFILE_NEIGHBOURS = 10


def initial_map(x: Array, y: Array, words: int) -> Array:
    """First map by similarity profiles. x: (n, d), y: (m, d) normalised, most frequent first. Returns W (d, d).

    Words are described by their sorted similarities to the `words` most frequent words, compared by cosine with the
    CSLS correction for hubs, and matched by entropic transport; Procrustes on the plan gives the map.
    """
    xp = arrays.namespace(x, y)
    n = min(words, x.shape[0], y.shape[0])
    x, y = x[:n, :], y[:n, :]
    similarity = _profile_rows(x) @ _profile_rows(y).T
    near_x, _ = arrays.top_k(similarity, _PROFILE_NEIGHBOURS)
    near_y, _ = arrays.top_k(similarity.T, _PROFILE_NEIGHBOURS)
    cost = xp.expand_dims(xp.mean(near_x, axis=1), axis=1) + xp.mean(near_y, axis=1) - 2.0 * similarity
    spread = float(xp.std(cost))
    mass = xp.full((n,), 1.0 / n, dtype=x.dtype, device=arrays.device(x))
    plan = sinkhorn(cost, mass, mass, epsilon=_PROFILE_EPSILON * spread or 1.0, tol=1e-3, max_iter=200)
    return polar(x.T @ plan.apply(y))


def _profile_rows(x: Array) -> Array:
    """Sorted rows of the similarity matrix of x (n, d), unit length. Returns (n, n)."""
    xp = arrays.namespace(x)
    u, s = similarity_factor(x)
    return unit(xp.sort((u * s) @ u.T, axis=1, stable=False))
