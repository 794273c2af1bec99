"""Start by messages: pairs of items tell each other how likely they are, until they agree.

Say that i and j are counterparts, and so are k and l. Then the similarity a of i and k, and the similarity b of j and
l, are two views of one thing: at unit deviation they correlate, by some r. The logarithm of the odds that i and j
belong together is the sum over all other pairs of what this says of them, each weighted by its own odds L_kl:

    log L_ij = prior_ij + q / n * sum_kl L_kl * (density of (a_ik, b_jl) if they correlate / if they do not - 1)

where a share q of the items has a counterpart. In Hermite polynomials the ratio of the densities of a normal pair is
the sum over h of r^h He_h(a) He_h(b) / h! (Mehler), so that the term of order h is a product of three matrices,
He_h(K_x) L He_h(K_y). Order 1 alone is the gradient of Gromov-Wasserstein. Order 2, "very alike or very unlike", which
that lacks, is what carries problems with few items. This is belief propagation on the dense problem of graph matching.

The prior compares descriptors of single items. The messages may say no more than as many pairs as are believed so far
could tell them, and that grows slowly: too sure too early, they only repeat themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.maps.procrustes import polar
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import sinkhorn
from qwp.stages.init.descriptors import descriptors
from qwp.stages.init.similarities import Factor, similarity_factor
from qwp.stages.init.single import rank_cost, unit_deviation

# The share of items in common that the messages count on. It need not be true.
_IN_COMMON = 0.8
# The polynomials by their order. Similarities have longer tails than normal ones, so the third is ruled by outliers.
_POLYNOMIALS: dict[int, Callable[[Array], Array]] = {1: lambda k: k, 2: lambda k: k * k - 1.0}
# Similarities beyond so many deviations count as these, for the same reason.
_MOST_DEVIATIONS = 3.0
_STEPS = 100
# By how much the messages may gain in weight in one step.
_GROWTH = 1.25
# The highest odds of a pair, over those of chance, at the first step, and its growth: single pairs are not to rule all.
_MOST_ODDS = 10.0
_ODDS_GROWTH = 1.05
# Odds change by less than this share of their energy when nothing moves any more.
_SETTLED = 1e-4
# The odds of a step need not be exact, the next one mends them.
_TOL = 1e-2
_MAX_ITER = 30
# Beyond this a logarithm of odds makes no difference, and its exponential no trouble.
_CERTAIN = 60.0


@dataclass(frozen=True)
class BPPrior:
    """What messages take for granted: variants fail on different pairs of spaces.

    spectrum: power of the singular values in the similarities. correlation: of the similarities of counterparts.
    """

    spectrum: float = 0.6
    correlation: float = 0.6


def initial_map(
    x: Array,
    y: Array,
    assumed: BPPrior,
    ranks_count: float = 0.0,
    callback: Callable[[int, int], None] | None = None,
) -> Array:
    """First map of the items x (n, d) and y (m, d), normalised rows. Returns W (d, d).

    ranks_count: weight of their places beside that of their descriptors, where the rows are in order of frequency.
    callback(step, steps) is called after every step. Memory: about ten matrices (n, m).
    """
    return polar(x.T @ (odds(x, y, assumed, ranks_count, callback) @ y))


def odds(
    x: Array,
    y: Array,
    assumed: BPPrior,
    ranks_count: float = 0.0,
    callback: Callable[[int, int], None] | None = None,
) -> Array:
    """How likely each pair of items is, over chance: (n, m), rows and columns of mean one. Arguments: `initial_map`."""
    factors = similarity_factor(x), similarity_factor(y)
    kernels = [_kernels(factor, assumed.spectrum) for factor in factors]
    prior = _prior(factors, ranks_count)
    found, potential = _balanced(prior, None, _MOST_ODDS)
    energy = believed = _energy(found)
    for step in range(1, _STEPS + 1):
        evidence = prior
        for order, kx, ky in zip(_POLYNOMIALS, *kernels, strict=True):
            evidence = evidence + _message(found, kx, ky, assumed.correlation, order, believed)
        found, potential = _balanced(evidence, potential, _MOST_ODDS * _ODDS_GROWTH**step)
        before, energy = energy, _energy(found)
        believed = min(energy, _GROWTH * believed)
        if callback is not None:
            callback(step, _STEPS)
        if believed == energy and abs(energy - before) <= _SETTLED * energy:
            break
    return found


def _message(found: Array, kx: Array, ky: Array, correlation: float, order: int, believed: float) -> Array:
    """What all pairs say by the polynomials of an order of their similarities, kx (n, n) and ky (m, m). Returns (n, m).

    Its deviation is at most what it would be if the odds `found` (n, m) were true and no surer than `believed`.
    """
    xp = arrays.namespace(found)
    message = kx @ ((found - 1.0) @ ky)
    deviation = float(xp.std(message))
    weight = _IN_COMMON * correlation**order / math.factorial(order) / min(found.shape)
    most = _IN_COMMON * correlation**order * math.sqrt(max(0.0, believed - 1.0))
    return message * (min(weight, most / deviation) if deviation > 0 else weight)


def _balanced(evidence: Array, potential: Array | None, most: float) -> tuple[Array, Array]:
    """The odds (n, m) of evidence in logarithms: rows and columns of mean one, hardly any above `most`.

    potential: (m,), of an earlier call, from where this one goes on; that of this one is returned as well.
    """
    xp = arrays.namespace(evidence)
    n, m = evidence.shape
    a, b = (xp.full((size,), 1.0 / size, dtype=evidence.dtype, device=arrays.device(evidence)) for size in (n, m))
    plan = sinkhorn(-xp.clip(evidence, None, _CERTAIN), a, b, epsilon=1.0, tol=_TOL, max_iter=_MAX_ITER, init=potential)
    found = xp.clip(plan.matrix * (n * m), None, most)
    for axis in (1, 0):
        found = found / xp.mean(found, axis=axis, keepdims=True)
    return found, plan.log_v


def _energy(found: Array) -> float:
    """The mean square of the odds, one for pure chance. Where the odds are true, it is their mean over true pairs."""
    return float(arrays.namespace(found).mean(found * found))


def _prior(factors: tuple[Factor, Factor], ranks_count: float) -> Array:
    """What the items alone say of a pair, (n, m), a logarithm of odds: their descriptors, and their ranks if asked."""
    prior = -unit_deviation(cost_matrix(*descriptors(*factors)))
    if ranks_count > 0:
        xp, (n, m) = arrays.namespace(prior), prior.shape
        places = (xp.astype(xp.arange(size, device=arrays.device(prior)), prior.dtype) for size in (n, m))
        prior = prior - ranks_count * unit_deviation(rank_cost(*places))
    return prior


def _kernels(factor: Factor, spectrum: float) -> list[Array]:
    """The polynomials of the similarities of n items, by order: (n, n) each, without what an item has to itself."""
    similarities = _similarities(factor, spectrum)
    xp = arrays.namespace(similarities)
    found = []
    for polynomial in _POLYNOMIALS.values():
        kernel = polynomial(similarities)
        kernel = kernel - xp.mean(kernel, axis=1, keepdims=True)
        found.append(_without_diagonal(kernel - xp.mean(kernel, axis=0, keepdims=True)))
    return found


def _similarities(factor: Factor, spectrum: float) -> Array:
    """Cosines of n items under singular values to a power, each row at unit deviation, made symmetric: (n, n)."""
    u, s = factor
    xp = arrays.namespace(u)
    z = unit(u * s**spectrum)
    others = max(1, u.shape[0] - 1)
    rows = _without_diagonal(z @ z.T)
    rows = _without_diagonal(rows - xp.sum(rows, axis=1, keepdims=True) / others)
    deviations = xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True) / others)
    rows = rows / xp.clip(deviations, float(xp.finfo(u.dtype).eps), None)
    return arrays.clamped((rows + rows.T) / 2, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


def _without_diagonal(matrix: Array) -> Array:
    """The matrix (n, n) with zeros where an item meets itself."""
    xp = arrays.namespace(matrix)
    return matrix * (1.0 - xp.eye(matrix.shape[0], dtype=matrix.dtype, device=arrays.device(matrix)))
