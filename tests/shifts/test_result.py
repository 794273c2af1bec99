"""What a shift shows: words in order, their neighbours, and errors."""

from __future__ import annotations

import json

import pytest

import qwp
from qwp.errors import InputError
from qwp.shifts.result import Shift
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
        assert word.kept <= 0.34
        assert 0 <= word.q <= 0.05
        assert word.neighbourhood > 0.05
    still = next(found[word] for word in found.words if word not in made.moved)
    assert still.distance < 0.2
    assert still.kept > 0.5
    assert found.top(0) == []


def test_moved_words_depend_on_the_rate(found: Shift) -> None:
    assert len(found.moved(0.001)) <= len(found.moved()) <= len(found.moved(0.5))
    with pytest.raises(InputError, match=r"fdr=1\.5 is no rate"):
        found.moved(1.5)
    with pytest.raises(InputError, match="by='p' is not known; expected one of z, distance"):
        found.top(3, by="p")


def test_it_shows_itself(found: Shift) -> None:
    assert repr(found).startswith("Shift(then -> now, 800 words, ")
    assert "moved at an FDR of 0.05" in repr(found)
    assert "words moved" in found._repr_html_()
    about = json.loads(json.dumps(found.to_dict(3)))
    assert (about["words"], len(about["top"]), about["controlled"]) == (800, 3, False)
    with pytest.raises(KeyError, match="'nothing' is not one of the 800 words"):
        found["nothing"]
