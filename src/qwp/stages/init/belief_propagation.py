"""Initialize by belief propagation on dense graph matching.

Suppose that i and j are counterparts, and so are k and l. Then the similarity a of i and k and the similarity b of j
and l, at unit deviation, correlate by some r. The log-odds that i and j are counterparts is a sum over all other pairs,
each weighted by its own odds L_kl:

    log L_ij = prior_ij + q / n * sum_kl L_kl * (density of (a_ik, b_jl) if they correlate / if they do not - 1)

where a share q of the items has a counterpart. For normal variables the ratio of the densities is the sum over h of
r^h He_h(a) He_h(b) / h! (Mehler), with Hermite polynomials He_h. So the term of order h is a product of three matrices,
He_h(K_x) L He_h(K_y). Order 1 alone is the gradient of Gromov-Wasserstein. Order 2 compares how extreme similarities
are, and solves problems with few items.

The prior compares descriptors of single items. The weight of the messages is bounded by the energy of the current odds,
and the bound grows slowly: overconfident early messages only reinforce themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.maps.procrustes import polar
from qwp.ot.costs import cost_matrix, rank_cost
from qwp.ot.sinkhorn import sinkhorn
from qwp.stages.init.profiles import (
    Factor,
    descriptors,
    frequency_prior_param,
    similarity_factor,
    start_words_param,
    unit_deviation,
)
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Report

# Hermite polynomials by order. Similarities have longer tails than normal variables: outliers would dominate order 3.
_POLYNOMIALS: dict[int, Callable[[Array], Array]] = {1: lambda k: k, 2: lambda k: k * k - 1.0}
# Largest log-odds: certainty for all purposes, with a finite exponential.
_CERTAIN = 60.0


@dataclass(frozen=True, kw_only=True)
class BeliefPropagation(Initializer):
    """Belief propagation between all pairs of the first items of each side. It needs about ten matrices (n, m).

    Variants of `spectrum` and `correlation` fail on different pairs. Values without a source were set by hand.
    """

    uses_seed = False

    words: int = start_words_param()
    frequency_prior: float = frequency_prior_param()
    spectrum: float = 0.6
    """Power of the singular values in the similarities."""
    correlation: float = 0.6
    """Assumed correlation of the similarities of counterparts."""
    prior: float = 0.5
    """Factor of the frequency prior."""
    in_common: float = 0.8
    """Assumed share of items with a counterpart. It need not be exact."""
    clip: float = 3.0
    """Similarities are clipped to this many deviations, because their tails are longer than normal ones."""
    steps: int = 100
    growth: float = 1.25
    """Largest growth of the weight of the messages in one step."""
    max_odds: float = 10.0
    """Largest odds of a pair relative to chance in the first step, so that no single pair dominates."""
    odds_growth: float = 1.05
    """Growth of `max_odds` per step."""
    settled: float = 1e-4
    """The odds have converged when their energy changes by less than this share."""
    tol: float = 1e-2
    """Tolerance of the Sinkhorn marginals. The odds need not be exact, because the next step corrects them."""
    max_iter: int = 30

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the initial map of the rows of a view."""
        chosen = self if problem.ordered else replace(self, frequency_prior=0.0)
        return chosen.solve(view.x, view.y, lambda step, steps: report(step, steps, {}))

    def solve(self, x: Array, y: Array, callback: Callable[[int, int], None] | None = None) -> Array:
        """Return the map W (d, d). x: (n, d), y: (m, d) normalised rows. callback(step, steps): after every step."""
        x, y = (side[: min(self.words, side.shape[0]), :] for side in (x, y))
        return polar(x.T @ (self.odds(x, y, callback) @ y))

    def odds(self, x: Array, y: Array, callback: Callable[[int, int], None] | None = None) -> Array:
        """Return the odds of each pair of items relative to chance, (n, m), with rows and columns of mean one."""
        factors = similarity_factor(x), similarity_factor(y)
        kernels = [_kernels(factor, self.spectrum, self.clip) for factor in factors]
        prior = _prior(factors, self.frequency_prior * self.prior)
        odds, potential = self._balanced(prior, None, self.max_odds)
        energy = bound = _energy(odds)
        for step in range(1, self.steps + 1):
            evidence = prior
            for order, kx, ky in zip(_POLYNOMIALS, *kernels, strict=True):
                evidence = evidence + self._message(odds, kx, ky, order, bound)
            odds, potential = self._balanced(evidence, potential, self.max_odds * self.odds_growth**step)
            before, energy = energy, _energy(odds)
            bound = min(energy, self.growth * bound)
            if callback is not None:
                callback(step, self.steps)
            if bound == energy and abs(energy - before) <= self.settled * energy:
                break
        return odds

    def _message(self, odds: Array, kx: Array, ky: Array, order: int, bound: float) -> Array:
        """Return the messages (n, m) of an order with the kernels kx (n, n) and ky (m, m).

        Their deviation is at most that of true odds of energy `bound`.
        """
        xp = arrays.namespace(odds)
        message = kx @ ((odds - 1.0) @ ky)
        deviation = float(xp.std(message))
        weight = self.in_common * self.correlation**order / math.factorial(order) / min(odds.shape)
        most = self.in_common * self.correlation**order * math.sqrt(max(0.0, bound - 1.0))
        return message * (min(weight, most / deviation) if deviation > 0 else weight)

    def _balanced(self, evidence: Array, potential: Array | None, most: float) -> tuple[Array, Array]:
        """Return the odds (n, m) of log-odds, with rows and columns of mean one and clipped to about `most`.

        Returns the Sinkhorn potential too. potential: that of an earlier call, (m,), for a warm start.
        """
        xp = arrays.namespace(evidence)
        n, m = evidence.shape
        a, b = (xp.full((size,), 1.0 / size, dtype=evidence.dtype, device=arrays.device(evidence)) for size in (n, m))
        cost = -xp.clip(evidence, None, _CERTAIN)
        plan = sinkhorn(cost, a, b, epsilon=1.0, tol=self.tol, max_iter=self.max_iter, init=potential)
        odds = xp.clip(plan.matrix * (n * m), None, most)
        for axis in (1, 0):
            odds = odds / xp.mean(odds, axis=axis, keepdims=True)
        return odds, plan.log_v


