"""P@1 on known pairs: the exact interval and the test against chance."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest

from qwp.judging.measured import Measured, interval, measure, measured
from qwp.maps.procrustes import Maps
from tests.libraries import as_strict
from tests.problems import planted, rotation


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 30), (1, 30), (17, 40), (39, 40), (40, 40)])
def test_the_interval_is_exact(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.9, method="exact")
    assert interval(hits, n) == pytest.approx((expected.low, expected.high))


def test_p_value_approaches_that_of_all_permutations() -> None:
    # Six words, two of them with two translations, and a hub that is the translation of two words.
    best = np.array([10, 11, 12, 12, 14, 20])
    words, targets = np.array([0, 1, 2, 3, 4, 5, 2, 4]), np.array([10, 11, 12, 13, 15, 16, 17, 14])
    known = [set(targets[words == word].tolist()) for word in range(6)]
    of_all = [sum(best[i] in known[j] for i, j in enumerate(each)) for each in permutations(range(6))]
    found = measured(best, words, targets, seed=0)
    assert (found.hits, found.words, found.p1) == (4, 6, 4 / 6)
    assert found.chance == pytest.approx(np.mean(of_all) / 6)
    assert found.p_value == pytest.approx(np.mean([hits >= 4 for hits in of_all]), abs=0.01)


def test_p_values_under_the_null_are_super_uniform() -> None:
    # Translations that have nothing to do with the pairs, with many hubs and many words to a translation.
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(300):
        best = (8 * rng.random(40) ** 3).astype(np.int64)
        p_values.append(measured(best, np.arange(40), (8 * rng.random(40) ** 2).astype(np.int64), seed=seed).p_value)
    for level in (0.01, 0.05, 0.1, 0.25, 0.5, 0.9):
        # Three binomial standard deviations.
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 300)


def test_a_true_map_is_far_from_chance_and_a_wrong_one_is_not() -> None:
    problem = planted(300, d=20, noise=0.1, shuffle=True)
    rows = problem.gold[:100, 0], problem.gold[:100, 1]
    true, wrong = (
        measure(problem.src, problem.tgt, Maps(w), rows, csls_k=10, seed=0) for w in (problem.w, rotation(20, 9))
    )
    assert true == Measured(100, 100, interval(100, 100)[0], 1.0, 0.01, 1 / 2000)
    assert wrong.p_value > 0.01
    assert wrong.p1 < 0.1
    # Wrong pairs are as far from a true map.
    reversed_pairs = rows[0], rows[1][::-1]
    assert measure(problem.src, problem.tgt, Maps(problem.w), reversed_pairs, csls_k=10, seed=0).hits == 0
    strict = measure(
        as_strict(problem.src), as_strict(problem.tgt), Maps(as_strict(problem.w)), rows, csls_k=10, seed=0
    )
    assert strict == true


def test_all_translations_of_a_word_count_once() -> None:
    problem = planted(200, d=20, noise=0.1)
    src, tgt = problem.gold.T
    pairs = np.concatenate([src, src]), np.concatenate([np.roll(tgt, 1), tgt])
    found = measure(problem.src, problem.tgt, Maps(problem.w), pairs, csls_k=10, seed=0, held_out=False)
    assert (found.hits, found.words, found.held_out) == (200, 200, False)
    assert str(found) == "100 % (99-100)"
