from __future__ import annotations

import numpy as np
import pytest

from qwp.migration.adapter import fit
from qwp.migration.measure import Candidate, Recall, candidates, choose, recall, seconds_per_query
from tests.migration.problems import encoders

TEXTS = encoders(120)


def test_recall_counts_queries_that_find_their_document() -> None:
    documents = np.eye(20, dtype=np.float32)
    own = np.arange(4)
    queries = documents[[0, 1, 5, 3]] + 0.1 * documents[own]
    found = recall(queries, documents, own)
    assert (found.queries, found.documents, found.at_1, found.at_10) == (4, 20, 0.75, 1.0)
    assert found.reciprocal_rank == pytest.approx((3 + 0.5) / 4)
    assert found.overlap_at_10 is None


def test_ties_count_as_wrong() -> None:
    same = np.ones((30, 3), dtype=np.float32)
    found = recall(same, same, np.arange(30))
    assert (found.at_1, found.at_10) == (0.0, 0.0)


def test_the_overlap_is_one_after_full_re_embedding_and_less_otherwise() -> None:
    own = np.arange(120)
    assert recall(TEXTS.new, TEXTS.new, own, TEXTS.new).overlap_at_10 == 1.0
    shuffled = TEXTS.new[np.random.default_rng(0).permutation(120)]
    overlap = recall(shuffled, TEXTS.new, own, TEXTS.new).overlap_at_10
    assert overlap is not None
    assert overlap < 0.4


def test_the_best_candidate_is_chosen_and_the_simplest_of_equals() -> None:
    tried = candidates("known", 20)
    assert tried[0] == Candidate("orthogonal", 0.0)
    assert len({str(each) for each in tried}) == len(tried)
    assert all(each.fit(TEXTS.old, TEXTS.new).dims == (24, 20) for each in tried)

    def measured(score: float) -> Recall:
        return Recall(1, 1, 0.0, 0.0, None, score)

    assert choose(tried, lambda each: measured(0.5))[0] == tried[0]
    best, scores = choose(tried, lambda each: measured(float(each.kind == "ridge")))
    assert best == next(each for each in tried if each.kind == "ridge")
    assert len(scores) == len(tried)


def test_the_time_for_a_query_is_measured() -> None:
    assert seconds_per_query(fit("orthogonal", TEXTS.old, TEXTS.new)) > 0
