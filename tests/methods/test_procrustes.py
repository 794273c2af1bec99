"""Procrustes on a lexicon: known answers, and the refinement that may follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import InputError, Lexicon
from qwp.maps.procrustes import Maps, orthogonality_error, procrustes
from qwp.methods.procrustes import Procrustes
from qwp.parameters import with_values
from qwp.stages.refinement import CslsRefinement, refine
from tests.conftest import planted_embeddings
from tests.libraries import assert_close
from tests.methods.cases import matched, normalised, seeds

EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


def test_procrustes_is_that_of_the_covered_pairs() -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s1", "t2"), ("s3", "nowhere"), ("nobody", "t3")))
    aligner = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    assert_close(aligner.map_, procrustes(*matched(aligner.alignment_, lexicon)), atol=1e-12)
    assert orthogonality_error(aligner.map_) < 1e-12
    assert aligner.alignment_.tgt_map is None
    assert [record["stage"] for record in aligner.alignment_.history] == ["verdict"]


def test_procrustes_refines_only_when_asked() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    refined = Procrustes(refine=2, **EXACT).fit(*spaces, lexicon=lexicon)
    expected = refine(*normalised(plain.alignment_), Maps(plain.map_), CslsRefinement(rounds=2))
    assert_close(refined.map_, expected.src, atol=1e-12)
    assert refined.alignment_.tgt_map is None
    assert np.abs(refined.map_ - plain.map_).max() > 1e-3


def test_procrustes_refines_as_it_is_told() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    told: dict[str, Any] = {"refine_words": 150, "refine_first_words": 60, "refine_directions": "union"}
    told |= {"refine_weights": "csls", "refine_map": "reweighted", "map": "reweighted"}
    told |= {"reweight": 0.6, "dewhiten": 0.5, "csls_k": 7}
    refined = Procrustes(refine=3, **told, **EXACT).fit(*spaces, lexicon=lexicon).alignment_
    settings = with_values(CslsRefinement(rounds=3), told)
    expected = refine(*normalised(plain.alignment_), Maps(plain.map_), settings)
    assert refined.tgt_map is not None
    assert expected.tgt is not None
    assert_close(refined.src_map @ refined.tgt_map.T, expected.src @ expected.tgt.T, atol=1e-10)
    steps = [record for record in refined.history if record["stage"] == "refine"]
    assert [record["n_words"] for record in steps] == [60, 95, 150]
    # The last map may be orthogonal all the same.
    turned = Procrustes(refine=3, **{**told, "map": "orthogonal"}, **EXACT).fit(*spaces, lexicon=lexicon)
    assert turned.alignment_.tgt_map is None
    assert orthogonality_error(turned.map_) < 1e-12


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"refine_directions": "both"}, "refine_directions='both' is not known; expected one of mutual, forward"),
        ({"refine_words": -1}, "refine_words=-1 is out of range; expected 0 to"),
        ({"refine_first_words": -1}, "refine_first_words=-1 is out of range; expected 0 to"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known; expected one of equal, csls"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"map": "affine"}, "map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"reweight": -1.0}, r"reweight=-1\.0 is out of range; expected 0 to 10"),
        ({"reweight": 11.0}, r"reweight=11\.0 is out of range; expected 0 to 10"),
        ({"dewhiten": 2.0}, r"dewhiten=2\.0 is out of range; expected 0 to 1"),
        ({"order": "alphabetical"}, "order='alphabetical' is not known; expected one of auto, given"),
        ({"dtype": "float16"}, "dtype='float16' is not known; expected one of float32, float64"),
        ({"normalize": "shout"}, "'shout'.* is not known"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Procrustes(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))
