from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp import backend
from qwp.errors import InputError
from qwp.procrustes import orthogonality_error, polar_svd
from qwp.transport import cost_matrix
from qwp.wasserstein import (
    CoresetSource,
    Epoch,
    LoopSettings,
    StepFigures,
    make_schedule,
    solve_transport,
    wasserstein_procrustes,
)
from tests.problems import Planted, planted, rotation

Array = npt.NDArray[Any]

# Every setting that the tests lean on is written out: they are about the loop, not about today's defaults.
SETTINGS = LoopSettings(
    coreset="kmeans++",
    epsilon=0.05,
    cost="sqeuclidean",
    ot="balanced",
    rho=1.0,
    learning_rate=1.0,
    final_rate=1.0,
    bank_size=4,
    weight_power=1.0,
    sphere_centroids=True,
    sinkhorn_tol=0.01,
    sinkhorn_max_iter=100,
)
COARSE = (Epoch(steps=6, k=20), Epoch(steps=3, k=40))


def near(problem: Planted, distance: float = 1.2) -> Array:
    """An orthogonal map some way off the planted one (d, d)."""
    d = problem.w.shape[0]
    noise = distance * np.random.default_rng(7).standard_normal((d, d)) / d**0.5
    return np.asarray(polar_svd(problem.w + noise.astype(problem.w.dtype)))


# --------------------------------------------------------------------------- recovery


@pytest.mark.parametrize("ot", ["balanced", "unbalanced", "exact"])
@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_recovers_a_planted_rotation(coreset: str, ot: str) -> None:
    problem = planted(250, d=10, shuffle=True, seed=1)
    start = near(problem)
    assert problem.accuracy(start) < 0.4
    schedule = make_schedule("fixed", steps=25, k=80, epochs=1, n_max=250)
    found = wasserstein_procrustes(problem.src, problem.tgt, start, schedule, replace(SETTINGS, coreset=coreset, ot=ot))
    assert problem.accuracy(found) > 0.95
    assert float(np.abs(found - problem.w).max()) < 0.2


def test_recovers_with_noise_and_unequal_sizes_in_float32() -> None:
    problem = planted(300, 220, d=10, noise=0.1, shuffle=True, seed=2, dtype="float32")
    start = near(problem)
    schedule = make_schedule("grave", steps=24, k=60, epochs=2, n_max=220)
    found = wasserstein_procrustes(problem.src, problem.tgt, start, schedule, SETTINGS)
    assert found.dtype == np.float32
    assert problem.accuracy(start) < 0.6
    assert problem.accuracy(found) > 0.9


def test_dot_cost_with_half_epsilon_makes_the_same_steps() -> None:
    problem = planted(120, d=6, seed=3)
    start = near(problem)
    squared, dot = (
        wasserstein_procrustes(
            problem.src,
            problem.tgt,
            start,
            (Epoch(3, 40),),
            replace(SETTINGS, cost=cost, epsilon=epsilon, sinkhorn_tol=1e-10, sinkhorn_max_iter=5000),
        )
        for cost, epsilon in (("sqeuclidean", 0.1), ("dot", 0.05))
    )
    np.testing.assert_allclose(squared, dot, atol=1e-7)


def test_the_planted_map_is_kept() -> None:
    # With every word in the coreset and the exact plan the answer is a fixed point.
    problem = planted(60, d=5, seed=4)
    found = wasserstein_procrustes(
        problem.src, problem.tgt, problem.w, (Epoch(3, 60),), replace(SETTINGS, coreset="random", ot="exact")
    )
    np.testing.assert_allclose(found, problem.w, atol=1e-10)


# --------------------------------------------------------------------------- every step


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("learning_rate", [0.01, 1.0, 1000.0])
def test_orthogonal_at_every_step(dtype: str, learning_rate: float) -> None:
    problem = planted(150, d=40, seed=5, dtype=dtype)
    errors: list[float] = []
    wasserstein_procrustes(
        problem.src,
        problem.tgt,
        rotation(40, 1).astype(dtype),
        COARSE,
        replace(SETTINGS, learning_rate=learning_rate),
        callback=lambda _, w: errors.append(orthogonality_error(w)),
    )
    assert len(errors) == 9
    assert max(errors) < 1e-5


