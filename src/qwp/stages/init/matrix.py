"""Start from a matrix of the user."""

from __future__ import annotations

import numpy as np

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error, polar_svd


def initial_map(matrix: np.ndarray, src_dim: int, tgt_dim: int) -> np.ndarray:
    """Check a user's matrix: (src_dim, tgt_dim), finite, orthogonal to 1e-3; returned exactly orthogonal.

    Between spaces of different width it is the rows, or the columns, that are orthonormal.
    """
    if matrix.shape != (src_dim, tgt_dim):
        raise InputError(f"the start matrix has shape {matrix.shape}; the vectors need ({src_dim}, {tgt_dim})")
    if not np.isfinite(matrix).all():
        raise InputError("the start matrix holds NaN or infinite entries; expected finite numbers")
    error = orthogonality_error(matrix if src_dim >= tgt_dim else matrix.T)
    if error > 1e-3:
        raise InputError(
            f"the start matrix is not orthogonal (largest entry of |W^T W - I| is {error:.2g}, "
            "at most 0.001 expected): project it with qwp.maps.procrustes.polar first"
        )
    return np.asarray(polar_svd(matrix))
