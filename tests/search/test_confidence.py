"""Confidence of a pair: its features by hand, what it grows and falls with, and where its weights come from."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import confidence as benchmark
from qwp.maps.procrustes import KINDS
from qwp.search.confidence import CANDIDATES, WEIGHTS, confidence, features
from tests.libraries import assert_close, assert_same

KIND = pytest.mark.parametrize("kind", KINDS)
# CSLS is twice a cosine less two mean cosines.
CSLS = st.floats(-4.0, 4.0)
RANK = st.integers(0, CANDIDATES)


def one(scores: list[float], back_rank: int, kind: str) -> float:
    """The confidence of one pair."""
    [found] = confidence([scores], [back_rank], kind)
    return float(found)


def logistic(odds: float) -> float:
    return 1.0 / (1.0 + float(np.exp(-odds)))


# --------------------------------------------------------------------------- the features


def test_features_by_hand() -> None:
    found = features([[0.5, 0.3, 0.1], [0.2, 0.2, 0.2], [-0.1, -0.2, -0.6]], [0, 3, CANDIDATES])
    expected = [
        [1.0, 1.0, 0.0, 0.3, np.log(0.31)],
        [1.0, 0.0, np.log(4.0), 0.0, np.log(0.01)],
        [1.0, 0.0, np.log(11.0), 0.3, np.log(0.31)],
    ]
    assert found.shape == (3, 5)
    assert found.dtype == np.float64
    assert_close(found, expected, atol=1e-12)


def test_single_precision_scores_are_computed_in_double() -> None:
    scores = np.array([[0.5, 0.25, 0.125]], dtype=np.float32)
    assert_same(features(scores, np.array([2], dtype=np.int64)), features(scores.astype(np.float64), [2.0]))


@KIND
def test_the_only_candidate_leads_by_nothing(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = features([[0.7], [-0.7]], [0, 0])
        assert_close(found, [[1.0, 1.0, 0.0, 0.0, np.log(0.01)]] * 2, atol=1e-12)
        # As one of several that are all alike.
        assert one([0.7], 0, kind) == pytest.approx(one([0.7] * CANDIDATES, 0, kind))


def test_no_pair_has_no_feature() -> None:
    assert features(np.zeros((0, 10)), np.zeros(0)).shape == (0, 5)
    assert confidence(np.zeros((0, 10)), np.zeros(0), "orthogonal").shape == (0,)


@given(scores=st.lists(CSLS, min_size=2, max_size=CANDIDATES), back_rank=RANK, shift=CSLS)
def test_only_the_lead_matters_and_not_the_height(scores: list[float], back_rank: int, shift: float) -> None:
    ranked = sorted(scores, reverse=True)
    moved = [score + shift for score in ranked]
    assert_close(features([ranked], [back_rank]), features([moved], [back_rank]), atol=1e-9)


# --------------------------------------------------------------------------- the chance


@KIND
def test_confidence_by_hand(kind: str) -> None:
    constant, mutual, rank, lead, log_lead = WEIGHTS[kind]
    # A lead of 0.99: its logarithm, with 0.01 added, is zero.
    assert one([1.0, 0.01], 0, kind) == pytest.approx(logistic(constant + mutual + 0.99 * lead))
    assert one([1.0, 0.01], 2, kind) == pytest.approx(logistic(constant + rank * np.log(3.0) + 0.99 * lead))
    assert one([0.0], 0, kind) == pytest.approx(logistic(constant + mutual + log_lead * np.log(0.01)))


@KIND
@given(scores=st.lists(CSLS, min_size=1, max_size=CANDIDATES), back_rank=RANK)
def test_it_lies_between_zero_and_one(kind: str, scores: list[float], back_rank: int) -> None:
    assert 0.0 < one(sorted(scores, reverse=True), back_rank, kind) < 1.0


@KIND
@given(lead=st.floats(0.0, 2.0), more=st.floats(1e-3, 1.0), back_rank=RANK)
def test_it_grows_with_the_lead(kind: str, lead: float, more: float, back_rank: int) -> None:
    others = [0.1, 0.0, -0.1]
    assert one([0.1 + lead + more, *others], back_rank, kind) > one([0.1 + lead, *others], back_rank, kind)


@KIND
def test_it_falls_with_the_rank_on_the_way_back(kind: str) -> None:
    scores = [[0.5, 0.3, 0.2]] * (CANDIDATES + 1)
    found = confidence(scores, np.arange(CANDIDATES + 1), kind)
    assert np.all(np.diff(found) < 0)
    # Being each other's best is worth more than any step after it.
    assert -np.diff(found)[0] == max(-np.diff(found))


@KIND
def test_both_extremes_are_told_apart(kind: str) -> None:
    # Far ahead and mutual against level with the others and nobody's best.
    assert one([0.6, 0.0, 0.0], 0, kind) > 0.9
    assert one([0.1, 0.1, 0.1], CANDIDATES, kind) < 0.01


# --------------------------------------------------------------------------- the weights


def test_the_weights_are_those_that_were_recorded() -> None:
    recorded = json.loads(benchmark.RESULTS.read_text())
    assert {kind: tuple(figures["weights"]) for kind, figures in recorded.items()} == WEIGHTS
    assert set(WEIGHTS) == set(KINDS)
    for figures in recorded.values():
        assert all(weight == round(weight, 4) for weight in figures["weights"])
