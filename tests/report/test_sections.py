"""The sections of a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qwp.report.analysis import analyse
from qwp.report.sections import bands, curves, default_title, measured, p_at_k, pictures, sections
from qwp.results.alignment import Alignment
from qwp.spaces.lexicon import Lexicon


def bodies(alignment: Alignment, *lexicons: Lexicon, max_words: int = 1000) -> dict[str, str]:
    found = analyse(alignment, {f"gold{i}": each for i, each in enumerate(lexicons)}, max_words=max_words)
    return {section.name: section.html() for section in sections(found)}


def test_all_sections_with_a_lexicon(alignment: Alignment, lexicon: Lexicon) -> None:
    found = bodies(alignment, lexicon)
    names = ["figures", "scores", "bands", "reliability", "mistakes", "translations", "map", "hubness", "curves"]
    assert list(found) == names
    assert "over 200 covered of 201 source words" in found["figures"]
    assert "cosine (before)" in found["hubness"]
    assert "CSLS (after)" in found["hubness"]
    assert "200 words of the lexicon" in found["reliability"]


def test_scores_have_intervals_and_lead_the_page(alignment: Alignment, lexicon: Lexicon) -> None:
    analysis = analyse(alignment, {"gold": lexicon})
    score = analysis.evaluations["gold"].scores["csls"].covered["P@1"]
    assert f"the translation is right for {100 * score.value:.1f} % (" in measured(analysis)
    assert score.percent() in bodies(alignment, lexicon)["scores"]
    assert measured(analyse(alignment, {})) == ""
    drawn = dict(p_at_k(analysis.evaluations["gold"]).series)
    assert drawn["csls"][0].value == pytest.approx(score.value)
    values = [dot.value for dot in drawn["csls"]]
    assert values == sorted(values)


def test_words_that_the_fit_was_given_are_left_out(alignment: Alignment, lexicon: Lexicon) -> None:
    seeds = Lexicon(tuple((f"word{i}", f"wort{i}") for i in range(50)))
    of = replace(alignment.provenance, supervision={"lexicon": seeds.sha256(), "start_matrix": None})
    supervised = replace(alignment, provenance=of)
    found = analyse(supervised, {"gold": lexicon, "seeds": seeds})
    assert found.left_out == {"gold": 50, "seeds": 50}
    assert list(found.evaluations) == ["gold"]
    assert found.evaluations["gold"].coverage.covered_source_words == 150
    assert found.reliability is not None
    assert found.reliability.measured.words == 150
    scores = bodies(supervised, lexicon, seeds)["scores"]
    assert "50 source words of gold1 are left out of all figures" in scores
    assert "no words are left to score with" in scores
    assert "Caution" in bodies(supervised, lexicon)["scores"]  # the seeds are not found
    assert "Caution" not in bodies(alignment, lexicon)["scores"]


def test_without_a_lexicon_the_page_explains_what_is_missing(alignment: Alignment) -> None:
    found = bodies(alignment)
    assert not {"reliability", "mistakes"} & set(found)
    assert "The report was made without a lexicon" in found["scores"]
    assert "<code>qwp report DIR --lexicon FILE</code>" in found["scores"]
    assert "P@1" not in found["figures"]


def test_a_truncated_vocabulary_is_noted(alignment: Alignment, lexicon: Lexicon) -> None:
    assert "most frequent words. Fewer words compete" in bodies(alignment, lexicon, max_words=100)["figures"]
    assert "Fewer words compete" not in bodies(alignment, lexicon)["figures"]


def test_several_lexicons_are_named(alignment: Alignment, lexicon: Lexicon) -> None:
    found = bodies(alignment, lexicon, Lexicon((("word1", "wort1"),)))
    assert "P@1, gold1" in found["figures"]
    assert "gold0" in found["scores"]
    assert "gold" not in bodies(alignment, lexicon)["scores"]


def test_the_title_names_both_sides(alignment: Alignment) -> None:
    assert default_title(analyse(alignment, {})) == "en and de in one space"


@pytest.mark.parametrize("verdict", ["weak", "undecided", "unjudged", "failed"])
def test_every_verdict_has_its_page(alignment: Alignment, verdict: str) -> None:
    judged = replace(alignment, quality=replace(alignment.quality, verdict=verdict))
    found = bodies(judged)
    assert ("estimated correct" in found["bands"]) == (verdict != "failed")


def test_a_seed_lexicon_and_an_estimated_order_are_mentioned(alignment: Alignment) -> None:
    of = replace(alignment.provenance, supervision={"lexicon": "0" * 64}, order="estimated")
    found = bodies(replace(alignment, provenance=of))["figures"]
    assert "qwp, seed 0, with a lexicon" in found
    assert "estimated from the vectors" in found
    assert "with a lexicon" not in bodies(alignment)["figures"]


def test_curves_come_from_the_history() -> None:
    history = [
        {"stage": "initialize", "step": 1, "objective": 3.0},
        {"stage": "loop", "step": 1, "objective": 2.0},
        {"stage": "loop", "step": 2, "objective": 1.0},
        {"stage": "refine", "step": 1, "n_pairs": 5},
        {"stage": "other", "step": 1},
    ]
    drawn = curves(history)
    assert {name: (list(c.x), list(c.y)) for name, c in drawn.items()} == {
        "initialize-objective": ([1.0], [3.0]),
        "loop-objective": ([1.0, 2.0], [2.0, 1.0]),
        "refine-n_pairs": ([1.0], [5.0]),
    }


def test_pictures_are_those_that_can_be_drawn(alignment: Alignment, lexicon: Lexicon) -> None:
    measured = pictures(analyse(alignment, {"gold": lexicon}))
    assert list(measured) == ["bands", "p-at-k", "reliability", "hubness", "loop-objective", "map"]
    assert all(picture.title and picture.svg() for picture in measured.values())
    assert list(pictures(analyse(alignment, {}))) == ["bands", "hubness", "loop-objective", "map"]


def test_bands_have_a_second_series_only_with_a_lexicon(alignment: Alignment, lexicon: Lexicon) -> None:
    assert [name for name, _ in bands(analyse(alignment, {}).bands).series] == ["estimated"]
    both = bands(analyse(alignment, {"gold": lexicon}).bands)
    assert [name for name, _ in both.series] == ["estimated", "measured with the lexicon"]
    assert both.x_ticks == [(1.0, "300")]
