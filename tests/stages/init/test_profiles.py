"""Initial maps by similarity profiles."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.parameters import check, with_values
from qwp.stages.init.profiles import Profiles
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation
from tests.stages.problems import problem_of


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_profiles_recover_a_planted_rotation(dtype: str) -> None:
    problem = planted(250, d=12, shuffle=True, seed=1, dtype=dtype)
    w = Profiles(words=250).solve(problem.src, problem.tgt)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_profiles_use_the_given_number_of_words() -> None:
    problem = planted(200, 150, d=8, shuffle=True, seed=1)
    few = Profiles(words=60).solve(problem.src, problem.tgt)
    assert_same(few, Profiles(words=60).solve(problem.src[:60], problem.tgt[:60]))
    everything = Profiles(words=9999).solve(problem.src, problem.tgt)
    assert_same(everything, Profiles(words=150).solve(problem.src, problem.tgt))
    assert np.abs(host(few) - host(everything)).max() > 0.01


def test_a_rotated_source_gives_the_rotated_map() -> None:
    problem = planted(120, d=8, seed=1)
    turn = rotation(8, 9)
    one, two = (Profiles(words=120).solve(src, problem.tgt) for src in (problem.src, problem.src @ turn))
    assert_close(turn @ host(two), one, atol=1e-6)


def test_words_that_are_all_alike_still_give_a_map() -> None:
    # All profiles are equal, so the cost is constant.
    x = np.tile([[0.6, 0.8, 0.0]], (5, 1))
    assert orthogonality_error(Profiles(words=5).solve(x, x)) < 1e-8


def test_another_library_finds_the_same_map() -> None:
    problem = planted(60, d=5, seed=1)
    found = Profiles(words=50).solve(as_strict(problem.src), as_strict(problem.tgt))
    assert_close(found, Profiles(words=50).solve(problem.src, problem.tgt), atol=1e-8)


def test_the_stage_takes_the_words_in_the_order_of_the_state() -> None:
    problem = planted(120, 100, d=8, shuffle=True, seed=1)
    estimates = np.random.default_rng(0).permutation(120), np.random.default_rng(1).permutation(100)
    settings = Profiles(words=60)
    for order, src, tgt in (("given", slice(None), slice(None)), ("estimated", *estimates)):
        found = settings(problem_of(problem, estimates=estimates), State(order=order), Monitor())
        assert_same(found.map, settings.solve(problem.src[src], problem.tgt[tgt]))


def test_no_words_are_refused() -> None:
    with pytest.raises(InputError, match="start_words=0 is out of range; expected 1 to 100,000,000"):
        check(with_values(Profiles(), {"start_words": 0}))
