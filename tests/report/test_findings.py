"""The figures of a report, on an alignment whose answer is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qwp import InputError, Lexicon, evaluate
from qwp.report.findings import find, most_frequent
from qwp.results.alignment import Alignment


def test_figures_agree_with_the_evaluation(alignment: Alignment, lexicon: Lexicon) -> None:
    found = find(alignment, {"gold": lexicon})
    assert found.evaluations["gold"].scores == evaluate(alignment, lexicon).scores
    assert found.reliability is not None
    assert found.reliability.measured.words == 200
    assert found.reliability.measured.share == pytest.approx(found.evaluations["gold"].p_at_1())
    assert found.words == found.of == (300, 300)
    [band] = found.bands
    assert band.measured == found.reliability.measured
    assert len(found.examples) == 16
    assert {point.side for point in found.points} == {"src", "tgt"}
    json.dumps(found.to_dict(), allow_nan=False)


def test_mistakes_are_the_surest_wrong_ones_with_the_rank_of_the_gold(alignment: Alignment, lexicon: Lexicon) -> None:
    # A lexicon that is wrong about one word which is translated well.
    swapped = Lexicon((("word5", "wort6"), *((s, t) for s, t in lexicon.pairs if s != "word5")))
    before, after = find(alignment, {"gold": lexicon}), find(alignment, {"gold": swapped})
    assert "word5" not in {each.word for each in before.mistakes}
    [mistake] = [each for each in after.mistakes if each.word == "word5"]
    assert (mistake.translation, mistake.gold, mistake.rank) == ("wort5", ["wort6"], 6)
    ranked = [each.word for each in alignment.translate("word5", k=300)["word5"]]
    assert mistake.gold_rank == 1 + ranked.index("wort6") > 1
    sure = [each.confidence for each in after.mistakes]
    assert sure == sorted(sure, reverse=True)


def test_several_lexicons_are_scored_apart_and_judge_together(alignment: Alignment) -> None:
    one, other = (Lexicon(tuple((f"word{i}", f"wort{i}") for i in rows)) for rows in (range(50), range(50, 120)))
    found = find(alignment, {"one": one, "other": other})
    assert set(found.evaluations) == {"one", "other"}
    assert found.reliability is not None
    assert found.reliability.measured.words == 120


def test_without_a_lexicon_nothing_is_measured(alignment: Alignment) -> None:
    found = find(alignment, {})
    assert (found.evaluations, found.reliability, found.mistakes) == ({}, None, [])
    assert all(band.measured is None and band.estimated is not None for band in found.bands)
    assert all(example.right is None for example in found.examples)


def test_large_vocabularies_are_cut_to_their_most_frequent_words(alignment: Alignment, lexicon: Lexicon) -> None:
    order = np.arange(300)[::-1].copy()
    turned = replace(alignment, src_side=replace(alignment.src_side, order=order))
    part = most_frequent(turned, 100)
    assert part.src.words == [f"word{i}" for i in range(299, 199, -1)]
    assert part.tgt.words == alignment.tgt.words[:100]
    assert np.allclose(part.transform("word250"), alignment.transform("word250"))
    found = find(alignment, {"gold": lexicon}, max_words=100)
    assert (found.words, found.of) == ((100, 100), (300, 300))
    assert found.evaluations["gold"].n_tgt == 100
    assert most_frequent(alignment, 300) is alignment


def test_a_result_that_was_not_judged_is_judged_for_its_confidences(alignment: Alignment) -> None:
    unjudged = replace(alignment, quality=replace(alignment.quality, verdict="unjudged", estimate=None))
    found = find(unjudged, {})
    assert found.quality.verdict == "unjudged"
    assert max(band.estimated.p1 for band in found.bands if band.estimated is not None) > 0.3


def test_a_failure_has_no_estimates(alignment: Alignment, lexicon: Lexicon) -> None:
    failed = replace(alignment, quality=replace(alignment.quality, verdict="failed"))
    assert all(band.estimated is None for band in find(failed, {"gold": lexicon}).bands)


def test_words_can_be_chosen(alignment: Alignment, lexicon: Lexicon) -> None:
    found = find(alignment, {"gold": lexicon}, words=["word1", "nowhere", "word299"])
    assert [example.word for example in found.examples] == ["word1", "word299"]
    assert [example.right for example in found.examples] == [True, None]
    with pytest.raises(InputError, match=r"none of the 1 words \('nowhere'\) is in the source vocabulary"):
        find(alignment, {}, words=["nowhere"])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_vocabularies_have_figures(alignment: Alignment, n: int) -> None:
    found = find(alignment, {"gold": Lexicon((("word0", "wort0"),))}, max_words=n)
    assert found.words == (n, n)
    json.dumps(found.to_dict())
