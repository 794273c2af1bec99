"""Start by fused Gromov-Wasserstein: match words by what they are alone and by how they lie to each other.

The linear part of the cost compares the words one by one: their descriptors, and their ranks, because words of similar
frequency translate each other. The quadratic part compares similarities within the two spaces. A Frank-Wolfe
iteration goes from the first to the second: the linear part fades out while the plan settles.
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
from qwp.parameters import START, param
from qwp.stages.init.descriptors import descriptors
from qwp.stages.init.frank_wolfe import FrankWolfeSettings
from qwp.stages.init.similarities import Factor, similarity_factor
from qwp.stages.init.single import rank_cost, unit_deviation

# A plan need not be exact, the next step mends it.
_TOL = 1e-2
_MAX_ITER = 60
_STEPS = 40
# Share of the new plan in the mean of the plans.
_SHARE = 0.3


@dataclass(kw_only=True)
class FusedSettings(FrankWolfeSettings):
    """Settings of the fused start that a user may change."""

    frequency_prior: float = param(
        4.0,
        "Weight of ranks beside that of similarities in fused starts and, half of it and fading out, in their "
        "trials; 0: the order says nothing.",
        START,
        least=0,
        most=1e4,
    )


@dataclass(frozen=True)
class Variant:
    """One way to run it: they fail on different pairs of spaces.

    words: as a share of `start_words`. spectrum: power of the singular values in the similarities. linear: weight of
    the linear part at the beginning. epsilon: entropy, relative to the deviation of the cost. prior: times the
    frequency prior. sample: share of the words that take part, drawn at random.
    """

    words: float = 1.0
    spectrum: float = 0.5
    linear: float = 5.0
    epsilon: float = 0.3
    prior: float = 1.0
    sample: float = 0.8


def initial_map(
    x: Array,
    y: Array,
    ranks: tuple[Array, Array],
    variant: Variant,
    prior: float,
    callback: Callable[[int, int], None] | None = None,
) -> Array:
    """First map of the words x (n, d) and y (m, d), normalised rows. Returns W (d, d).

    ranks: the places of these words in the order of frequency, (n,) and (m,), from zero. prior: weight of the ranks.
    callback(step, steps) is called after every step.

    The similarities of a side are K = (A C^T + C A^T) / 2, which has rank 2 d, so that the plan appears only through
    small matrices that are linear in it (`_standardised`), and no matrix of similarities is formed.
    """
    xp = arrays.namespace(x, y)
    n, m, dim = x.shape[0], y.shape[0], x.shape[1]
    factors = similarity_factor(x), similarity_factor(y)
    (left_x, right_x), (left_y, right_y) = (_standardised(factor, variant.spectrum) for factor in factors)
    linear = _linear_cost(factors, ranks, prior * variant.prior)
    a, b = (xp.full((size,), 1.0 / size, dtype=x.dtype, device=arrays.device(x)) for size in (n, m))
    images_of = xp.concat([left_y, y], axis=1)

    def core_and_map(cost: Array, init: Array | None) -> tuple[Array, Array, Array]:
        """What the plan of a cost does: R_x^T P L_y, X^T P Y, and its potential."""
        epsilon = variant.epsilon * float(xp.std(cost)) or 1.0
        plan = sinkhorn(cost, a, b, epsilon=epsilon, tol=_TOL, max_iter=_MAX_ITER, init=init)
        images = plan.apply(images_of)
        return right_x.T @ images[:, : left_y.shape[1]], x.T @ images[:, -dim:], plan.log_v

    core, correspondence, potential = core_and_map(linear, None)
    for step in range(1, _STEPS + 1):
        quadratic = unit_deviation((left_x @ core) @ right_y.T)
        weight = variant.linear * (_STEPS - step) / (_STEPS - 1)
        new_core, new_correspondence, potential = core_and_map(weight * linear - quadratic, potential)
        core = (1 - _SHARE) * core + _SHARE * new_core
        correspondence = (1 - _SHARE) * correspondence + _SHARE * new_correspondence
        if callback is not None:
            callback(step, _STEPS)
    return polar(correspondence)


def _standardised(factor: Factor, power: float) -> tuple[Array, Array]:
    """Factors L = [A, C] and R = [C, A], (n, 2 r), of K = L R^T / 2 for n words.

    K is the matrix S of cosines under singular values to `power`, each row centred and scaled to unit deviation, and
    made symmetric: K_ij = ((S_ij - m_i) / s_i + (S_ij - m_j) / s_j) / 2. With S = Z Z^T that is a_i c_j + c_i a_j over
    two, where a_i = z_i / s_i and c_j = z_j - mean(z).
    """
    u, s = factor
    xp = arrays.namespace(u)
    z = unit(u * s**power)
    centred = z - xp.mean(z, axis=0)
    # The variance of row i of S is z_i^T Cov(z) z_i.
    variances = xp.sum((z @ (centred.T @ centred / u.shape[0])) * z, axis=1, keepdims=True)
    scaled = z / xp.sqrt(xp.clip(variances, float(xp.finfo(u.dtype).eps) ** 2, None))
    return xp.concat([scaled, centred], axis=1), xp.concat([centred, scaled], axis=1)


def _linear_cost(factors: tuple[Factor, Factor], ranks: tuple[Array, Array], prior: float) -> Array:
    """What it costs to match words by what they are alone, (n, m): both parts to the same deviation."""
    cost = unit_deviation(cost_matrix(*descriptors(*factors)))
    xp = arrays.namespace(cost)
    if prior > 0:
        cost = cost + prior * unit_deviation(rank_cost(*(xp.astype(r, cost.dtype) for r in ranks)))
    return math.sqrt(2.0) * unit_deviation(cost)
