"""Hubs: k-occurrences and their skewness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qwp.report.hubness import GROUPS, hubness, occurrences, skewness
from qwp.results.alignment import Alignment
from qwp.spaces import normalization
from qwp.spaces.embeddings import Embeddings


def test_skewness_is_that_of_the_books() -> None:
    assert skewness(np.array([3, 3, 3])) == 0.0
    assert skewness(np.array([1, 2, 3])) == pytest.approx(0.0)
    # Bernoulli with p = 1/4: (1 - 2p) / sqrt(p (1 - p)).
    assert skewness(np.array([0, 0, 0, 1])) == pytest.approx(0.5 / np.sqrt(3 / 16))


def test_words_are_counted_in_groups() -> None:
    found = occurrences(np.array([0, 1, 2, 3, 101, 20]), list("abcdef"))
    assert GROUPS == ("0", "1–2", "3–5", "6–10", "11–20", "21–50", "51–100", ">100")
    assert found.shares == pytest.approx([1 / 6, 2 / 6, 1 / 6, 0, 1 / 6, 0, 0, 1 / 6])
    assert found.orphans == pytest.approx(1 / 6)
    assert found.largest[:2] == [("e", 101), ("f", 20)]


def test_csls_takes_a_hub_down(alignment: Alignment) -> None:
    # All words get a direction in common, and a target word that is nothing but this direction is near to all.
    rng = np.random.default_rng(0)
    x, y = (normalization.fit(rng.standard_normal((n, 16)))[1] + np.eye(16)[0] for n in (300, 100))
    y[7] = np.eye(16)[0]
    eye = np.eye(16, dtype=np.float32)
    src = replace(alignment.src_side, space=Embeddings(alignment.src.words, x.astype(np.float32)), map=eye)
    tgt = replace(alignment.tgt_side, space=Embeddings(alignment.tgt.words[:100], y.astype(np.float32)))
    found = hubness(replace(alignment, src_side=src, tgt_side=tgt), csls_k=10)
    assert (found.k, found.queries) == (10, 300)
    assert found.cosine.largest[0][0] == "wort7"
    assert found.cosine.skewness > 1.5 * found.csls.skewness
    assert sum(found.cosine.shares) == pytest.approx(1.0)


def test_few_words_are_no_error(alignment: Alignment) -> None:
    from qwp.report.findings import most_frequent

    found = hubness(most_frequent(alignment, 3), csls_k=10)
    assert (found.k, found.queries) == (3, 3)
    assert found.csls.skewness == 0.0
