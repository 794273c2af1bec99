"""Retrieval of held-out counterparts, and the share of items with a counterpart."""

from __future__ import annotations

import json

import numpy as np
import pytest

import qwp
from qwp import InputError
from qwp.arrays import AnyFloats
from qwp.judging.counterparts import Counterparts, counterpart_shares, evaluate_counterparts
from qwp.maps.procrustes import Maps
from qwp.spaces.embeddings import Side
from tests.problems import rotation, space


class Turned:
    """Maps the source by a rotation, and the target by the identity."""

    def __init__(self, w: AnyFloats) -> None:
        self._w = w

    def transform(self, items: AnyFloats, side: Side = "src") -> AnyFloats:
        return items @ self._w if side == "src" else items


def test_recall_is_1_under_the_right_map_and_near_0_under_another() -> None:
    x, w = space(200, 12, 0), rotation(12, 1)
    right = evaluate_counterparts(Turned(w), x, x @ w, bootstrap=20)
    for found in right.found.values():
        assert found.recall[1].value == 1.0
        assert (found.mean_rank, found.median_rank) == (1.0, 1.0)
    assert repr(right) == "CounterpartRetrieval(recall@1 of 200: nn 100.0 %, csls 100.0 %)"
    wrong = evaluate_counterparts(Turned(w.T), x, x @ w, bootstrap=0)
    assert wrong.found["nn"].recall[1].value < 0.1
    assert wrong.found["nn"].mean_rank > 20
    assert json.loads(json.dumps(wrong.to_dict()))["found"]["nn"]["mean_rank"] == wrong.found["nn"].mean_rank


def test_ranks_count_from_one() -> None:
    tgt = np.eye(4)[:3]
    src = np.array([[0.9, 0.5, 0.1, 0], [0.9, 0.5, 0.1, 0], [0.9, 0.5, 0.1, 0]])
    found = evaluate_counterparts(Turned(np.eye(4)), src, tgt, bootstrap=0).found["nn"]
    assert found.recall[1].value == pytest.approx(1 / 3)
    assert found.recall[5].value == 1.0
    assert (found.mean_rank, found.median_rank) == (2.0, 2.0)


def test_the_search_can_go_from_target_to_source() -> None:
    src = np.array([[1.0, 0, 0], [1.0, 0.1, 0], [0, 0, 1.0]])
    tgt = np.array([[1.0, 0, 0], [1.0, 0.2, 0], [1.0, 0.1, 0]])
    forward, back = (
        evaluate_counterparts(Turned(np.eye(3)), src, tgt, bootstrap=0, reverse=reverse).found["nn"].recall[1].value
        for reverse in (False, True)
    )
    assert [forward, back] == pytest.approx([1 / 3, 2 / 3])


def test_both_sides_need_the_same_number_of_items() -> None:
    with pytest.raises(InputError, match="src has 3 held-out items, tgt 4; expected the same number"):
        evaluate_counterparts(Turned(np.eye(5)), np.ones((3, 5)), np.ones((4, 5)))


def test_two_encoders_of_different_width_from_known_rows() -> None:
    """A user changed the encoder of a vector store, so some pairs of rows are known."""
    x = space(700, 10, 0).astype("f4")
    y = (x @ rotation(14, 1)[:10, :].astype("f4")).astype("f4")
    shuffled = np.random.default_rng(0).permutation(600)
    known = np.column_stack([shuffled[:60], np.arange(60)])
    options = {"order": "none", "verdict": "none", "device": "cpu", "threads": 1}
    for method in ("procrustes", "qwp"):
        alignment = qwp.align(x[:600], y[:600][shuffled], method, lexicon=known, **options)  # type: ignore[arg-type]
        found = qwp.evaluate_counterparts(alignment, x[600:], y[600:], bootstrap=0)
        assert found.found["csls"].recall[1].value > 0.95
    plain = qwp.align(x[:600], y[:600][shuffled], "procrustes", lexicon=[(int(a), int(b)) for a, b in known], **options)  # type: ignore[arg-type]
    assert qwp.evaluate_counterparts(plain, x[600:], y[600:], bootstrap=0).found["nn"].recall[1].value > 0.95


@pytest.mark.parametrize(("n", "m"), [(600, 600), (600, 800), (400, 1200), (1200, 400)])
@pytest.mark.parametrize("shared", [400, 200, 0])
def test_shares_match_the_planted_counterparts(shared: int, n: int, m: int) -> None:
    words, w = space(n + m - shared, 24, 0, clusters=200), rotation(24, 1)
    y = np.concatenate([words[:shared], words[n:]]) @ w
    found = counterpart_shares(words[:n], y, Maps(w))
    assert (found.src, found.tgt) == pytest.approx((shared / n, shared / m), abs=0.1)


def test_without_counterparts_there_are_none_under_noise_either() -> None:
    words, w = space(1200, 24, 0, clusters=200), rotation(24, 1)
    noisy = words[600:] + 0.1 * np.random.default_rng(0).standard_normal((600, 24))
    assert counterpart_shares(words[:600], noisy @ w, Maps(w)) == Counterparts(0.0, 0.0)
    # A single item of each side says nothing.
    assert counterpart_shares(words[:1], words[1:2] @ w, Maps(w)) == Counterparts(0.0, 0.0)


def test_maps_of_both_sides_and_wrong_maps() -> None:
    words, w = space(300, 12, 0), rotation(12, 1)
    assert counterpart_shares(words @ w, words, Maps(w.T, np.eye(12))) == Counterparts(1.0, 1.0)
    assert counterpart_shares(words @ w, words, Maps(np.eye(12)), sample=50) == Counterparts(0.0, 0.0)


def test_shares_are_shown_in_percent() -> None:
    found = Counterparts(0.7, 0.456)
    assert str(found) == "70 % of src, 46 % of tgt"
    assert found.sentence == "An estimated 70 % of src items and 46 % of tgt items have a counterpart."
    assert found.to_dict() == {"src": 0.7, "tgt": 0.456, "few": False}
    bound = Counterparts(0.7, 0.456, few=True)
    assert str(bound) == "at most 70 % of src, 46 % of tgt"
    assert bound.sentence == (
        "At most 70 % of src items and 46 % of tgt items have a counterpart (estimated from few items)."
    )


def test_shares_from_few_items_for_each_dimension_are_upper_bounds() -> None:
    words, w = space(200, 12, 0), rotation(12, 1)
    assert not counterpart_shares(words[:120], words @ w, Maps(w)).few
    assert counterpart_shares(words[:119], words @ w, Maps(w)).few
    assert counterpart_shares(words @ w, words[:119], Maps(w.T)).few
    assert Counterparts(0.049, 0.0).sentence.startswith("Hardly any item seems to have a counterpart")
