"""Initialize by similarity profiles: match words whose sorted similarities to all other words are similar.

A rotation does not change these profiles. Artetxe et al. (2018) match them by nearest neighbours; here entropic
transport matches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.maps.procrustes import polar
from qwp.ot.sinkhorn import sinkhorn
from qwp.parameters import MOST_WORDS, START, param
from qwp.stages.init.descriptors import similarity_factor
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Report


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
