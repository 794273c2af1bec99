"""Parts of the cost of matching words one by one."""

from __future__ import annotations

import numpy as np

from qwp.stages.init.single import rank_cost, unit_deviation
from tests.libraries import assert_close, host


def test_ranks_are_compared_by_their_logarithms() -> None:
    cost = host(rank_cost(np.arange(3.0), np.arange(2.0)))
    expected = [[(np.log(i + 10) - np.log(j + 10)) ** 2 for j in range(2)] for i in range(3)]
    assert_close(cost, np.array(expected), atol=1e-12)


def test_values_are_brought_to_unit_deviation_if_they_have_one() -> None:
    assert_close(unit_deviation(np.array([1.0, 3.0])), np.array([1.0, 3.0]), atol=1e-12)
    assert_close(unit_deviation(np.array([2.0, 6.0])), np.array([1.0, 3.0]), atol=1e-12)
    assert_close(unit_deviation(np.full(4, 7.0)), np.full(4, 7.0), atol=0)
