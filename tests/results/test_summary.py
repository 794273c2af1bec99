"""Summaries of results in notebooks and tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from qwp import Alignment, Embeddings, MultiAlignment
from qwp.judging.estimate import Band, Share, empty_estimate
from qwp.judging.measured import Measured
from qwp.judging.verdict import VERDICTS, Quality
from qwp.results.sides import AlignedSide
from qwp.results.summary import COLOURS, content_words, looks_like_content, quality_rows, recorded, some_words, times
from qwp.spaces.normalization import Normalization
from qwp.stages.agreement import Agreement

NASTY = "<script>alert('x')</script>&\x1b[2J\u202e"


def text_of(html: str) -> str:
    """Return the text of a card, which must be well-formed."""
    return " ".join(ElementTree.fromstring(html).itertext())


def test_every_verdict_has_a_colour() -> None:
    assert set(COLOURS) == set(VERDICTS)


def test_the_card_of_an_alignment(aligned: Alignment) -> None:
    html = aligned._repr_html_()
    text = text_of(html)
    assert COLOURS["succeeded"] in html
    assert aligned.quality.explanation in text
    assert "400 x 12" in text
    assert aligned.quality.short in text
    assert "qwp, seed 0" in text
    words = some_words(aligned.src_side, 8)
    assert len(words) == 8
    for word in words:
        assert word in text
        assert f"t{word[1:]}" in text


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_shown_in_its_colour(aligned: Alignment, verdict: str) -> None:
    html = replace(aligned, quality=replace(aligned.quality, verdict=verdict))._repr_html_()
    assert COLOURS[verdict] in html
    assert verdict in text_of(html)


def renamed(alignment: Alignment, prefix: str) -> Alignment:
    def side(given: AlignedSide) -> AlignedSide:
        return replace(given, source=Embeddings([f"{prefix}{w}" for w in given.space.words], given.space.vectors))

    return replace(alignment, src_side=side(alignment.src_side), tgt_side=side(alignment.tgt_side))


def test_words_and_names_are_escaped(aligned: Alignment) -> None:
    nasty = renamed(aligned, NASTY)
    record = replace(aligned.provenance.src, path=f"/tmp/{NASTY[8:]}.vec")
    nasty = replace(nasty, provenance=replace(aligned.provenance, src=record, tgt=record))
    several = MultiAlignment(NASTY, {NASTY + "2": nasty})
    for html in (nasty._repr_html_(), several._repr_html_()):
        assert "<script" not in html
        assert not set("\x1b\u202e") & set(html)
        assert "<script>alert('x')</script>&\\x1b[2J\\u202e" in text_of(html)
    for shown in (repr(nasty), repr(several)):
        assert not set("\x1b\u202e\n") & set(shown)


def test_a_large_vocabulary_is_not_searched_for_examples(aligned: Alignment) -> None:
    large = replace(aligned)
    assert large._examples(most=12 * 400 * 400)
    large = replace(aligned)
    assert not large._examples(most=12 * 399 * 400)
    assert not large.translator._retrievers
    # Examples use the lookup of an earlier translation.
    large.translate("s1")
    assert large._examples(most=12 * 399 * 400)


class BrokenAlignment(Alignment):
    """Cannot translate."""

    def translate(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no")


def test_a_card_never_fails(aligned: Alignment) -> None:
    odd = replace(aligned, quality=replace(aligned.quality, verdict="<odd>"))
    assert odd._repr_html_() == f"<pre>{repr(odd).replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    assert MultiAlignment("en", {"es": odd})._repr_html_().startswith("<pre>MultiAlignment(")
    broken = BrokenAlignment(aligned.src_side, aligned.tgt_side, aligned.quality, aligned.provenance)
    assert broken._repr_html_().startswith("<pre>Alignment(")


def test_the_card_of_several_languages(aligned: Alignment) -> None:
    failed = replace(aligned, quality=replace(aligned.quality, verdict="failed"))
    html = MultiAlignment("en", {"es": aligned, "fr": failed})._repr_html_()
    text = text_of(html)
    for expected in ("2 languages aligned onto en", "es", "fr", "succeeded", "failed"):
        assert expected in text
    assert COLOURS["failed"] in html, "the worst of them"


LETTERS = ["".join(pair) for pair in product("abcdefghijklmnopqrstuvwxyzàáâèé", repeat=2)]


def side_of(words: list[str], order: list[int] | None = None) -> AlignedSide:
    space = Embeddings(words, np.ones((len(words), 2), np.float32))
    return AlignedSide(space, None, Normalization((), ()), None if order is None else np.asarray(order))


def test_content_words_are_neither_most_frequent_nor_numbers() -> None:
    frequent = [f"the{end}" for end in LETTERS[:100]]
    others = ["1999", "...", "of", *(f"word{end}" for end in LETTERS)]
    chosen = some_words(side_of([*frequent, *others]), 8)
    assert len(set(chosen)) == 8
    assert set(chosen) <= set(others[3:])
    assert content_words(side_of([*frequent, *others]))[0] == others[3]


def test_few_content_words_are_replaced_by_frequent_words() -> None:
    assert some_words(side_of(["1", "2", "3"]), 8) == ["1", "2", "3"]
    assert some_words(side_of(["水", "火"]), 1) == ["水"]
    assert content_words(side_of(["1", "2"])) == []


def test_content_words_are_ordered_by_frequency() -> None:
    assert content_words(side_of(["rare", "often", "never"], [1, 0, 2])) == ["often", "rare", "never"]


def test_looks_like_content() -> None:
    assert [word for word in ("house", "the", ",", "1234", "東京", "水", "дом") if looks_like_content(word)] == [
        *("house", "東京", "水")
    ]


def test_quality_rows() -> None:
    fitted, held = Agreement(1234, 0.5, 0.25), Agreement(10, 0.1, 0.125)
    quality = Quality("succeeded", "It is real.", 2.5, 4000, fitted, fitted, held, held)
    assert quality_rows(quality) == [
        ("judged on", "the 4,000 most frequent words of each side"),
        ("mutual pairs", "1,234 (50.0 %), mean CSLS 0.250"),
        ("held-out agreement", "2.50 times the null mean of 1 null run"),
    ]
    told = replace(quality, null_runs=8, null_deviation=0.02, z=75.0)
    assert quality_rows(told)[2][1] == "2.50 times the null mean of 8 null runs (relative deviation 0.020)"
    ranked = replace(quality, p_value=1 / 1295)
    assert quality_rows(ranked)[2][1] == (
        "2.50 times the null mean of 1 null run (p = 0.00077 against unrelated spaces)"
    )
    # Earlier versions stored an invented deviation of a single run.
    assert quality_rows(replace(told, null_runs=1)) == quality_rows(quality)
    on_pairs = Measured(56, 100, 0.473, 0.644, 0.012, 0.0005)
    known = replace(quality, measured=on_pairs)
    assert quality_rows(known)[0] == (
        "measured accuracy",
        "56 % (47-64) on 100 held-out words; 1.2 % by chance, p = 0.0005",
    )
    assert known.short == "succeeded: measured accuracy 56 % (47-64)"
    assert quality_rows(replace(known, measured=replace(on_pairs, held_out=False))) == quality_rows(quality)
    share = Share(0.46, 0.3, 0.63)
    bands = [Band(1, 1000, Share(0.71, 0.6, 0.8)), Band(1001, 20_000, Share(0.4, 0.3, 0.5))]
    estimated = replace(quality, estimate=replace(empty_estimate(3), overall=share, bands=bands))
    assert quality_rows(estimated)[0] == (
        "estimated accuracy",
        "46 % (30-63); 71 % for words 1-1,000; 40 % for words 1,001-20,000; not measured",
    )
    outside = replace(estimated, outside_calibration=["unordered items", "20 dimensions instead of 50 to 300"])
    assert quality_rows(outside)[0] == (
        "estimated accuracy",
        "outside the calibration range (unordered items, 20 dimensions instead of 50 to 300)",
    )
    assert outside.short == "succeeded"
    # A failed alignment has no estimated accuracy.
    assert quality_rows(replace(estimated, verdict="failed")) == quality_rows(quality)
    assert times({"loop": 1.0, "refine": 90.0}) == "1 min 31 s (loop 1.0 s, refine 1 min 30 s)"


def test_curves_of_a_history() -> None:
    history = [
        {"stage": "refine", "step": 1, "n_pairs": 10, "mean_csls": 0.25},
        {"stage": "loop", "step": 1, "objective": 2.0},
        {"stage": "loop", "step": 3, "objective": 1.5, "k": 40},
        {"stage": "loop", "step": 4, "objective": None},
        {"stage": "coresets", "step": 1, "objective": 9.0},
        {"stage": "refine", "step": 2, "n_pairs": 12, "mean_csls": 0.5},
    ]
    loop, pairs, csls = recorded(history)
    assert (loop.stage, loop.field, loop.x, loop.y) == ("loop", "objective", [1.0, 3.0], [2.0, 1.5])
    assert (pairs.field, pairs.x_label, pairs.y) == ("n_pairs", "round", [10.0, 12.0])
    assert (csls.title, csls.y) == ("Refinement: how well they match", [0.25, 0.5])
    assert list(recorded([])) == []
