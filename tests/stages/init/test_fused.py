"""Fused Gromov-Wasserstein: the formulas against dense ones, and planted problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.parameters import check, with_values
from qwp.showing.events import Progress
from qwp.stages.init.fused import FusedGromovWasserstein, _standardised, _unary_cost
from qwp.stages.init.profiles import similarity_factor
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, space
from tests.stages.problems import problem_of

Array = npt.NDArray[Any]

WHOLE = FusedGromovWasserstein(frequency_prior=4.0)
WITHOUT_RANKS = replace(WHOLE, frequency_prior=0.0)


def ranks(problem: Any) -> tuple[Array, Array]:
    return np.arange(len(problem.src)), np.arange(len(problem.tgt))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_factors_are_those_of_standardised_similarities(power: float) -> None:
    x = planted(40, d=6, seed=0, dtype="float64").src
    u, s = (host(part) for part in similarity_factor(x))
    z = u * s**power
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    similarities = z @ z.T
    rows = (similarities - similarities.mean(axis=1, keepdims=True)) / similarities.std(axis=1, keepdims=True)
    left, right = _standardised(similarity_factor(x), power)
    assert_close(left @ right.T / 2, (rows + rows.T) / 2, atol=1e-9)


def test_the_unary_cost_adds_descriptors_and_ranks_of_equal_deviation() -> None:
    problem = planted(80, d=6, seed=1, dtype="float64")
    factors = similarity_factor(problem.src), similarity_factor(problem.tgt)
    alone, with_ranks = (host(_unary_cost(factors, ranks(problem), prior)) for prior in (0.0, 4.0))
    for cost in (alone, with_ranks):
        assert_close(np.std(cost), np.sqrt(2), atol=1e-9)
    logs = np.log(np.arange(80) + 10.0)
    by_rank = (logs[:, None] - logs) ** 2
    expected = alone / alone.std() + 4 * by_rank / by_rank.std()
    assert_close(with_ranks, np.sqrt(2) * expected / expected.std(), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recovers_a_planted_rotation_of_words_in_order(dtype: str) -> None:
    problem = planted(250, d=12, seed=1, dtype=dtype)
    w = WHOLE.match(problem.src, problem.tgt, ranks(problem))
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_recovers_a_rotation_of_shuffled_words_without_ranks() -> None:
    problem = planted(250, d=12, seed=1, shuffle=True)
    assert problem.accuracy(WITHOUT_RANKS.match(problem.src, problem.tgt, ranks(problem))) > 0.8


def test_ranks_help_where_words_are_in_order_and_noisy() -> None:
    problem = planted(300, d=12, seed=2, noise=0.15)
    by = {
        prior: problem.accuracy(replace(WHOLE, frequency_prior=prior).match(problem.src, problem.tgt, ranks(problem)))
        for prior in (0.0, 8.0)
    }
    assert by[8.0] > by[0.0]


def test_sides_may_differ_in_size_and_tell_of_their_steps() -> None:
    problem = planted(60, 80, d=5, seed=3)
    seen: list[tuple[int, int]] = []
    w = WHOLE.match(problem.src, problem.tgt, ranks(problem), lambda *step: seen.append(step))
    assert orthogonality_error(w) < 1e-5
    assert seen == [(step, WHOLE.steps) for step in range(1, WHOLE.steps + 1)]


def test_hardly_any_words() -> None:
    for n in (2, 3, 5):
        problem = planted(n, d=3, seed=4)
        assert orthogonality_error(WHOLE.match(problem.src, problem.tgt, ranks(problem))) < 1e-5


def test_words_that_are_all_alike() -> None:
    x = np.ones((20, 4), dtype=np.float32) / 2
    w = WHOLE.match(x, x, (np.arange(20), np.arange(20)))
    assert np.isfinite(host(w)).all()


def test_any_array_library_gives_the_same() -> None:
    problem = planted(60, d=5, seed=5, dtype="float64")
    expected = WHOLE.match(problem.src, problem.tgt, ranks(problem))
    x, y, *places = (as_strict(a) for a in (problem.src, problem.tgt, *ranks(problem)))
    assert_close(host(WHOLE.match(x, y, (places[0], places[1]))), expected, atol=1e-6)
    assert_same(WHOLE.match(problem.src, problem.tgt, ranks(problem)), expected)


def test_a_random_sample_of_the_frequent_words_is_used() -> None:
    x, y = space(200, 20, 5), space(200, 20, 6)
    settings = FusedGromovWasserstein(words=50, share=0.8, sample=0.8, number=1)
    one = settings.solve(x, y, 0)
    # Rows beyond 0.8 * 50 have no effect.
    assert_same(settings.solve(np.concatenate([x[:40], x[:1]]), np.concatenate([y[:40], y[:1]]), 0), one)
    # Another number or another seed draws other words.
    for seed, number in ((0, 2), (1, 1)):
        assert float(np.abs(host(replace(settings, number=number).solve(x, y, seed)) - host(one)).max()) > 1e-3


@pytest.mark.parametrize(("prior", "factor"), [(4.0, 0.0), (0.0, 3.0)])
def test_a_prior_without_weight_is_none(prior: float, factor: float) -> None:
    problem = planted(60, d=5, seed=5)
    found = replace(WHOLE, frequency_prior=prior, prior=factor).match(problem.src, problem.tgt, ranks(problem))
    assert_same(found, WITHOUT_RANKS.match(problem.src, problem.tgt, ranks(problem)))


def test_the_stage_draws_by_the_seed_of_the_problem() -> None:
    problem = planted(100, d=6, noise=0.1, seed=1)
    settings = FusedGromovWasserstein(words=80, sample=0.5)
    for seed in (0, 1):
        found = settings(problem_of(problem, seed=seed), State(), Monitor())
        assert_same(found.map, settings.solve(problem.src, problem.tgt, seed))
    assert settings.uses_seed


@pytest.mark.parametrize(("ordered", "settings"), [(True, WHOLE), (False, WITHOUT_RANKS)])
def test_the_ranks_of_unordered_items_are_ignored(ordered: bool, settings: FusedGromovWasserstein) -> None:
    problem = planted(60, d=5, noise=0.3, seed=3)
    events: list[Progress] = []
    found = WHOLE(problem_of(problem, ordered=ordered), State(), Monitor(events.append))
    assert_same(found.map, settings.solve(problem.src, problem.tgt, 0))
    assert [record["step"] for record in found.history] == [event.done for event in events]
    assert [event.done for event in events] == list(range(1, WHOLE.steps + 1))


def test_a_negative_prior_is_refused() -> None:
    with pytest.raises(InputError, match="frequency_prior=-1 is out of range"):
        check(with_values(WHOLE, {"frequency_prior": -1}))
