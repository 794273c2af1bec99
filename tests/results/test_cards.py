"""Results in a notebook."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from qwp import Alignment, Embeddings, MultiAlignment
from qwp.judging.verdict import VERDICTS
from qwp.results.cards import COLOURS
from qwp.results.examples import some_words
from qwp.results.sides import AlignedSide

NASTY = "<script>alert('x')</script>&\x1b[2J\u202e"


def text_of(html: str) -> str:
    """All text of a card, which has to be well-formed."""
    return " ".join(ElementTree.fromstring(html).itertext())


def test_every_verdict_has_a_colour() -> None:
    assert set(COLOURS) == set(VERDICTS)


def test_the_card_of_an_alignment(aligned: Alignment) -> None:
    html = aligned._repr_html_()
    text = text_of(html)
    assert COLOURS["succeeded"] in html
    assert aligned.quality.explanation in text
    assert "400 x 12" in text
    assert f"about {aligned.estimate.overall} right" in text
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
        return replace(given, space=Embeddings([f"{prefix}{w}" for w in given.space.words], given.space.vectors))

    return replace(alignment, src_side=side(alignment.src_side), tgt_side=side(alignment.tgt_side))


def test_words_and_names_of_strangers_are_escaped(aligned: Alignment) -> None:
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


def test_a_large_vocabulary_is_not_searched_for_a_picture(aligned: Alignment) -> None:
    large = replace(aligned)
    assert large._examples(most=12 * 400 * 400)
    large = replace(aligned)
    assert not large._examples(most=12 * 399 * 400)
    assert not large._retrievers
    # What was prepared for a translation serves examples as well.
    large.translate("s1")
    assert large._examples(most=12 * 399 * 400)


def test_a_card_never_fails(aligned: Alignment, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = replace(aligned, quality=replace(aligned.quality, verdict="<odd>"))
    assert odd._repr_html_() == f"<pre>{repr(odd).replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    assert MultiAlignment("en", {"es": odd})._repr_html_().startswith("<pre>MultiAlignment(")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(Alignment, "translate", broken)
    assert replace(aligned)._repr_html_().startswith("<pre>Alignment(")


def test_the_card_of_several_languages(aligned: Alignment) -> None:
    failed = replace(aligned, quality=replace(aligned.quality, verdict="failed"))
    html = MultiAlignment("en", {"es": aligned, "fr": failed})._repr_html_()
    text = text_of(html)
    for expected in ("2 languages aligned onto en", "es", "fr", "succeeded: about", "failed"):
        assert expected in text
    assert COLOURS["failed"] in html, "the worst of them"
