"""The functions most users need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qwp
from qwp import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.methods.run import Progress
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close


@pytest.mark.slow
@pytest.mark.usefixtures("short_trials")
def test_align_many_gives_the_alignments_of_each_pair() -> None:
    pairs = [planted_embeddings(150, d=10, seed=seed) for seed in (1, 2)]
    events: list[tuple[int, str]] = []

    def note(pair: int, event: Progress) -> None:
        events.append((pair, event.stage))

    together = qwp.align_many(pairs, seed=3, progress=note, device="cpu", **QUICK)
    for (src, tgt), alignment in zip(pairs, together, strict=True):
        alone = qwp.align(src, tgt, seed=3, device="cpu", **QUICK)
        assert_close(alignment.src_map, alone.src_map, atol=1e-5)
        assert alignment.tgt_map is not None
        assert alone.tgt_map is not None
        assert_close(alignment.tgt_map, alone.tgt_map, atol=1e-5)
        assert alignment.src is src
        assert alignment.provenance.config == alone.provenance.config
    assert {(pair, stage) for pair in (0, 1) for stage in ("start", "bank", "loop", "refine", "verdict")} <= set(events)


@pytest.mark.slow
def test_the_kind_of_map_is_an_option() -> None:
    src, tgt = planted_embeddings(300, d=10, noise=0.1)
    quick = {**QUICK, "start": "profiles", "device": "cpu"}
    default, orthogonal = qwp.align(src, tgt, **quick), qwp.align(src, tgt, map="orthogonal", **quick)
    assert orthogonal.tgt_map is None
    assert orthogonality_error(orthogonal.src_map) < 1e-5
    for matrix in (default.src_map, default.tgt_map):
        assert matrix is not None
        assert orthogonality_error(matrix) > 0.1
    # Only the last fit differs: what was measured on the way is the same.
    steps = [[r for r in each.history if r["stage"] != "verdict"] for each in (default, orthogonal)]
    assert steps[0] == steps[1]
    assert [r["stage"] for r in steps[0]].count("refine") == 10
    for each in (default, orthogonal):
        best = each.translate(src.words, k=1)
        assert np.mean([best[f"s{i}"][0].word == f"t{i}" for i in range(300)]) > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "affine"}, "map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known; expected one of equal, csls"),
        ({"order": "random"}, "order='random' is not known; expected one of auto, given"),
        ({"dewhiten": 2.0}, "dewhiten=2.0 is out of range; expected 0 to 1"),
        ({"method": "multi", "map": "reweighted"}, "by orthogonal maps only"),
    ],
)
def test_a_wrong_value_is_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        qwp.align("none.vec", "none.vec", **options)


def test_align_many_of_nothing_is_nothing() -> None:
    assert qwp.align_many([]) == []


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="colour"):
        qwp.align_many([], colour="red")  # type: ignore[call-arg]
