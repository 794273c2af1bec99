"""Places of right answers; the measures made of them are tested with `evaluation`."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.judging.ranks import Gold, check_methods, gold_ranks
from qwp.search.retrieval import retriever


def test_the_rank_of_one_answer_each_is_its_place_by_cosine() -> None:
    keys = np.eye(4)
    queries = np.array([[1.0, 0.9, 0.8, 0.7], [0.1, 0.2, 0.3, 0.4]])
    one = np.ones(2, dtype=np.int64)
    gold = Gold(np.arange(2), np.arange(2), one, np.arange(2), np.array([2, 0]), one)
    ranks = gold_ranks(retriever(keys, queries, method="nn"), queries, gold)
    assert ranks.rank.tolist() == [3, 4]


def test_methods_are_named_once_and_known() -> None:
    assert check_methods(["nn", "csls", "nn"]) == ("nn", "csls")
    assert check_methods("csls") == ("csls",)
    with pytest.raises(InputError, match="retrieval is empty"):
        check_methods([])
    with pytest.raises(InputError, match="retrieval='dot' is not known"):
        check_methods(["dot"])
