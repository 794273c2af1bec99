"""Confidence of a pair: features computed by hand, monotonicity, and the source of the weights."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import confidence as benchmark
from qwp.search.confidence import CONFIDENCE_MODEL, Scale, SearchFigures, log_odds, logistic, quartiles
from tests.libraries import assert_close, assert_same

SCALE = Scale(agreement=0.5, dimensions=300, lead=0.2, lead_spread=0.1, back_lead=0.1, back_lead_spread=0.2)
# CSLS is twice a cosine less two mean cosines.
CSLS = st.floats(-4.0, 4.0)
RANK = st.integers(0, CONFIDENCE_MODEL.candidates)


def one(
    scores: list[float],
    back_rank: int,
    back_other: float = 0.0,
    scale: Scale = SCALE,
    preferred: tuple[int, int] = (0, 0),
) -> float:
    """Return the confidence of one pair."""
    [found] = CONFIDENCE_MODEL.confidence(SearchFigures([scores], [back_rank], [back_other], [preferred]), scale)
    return float(found)


# --------------------------------------------------------------------------- the features


def test_features_by_hand() -> None:
    found = CONFIDENCE_MODEL.features(
        SearchFigures(
            [[0.5, 0.3, 0.1], [0.2, 0.2, 0.2], [0.6, -0.2, -0.2]],
            [0, 3, CONFIDENCE_MODEL.candidates],
            [0.2, 0.3, 0.9],
            [[0, 0], [2, 0], [1, 1]],
        ),
        SCALE,
    )
    # Leads of 0.3, 0.0 and 0.8 with a median of 0.2 and a spread of 0.1; on the way back 0.3, -0.1 and -0.3.
    expected = [
        [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0],
        [1.0, 0.0, np.log(4.0), -2.0, -2.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, np.log(11.0), 6.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]
    assert found.dtype == np.float64
    assert_close(found, expected, atol=1e-4)


def test_features_contain_the_scale() -> None:
    scale = replace(SCALE, agreement=0.8, dimensions=50, words=2500)
    pairs = SearchFigures([[0.35, 0.1], [0.35, 0.1]], [0, 2], [0.2, 0.2], [[0, 0], [1, 0]])
    mutual, other = CONFIDENCE_MODEL.features(pairs, scale)
    # A lead of 0.25 with a median of 0.2 and a spread of 0.1.
    odds = np.log(4.0)
    assert_close(mutual[6:], [odds, np.log(1 / 6), np.log(0.5), odds / 2, odds, 1.0, 1.0, 0.0], atol=1e-4)
    assert_close(other[6:], [odds, np.log(1 / 6), np.log(0.5), odds / 2, 0.0, 0.0, 1.0, 0.0], atol=1e-4)


def test_features_of_preferred_candidates() -> None:
    def of(first: int, second: int) -> list[float]:
        found: list[float] = CONFIDENCE_MODEL.features(
            SearchFigures([[0.5, 0.1]], [0], [0.0], [[first, second]]), SCALE
        )[0, 11:].tolist()
        return found

    # Both prefer the pair; one does, in either order; none does, with different others; both prefer the same other.
    assert of(0, 0) == [1, 1, 0]
    assert of(0, 3) == of(3, 0) == [0, 1, 0]
    assert of(1, 2) == [0, 0, 0]
    assert of(4, 4) == [0, 0, 1]


@pytest.mark.parametrize("share", [0.0, 1.0, 1e-9])
def test_odds_stay_finite(share: float) -> None:
    assert abs(log_odds(share)) < 6
    assert log_odds(0.5) == 0.0
    assert logistic(np.array([log_odds(0.3)]))[0] == pytest.approx(0.3)


def test_single_precision_scores_are_computed_in_double() -> None:
    scores = np.array([[0.5, 0.25, 0.125]], dtype=np.float32)
    one_of = CONFIDENCE_MODEL.features(
        SearchFigures(scores, np.array([2], dtype=np.int64), scores[:, 1], [[0, 1]]), SCALE
    )
    assert_same(
        one_of, CONFIDENCE_MODEL.features(SearchFigures(scores.astype(np.float64), [2.0], [0.25], [[0, 1]]), SCALE)
    )


def test_a_single_candidate_has_no_lead() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forward, backward = SearchFigures([[0.7], [-0.7]], [0, 0], [-np.inf, -np.inf], [[0, 0], [0, 0]]).leads()
        assert_same(forward, [0.0, 0.0])
        assert_same(backward, [0.0, 0.0])
        # Like one of several equal candidates.
        assert one([0.7], 0, 0.7) == pytest.approx(one([0.7] * CONFIDENCE_MODEL.candidates, 0, 0.7))


def test_no_pairs() -> None:
    nothing = SearchFigures(np.zeros((0, 10)), np.zeros(0), np.zeros(0), np.zeros((0, 2)))
    assert CONFIDENCE_MODEL.features(nothing, SCALE).shape == (0, len(CONFIDENCE_MODEL.weights))
    assert CONFIDENCE_MODEL.confidence(nothing, SCALE).shape == (0,)


def test_quartiles() -> None:
    assert quartiles(np.array([4.0, 0.0, 1.0, 3.0, 2.0])) == (2.0, 2.0)


@given(scores=st.lists(CSLS, min_size=2, max_size=CONFIDENCE_MODEL.candidates), back_rank=RANK, shift=CSLS)
@settings(max_examples=30)
def test_features_depend_on_leads_only(scores: list[float], back_rank: int, shift: float) -> None:
    ranked = sorted(scores, reverse=True)
    moved = [score + shift for score in ranked]
    found = CONFIDENCE_MODEL.features(SearchFigures([ranked], [back_rank], [ranked[-1]], [[0, 0]]), SCALE)
    assert_close(
        found, CONFIDENCE_MODEL.features(SearchFigures([moved], [back_rank], [moved[-1]], [[0, 0]]), SCALE), atol=1e-6
    )


# --------------------------------------------------------------------------- the chance


def test_confidence_by_hand() -> None:
    found = SearchFigures([[0.5, 0.3, 0.1]], [2], [0.4], [[0, 1]])
    odds = CONFIDENCE_MODEL.features(found, SCALE)[0] @ np.array(CONFIDENCE_MODEL.weights)
    assert CONFIDENCE_MODEL.confidence(found, SCALE)[0] == pytest.approx(1.0 / (1.0 + np.exp(-odds)))


@given(scores=st.lists(CSLS, min_size=1, max_size=CONFIDENCE_MODEL.candidates), back_rank=RANK, other=CSLS)
@settings(max_examples=30)
def test_confidence_lies_between_zero_and_one(scores: list[float], back_rank: int, other: float) -> None:
    assert 0.0 < one(sorted(scores, reverse=True), back_rank, other) < 1.0


@given(lead=st.floats(0.0, 0.5), more=st.floats(1e-3, 0.2), back_rank=RANK)
@settings(max_examples=30)
def test_confidence_grows_with_the_lead(lead: float, more: float, back_rank: int) -> None:
    others = [0.1, 0.0, -0.1]
    assert one([0.1 + lead + more, *others], back_rank) > one([0.1 + lead, *others], back_rank)


def test_confidence_grows_with_the_lead_on_the_way_back() -> None:
    found = [one([0.5, 0.3, 0.2], 0, other) for other in (0.5, 0.4, 0.3, 0.0)]
    assert found == sorted(found)


def test_confidence_falls_with_the_rank_on_the_way_back() -> None:
    found = [one([0.5, 0.3, 0.2], rank) for rank in range(CONFIDENCE_MODEL.candidates + 1)]
    assert found == sorted(found, reverse=True)


def test_confidence_grows_with_the_agreement() -> None:
    found = [one([0.5, 0.3, 0.2], 0, scale=replace(SCALE, agreement=share)) for share in (0.02, 0.1, 0.4, 0.7, 0.95)]
    assert found == sorted(found)
    assert found[-1] > 2 * found[0]


@pytest.mark.parametrize("agreement", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("rank", [0, 5])
def test_confidence_grows_with_the_preference_of_refits(rank: int, agreement: float) -> None:
    scale = replace(SCALE, agreement=agreement)
    found = [one([0.4, 0.3, 0.2], rank, scale=scale, preferred=preferred) for preferred in ((2, 1), (0, 1), (0, 0))]
    assert found == sorted(found)
    assert found[-1] > 1.04 * found[0]


def test_few_words_count_as_five_hundred() -> None:
    [few, fewer] = [one([0.5, 0.3, 0.2], 0, scale=replace(SCALE, words=words)) for words in (500, 3)]
    assert few == fewer
    model = replace(CONFIDENCE_MODEL, fewest_words=2)
    pair = SearchFigures([[0.5, 0.3]], [0], [0.0], [[0, 0]])
    assert model.features(pair, replace(SCALE, words=3))[0, 8] == pytest.approx(np.log(3 / 5000))


def test_confidence_is_near_zero_in_a_failed_alignment() -> None:
    assert one([0.9, 0.0, 0.0], 0, scale=replace(SCALE, succeeded=False)) <= CONFIDENCE_MODEL.failed_factor


def test_clear_and_poor_pairs_differ() -> None:
    # A mutual pair with a large lead, and a pair without a lead.
    assert one([0.6, 0.0, 0.0], 0) > 0.9
    assert one([0.1, 0.1, 0.1], CONFIDENCE_MODEL.candidates, 0.5, preferred=(1, 2)) < 0.05


# --------------------------------------------------------------------------- the weights


def test_weights_match_the_recorded_fit() -> None:
    recorded = json.loads(benchmark.RESULTS.read_text())
    assert tuple(recorded["weights"]) == CONFIDENCE_MODEL.weights
