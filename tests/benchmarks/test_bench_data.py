"""The default settings reach the documented accuracy on real vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

import qwp


@pytest.mark.slow
@pytest.mark.bench
def test_zhang_es_en(bench: Path) -> None:
    folder = bench / "zhang2017" / "es-en"
    alignment = qwp.align(folder / "es.vec", folder / "en.vec", seed=0, threads=1)
    scores = qwp.evaluate(alignment, qwp.Lexicon.load(folder / "lexicon.txt"), bootstrap=0)
    assert alignment.quality.verdict == "succeeded"
    assert scores.coverage.covered_source_words == 3190
    # The orthogonal map reaches less.
    assert 100 * scores.p_at_1() >= 76.4


@pytest.mark.slow
@pytest.mark.bench
def test_zhang_it_en_verdict_agrees_with_the_gold(bench: Path) -> None:
    folder = bench / "zhang2017" / "it-en"
    src, tgt = (qwp.load(folder / f"{language}.vec", max_vocab=1500) for language in ("it", "en"))
    alignment = qwp.align(src, tgt, seed=0, threads=1)
    scores = qwp.evaluate(alignment, qwp.Lexicon.load(folder / "lexicon.txt"), bootstrap=0)
    # The verdict must agree with the gold dictionary.
    assert alignment.quality.failed == (scores.p_at_1() < 0.3)
