"""The start by similarity profiles."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.stages.init.profiles import ProfileSettings, initial_map
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_profiles_recover_a_planted_rotation(dtype: str) -> None:
    problem = planted(250, d=12, shuffle=True, seed=1, dtype=dtype)
    w = initial_map(problem.src, problem.tgt, 250)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_profiles_look_at_as_many_words_as_they_are_told() -> None:
    problem = planted(200, 150, d=8, shuffle=True, seed=1)
    few = initial_map(problem.src, problem.tgt, 60)
    assert_same(few, initial_map(problem.src[:60], problem.tgt[:60], 60))
    everything = initial_map(problem.src, problem.tgt, 9999)
    assert_same(everything, initial_map(problem.src, problem.tgt, 150))
    assert np.abs(host(few) - host(everything)).max() > 0.01


def test_a_rotated_source_gives_the_rotated_map() -> None:
    problem = planted(120, d=8, seed=1)
    turn = rotation(8, 9)
    one, two = initial_map(problem.src, problem.tgt, 120), initial_map(problem.src @ turn, problem.tgt, 120)
    assert_close(turn @ host(two), one, atol=1e-6)


def test_words_that_are_all_alike_still_give_a_map() -> None:
    # Every profile is the same, so that the cost has no spread.
    x = np.tile([[0.6, 0.8, 0.0]], (5, 1))
    assert orthogonality_error(initial_map(x, x, 5)) < 1e-8


def test_another_library_finds_the_same_map() -> None:
    problem = planted(60, d=5, seed=1)
    found = initial_map(as_strict(problem.src), as_strict(problem.tgt), 50)
    assert_close(found, initial_map(problem.src, problem.tgt, 50), atol=1e-8)


def test_no_words_are_refused() -> None:
    with pytest.raises(InputError, match="start_words=0 is out of range; expected 1 to 100,000,000"):
        ProfileSettings(start_words=0).check()
