"""Initialize by fused Gromov-Wasserstein: match words by a unary cost and by their similarities to each other.

The unary cost compares descriptors of single words and their ranks, because translations have similar frequencies. The
quadratic cost compares similarities within the two spaces. A Frank-Wolfe iteration moves from the first to the second:
the weight of the unary cost falls to zero while the plan converges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream, unit
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


@dataclass(frozen=True, kw_only=True)
class FusedGromovWasserstein(Initializer):
    """Fused Gromov-Wasserstein on a random sample of the most frequent words.

    Variants fail on different pairs of spaces, so a search tries several. Values without a source were set by hand.
    """

    words: int = start_words_param()
    frequency_prior: float = frequency_prior_param()
    share: float = 1.0
    """Size of the vocabulary of this variant, as a share of `words`."""
    sample: float = 1.0
    """Share of this vocabulary that is drawn at random."""
    number: int = 0
    """Key of the random draw: each variant of a search draws other words."""
    spectrum: float = 0.5
    """Power of the singular values in the similarities."""
    unary: float = 5.0
    """Weight of the unary cost in the first step, from which it falls to zero."""
    epsilon: float = 0.3
    """Entropic regularisation, relative to the standard deviation of the cost."""
    prior: float = 1.0
    """Factor of the frequency prior in this variant."""
    steps: int = 40
    step_size: float = 0.3
    """Weight of a new plan in the running mean of the plans."""
    tol: float = 1e-2
    """Tolerance of the Sinkhorn marginals. A plan need not be exact, because the next step corrects it."""
    max_iter: int = 60

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the initial map of the rows of a view."""
        chosen = self if problem.ordered else replace(self, frequency_prior=0.0)
        return chosen.solve(view.x, view.y, problem.seed, lambda step, steps: report(step, steps, {}))

    def solve(self, x: Array, y: Array, seed: int, callback: Callable[[int, int], None] | None = None) -> Array:
        """Return the map W (d, d) of a random sample of the words. x: (n, d), y: (m, d), most frequent first."""
        xp = arrays.namespace(x)
        most = max(1, round(self.share * self.words))
        rng = arrays.rng(seed, Stream.START_WORDS, self.number)
        ranks = []
        for side in (x, y):
            n = min(most, side.shape[0])
            taken = np.sort(rng.permutation(n)[: max(1, round(self.sample * n))])
            ranks.append(arrays.asarray(taken, side))
        src, tgt = ranks
        return self.match(xp.take(x, src, axis=0), xp.take(y, tgt, axis=0), (src, tgt), callback)

    def match(
        self, x: Array, y: Array, ranks: tuple[Array, Array], callback: Callable[[int, int], None] | None = None
    ) -> Array:
        """Return the map W (d, d) of the words x (n, d) and y (m, d), normalised rows.

        The similarities of a side, K = (A C^T + C A^T) / 2, have rank 2 d (`_standardised`). So the iteration needs
        only small matrices that are linear in the plan, and forms no matrix of similarities.

        ranks: of the words, from zero, (n,) and (m,). callback(step, steps) is called after every step.
        """
        xp = arrays.namespace(x, y)
        n, m, dim = x.shape[0], y.shape[0], x.shape[1]
        factors = similarity_factor(x), similarity_factor(y)
        (left_x, right_x), (left_y, right_y) = (_standardised(factor, self.spectrum) for factor in factors)
        unary = _unary_cost(factors, ranks, self.frequency_prior * self.prior)
        a, b = (xp.full((size,), 1.0 / size, dtype=x.dtype, device=arrays.device(x)) for size in (n, m))
        images_of = xp.concat([left_y, y], axis=1)

        def core_and_map(cost: Array, init: Array | None) -> tuple[Array, Array, Array]:
            """Return R_x^T P L_y and X^T P Y of the plan P of a cost, and its potential."""
            epsilon = self.epsilon * float(xp.std(cost)) or 1.0
            plan = sinkhorn(cost, a, b, epsilon=epsilon, tol=self.tol, max_iter=self.max_iter, init=init)
            images = plan.apply(images_of)
            return right_x.T @ images[:, : left_y.shape[1]], x.T @ images[:, -dim:], plan.log_v

        core, correspondence, potential = core_and_map(unary, None)
        for step in range(1, self.steps + 1):
            quadratic = unit_deviation((left_x @ core) @ right_y.T)
            weight = self.unary * (self.steps - step) / (self.steps - 1)
            new_core, new_correspondence, potential = core_and_map(weight * unary - quadratic, potential)
            core = (1 - self.step_size) * core + self.step_size * new_core
            correspondence = (1 - self.step_size) * correspondence + self.step_size * new_correspondence
            if callback is not None:
                callback(step, self.steps)
        return polar(correspondence)


def _standardised(factor: Factor, power: float) -> tuple[Array, Array]:
    """Return factors L = [A, C] and R = [C, A], (n, 2 r), of K = L R^T / 2 for n words.

    S is the matrix of cosines under singular values to `power`. K is S with each row centred and scaled to unit
    deviation, made symmetric: K_ij = ((S_ij - m_i) / s_i + (S_ij - m_j) / s_j) / 2. With S = Z Z^T, this is
    (a_i c_j + c_i a_j) / 2, where a_i = z_i / s_i and c_j = z_j - mean(z).
    """
    u, s = factor
    xp = arrays.namespace(u)
    z = unit(u * s**power)
    centred = z - xp.mean(z, axis=0)
    # The variance of row i of S is z_i^T Cov(z) z_i.
    variances = xp.sum((z @ (centred.T @ centred / u.shape[0])) * z, axis=1, keepdims=True)
    scaled = z / xp.sqrt(xp.clip(variances, float(xp.finfo(u.dtype).eps) ** 2, None))
    return xp.concat([scaled, centred], axis=1), xp.concat([centred, scaled], axis=1)


def _unary_cost(factors: tuple[Factor, Factor], ranks: tuple[Array, Array], prior: float) -> Array:
    """Return the cost of matching words by descriptors and ranks, (n, m), both scaled to the same deviation."""
    cost = unit_deviation(cost_matrix(*descriptors(*factors)))
    xp = arrays.namespace(cost)
    if prior > 0:
        cost = cost + prior * unit_deviation(rank_cost(*(xp.astype(r, cost.dtype) for r in ranks)))
    return math.sqrt(2.0) * unit_deviation(cost)