def _energy(odds: Array) -> float:
    """Return the mean square of the odds: one for uniform odds, the mean odds of true pairs if the odds are true."""
    return float(arrays.namespace(odds).mean(odds * odds))


def _prior(factors: tuple[Factor, Factor], rank_weight: float) -> Array:
    """Return the prior log-odds of each pair, from the descriptors and ranks of its items, (n, m)."""
    prior = -unit_deviation(cost_matrix(*descriptors(*factors)))
    if rank_weight > 0:
        xp, (n, m) = arrays.namespace(prior), prior.shape
        ranks = (xp.astype(xp.arange(size, device=arrays.device(prior)), prior.dtype) for size in (n, m))
        prior = prior - rank_weight * unit_deviation(rank_cost(*ranks))
    return prior


def _kernels(factor: Factor, spectrum: float, clip: float) -> list[Array]:
    """Return the polynomials of the similarities of n items by order, (n, n) each, with a zero diagonal."""
    similarities = _similarities(factor, spectrum, clip)
    xp = arrays.namespace(similarities)
    found = []
    for polynomial in _POLYNOMIALS.values():
        kernel = polynomial(similarities)
        kernel = kernel - xp.mean(kernel, axis=1, keepdims=True)
        found.append(_without_diagonal(kernel - xp.mean(kernel, axis=0, keepdims=True)))
    return found


def _similarities(factor: Factor, spectrum: float, clip: float) -> Array:
    """Return the cosines of n items under singular values to a power, standardised by row, made symmetric and clipped.

    Returns (n, n).
    """
    u, s = factor
    xp = arrays.namespace(u)
    z = unit(u * s**spectrum)
    others = max(1, u.shape[0] - 1)
    rows = _without_diagonal(z @ z.T)
    rows = _without_diagonal(rows - xp.sum(rows, axis=1, keepdims=True) / others)
    deviations = xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True) / others)
    rows = rows / xp.clip(deviations, float(xp.finfo(u.dtype).eps), None)
    return arrays.clamped((rows + rows.T) / 2, -clip, clip)


def _without_diagonal(matrix: Array) -> Array:
    """Return the matrix (n, n) with a zero diagonal."""
    xp = arrays.namespace(matrix)
    return matrix * (1.0 - xp.eye(matrix.shape[0], dtype=matrix.dtype, device=arrays.device(matrix)))
