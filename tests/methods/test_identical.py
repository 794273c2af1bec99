"""Identical strings as the lexicon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon
from qwp.maps.procrustes import Maps, procrustes
from qwp.methods.identical import Identical
from qwp.stages.refinement import CslsRefinement, refine
from tests.conftest import planted_embeddings
from tests.libraries import assert_close
from tests.methods.cases import matched, normalised

EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


def with_shared_words(shared: int) -> tuple[Embeddings, Embeddings]:
    """A planted rotation where the first words of the source are spelt alike on both sides."""
    src, tgt = planted_embeddings(200, noise=0.1, shuffle=True)
    same = {f"t{i}": f"s{i}" for i in range(shared)}
    return src, Embeddings([same.get(word, word) for word in tgt.words], tgt.vectors)


def test_identical_strings_are_the_seeds() -> None:
    src, tgt = with_shared_words(25)
    plain = Identical(refine=0, **EXACT).fit(src, tgt)
    lexicon = Lexicon(tuple((f"s{i}", f"s{i}") for i in range(25)))
    assert_close(plain.map_, procrustes(*matched(plain.alignment_, lexicon)), atol=1e-12)
    refined = Identical(**EXACT).fit(src, tgt)
    steps = [record["step"] for record in refined.alignment_.history if record["stage"] == "refine"]
    assert steps == [1, 2, 3, 4, 5]
    expected = refine(*normalised(plain.alignment_), Maps(plain.map_), CslsRefinement(rounds=5))
    assert_close(refined.map_, expected.src, atol=1e-12)
    found = refined.alignment_.translate([f"s{i}" for i in range(25, 200)], k=1)
    assert np.mean([best[0].word == f"t{word[1:]}" for word, best in found.items()]) > 0.95


def test_no_identical_string_is_an_error() -> None:
    with pytest.raises(InputError, match="identical strings: no pair is covered by the two vocabularies"):
        Identical(threads=1).fit(*planted_embeddings(50))


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"map": "reweighted", "refine": 0}, "refine=0: set refine=1"),
        ({"seed": -1}, "seed=-1 is out of range; expected 0 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Identical(threads=1, **options).fit(*planted_embeddings(50))
