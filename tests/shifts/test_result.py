"""The result of a shift: words in order, their neighbours, and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import qwp
from qwp.errors import InputError
from qwp.shifts.result import Shift, nearest, overlap, similarity_of_neighbourhoods
from tests.problems import rotation
from tests.shifts.problems import Problem, problem


@pytest.fixture(scope="module")
def made() -> Problem:
    return problem(n=800, n_moved=10)


@pytest.fixture(scope="module")
def found(made: Problem) -> Shift:
    return qwp.shift(made.then, made.now, order="given")


def test_words_come_most_moved_first_with_their_neighbours(made: Problem, found: Shift) -> None:
    top = found.top(8, neighbours=3)
    assert [word.z for word in top] == sorted((word.z for word in top), reverse=True)
    assert {word.word for word in top} <= made.moved
    for word in top:
        assert len(word.then) == len(word.now) == 3
        assert word.overlap <= 0.34
        assert 0 <= word.q <= 0.05
        assert word.neighbourhood > 0.05
    still = next(found[word] for word in found.words if word not in made.moved)
    assert still.distance < 0.2
    assert still.overlap > 0.5
    assert found.top(0) == []


def test_moved_words_depend_on_the_rate(found: Shift) -> None:
    assert len(found.moved(0.001)) <= len(found.moved()) <= len(found.moved(0.5))
    with pytest.raises(InputError, match=r"fdr=1\.5 is no rate"):
        found.moved(1.5)
    with pytest.raises(InputError, match="by='p' is not known; expected one of z, distance"):
        found.top(3, by="p")


def test_repr_and_html(found: Shift) -> None:
    assert repr(found).startswith("Shift(then -> now, 800 words, ")
    assert "moved at an FDR of 0.05" in repr(found)
    assert "words moved" in found._repr_html_()
    about = json.loads(json.dumps(found.to_dict(3)))
    assert (about["words"], len(about["top"]), about["controlled"]) == (800, 3, False)
    with pytest.raises(KeyError, match="'nothing' is not one of the 800 words"):
        found["nothing"]


def units(n: int, d: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_a_word_is_not_its_own_neighbour() -> None:
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


def test_neighbourhood_similarity_matches_its_definition() -> None:
    x, y = units(30, 4, 2), units(30, 4, 3)
    both = sorted({*nearest(x, np.array([9]), 5)[0].tolist(), *nearest(y, np.array([9]), 5)[0].tolist()})
    one, other = x[both] @ x[9], y[both] @ y[9]
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert similarity_of_neighbourhoods(x, y, np.array([9]), 5) == pytest.approx([expected])


def test_overlap_of_neighbours() -> None:
    assert overlap([1, 2, 3, 4], [4, 3, 9, 8]) == 0.5
    assert overlap([], []) == 0.0
