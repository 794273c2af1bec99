"""The figures of a report on an alignment with known translations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qwp import InputError, Lexicon, evaluate
from qwp.report.analysis import (
    GROUPS,
    JudgedWords,
    MeasuredShare,
    analyse,
    by_rank,
    hubness,
    most_frequent,
    occurrences,
    reliability,
    skewness,
)
from qwp.results.alignment import Alignment
from qwp.spaces import normalization
from qwp.spaces.embeddings import Embeddings


def test_figures_agree_with_the_evaluation(alignment: Alignment, lexicon: Lexicon) -> None:
    found = analyse(alignment, {"gold": lexicon})
    assert found.evaluations["gold"].scores == evaluate(alignment, lexicon).scores
    assert found.reliability is not None
    assert found.reliability.measured.words == 200
    assert found.reliability.measured.share == pytest.approx(found.evaluations["gold"].p_at_1())
    assert found.words == found.all_words == (300, 300)
    [band] = found.bands
    assert band.measured == found.reliability.measured
    assert len(found.examples) == 16
    assert {point.side for point in found.points} == {"src", "tgt"}
    json.dumps(found.to_dict(), allow_nan=False)


def test_mistakes_are_the_most_confident_wrong_translations(alignment: Alignment, lexicon: Lexicon) -> None:
    # A lexicon with a wrong translation of a word that is translated correctly.
    swapped = Lexicon((("word5", "wort6"), *((s, t) for s, t in lexicon.pairs if s != "word5")))
    before, after = analyse(alignment, {"gold": lexicon}), analyse(alignment, {"gold": swapped})
    assert "word5" not in {each.word for each in before.mistakes}
    [mistake] = [each for each in after.mistakes if each.word == "word5"]
    assert (mistake.translation, mistake.gold, mistake.rank) == ("wort5", ["wort6"], 6)
    ranked = [each.word for each in alignment.translate("word5", k=300)["word5"]]
    assert mistake.gold_rank == 1 + ranked.index("wort6") > 1
    sure = [each.confidence for each in after.mistakes]
    assert sure == sorted(sure, reverse=True)


def test_several_lexicons_are_scored_separately_and_merged_for_judging(alignment: Alignment) -> None:
    one, other = (Lexicon(tuple((f"word{i}", f"wort{i}") for i in rows)) for rows in (range(50), range(50, 120)))
    found = analyse(alignment, {"one": one, "other": other})
    assert set(found.evaluations) == {"one", "other"}
    assert found.reliability is not None
    assert found.reliability.measured.words == 120


def test_without_a_lexicon_nothing_is_measured(alignment: Alignment) -> None:
    found = analyse(alignment, {})
    assert (found.evaluations, found.reliability, found.mistakes) == ({}, None, [])
    assert all(band.measured is None and band.estimated is not None for band in found.bands)
    assert all(example.right is None for example in found.examples)


def test_large_vocabularies_are_truncated_to_frequent_words(alignment: Alignment, lexicon: Lexicon) -> None:
    order = np.arange(300)[::-1].copy()
    turned = replace(alignment, src_side=replace(alignment.src_side, order=order))
    part = most_frequent(turned, 100)
    assert part.src.words == [f"word{i}" for i in range(299, 199, -1)]
    assert part.tgt.words == alignment.tgt.words[:100]
    assert np.allclose(part.transform("word250"), alignment.transform("word250"))
    found = analyse(alignment, {"gold": lexicon}, max_words=100)
    assert (found.words, found.all_words) == ((100, 100), (300, 300))
    assert found.evaluations["gold"].n_tgt == 100
    assert most_frequent(alignment, 300) is alignment


def test_an_unjudged_alignment_is_judged_for_its_confidences(alignment: Alignment) -> None:
    unjudged = replace(alignment, quality=replace(alignment.quality, verdict="unjudged", estimate=None))
    found = analyse(unjudged, {})
    assert found.quality.verdict == "unjudged"
    assert max(example.confidence for example in found.examples) > 0.3
    # So few words are outside the calibration range, so the bands have no estimate.
    assert all(band.estimated is None for band in found.bands)


def test_a_failure_has_no_estimates(alignment: Alignment, lexicon: Lexicon) -> None:
    failed = replace(alignment, quality=replace(alignment.quality, verdict="failed"))
    assert all(band.estimated is None for band in analyse(failed, {"gold": lexicon}).bands)


def test_words_can_be_chosen(alignment: Alignment, lexicon: Lexicon) -> None:
    found = analyse(alignment, {"gold": lexicon}, words=["word1", "nowhere", "word299"])
    assert [example.word for example in found.examples] == ["word1", "word299"]
    assert [example.right for example in found.examples] == [True, None]
    with pytest.raises(InputError, match=r"none of the 1 words \('nowhere'\) is in the source vocabulary"):
        analyse(alignment, {}, words=["nowhere"])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_vocabularies_have_figures(alignment: Alignment, n: int) -> None:
    found = analyse(alignment, {"gold": Lexicon((("word0", "wort0"),))}, max_words=n)
    assert found.words == (n, n)
    json.dumps(found.to_dict())


def test_skewness_of_known_distributions() -> None:
    assert skewness(np.array([3, 3, 3])) == 0.0
    assert skewness(np.array([1, 2, 3])) == pytest.approx(0.0)
    # Bernoulli with p = 1/4: (1 - 2p) / sqrt(p (1 - p)).
    assert skewness(np.array([0, 0, 0, 1])) == pytest.approx(0.5 / np.sqrt(3 / 16))


def test_occurrences_are_grouped() -> None:
    found = occurrences(np.array([0, 1, 2, 3, 101, 20]), list("abcdef"))
    assert GROUPS == ("0", "1–2", "3–5", "6–10", "11–20", "21–50", "51–100", ">100")
    assert found.shares == pytest.approx([1 / 6, 2 / 6, 1 / 6, 0, 1 / 6, 0, 0, 1 / 6])
    assert found.orphans == pytest.approx(1 / 6)
    assert found.largest[:2] == [("e", 101), ("f", 20)]


def test_csls_reduces_a_hub(alignment: Alignment) -> None:
    # All words share a direction, so a target word in exactly this direction is near to all of them.
    rng = np.random.default_rng(0)
    x, y = (normalization.fit(rng.standard_normal((n, 16)))[1] + np.eye(16)[0] for n in (300, 100))
    y[7] = np.eye(16)[0]
    eye = np.eye(16, dtype=np.float32)
    src = replace(alignment.src_side, source=Embeddings(alignment.src.words, x.astype(np.float32)), map=eye)
    tgt = replace(alignment.tgt_side, source=Embeddings(alignment.tgt.words[:100], y.astype(np.float32)))
    found = hubness(replace(alignment, src_side=src, tgt_side=tgt), csls_k=10)
    assert (found.k, found.queries) == (10, 300)
    assert found.cosine.largest[0][0] == "wort7"
    assert found.cosine.skewness > 1.5 * found.csls.skewness
    assert sum(found.cosine.shares) == pytest.approx(1.0)


def test_a_small_alignment_is_not_truncated(alignment: Alignment) -> None:
    from qwp.report.analysis import most_frequent

    found = hubness(most_frequent(alignment, 3), csls_k=10)
    assert (found.k, found.queries) == (3, 3)
    assert found.csls.skewness == 0.0


def judged(confidence: list[float], right: list[bool | None]) -> JudgedWords:
    """None stands for a word that the lexicon does not have."""
    known, correct = ([r is not None for r in right], [bool(r) for r in right])
    return JudgedWords(np.array(confidence), np.array(known), np.array(correct))


def test_wilson_interval_of_a_published_example() -> None:
    found = MeasuredShare.of(8, 10)  # 0.4902 to 0.9433, Brown et al. 2001
    assert (found.words, found.share) == (10, 0.8)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert MeasuredShare.of(0, 5).low == 0.0
    assert MeasuredShare.of(5, 5).high == 1.0


def test_bins_group_words_by_confidence() -> None:
    found = reliability(judged([0.95, 1.0, 0.91, 0.15, 0.5], [True, True, False, False, None]))
    assert found is not None
    assert [(each.low, each.high, each.measured.words) for each in found.bins] == [(0.1, 0.2, 1), (0.9, 1.0, 3)]
    assert found.bins[1].confidence == pytest.approx((0.95 + 1.0 + 0.91) / 3)
    assert found.bins[1].measured.share == pytest.approx(2 / 3)
    expected = (1 * 0.15 + 3 * abs((0.95 + 1.0 + 0.91) / 3 - 2 / 3)) / 4
    assert found.error == pytest.approx(expected)
    assert found.measured.share == 0.5
    assert found.confidence == pytest.approx((0.95 + 1.0 + 0.91 + 0.15) / 4)


def test_no_reliability_without_words_of_the_lexicon() -> None:
    assert reliability(judged([0.5], [None])) is None


def test_a_calibrated_confidence_has_no_error() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(size=20_000)
    found = reliability(JudgedWords(confidence, np.ones(20_000, bool), rng.uniform(size=20_000) < confidence))
    assert found is not None
    assert found.error < 0.02
    overconfident = reliability(
        JudgedWords(confidence, np.ones(20_000, bool), rng.uniform(size=20_000) < confidence / 2)
    )
    assert overconfident is not None
    assert overconfident.error > 0.2


def test_bands_end_at_round_ranks_and_at_the_last_word() -> None:
    right = [True] * 500 + [False] * 100 + [None] * 600
    found = by_rank(judged([0.5] * 1200, right), estimate=True)
    assert [(band.first, band.last) for band in found] == [(1, 500), (501, 1000), (1001, 1200)]
    shares = [None if band.measured is None else band.measured.share for band in found]
    assert shares == [1.0, 0.0, None]
    assert all(band.estimated is not None and band.estimated.low < band.estimated.high for band in found)
    assert all(band.estimated is None for band in by_rank(judged([0.5] * 3, [None] * 3), estimate=False))
