"""The functions most users need."""

from __future__ import annotations

import numpy as np
import pytest

import qwp
from qwp import InputError
from qwp.aligners.base import Progress
from tests.conftest import QUICK, planted_embeddings


def test_align_many_gives_the_alignments_of_each_pair() -> None:
    pairs = [planted_embeddings(300, d=10, seed=seed) for seed in (1, 2)]
    events: list[tuple[int, str]] = []

    def note(pair: int, event: Progress) -> None:
        events.append((pair, event.stage))

    together = qwp.align_many(pairs, seed=3, progress=note, device="cpu", **QUICK)
    for (src, tgt), alignment in zip(pairs, together, strict=True):
        alone = qwp.align(src, tgt, seed=3, device="cpu", **QUICK)
        np.testing.assert_allclose(alignment.src_map, alone.src_map, atol=1e-5)
        assert alignment.src is src
        assert alignment.provenance.config == alone.provenance.config
    assert {(pair, stage) for pair in (0, 1) for stage in ("start", "bank", "loop", "refine", "verdict")} <= set(events)


def test_align_many_of_nothing_is_nothing() -> None:
    assert qwp.align_many([]) == []


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="colour"):
        qwp.align_many([], colour="red")
