"""Ranks of gold answers; test_evaluation.py tests the measures computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.judging.ranks import (
    AlignedFiles,
    Gold,
    best_covered,
    check_aligned,
    check_methods,
    gold_ranks,
    mapped_sides,
    nothing_covered,
    sides_of,
)
from qwp.search.retrieval import retriever
from qwp.spaces.embeddings import Embeddings


def test_rank_of_a_single_gold_by_cosine() -> None:
    keys = np.eye(4)
    queries = np.array([[1.0, 0.9, 0.8, 0.7], [0.1, 0.2, 0.3, 0.4]])
    one = np.ones(2, dtype=np.int64)
    gold = Gold(np.arange(2), np.arange(2), one, np.arange(2), np.array([2, 0]), one)
    ranks = gold_ranks(retriever(keys, queries, method="nn"), queries, gold)
    assert ranks.rank.tolist() == [3, 4]


def test_methods_are_unique_and_known() -> None:
    assert check_methods(["nn", "csls", "nn"]) == ("nn", "csls")
    assert check_methods("csls") == ("csls",)
    with pytest.raises(InputError, match="retrieval is empty"):
        check_methods([])
    with pytest.raises(InputError, match="retrieval='dot' is not known"):
        check_methods(["dot"])


SPACES = AlignedFiles(Embeddings(["a", "b"], np.array([[2.0, 0], [0, 3.0]])), Embeddings(["c"], np.array([[1.0, 1]])))


def test_mapped_sides_are_unit_rows() -> None:
    src, tgt = (np.asarray(side) for side in mapped_sides(SPACES))
    assert src.tolist() == [[1, 0], [0, 1]]
    assert np.allclose(tgt, 0.5**0.5)


def test_other_objects_are_refused() -> None:
    wrong: Any = (SPACES.src, SPACES.tgt)
    with pytest.raises(InputError, match="received a tuple to evaluate, expected an Alignment"):
        check_aligned(wrong)


def test_side_is_given_or_covers_most() -> None:
    assert best_covered("auto", {"src": 2, "tgt": 1, "cross": 3}) == "cross"
    assert best_covered("auto", {"src": 2, "tgt": 2, "cross": 2}) == "src"
    assert best_covered("tgt", {"src": 2, "tgt": 0, "cross": 2}) == "tgt"
    with pytest.raises(InputError, match="side='both' is not known; expected one of auto, src, tgt, cross"):
        best_covered("both", {"src": 2, "tgt": 0, "cross": 2})


def test_sides_of_first_and_second_words() -> None:
    assert (sides_of("src"), sides_of("tgt"), sides_of("cross")) == (("src", "src"), ("tgt", "tgt"), ("src", "tgt"))


def test_nothing_covered_suggests_a_remedy() -> None:
    counts: Any = {"src": 0, "tgt": 7, "cross": 0}
    assert "Other sides would cover 7 as tgt: name the side" in nothing_covered(SPACES, "9 pairs", "src", counts, 0)
    counts["tgt"] = 0
    assert "In lower case 4 would be covered" in nothing_covered(SPACES, "9 pairs", "src", counts, 4)
    assert "Check the languages" in nothing_covered(SPACES, "9 pairs", "src", counts, 0)
