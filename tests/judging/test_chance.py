"""What null runs reach: maps that were found from random rotations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qwp.judging.chance import QUICK, THOROUGH
from qwp.maps.procrustes import orthogonality_error
from qwp.stages.agreement import both_ways
from tests.libraries import as_strict, assert_close, host
from tests.problems import SMALL_EFFORT, maps_of_chance, planted


def test_maps_of_chance_do_not_depend_on_how_many_are_made() -> None:
    problem = planted(300, d=8, noise=0.3)
    effort = SMALL_EFFORT.quick
    two = maps_of_chance(problem.src, problem.tgt, [0, 1], seed=5, csls_k=10, effort=effort)
    [second] = maps_of_chance(problem.src, problem.tgt, [1], seed=5, csls_k=10, effort=effort)
    assert_close(second.src, two[1].src, atol=1e-6)
    assert orthogonality_error(two[0].src) < 1e-6
    assert np.abs(host(two[0].src) - host(two[1].src)).max() > 0.01


@pytest.mark.slow
def test_the_long_loop_finds_better_optima_of_long_tails() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_t(2, (1200, 60)).astype("f4") for _ in range(2))
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    quick, thorough = (
        [both_ways(x, y, maps, 10).mean_csls for maps in maps_of_chance(x, y, [0, 1], seed=1, csls_k=10, effort=effort)]
        for effort in (QUICK, THOROUGH)
    )
    assert max(quick) < min(thorough)


def test_array_api_strict() -> None:
    problem = planted(40, d=3, noise=0.1)
    x, y = as_strict(problem.src), as_strict(problem.tgt)
    short = replace(QUICK, trial=replace(QUICK.trial, steps=5))
    [found] = maps_of_chance(x, y, [0], seed=0, csls_k=5, effort=short)
    [expected] = maps_of_chance(problem.src, problem.tgt, [0], seed=0, csls_k=5, effort=short)
    assert_close(found.src, expected.src, atol=1e-6)
