"""What chance reaches: maps from random rotations, and whether two maps are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp.judging.chance import QUICK, SAME, THOROUGH, random_rotation, share_alike, translations
from qwp.judging.verdict import both_ways
from qwp.maps.procrustes import Maps, orthogonality_error, reweighted
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import SMALL_EFFORT, maps_of_chance, planted, rotation


def test_random_rotations_are_orthogonal_and_others_for_other_numbers() -> None:
    like = np.zeros(1)
    drawn = [host(random_rotation(8, seed, like, number)) for seed in (0, 1) for number in (0, 1, 2)]
    assert max(orthogonality_error(w) for w in drawn) < 1e-12
    assert all(np.abs(a - b).max() > 0.1 for i, a in enumerate(drawn) for b in drawn[:i])
    assert_same(random_rotation(8, 1, like, 2), drawn[5])


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


def are_the_same(x: Any, y: Any, one: Maps, other: Maps, *, csls_k: int) -> bool:
    return share_alike(*(translations(x, y, maps, csls_k=csls_k) for maps in (one, other))) >= SAME


def test_maps_are_the_same_by_what_they_translate() -> None:
    problem = planted(400, d=12, noise=0.3)
    x, y, w, turn = problem.src, problem.tgt, problem.w, rotation(12, 3)
    assert are_the_same(x, y, Maps(w), Maps(w @ turn, turn), csls_k=10)
    assert are_the_same(x, y, Maps(w), reweighted(x[problem.gold[:, 0]], y[problem.gold[:, 1]]), csls_k=10)
    assert not are_the_same(x, y, Maps(w), Maps(w @ turn), csls_k=10)


def test_array_api_strict() -> None:
    problem = planted(40, d=3, noise=0.1)
    x, y = as_strict(problem.src), as_strict(problem.tgt)
    short = replace(QUICK, trial=replace(QUICK.trial, steps=5))
    [found] = maps_of_chance(x, y, [0], seed=0, csls_k=5, effort=short)
    assert are_the_same(x, y, found, found, csls_k=5)
