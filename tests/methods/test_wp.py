"""Wasserstein-Procrustes: qWP on random batches."""

from __future__ import annotations

from typing import Any

from qwp import QWP
from qwp.methods import WP
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_same

SHORT: dict[str, Any] = {**QUICK, "start": "profiles", "epochs": 1, "steps": 3, "refine": 1}


def test_wp_differs_from_qwp_in_the_coreset_alone() -> None:
    ours, theirs = QWP().get_params(), WP().get_params()
    assert {k for k in ours if ours[k] != theirs[k]} == {"coreset"}
    assert theirs["coreset"] == "random"


def test_each_is_the_other_with_its_coreset() -> None:
    spaces = planted_embeddings(200, noise=0.2)
    plain = WP(**SHORT).fit(*spaces)
    assert_same(QWP(coreset="random", **SHORT).fit(*spaces).map_, plain.map_)
    quantized = QWP(**SHORT).fit(*spaces)
    assert_same(WP(coreset="kmeans++", **SHORT).fit(*spaces).map_, quantized.map_)
    assert (plain.map_ != quantized.map_).any()
