"""Least squares on a lexicon: known answers."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon
from qwp.maps.procrustes import procrustes
from qwp.methods.least_squares import LeastSquares
from tests.conftest import planted_embeddings
from tests.libraries import assert_close
from tests.methods.cases import matched, p1, seeds

EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_least_squares_is_that_of_the_covered_pairs(ridge: float) -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s3", "nowhere")))
    aligner = LeastSquares(ridge=ridge, **EXACT).fit(*spaces, lexicon=lexicon)
    x, y = matched(aligner.alignment_, lexicon)
    expected = np.linalg.solve(x.T @ x + ridge * np.eye(12), x.T @ y)
    assert_close(aligner.map_, expected, atol=1e-10)
    # The point of it: the pairs fit better than under any rotation.
    if ridge == 0.0:
        assert np.linalg.norm(x @ aligner.map_ - y) < np.linalg.norm(x @ procrustes(x, y) - y)


def test_least_squares_finds_a_map_that_is_no_rotation() -> None:
    src, _ = planted_embeddings(200)
    stretch = np.random.default_rng(0).standard_normal((12, 12))
    tgt = Embeddings([f"t{i}" for i in range(200)], (src.vectors @ stretch).astype("f4"))
    aligner = LeastSquares(normalize="none", **EXACT).fit(src, tgt, lexicon=seeds(30))
    assert_close(aligner.map_, stretch, atol=1e-4)
    assert p1(aligner) > 0.99


def test_too_few_pairs_are_said_to_be_too_few(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="qwp"):
        aligner = LeastSquares(**EXACT).fit(*planted_embeddings(50), lexicon=seeds(5))
    assert "5 pairs for 12 dimensions" in caplog.text
    x, y = matched(aligner.alignment_, seeds(5))
    assert_close(aligner.map_, np.linalg.pinv(x) @ y, atol=1e-8)


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ridge": -0.1}, r"ridge=-0\.1 is out of range; expected 0 to"),
        ({"ridge": float("nan")}, "ridge=nan is out of range"),
        ({"csls_k": 0}, "csls_k=0 is out of range; expected 1 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            LeastSquares(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))
