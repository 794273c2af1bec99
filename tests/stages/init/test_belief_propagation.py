"""Belief propagation: the formulas against plain sums, and planted problems with few items."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.showing.events import Progress
from qwp.spaces import normalization
from qwp.stages.init import belief_propagation
from qwp.stages.init.belief_propagation import BeliefPropagation, _kernels, _prior, _similarities
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.profiles import Profiles, similarity_factor
from qwp.stages.refinement import neighbours
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted
from tests.stages.problems import problem_of

Array = npt.NDArray[Any]

ANY = BeliefPropagation(frequency_prior=0.0)
RANKED = BeliefPropagation(frequency_prior=2.0)


def test_the_orders_are_the_beginning_of_a_ratio_of_densities() -> None:
    """The Hermite expansion of the density ratio of a normal pair is exact up to the third order."""
    r, (a, b) = 0.1, np.random.default_rng(0).uniform(-2, 2, (2, 200))
    ratio = np.exp((2 * r * a * b - r**2 * (a**2 + b**2)) / (2 * (1 - r**2))) / math.sqrt(1 - r**2)
    orders = [
        r**order / math.factorial(order) * polynomial(a) * polynomial(b)
        for order, polynomial in belief_propagation._POLYNOMIALS.items()
    ]
    assert np.abs(1 + sum(orders) - ratio).max() < 10 * r**3
    assert np.abs(1 + orders[0] - ratio).max() > 10 * r**3


def test_similarities_are_standardised_without_the_item_itself() -> None:
    factor = similarity_factor(planted(40, d=6, seed=0, dtype="float64").src)
    u, s = (host(part) for part in factor)
    z = u * s**0.6
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    cosines = z @ z.T
    rows = np.zeros((40, 40))
    for i in range(40):
        others = np.delete(np.arange(40), i)
        rows[i, others] = (cosines[i, others] - cosines[i, others].mean()) / cosines[i, others].std()
    assert_close(host(_similarities(factor, 0.6, 3.0)), np.clip((rows + rows.T) / 2, -3, 3), atol=1e-9)
    for kernel in _kernels(factor, 0.6, 3.0):
        assert np.abs(np.diag(host(kernel))).max() == 0


@pytest.mark.parametrize("order", [1, 2])
def test_a_message_is_the_sum_over_all_other_pairs(order: int) -> None:
    rng = np.random.default_rng(order)
    found, kx, ky = rng.uniform(0, 2, (5, 7)), rng.standard_normal((5, 5)), rng.standard_normal((7, 7))
    expected = np.zeros((5, 7))
    for i, j, k, m in np.ndindex(5, 7, 5, 7):
        expected[i, j] += kx[i, k] * (found[k, m] - 1) * ky[m, j]
    expected *= 0.8 * 0.5**order / math.factorial(order) / 5
    assert_close(host(replace(ANY, correlation=0.5)._message(found, kx, ky, order, 1e9)), expected, atol=1e-12)
    # The bound limits the deviation of the messages.
    least = host(replace(ANY, correlation=0.5)._message(found, kx, ky, order, 1.01))
    assert_close(np.std(least), 0.8 * 0.5**order * 0.1, atol=1e-12)
    assert_close(least / np.std(least), expected / np.std(expected), atol=1e-9)


def test_odds_are_balanced_and_none_is_certain_at_once() -> None:
    problem = planted(50, 70, d=6, seed=2, shuffle=True)
    found = host(ANY.odds(problem.src, problem.tgt))
    assert found.shape == (50, 70)
    assert (found >= 0).all()
    assert_close(found.mean(axis=0), np.ones(70), atol=1e-6)
    # The columns are normalised last.
    assert_close(found.mean(axis=1), np.ones(50), atol=0.2)


def test_ranks_are_part_of_the_prior_with_a_positive_weight() -> None:
    problem = planted(80, d=6, seed=1, dtype="float64")
    factors = similarity_factor(problem.src), similarity_factor(problem.tgt)
    alone, with_ranks = (host(_prior(factors, count)) for count in (0.0, 3.0))
    logs = np.log(np.arange(80) + 10.0)
    by_rank = (logs[:, None] - logs) ** 2
    assert_close(np.std(alone), 1.0, atol=1e-9)
    assert_close(with_ranks, alone - 3 * by_rank / by_rank.std(), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recovers_a_planted_rotation_in_any_order(dtype: str) -> None:
    problem = planted(150, d=12, seed=1, shuffle=True, noise=0.1, dtype=dtype)
    w = ANY.solve(problem.src, problem.tgt)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_recovers_one_of_which_a_part_is_in_common() -> None:
    problem = planted(250, d=12, seed=3, shuffle=True, noise=0.1)
    # The last 75 items of each side have no counterpart.
    there = problem.gold[:, 1] < 175
    tgt, gold = problem.tgt[:175], problem.gold[there]
    w = ANY.solve(problem.src[:210], tgt)
    seen = gold[gold[:, 0] < 210]
    best = ((problem.src[seen[:, 0]] @ w) @ tgt.T).argmax(axis=1)
    assert np.mean(best == seen[:, 1]) > 0.8


def test_sides_may_differ_in_size_and_steps_are_reported() -> None:
    problem = planted(60, 80, d=5, seed=3)
    seen: list[tuple[int, int]] = []
    w = ANY.solve(problem.src, problem.tgt, lambda *step: seen.append(step))
    assert orthogonality_error(w) < 1e-5
    assert seen == [(step, ANY.steps) for step in range(1, len(seen) + 1)]
    assert 1 <= len(seen) <= ANY.steps


def test_hardly_any_items() -> None:
    for n in (2, 3, 5):
        problem = planted(n, d=3, seed=4)
        assert orthogonality_error(ANY.solve(problem.src, problem.tgt)) < 1e-5


def test_equal_items_and_zero_items() -> None:
    x = np.ones((20, 4), dtype=np.float32) / 2
    x[3] = 0
    assert np.isfinite(host(ANY.solve(x, x))).all()


def test_any_array_library_gives_the_same() -> None:
    problem = planted(60, d=5, seed=5, dtype="float64")
    expected = RANKED.solve(problem.src, problem.tgt)
    x, y = as_strict(problem.src), as_strict(problem.tgt)
    assert_close(host(RANKED.solve(x, y)), expected, atol=1e-6)
    assert_same(RANKED.solve(problem.src, problem.tgt), expected)


def test_only_the_first_items_take_part() -> None:
    problem = planted(60, 80, d=5, seed=3)
    few = replace(RANKED, words=40)
    assert_same(few.solve(problem.src, problem.tgt), few.solve(problem.src[:40], problem.tgt[:40]))


@pytest.mark.parametrize(("ordered", "settings"), [(True, RANKED), (False, ANY)])
def test_the_ranks_of_unordered_items_are_ignored(ordered: bool, settings: BeliefPropagation) -> None:
    problem = planted(60, d=5, noise=0.3, seed=3)
    events: list[Progress] = []
    found = RANKED(problem_of(problem, ordered=ordered), State(), Monitor(events.append))
    assert_same(found.map, settings.solve(problem.src, problem.tgt))
    assert [record["step"] for record in found.history] == [event.done for event in events]
    assert {(event.stage, event.total) for event in events} == {("initialize", RANKED.steps)}


@pytest.mark.slow
@pytest.mark.bench
def test_few_texts_by_two_encoders_are_matched_where_other_initializers_fail(bench: Path) -> None:
    first, second = (np.load(bench / "encoders" / f"{name}.npy").astype("f4") for name in ("minilm", "wordllama"))
    rng = np.random.default_rng(3)
    chosen, shuffled = rng.permutation(len(first))[:500], rng.permutation(500)
    x, y = normalization.fit(first[chosen])[1], normalization.fit(second[chosen][shuffled])[1]
    y = np.pad(host(y), ((0, 0), (0, x.shape[1] - y.shape[1])))
    places = np.argsort(shuffled)

    def found(w: Any) -> float:
        return float(np.mean(host(neighbours(x, y, Maps(w), 10).forward) == places))

    assert found(ANY.solve(x, y)) > 0.8
    assert found(Profiles(words=500).solve(x, y)) < 0.1
    assert found(FusedGromovWasserstein(epsilon=0.2, frequency_prior=0.0).solve(x, y, 0)) < 0.1
