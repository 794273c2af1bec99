"""How much of each side found a partner."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.judging.partners import Partners, partners
from qwp.maps.procrustes import Maps
from tests.problems import rotation, space


@pytest.mark.parametrize("shared", [600, 400, 200])
def test_what_has_a_counterpart_has_a_partner_and_the_rest_rarely_has(shared: int) -> None:
    words, w = space(1400 - shared, 24, 0, clusters=200), rotation(24, 1)
    x = words[:600]
    y = np.concatenate([words[:shared], words[600:]])[: shared + 800 - shared] @ w
    found = partners(x, y, Maps(w))
    assert shared / 600 <= found.src <= shared / 600 + 0.35 * (1 - shared / 600)
    assert shared / 800 <= found.tgt <= shared / 800 + 0.35 * (1 - shared / 800)


def test_both_sides_may_be_mapped_and_few_are_asked() -> None:
    words, w = space(300, 12, 0), rotation(12, 1)
    assert partners(words @ w, words, Maps(w.T, np.eye(12))) == Partners(1.0, 1.0)
    lost = partners(words @ w, words, Maps(np.eye(12)), asked=50)
    assert lost.src < 0.3
    assert lost.src * 50 == pytest.approx(round(lost.src * 50))


def test_shares_are_shown_in_percent() -> None:
    found = Partners(0.7, 0.456)
    assert str(found) == "70 % of src, 46 % of tgt"
    assert found.to_dict() == {"src": 0.7, "tgt": 0.456}
