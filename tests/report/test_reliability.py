"""Reliability and bands of rank, on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.report.reliability import Judged, Measured, by_rank, reliability


def judged(confidence: list[float], right: list[bool | None]) -> Judged:
    """None: the lexicon does not have the word."""
    return Judged(np.array(confidence), np.array([r is not None for r in right]), np.array([bool(r) for r in right]))


def test_wilsons_interval_is_that_of_the_books() -> None:
    found = Measured.of(8, 10)  # 0.4902 to 0.9433, Brown et al. 2001
    assert (found.words, found.share) == (10, 0.8)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert Measured.of(0, 5).low == 0.0
    assert Measured.of(5, 5).high == 1.0


def test_bins_hold_what_seemed_equally_sure() -> None:
    found = reliability(judged([0.95, 1.0, 0.91, 0.15, 0.5], [True, True, False, False, None]))
    assert found is not None
    assert [(each.low, each.high, each.measured.words) for each in found.bins] == [(0.1, 0.2, 1), (0.9, 1.0, 3)]
    assert found.bins[1].confidence == pytest.approx((0.95 + 1.0 + 0.91) / 3)
    assert found.bins[1].measured.share == pytest.approx(2 / 3)
    expected = (1 * 0.15 + 3 * abs((0.95 + 1.0 + 0.91) / 3 - 2 / 3)) / 4
    assert found.error == pytest.approx(expected)
    assert found.measured.share == 0.5
    assert found.confidence == pytest.approx((0.95 + 1.0 + 0.91 + 0.15) / 4)


def test_without_known_words_there_is_nothing_to_say() -> None:
    assert reliability(judged([0.5], [None])) is None


def test_a_confidence_that_is_as_it_should_be_has_no_error() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(size=20_000)
    found = reliability(Judged(confidence, np.ones(20_000, bool), rng.uniform(size=20_000) < confidence))
    assert found is not None
    assert found.error < 0.02
    overconfident = reliability(Judged(confidence, np.ones(20_000, bool), rng.uniform(size=20_000) < confidence / 2))
    assert overconfident is not None
    assert overconfident.error > 0.2


def test_bands_end_at_round_ranks_and_at_the_last_word() -> None:
    right = [True] * 500 + [False] * 100 + [None] * 600
    found = by_rank(judged([0.5] * 1200, right), real=True)
    assert [(band.first, band.last) for band in found] == [(1, 500), (501, 1000), (1001, 1200)]
    shares = [None if band.measured is None else band.measured.share for band in found]
    assert shares == [1.0, 0.0, None]
    assert all(band.estimated is not None and band.estimated.low < band.estimated.high for band in found)
    assert all(band.estimated is None for band in by_rank(judged([0.5] * 3, [None] * 3), real=False))
