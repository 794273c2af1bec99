"""A start from a matrix of the user."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.stages.init.matrix import initial_map
from tests.libraries import assert_close
from tests.problems import rotation


def test_a_matrix_is_taken_and_made_exactly_orthogonal() -> None:
    w = rotation(6, 0)
    assert_close(initial_map(w, 6, 6), w, atol=1e-12)
    rounded = np.round(w, 4)
    repaired = initial_map(rounded, 6, 6)
    assert orthogonality_error(rounded) > 1e-6
    assert orthogonality_error(repaired) < 1e-12
    assert_close(repaired, w, atol=1e-3)


def test_a_bad_given_matrix_is_explained() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 5\).*\(6, 6\)"):
        initial_map(rotation(5, 0), 6, 6)
    with pytest.raises(InputError, match=r"not orthogonal.*3.*0\.001 expected.*polar"):
        initial_map(2 * rotation(5, 0), 5, 5)
    broken = rotation(5, 0)
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        initial_map(broken, 5, 5)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_a_matrix_between_spaces_of_different_width_has_orthonormal_rows_or_columns(shape: tuple[int, int]) -> None:
    w = rotation(6, 0)[: shape[0], : shape[1]]
    assert_close(initial_map(w, *shape), w, atol=1e-12)
    with pytest.raises(InputError, match=r"shape \(\d, \d\); the vectors need"):
        initial_map(w.T, *shape)
