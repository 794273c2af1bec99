"""Words or vectors that are asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import InputError
from qwp.spaces.items import as_array, as_words, words_or_array
from tests.libraries import assert_same

WORDS = ["house", "water"]


class Series:
    """A column of a frame: all that is looked at."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def to_numpy(self) -> np.ndarray:
        return self._values


@pytest.mark.parametrize(
    "items",
    [
        WORDS,
        tuple(WORDS),
        iter(WORDS),
        dict.fromkeys(WORDS).keys(),
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        Series(np.array(WORDS, dtype=object)),
        [np.str_(word) for word in WORDS],
    ],
)
def test_words(items: Any) -> None:
    found = as_words(items)
    assert found == WORDS
    assert all(type(word) is str for word in found)


def test_one_word() -> None:
    assert as_words("house") == as_words(np.array("house")) == as_words(np.str_("house")) == ["house"]
    assert words_or_array([]) == []


@pytest.mark.parametrize("make", [list, np.array, lambda rows: [np.array(row) for row in rows], Series])
@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0]])
def test_vectors(make: Any, rows: Any) -> None:
    assert_same(as_array(make(rows), 2), np.array(rows))


def test_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_same(as_array(torch.ones(3, 2, requires_grad=True), 2), np.ones((3, 2)))
    assert_same(as_array([torch.ones(2)], 2), np.ones((1, 2)))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (None, r"received None \(NoneType\), expected words, or vectors"),
        (5, r"received 5 \(int\), expected words"),
        (b"house", r"received b'house' \(bytes\), expected words"),
        ({"house": 1}, "received a dict, expected words"),
        (["house", 5], r"received a list that holds 5 \(int\), expected words, all of them text"),
        ([1.0, "house"], r"received a list that holds 1.0 \(float\), expected words"),
        ([["house"], ["water"]], r"received a list that holds \['house'\] \(list\), expected words"),
        ([[1.0, 2.0], [3.0]], "received a list of no one shape, expected words, or vectors"),
        (np.array([None, "house"]), r"received an array of shape \(2,\) and type object that holds None \(NoneType\)"),
        (np.array([True]), r"that holds True \(bool\)"),
        (np.array([b"house"]), r"holds b'house' \(bytes\)"),
    ],
)
def test_what_is_neither_is_one_clear_line(items: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        words_or_array(items)
    assert "\n" not in str(caught.value)


def test_one_in_place_of_the_other() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\) and type float64 of numbers as words.*into vectors="):
        as_words(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"words \(\['house'\]\) as vectors, expected numbers \(3,\) or \(n, 3\)"):
        as_array("house", 3)


@pytest.mark.parametrize("vectors", [np.ones(4), np.ones((2, 4)), np.ones((1, 2, 3)), np.array(1.0)])
def test_vectors_of_another_shape(vectors: Any) -> None:
    with pytest.raises(InputError, match=r"vectors have shape \(.*\); expected \(n, 3\) or \(3,\)"):
        as_array(vectors, 3)
    with pytest.raises(InputError, match="NaN"):
        as_array([1.0, np.nan, 2.0], 3)
