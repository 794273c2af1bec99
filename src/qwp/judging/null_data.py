"""Null data from the spaces of a fit: the same full fit, with its selection among candidates, without a correspondence.

The columns of the target are permuted independently on its principal axes. That keeps the spectrum and the distribution
on each axis, and no row has a counterpart any more. The fits stop as soon as one of them agrees as well as the map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.stages.problem import Problem, View


@dataclass(frozen=True)
class NullData:
    """The outcome of a sequential Monte Carlo test (Besag and Clifford 1991) that stops at the first exceedance.

    Attributes:
        fits: fits of null data.
        exceedances: how many of them reached the statistic of the map: the last one, or none.
        p_value: 1 / fits after an exceedance, otherwise 1 / (fits + 1).
    """

    fits: int
    exceedances: int
    p_value: float

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        fits = "fit" if self.fits == 1 else "fits"
        reached = "one reaches" if self.exceedances else "none reaches"
        return f"Of {self.fits} full {fits} of null data from these spaces, {reached} it (p = {self.p_value:.2g})."


def sequential_test(statistic: float, null: Callable[[int], float], most: int) -> NullData:
    """Compare a statistic with those of fits of null data, by number, until one reaches it or `most` are made."""
    for number in range(most):
        if null(number) >= statistic:
            return NullData(number + 1, 1, 1.0 / (number + 1))
    return NullData(most, 0, 1.0 / (most + 1))


def without_correspondence(problem: Problem, number: int) -> Problem:
    """Return the problem with null data as its target. number: selects the permutations of its columns."""
    given = problem.views[0]
    tgt = replace(given.tgt, vectors=permuted_columns(given.tgt.vectors, problem.seed, number))
    first = View(given.src, tgt)
    estimated = View(given.src.in_estimated_order(), tgt.in_estimated_order())
    return replace(problem, views=(first, estimated)[: len(problem.views)])


def permuted_columns(rows: Array, seed: int, number: int) -> Array:
    """Return unit rows (n, d) whose columns are permuted independently on the principal axes."""
    values = np.asarray(arrays.to_numpy(rows), dtype=np.float64)
    axes = np.linalg.eigh(values.T @ values)[1]
    permuted = arrays.rng(seed, Stream.NULL_DATA, number).permuted(values @ axes, axis=0) @ axes.T
    return arrays.unit(arrays.asarray(permuted.astype(arrays.to_numpy(rows).dtype), rows))
