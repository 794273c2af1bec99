"""The matrix of similarities of a space, in factors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array

Factor: TypeAlias = tuple[Array, Array]
"""U (n, r) and s (r,) of similarities U diag(s) U^T."""


def similarity_factor(x: Array) -> Factor:
    """U (n, r) and s (r,) of K = U diag(s) U^T, where s are the singular values of x (n, d).

    K is the matrix of similarities x x^T with its eigenvalues square-rooted. The factors come from the small matrix
    x^T x in float64. Directions in which x has no extent are left out.
    """
    xp = arrays.namespace(x)
    wide = xp.astype(x, xp.float64)
    squares, axes = arrays.eigh_to_host(wide.T @ wide)
    kept = squares > squares[-1] * x.shape[1] * np.finfo(np.float64).eps * 100
    s = np.sqrt(squares[kept])[::-1]
    u = wide @ arrays.asarray(axes[:, kept][:, ::-1] / s, wide)
    return xp.astype(u, x.dtype), arrays.asarray(np.ascontiguousarray(s), x)
