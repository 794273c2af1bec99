"""Items without order, related and not: what is made, and the tables of the records."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common import read_records
from benchmarks.items import RELATED, RESULTS, UNRELATED, Related, table


def test_cases_are_told_apart_by_their_words() -> None:
    assert len({case.what for case in RELATED}) == len(RELATED)
    assert Related(1000, common=0.5, noise=0.7, noise_on_both=True).what == (
        "1,000 texts, 50% in common, noise 0.7 on both sides"
    )


@pytest.mark.parametrize("kind", [kind for kind in UNRELATED if "encoder" not in kind])
def test_unrelated_clouds_have_the_size_that_was_asked_for(kind: str) -> None:
    cloud = UNRELATED[kind](40, 7, np.random.default_rng(0))
    assert cloud.shape == (40, 7)
    assert np.isfinite(cloud).all()


def test_the_table_has_what_was_found_and_what_was_called_wrongly() -> None:
    common = {"z": None, "estimate": None, "seconds": 1.0}
    text = table(
        [
            {"suite": "related", "what": "500 texts", "found": 51.26, "ratio": 1.5, "verdict": "succeeded", **common},
            {"suite": "unrelated", "kind": "gaussian", "what": "", "ratio": 1.3, "verdict": "weak", **common},
        ]
    )
    assert "| 500 texts | 51.3 | 1.50 | succeeded |" in text
    assert "| gaussian | 1 | 1 | 1.30 |" in text


def test_no_unrelated_pair_of_the_records_was_called_a_success() -> None:
    unrelated = [r for r in read_records(RESULTS) if r["suite"] == "unrelated"]
    assert len(unrelated) >= 36
    assert {r["verdict"] for r in unrelated} == {"failed"}
