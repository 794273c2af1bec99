"""Neighbours at two times: those of brute force, and no change where nothing changed."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.shifts.neighbourhoods import kept, nearest, similarity_of_neighbourhoods
from tests.problems import rotation


def units(n: int, d: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_the_nearest_words_are_others() -> None:
    x = units(50, 6, 0)
    rows = np.array([3, 7, 3])
    expected = [[j for j in np.argsort(-(x @ x[i])) if j != i][:4] for i in rows]
    assert nearest(x, rows, 4).tolist() == expected
    assert nearest(x[:3], np.array([0]), 9).shape == (1, 2)
    assert nearest(x, np.zeros(0, dtype=np.int64), 2).shape == (0, 2)


def test_a_rotation_changes_no_neighbourhood_and_a_moved_word_has_another() -> None:
    x = units(200, 8, 1)
    y = x @ rotation(8, seed=1)
    rows = np.arange(200)
    assert similarity_of_neighbourhoods(x, y, rows) == pytest.approx(np.ones(200))
    y[5] = -y[5]
    changed = similarity_of_neighbourhoods(x, y, rows)
    assert changed[5] < -0.5
    assert np.delete(changed, 5).min() > 0.8


def test_similarities_are_those_of_the_definition() -> None:
    x, y = units(30, 4, 2), units(30, 4, 3)
    both = sorted({*nearest(x, np.array([9]), 5)[0].tolist(), *nearest(y, np.array([9]), 5)[0].tolist()})
    one, other = x[both] @ x[9], y[both] @ y[9]
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert similarity_of_neighbourhoods(x, y, np.array([9]), 5) == pytest.approx([expected])


def test_what_was_kept() -> None:
    assert kept([1, 2, 3, 4], [4, 3, 9, 8]) == 0.5
    assert kept([], []) == 0.0
