"""The map by stable words: the true one where it is known, also when many words moved together."""

from __future__ import annotations

import numpy as np

from qwp.shifts.significance import traits
from qwp.shifts.stable import stable_map
from tests.problems import rotation, space


def test_words_that_moved_do_not_bend_the_map() -> None:
    n, d = 1200, 15
    x = space(n, d, seed=1).astype(np.float64)
    turn = rotation(d, seed=2)
    rng = np.random.default_rng(3)
    moved = np.zeros(n, dtype=bool)
    moved[rng.choice(n, n // 4, replace=False)] = True
    y = x @ turn
    # A quarter of the words goes to one place: means and map are drawn there.
    y[moved] = y[0] + 0.3 * rng.standard_normal((moved.sum(), d)) * np.abs(y).mean()
    y = y + 0.05 * np.abs(x).mean() * rng.standard_normal(x.shape)
    lengths = np.ones((n, 2))
    seen = traits(2.0 * np.arange(1, n + 1, dtype=np.float64), lengths)
    plain, trimmed = (stable_map(x, y, seen, trimmed=wanted) for wanted in (False, True))
    errors = [float(np.linalg.norm(found.map - turn)) for found in (plain, trimmed)]
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 0.1
    assert (trimmed.stable[moved]).mean() < 0.05
    assert (trimmed.stable[~moved]).mean() > 0.95
    assert plain.stable.all()
    assert np.median(trimmed.cosines[~moved]) > 0.98


def test_each_word_is_measured_by_a_map_without_it() -> None:
    # Two spaces that have nothing in common: a map fitted to a word itself would bring it nearer.
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((2, 300, 40))
    seen = traits(2.0 * np.arange(1, 301, dtype=np.float64), np.ones((300, 2)))
    found = stable_map(x, y, seen, trimmed=False)
    fitted = np.sum((found.x @ found.map) * found.y, axis=1)
    assert fitted.mean() > 0.15
    assert abs(found.cosines.mean()) < 0.05
