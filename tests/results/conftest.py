"""Alignments that several test files of results share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qwp import Alignment, Embeddings
from qwp.results.sides import AlignedSide
from qwp.spaces.normalization import Normalization
from tests.conftest import planted_embeddings
from tests.problems import planted

MANY = 1_200


@pytest.fixture(scope="module")
def many_words(aligned: Alignment) -> Alignment:
    """Return an alignment of 1,200 x 1,200 planted words, enough for approximate search to differ from exact search."""
    pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    src, tgt = planted_embeddings(MANY, d=30, noise=0.2)
    w = planted(MANY, d=30, noise=0.2, dtype="float32").w
    as_it_is = Normalization((), ())
    return replace(
        aligned,
        src_side=AlignedSide(src, w, as_it_is),
        tgt_side=AlignedSide(tgt, None, as_it_is),
        history=[],
    )


@pytest.fixture(scope="module")
def spelled(aligned: Alignment) -> Alignment:
    """Return the same alignment with words of a few letters, many of which are spelled alike."""
    rng = np.random.default_rng(3)

    def named(side: AlignedSide) -> AlignedSide:
        words: dict[str, None] = {}
        while len(words) < len(side.space):
            words["".join(rng.choice([*"abcd"], size=rng.integers(3, 9)))] = None
        return replace(side, source=Embeddings([*words], side.space.vectors))

    return replace(aligned, src_side=named(aligned.src_side), tgt_side=named(aligned.tgt_side))
