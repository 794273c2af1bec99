"""Tolerances that follow from the precision of the numbers and the size of a computation.

The same call on the same machine, with the same BLAS, the same number of threads and the same shapes, repeats its
result exactly: compare with `tests.libraries.assert_same`. Another CPU, another number of threads, other blocks or
another batch add the same terms in another order: compare with `assert_close` and `rounding`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def rounding(dtype: npt.DTypeLike, terms: int) -> float:
    """Return a bound on the difference between two evaluations of one sum, 4 * terms * eps.

    A sum of n terms whose absolute values add up to at most one, such as the inner product of two unit vectors, errs by
    at most n * eps / 2 in any order, with or without fused multiply-add (Higham, Accuracy and Stability of Numerical
    Algorithms, section 3.1). Two evaluations differ by at most n * eps. The factor of four covers what follows one such
    sum: CSLS, for example, is twice a cosine minus two means of cosines. Where the numbers are larger, multiply.

    Args:
        dtype: Of the computation, float32 or float64.
        terms: Number of terms that each entry of the result adds up.
    """
    return 4.0 * terms * float(np.finfo(dtype).eps)