@pytest.mark.parametrize("ot", ["balanced", "unbalanced", "exact"])
@pytest.mark.parametrize("coreset", ["random", "lloyd"])
def test_figures(coreset: str, ot: str) -> None:
    problem = planted(150, d=6, seed=6)
    # A rotation far away and a loose tolerance: the marginals of the plan are not those of the coresets.
    settings = replace(SETTINGS, coreset=coreset, ot=ot, rho=0.3, sinkhorn_tol=0.5, sphere_centroids=False)
    start = rotation(6, 0)
    figures: list[StepFigures] = []
    maps: list[Array] = []

    def keep(step: StepFigures, w: Array) -> None:
        figures.append(step)
        maps.append(w)

    final = wasserstein_procrustes(problem.src, problem.tgt, start, COARSE, settings, seed=3, callback=keep)
    assert [f.step for f in figures] == list(range(1, 10))
    assert [f.epoch for f in figures] == [1] * 6 + [2] * 3
    assert [f.k for f in figures] == [20] * 6 + [40] * 3
    assert {f.n_steps for f in figures} == {9}
    np.testing.assert_array_equal(final, maps[-1])

    sources = [CoresetSource(x, side, settings, 3) for side, x in enumerate((problem.src, problem.tgt))]
    for number, w in ((0, start), (7, maps[6])):
        src, tgt = (source.get(COARSE[number // 6].k, number + 1) for source in sources)
        cost = cost_matrix(src.points @ w, tgt.points)
        plan = solve_transport(cost, src.weights, tgt.weights, settings)
        figure = figures[number]
        expected = float((plan.matrix * cost).sum() / plan.matrix.sum())
        assert figure.objective == pytest.approx(expected, rel=1e-9)
        assert figure.sinkhorn_iterations == plan.n_iter
        assert figure.marginal_error == pytest.approx(plan.marginal_error)
        assert figure.converged == plan.converged


def test_the_objective_falls_towards_the_answer() -> None:
    problem = planted(200, d=8, seed=1)
    figures: list[StepFigures] = []
    wasserstein_procrustes(
        problem.src,
        problem.tgt,
        near(problem),
        (Epoch(20, 100),),
        replace(SETTINGS, coreset="random"),
        callback=lambda f, _: figures.append(f),
    )
    assert figures[-1].objective < 0.9 * figures[0].objective


# --------------------------------------------------------------------------- reproducible, resumable


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_same_seed_same_bits(coreset: str) -> None:
    problem = planted(120, d=8, seed=8, dtype="float32")
    start = near(problem)
    settings = replace(SETTINGS, coreset=coreset)
    one, two, other = (
        wasserstein_procrustes(problem.src, problem.tgt, start, COARSE, settings, seed=seed) for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
@pytest.mark.parametrize("done", [1, 5, 6, 7, 9])
def test_a_resumed_run_ends_at_the_same_map(coreset: str, done: int) -> None:
    problem = planted(120, d=8, seed=8, dtype="float32")
    settings = replace(SETTINGS, coreset=coreset)
    maps: list[Array] = []
    final = wasserstein_procrustes(
        problem.src,
        problem.tgt,
        near(problem),
        COARSE,
        settings,
        seed=5,
        callback=lambda _, w: maps.append(w),
    )
    steps: list[int] = []
    resumed = wasserstein_procrustes(
        problem.src,
        problem.tgt,
        maps[done - 1],
        COARSE,
        settings,
        seed=5,
        first_step=done,
        callback=lambda f, _: steps.append(f.step),
    )
    np.testing.assert_array_equal(resumed, final)
    assert steps == list(range(done + 1, 10))


def test_the_two_sides_draw_differently() -> None:
    x = planted(100, d=4, seed=0).src
    src, tgt = (CoresetSource(x, side, replace(SETTINGS, coreset="random"), 0).get(10, 0) for side in (0, 1))
    assert (src.points != tgt.points).any()


def test_array_api_strict_makes_the_same_steps() -> None:
    problem = planted(80, d=5, seed=9)
    start = near(problem)
    for coreset in ("random", "kmeans++", "lloyd"):
        for ot in ("balanced", "unbalanced"):
            settings = replace(SETTINGS, coreset=coreset, ot=ot)
            schedule = (Epoch(2, 20),)
            ours = wasserstein_procrustes(problem.src, problem.tgt, start, schedule, settings)
            x, y, w = (array_api_strict.asarray(z) for z in (problem.src, problem.tgt, start))
            strict = wasserstein_procrustes(x, y, w, schedule, settings, callback=lambda f, _: None)
            assert isinstance(strict, type(array_api_strict.zeros(1)))
            np.testing.assert_allclose(backend.to_numpy(strict), ours, atol=1e-9)


# --------------------------------------------------------------------------- schedules and settings


def test_grave_doubles_k_and_quarters_the_steps() -> None:
    schedule = make_schedule("grave", steps=320, k=500, epochs=4, n_max=20_000)
    assert schedule == (Epoch(320, 500), Epoch(80, 1000), Epoch(20, 2000), Epoch(5, 4000))


def test_grave_keeps_a_step_and_clamps_k(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        schedule = make_schedule("grave", steps=8, k=40, epochs=4, n_max=100)
    assert schedule == (Epoch(8, 40), Epoch(2, 80), Epoch(1, 100), Epoch(1, 100))
    assert "clamped" in caplog.text
    assert "100" in caplog.text


def test_fixed_schedule() -> None:
    assert make_schedule("fixed", steps=7, k=30, epochs=2, n_max=30) == (Epoch(7, 30), Epoch(7, 30))


@given(
    kind=st.sampled_from(["grave", "fixed"]),
    steps=st.integers(1, 5000),
    k=st.integers(1, 5000),
    epochs=st.integers(1, 6),
    n_max=st.integers(1, 5000),
)
def test_any_schedule_can_be_run(kind: str, steps: int, k: int, epochs: int, n_max: int) -> None:
    schedule = make_schedule(kind, steps=steps, k=k, epochs=epochs, n_max=n_max)
    assert len(schedule) == epochs
    assert all(e.steps >= 1 and 1 <= e.k <= n_max for e in schedule)
    assert schedule[0] == Epoch(steps, min(k, n_max))


def test_a_tiny_vocabulary_runs() -> None:
    problem = planted(6, d=3, seed=0)
    schedule = make_schedule("grave", steps=4, k=500, epochs=3, n_max=6)
    found = wasserstein_procrustes(problem.src, problem.tgt, problem.w, schedule, SETTINGS)
    assert orthogonality_error(found) < 1e-5


def test_the_rate_falls_in_a_straight_line() -> None:
    settings = replace(SETTINGS, learning_rate=2.0, final_rate=0.1)
    assert [settings.rate(step, 4) for step in (1, 2, 3, 4)] == pytest.approx([2.0, 1.4, 0.8, 0.2])
    assert settings.rate(1, 1) == 2.0
    assert replace(SETTINGS, learning_rate=3.0).rate(7, 9) == 3.0


def test_a_falling_rate_resumes_as_well() -> None:
    problem = planted(120, d=8, seed=8)
    settings = replace(SETTINGS, learning_rate=2.0, final_rate=0.1)
    maps: list[Array] = []
    final = wasserstein_procrustes(
        problem.src, problem.tgt, near(problem), COARSE, settings, callback=lambda _, w: maps.append(w)
    )
    resumed = wasserstein_procrustes(problem.src, problem.tgt, maps[3], COARSE, settings, first_step=4)
    np.testing.assert_array_equal(resumed, final)
    flat = wasserstein_procrustes(problem.src, problem.tgt, near(problem), COARSE, replace(settings, final_rate=1.0))
    assert (flat != final).any()


def test_the_size_of_a_bank() -> None:
    assert SETTINGS.coresets_in_bank(500) == 4
    by_size = replace(SETTINGS, bank_size=None)
    sizes = [by_size.coresets_in_bank(k) for k in (1, 1000, 2000, 4000, 100_000)]
    assert sizes == [256, 128, 64, 32, 32]


def test_bad_schedules_are_explained() -> None:
    with pytest.raises(InputError, match="'linear' is not known; expected one of grave, fixed"):
        make_schedule("linear", steps=1, k=1, epochs=1, n_max=1)
    with pytest.raises(InputError, match="steps=0 should be at least 1"):
        make_schedule("fixed", steps=0, k=1, epochs=1, n_max=1)
    with pytest.raises(InputError, match="coreset_size=0"):
        make_schedule("fixed", steps=1, k=0, epochs=1, n_max=1)
    with pytest.raises(InputError, match="epochs=-1"):
        make_schedule("grave", steps=1, k=1, epochs=-1, n_max=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coreset": "k-means"}, "'k-means' is not known; expected one of random"),
        ({"ot": "sinkhorn"}, "'sinkhorn' is not known; expected one of balanced"),
        ({"cost": "cosine"}, "'cosine' is not known; expected one of sqeuclidean"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 should be positive"),
        ({"rho": -1.0}, "rho="),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"sinkhorn_tol": 0.0}, "sinkhorn_tol="),
        ({"bank_size": 0}, "bank_size=0 should be at least 1"),
        ({"sinkhorn_max_iter": 0}, "sinkhorn_max_iter=0"),
        ({"weight_power": -0.5}, r"weight_power=-0\.5"),
    ],
)
def test_bad_settings_are_explained(change: dict[str, Any], message: str) -> None:
    problem = planted(20, d=3)
    settings = replace(SETTINGS, **change)
    with pytest.raises(InputError, match=message):
        wasserstein_procrustes(problem.src, problem.tgt, problem.w, (Epoch(1, 5),), settings)
