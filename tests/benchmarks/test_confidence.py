"""How the weights of the confidence are fitted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import confidence as benchmark
from qwp.search.confidence import CANDIDATES, Floats, features
from tests.libraries import assert_close


def test_the_fit_finds_the_weights_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    scores: Floats = -np.sort(-rng.uniform(-0.2, 0.6, (40_000, CANDIDATES)), axis=1)
    ranks: npt.NDArray[np.int64] = np.minimum(rng.geometric(0.4, len(scores)) - 1, CANDIDATES)
    seen = features(scores, ranks)
    truth = np.array([-0.5, 0.6, -0.4, 2.0, 1.0])
    right = (rng.random(len(seen)) < benchmark.chances(seen @ truth)).astype(np.float64)
    found = benchmark.fit([("orthogonal", "made up", seen, right)])
    # Lead and its logarithm go together here, so that their weights are less certain than the chances.
    assert np.abs(benchmark.chances(seen @ found) - benchmark.chances(seen @ truth)).mean() < 0.01
    assert_close(found[1:3], truth[1:3], atol=0.15)
    # Samples count alike, whatever their size: one of wrong pairs alone, a hundredth of the other, halves the chances.
    few = ("orthogonal", "wrong", seen[:400], np.zeros(400))
    both = benchmark.fit([("orthogonal", "made up", seen, right), few])
    assert benchmark.chances(seen @ both).mean() == pytest.approx(right.mean() / 2, abs=0.02)


def test_problems_of_the_same_texts_are_one_family() -> None:
    names = ["demo en-es, 5,000 x 100", "novels en-es", "novels en-fr, 10,000 x 100", "novels en-de"]
    assert [benchmark.family(name) for name in names] == ["en-es", "en-es", "en-fr", "en-de"]
