"""The loop: planted problems, one step against NumPy, resuming, several pairs, schedules, trials."""

from __future__ import annotations

import logging
import re
import sys
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.ot.batched_sinkhorn import Unbalanced, inner_product_plans, unbalanced_plans
from qwp.ot.coreset_source import Coresets, CoresetSource
from qwp.ot.costs import Scalings, cost_matrix
from qwp.ot.transport import Transport, solve_transport
from qwp.parameters import check, parameters, with_values
from qwp.showing.events import Progress
from qwp.stages.stage import Monitor, State
from qwp.stages.wasserstein_procrustes import (
    Epochs,
    Schedule,
    StepFigures,
    Trial,
    WassersteinProcrustes,
    make_schedule,
)
from tests.libraries import as_strict, assert_close, assert_same, host, pot
from tests.problems import Planted, planted, rotation
from tests.stages.problems import problem_of, run_loop

Array = npt.NDArray[Any]


# All settings that affect these tests, so that the tests do not depend on the defaults.
SETTINGS = WassersteinProcrustes(
    coresets=Coresets(kind="kmeans++", weight_power=1.0, sphere_centroids=True, bank_size=4, pairs_per_step=2),
    transport=Transport(solver="balanced", epsilon=0.05, cost="sqeuclidean", rho=1.0, tol=0.01, max_iter=100),
    update="gradient",
    learning_rate=1.0,
    final_rate=1.0,
)


def changed(settings: WassersteinProcrustes = SETTINGS, **options: Any) -> WassersteinProcrustes:
    """Return the settings with some parameters changed, by flat name."""
    assert options.keys() <= parameters(settings).keys()
    return with_values(settings, options)


COARSE = Schedule((Epochs(count=1, steps=6, k=20), Epochs(count=1, steps=3, k=40)))


def skip_without_pot(coreset: str, ot: str) -> None:
    """Skip the test without POT, which exact transport with unequal weights needs."""
    if ot == "exact" and coreset != "random":
        pot()


def near(problem: Planted, distance: float = 1.2) -> Array:
    """Return an orthogonal map near the planted one, (d, d)."""
    d = problem.w.shape[0]
    noise = distance * np.random.default_rng(7).standard_normal((d, d)) / d**0.5
    return np.asarray(polar_svd(problem.w + noise.astype(problem.w.dtype)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coreset", "ot"),
    [
        ("random", "exact"),
        ("kmeans++", "balanced"),
        ("kmeans++", "exact"),
        ("lloyd", "balanced"),
        ("lloyd", "unbalanced"),
    ],
)
def test_recovers_a_planted_rotation(coreset: str, ot: str) -> None:
    skip_without_pot(coreset, ot)
    problem = planted(250, d=10, shuffle=True, seed=1)
    start = near(problem)
    assert problem.accuracy(start) < 0.4
    schedule = make_schedule("fixed", steps=25, k=80, epochs=1, n_max=250)
    found = run_loop(problem.src, problem.tgt, start, schedule, changed(coreset=coreset, ot=ot))
    assert problem.accuracy(found) > 0.95
    assert float(np.abs(host(found) - problem.w).max()) < 0.2


def test_recovers_with_noise_and_unequal_sizes_in_float32() -> None:
    problem = planted(300, 220, d=10, noise=0.1, shuffle=True, seed=2, dtype="float32")
    start = near(problem)
    schedule = make_schedule("grave", steps=24, k=60, epochs=2, n_max=220)
    found = run_loop(problem.src, problem.tgt, start, schedule, SETTINGS)
    assert found.dtype == np.float32
    assert problem.accuracy(start) < 0.6
    assert problem.accuracy(found) > 0.9


def test_dot_cost_with_half_epsilon_makes_the_same_steps() -> None:
    problem = planted(120, d=6, seed=3)
    start = near(problem)
    squared, dot = (
        run_loop(
            problem.src,
            problem.tgt,
            start,
            Schedule((Epochs(1, 3, 40),)),
            changed(cost=cost, epsilon=epsilon, sinkhorn_tol=1e-10, sinkhorn_max_iter=5000),
        )
        for cost, epsilon in (("sqeuclidean", 0.1), ("dot", 0.05))
    )
    assert_close(squared, dot, atol=1e-7)


def test_the_planted_map_is_a_fixed_point() -> None:
    # With all words in the coreset and the exact plan, the planted map is a fixed point.
    problem = planted(60, d=5, seed=4)
    found = run_loop(
        problem.src,
        problem.tgt,
        problem.w,
        Schedule((Epochs(1, 3, 60),)),
        changed(coreset="random", ot="exact"),
    )
    assert_close(found, problem.w, atol=1e-10)


@pytest.mark.parametrize(("dtype", "learning_rate"), [("float32", 0.01), ("float32", 1000.0), ("float64", 1.0)])
def test_orthogonal_at_every_step(dtype: str, learning_rate: float) -> None:
    problem = planted(60, d=20, seed=5, dtype=dtype)
    errors: list[float] = []
    run_loop(
        problem.src,
        problem.tgt,
        rotation(20, 1).astype(dtype),
        COARSE,
        changed(learning_rate=learning_rate),
        callback=lambda _, w: errors.append(orthogonality_error(w)),
    )
    assert len(errors) == 9
    assert max(errors) < 1e-5


Coreset = tuple[Array, Array]


def coresets_of(source: CoresetSource, k: int, step: int) -> list[tuple[Coreset, Coreset]]:
    """Return the pairs of coresets of a step (from zero): points and weights of the source and of the target."""
    sides = [table.get(source.numbers(i, k, step, 1)[0]) for i, table in enumerate(source.tables(k, step, 1))]
    (src, a), (tgt, b) = ([host(part) for part in side] for side in sides)
    return [((src[i], a[i]), (tgt[i], b[i])) for i in range(len(src))]


def one_plan(src: Coreset, tgt: Coreset, w: Array, settings: WassersteinProcrustes) -> Scalings:
    """Return the plan of one pair of coresets under the map w (d, d)."""
    (x, a), (y, b) = src, tgt
    transport = settings.transport
    if transport.solver == "exact":
        return solve_transport(cost_matrix(x @ w, y, transport.cost), a, b, transport)
    scale, limits = 2 / transport.epsilon, dict[str, Any](max_iter=transport.max_iter, tol=transport.tol)
    points = (x @ w)[None], y[None], a[None], b[None]
    if transport.solver == "unbalanced":
        plans = unbalanced_plans(*points, Unbalanced(transport.rho, transport.cost, scale), **limits)
    else:
        plans = inner_product_plans(*points, scale=scale, **limits)
    return Scalings(plans.kernel[0], plans.u[0], plans.v[0], plans.relaxations)


@pytest.mark.parametrize(
    ("coreset", "ot", "pairs_per_step"),
    [("random", "balanced", 1), ("lloyd", "balanced", 3), ("lloyd", "unbalanced", 3), ("random", "exact", 3)],
)
def test_figures(coreset: str, ot: str, pairs_per_step: int) -> None:
    skip_without_pot(coreset, ot)
    problem = planted(150, d=6, seed=6)
    # A distant rotation and a loose tolerance: the plan does not meet the marginals.
    settings = changed(
        coreset=coreset,
        ot=ot,
        rho=0.3,
        sinkhorn_tol=0.5,
        sphere_centroids=False,
        pairs_per_step=pairs_per_step,
    )
    start = rotation(6, 0)
    figures: list[StepFigures] = []
    maps: list[Any] = []

    def keep(steps: list[StepFigures], w: Any) -> None:
        figures.extend(steps)
        maps.append(w)

    final = run_loop(problem.src, problem.tgt, start, COARSE, settings, seed=3, callback=keep)
    assert [f.step for f in figures] == list(range(1, 10))
    assert [f.epoch for f in figures] == [1] * 6 + [2] * 3
    assert [f.k for f in figures] == [20] * 6 + [40] * 3
    assert {f.n_steps for f in figures} == {9}
    assert_same(final, maps[-1])

    source = CoresetSource(([problem.src], [problem.tgt]), settings.coresets, [3])
    for number, w in ((0, start), (7, maps[6])):
        objectives, errors, sweeps = [], [], []
        pairs = coresets_of(source, COARSE.epochs[number // 6].k, number)
        assert len(pairs) == pairs_per_step
        for src, tgt in pairs:
            plan = one_plan(src, tgt, w, settings)
            matrix, costs = host(plan.matrix), host(cost_matrix(src[0] @ w, tgt[0]))
            objectives.append((matrix * costs).sum() / matrix.sum())
            errors.append(np.abs(matrix.sum(axis=1) - src[1]).sum())
            sweeps.append(plan.n_iter)
        figure = figures[number]
        assert figure.objective == pytest.approx(np.mean(objectives), rel=1e-9)
        assert figure.marginal_error == pytest.approx(np.mean(errors), abs=1e-12)
        assert figure.sinkhorn_iterations == max(sweeps)
        assert figure.converged == (np.mean(errors) <= settings.transport.tol)


@pytest.mark.parametrize(
    ("coreset", "ot", "pairs_per_step"),
    [("kmeans++", "balanced", 1), ("kmeans++", "balanced", 3), ("random", "exact", 2), ("lloyd", "unbalanced", 2)],
)
def test_one_step_by_hand(coreset: str, ot: str, pairs_per_step: int) -> None:
    problem = planted(150, 120, d=6, seed=6)
    settings = changed(coreset=coreset, ot=ot, learning_rate=0.7, pairs_per_step=pairs_per_step)
    start = near(problem)
    found = run_loop(problem.src, problem.tgt, start, Schedule((Epochs(1, 1, 30),)), settings, seed=4)
    source = CoresetSource(([problem.src], [problem.tgt]), settings.coresets, [4])
    correspondences = [
        src[0].T @ one_plan(src, tgt, start, settings).matrix @ tgt[0] for src, tgt in coresets_of(source, 30, 0)
    ]
    assert len(correspondences) == pairs_per_step
    mean = np.mean(correspondences, axis=0)
    assert_close(found, polar_svd(start + 6 * 0.7 * mean), atol=1e-10)
    assert float(np.abs(host(found) - start).max()) > 1e-2
    normalized = replace(settings, update="normalized")
    found = run_loop(problem.src, problem.tgt, start, Schedule((Epochs(1, 1, 30),)), normalized, seed=4)
    assert_close(found, polar_svd(start + 0.7 * 6**0.5 * mean / np.linalg.norm(mean)), atol=1e-10)


def test_a_normalized_step_does_not_depend_on_the_length_of_the_vectors() -> None:
    """Short centroids and long vectors make the same steps, if epsilon has the scale of the cost."""
    problem, schedule = planted(150, 120, d=6, seed=6), Schedule((Epochs(1, 4, 30),))
    start = near(problem)
    tight = changed(update="normalized", learning_rate=0.5, sinkhorn_tol=1e-8, sinkhorn_max_iter=2000)
    expected = run_loop(problem.src, problem.tgt, start, schedule, tight, seed=4)
    assert float(np.abs(host(expected) - start).max()) > 1e-2
    for length in (0.5, 2.0):
        settings = with_values(tight, {"epsilon": 0.05 * length**2})
        found = run_loop(problem.src * length, problem.tgt * length, start, schedule, settings, seed=4)
        assert_close(found, expected, atol=1e-6)


def test_both_updates_agree_at_equivalent_rates() -> None:
    """One gradient step of rate r is a normalized one of rate r sqrt(d) |G|, for the correspondence G."""
    problem = planted(150, d=6, seed=6)
    start, schedule = near(problem), Schedule((Epochs(1, 1, 30),))
    source = CoresetSource(([problem.src], [problem.tgt]), SETTINGS.coresets, [4])
    each = [src[0].T @ one_plan(src, tgt, start, SETTINGS).matrix @ tgt[0] for src, tgt in coresets_of(source, 30, 0)]
    rate = 0.7 * 6**0.5 * float(np.linalg.norm(np.mean(each, axis=0)))
    gradient, normalized = (
        run_loop(problem.src, problem.tgt, start, schedule, changed(update=update, learning_rate=r), seed=4)
        for update, r in (("gradient", 0.7), ("normalized", rate))
    )
    assert_close(gradient, normalized, atol=1e-10)


def test_the_objective_falls_towards_the_answer() -> None:
    problem = planted(200, d=8, seed=1)
    figures: list[StepFigures] = []
    run_loop(
        problem.src,
        problem.tgt,
        near(problem),
        Schedule((Epochs(1, 20, 100),)),
        changed(coreset="random"),
        callback=lambda f, _: figures.extend(f),
    )
    assert figures[-1].objective < 0.9 * figures[0].objective


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_the_same_seed_gives_the_same_map_and_another_does_not(coreset: str) -> None:
    problem = planted(120, d=8, seed=8, dtype="float32")
    start = near(problem)
    settings = changed(coreset=coreset)
    one, two, other = (run_loop(problem.src, problem.tgt, start, COARSE, settings, seed=seed) for seed in (5, 5, 6))
    assert_same(one, two)
    assert (host(one) != host(other)).any()


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_a_resumed_run_ends_at_the_same_map(coreset: str) -> None:
    problem = planted(120, d=8, seed=8, dtype="float32")
    settings = changed(coreset=coreset)
    maps: list[Any] = []
    final = run_loop(
        problem.src,
        problem.tgt,
        near(problem),
        COARSE,
        settings,
        seed=5,
        callback=lambda _, w: maps.append(w),
    )
    # Within an epoch, at its end, and after the last step.
    for done in (1, 6, 9):
        steps: list[int] = []
        resumed = run_loop(
            problem.src,
            problem.tgt,
            maps[done - 1],
            COARSE,
            settings,
            seed=5,
            first_step=done,
            callback=lambda figures, _, steps=steps: steps.extend(f.step for f in figures),  # type: ignore[misc]
        )
        assert_same(resumed, final)
        assert steps == list(range(done + 1, 10))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coreset", "library"),
    [
        ("random", "numpy"),
        ("kmeans++", "numpy"),
        ("lloyd", "torch"),
        ("kmeans++", "torch"),
        ("random", "array_api_strict"),
    ],
)
def test_many_pairs_give_the_maps_of_single_runs(coreset: str, library: str) -> None:
    xp = pytest.importorskip(library)
    problems = [planted(120, 90, d=6, seed=1), planted(80, 110, d=6, seed=2)]
    starts = [near(problem) for problem in problems]
    # A batch stops when its last problem converges, so the number of sweeps is fixed.
    settings = changed(coreset=coreset, epsilon=0.3, sinkhorn_tol=1e-7, sinkhorn_max_iter=1000)
    schedule = Schedule((Epochs(1, 2, 15), Epochs(1, 1, 20)))
    singles = [
        host(run_loop(problem.src, problem.tgt, start, schedule, settings, seed=seed))
        for problem, start, seed in zip(problems, starts, (5, 9), strict=True)
    ]
    figures: list[list[StepFigures]] = [[], []]

    def keep(steps: list[list[StepFigures]], w: Any) -> None:
        assert w.shape == (2, 6, 6)
        for kept, new in zip(figures, steps, strict=True):
            kept.extend(new)

    together = settings.solve_many(
        [xp.asarray(problem.src) for problem in problems],
        [xp.asarray(problem.tgt) for problem in problems],
        xp.asarray(np.stack(starts)),
        schedule,
        seeds=[5, 9],
        callback=keep,
    )
    assert_close(together, np.stack(singles), atol=1e-4)
    assert float(np.abs(singles[0] - singles[1]).max()) > 1e-2
    assert [[f.step for f in kept] for kept in figures] == [[1, 2, 3]] * 2
    assert figures[0][0].objective != figures[1][0].objective


def test_several_pairs_resume_and_do_not_change_their_initial_maps() -> None:
    problems = [planted(120, 90, d=6, seed=1), planted(80, 110, d=6, seed=2)]
    xs, ys = [p.src for p in problems], [p.tgt for p in problems]
    start = np.stack([near(problem) for problem in problems])
    before, maps = start.copy(), []
    final = SETTINGS.solve_many(
        xs,
        ys,
        start,
        COARSE,
        seeds=[5, 9],
        callback=lambda _, w: maps.append(host(w).copy()),
    )
    assert_same(start, before)
    for done in (2, 6, 8):
        resumed = SETTINGS.solve_many(xs, ys, maps[done - 1], COARSE, seeds=[5, 9], first_step=done)
        assert_same(resumed, final)


def test_a_run_of_epochs_is_that_of_each_one() -> None:
    problem = planted(120, d=6, seed=1)
    runs, singles = Schedule((Epochs(3, 2, 20),)), Schedule((Epochs(1, 2, 20),) * 3)
    seen: list[list[StepFigures]] = []
    for schedule in (runs, singles):
        seen.append([])
        run_loop(problem.src, problem.tgt, near(problem), schedule, SETTINGS, callback=lambda f, _: seen[-1].extend(f))
    assert seen[0] == seen[1]
    assert [figures.epoch for figures in seen[0]] == [1, 1, 2, 2, 3, 3]


def test_a_source_of_coresets_may_be_handed_over() -> None:
    problem = planted(100, d=5, seed=3)
    start = near(problem)[None]
    source = CoresetSource(([problem.src], [problem.tgt]), SETTINGS.coresets, [1])
    assert source.seconds == 0.0
    pair: tuple[Any, ...] = ([problem.src], [problem.tgt], start, Schedule((Epochs(1, 3, 20),)))
    given_source = SETTINGS.solve_many(*pair, seeds=[1], source=source)
    drawn = source.seconds
    assert drawn > 0.0
    assert_same(given_source, SETTINGS.solve_many(*pair, seeds=[1]))
    # The bank is cached.
    SETTINGS.solve_many(*pair, seeds=[1], source=source)
    assert source.seconds == drawn


@pytest.mark.slow
def test_array_api_strict_makes_the_same_steps() -> None:
    problem = planted(80, d=5, seed=9)
    start = near(problem)
    for coreset, ot in (("random", "balanced"), ("kmeans++", "unbalanced"), ("lloyd", "balanced")):
        # NumPy solves the plans of a step one by one; other libraries stop when the last one converges.
        settings = changed(coreset=coreset, ot=ot, pairs_per_step=1)
        schedule = Schedule((Epochs(1, 2, 20),))
        ours = run_loop(problem.src, problem.tgt, start, schedule, settings)
        x, y, w = (as_strict(z) for z in (problem.src, problem.tgt, start))
        strict = run_loop(x, y, w, schedule, settings, callback=lambda f, _: None)
        assert type(strict) is type(array_api_strict.zeros(1))
        assert_close(host(strict), ours, atol=1e-9)


def test_stretches_known_answers() -> None:
    schedule = Schedule((Epochs(1, 6, 20), Epochs(1, 3, 40), Epochs(1, 2, 40), Epochs(1, 1, 20)))
    assert schedule.n_steps == 12
    assert schedule.segments(0) == [(20, 0, 6), (40, 6, 11), (20, 11, 12)]
    assert schedule.segments(4) == [(20, 4, 6), (40, 6, 11), (20, 11, 12)]
    assert schedule.segments(6) == [(40, 6, 11), (20, 11, 12)]
    assert schedule.segments(10) == [(40, 10, 11), (20, 11, 12)]
    assert schedule.segments(12) == []


def test_runs_of_epochs_known_answers() -> None:
    schedule = Schedule((Epochs(2, 3, 20), Epochs(1, 1, 40), Epochs(3, 2, 40)))
    assert schedule.n_steps == 13
    assert schedule.segments(0) == [(20, 0, 6), (40, 6, 13)]
    assert schedule.segments(4) == [(20, 4, 6), (40, 6, 13)]
    assert [schedule.epoch_of(step) for step in range(1, 14)] == [1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 5, 6, 6]


@given(
    runs=st.lists(st.builds(Epochs, st.integers(1, 4), st.integers(1, 6), st.integers(1, 3)), min_size=1, max_size=6),
    first_step=st.integers(0, 120),
)
@settings(max_examples=30)
def test_stretches_and_epochs_number_the_steps(runs: list[Epochs], first_step: int) -> None:
    schedule = Schedule(tuple(runs))
    epochs = [(run.steps, run.k) for run in runs for _ in range(run.count)]
    sizes = [k for steps, k in epochs for _ in range(steps)]
    assert schedule.n_steps == len(sizes)
    stretches = schedule.segments(first_step)
    steps = [(k, step) for k, begin, end in stretches for step in range(begin, end)]
    assert steps == [(k, step) for step, k in enumerate(sizes) if step >= first_step]
    assert all(one[0] != two[0] for one, two in pairwise(stretches))
    numbers = [number for number, (n, _) in enumerate(epochs, start=1) for _ in range(n)]
    assert [schedule.epoch_of(step) for step in range(1, len(sizes) + 1)] == numbers


def expanded(schedule: Schedule) -> list[tuple[int, int]]:
    """Return the steps and k of every epoch."""
    return [(run.steps, run.k) for run in schedule.epochs for _ in range(run.count)]


def by_the_book(kind: str, *, steps: int, k: int, epochs: int, n_max: int) -> list[tuple[int, int]]:
    """Return the steps and k of every epoch, by the definition of the schedule."""
    if kind == "budget":
        steps = max(1, round(1000 * steps / k))
    if kind in ("fixed", "budget"):
        return [(steps, min(k, n_max))] * epochs
    return [(max(1, steps // 4**i), min(k * 2**i, n_max)) for i in range(epochs)]


def test_grave_doubles_k_and_quarters_the_steps() -> None:
    schedule = make_schedule("grave", steps=320, k=500, epochs=4, n_max=20_000)
    assert expanded(schedule) == [(320, 500), (80, 1000), (20, 2000), (5, 4000)]


def test_grave_keeps_a_step_and_clamps_k(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        schedule = make_schedule("grave", steps=8, k=40, epochs=4, n_max=100)
    assert expanded(schedule) == [(8, 40), (2, 80), (1, 100), (1, 100)]
    assert "clamped" in caplog.text
    assert "100" in caplog.text


@pytest.mark.parametrize("kind", ["fixed", "grave"])
def test_sizes_that_fit_are_not_logged_as_clamped(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        make_schedule(kind, steps=8, k=25, epochs=3, n_max=100)
    assert caplog.text == ""


def test_every_size_sees_as_many_points_within_a_budget() -> None:
    schedules = [make_schedule("budget", steps=600, k=k, epochs=5, n_max=20_000) for k in (200, 500, 1000, 2000, 3000)]
    assert [schedule.n_steps for schedule in schedules] == [15_000, 6000, 3000, 1500, 1000]


def test_fixed_schedule() -> None:
    assert make_schedule("fixed", steps=7, k=30, epochs=2, n_max=30) == Schedule((Epochs(2, 7, 30),))


@given(
    kind=st.sampled_from(["grave", "fixed", "budget"]),
    steps=st.integers(1, 5000),
    k=st.integers(1, 5000),
    epochs=st.integers(1, 40),
    n_max=st.integers(1, 5000),
)
@settings(max_examples=30)
def test_schedules_match_their_definition(kind: str, steps: int, k: int, epochs: int, n_max: int) -> None:
    schedule = make_schedule(kind, steps=steps, k=k, epochs=epochs, n_max=n_max)
    naive = by_the_book(kind, steps=steps, k=k, epochs=epochs, n_max=n_max)
    assert expanded(schedule) == naive
    assert all(n >= 1 and 1 <= size <= n_max for n, size in naive)
    assert schedule.n_steps == sum(n for n, _ in naive)


@pytest.mark.parametrize(("kind", "n_steps"), [("fixed", 15 * 10**6), ("grave", 15 + 3 + 10**6 - 2)])
def test_a_million_epochs_take_no_memory(kind: str, n_steps: int) -> None:
    tracemalloc.start()
    schedule = make_schedule(kind, steps=15, k=500, epochs=10**6, n_max=20_000)
    assert schedule.n_steps == n_steps
    assert schedule.epoch_of(n_steps) == 10**6
    assert sum(end - begin for _, begin, end in schedule.segments(0)) == n_steps
    last = schedule.segments(n_steps - 5)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert last == [(500 if kind == "fixed" else 20_000, n_steps - 5, n_steps)]
    assert len(schedule.epochs) < 10
    assert used < 100_000


@given(
    kind=st.sampled_from(["grave", "fixed", "budget"]),
    size=st.none() | st.integers(1, 3000),
    words=st.integers(1, 20_000),
)
@settings(max_examples=30)
def test_the_schedule_for_so_many_words(kind: str, size: int | None, words: int) -> None:
    settings = changed(schedule=kind, coreset_size=size, epochs=3, steps=16)
    check(settings)
    # By default 1000; half of few words, at least 200; never more than all.
    k = size if size is not None else min(1000, max(200, words // 2))
    assert settings.schedule_for(words) == make_schedule(kind, steps=16, k=k, epochs=3, n_max=words)


def test_a_tiny_vocabulary_runs() -> None:
    problem = planted(6, d=3, seed=0)
    schedule = make_schedule("grave", steps=4, k=500, epochs=3, n_max=6)
    found = run_loop(problem.src, problem.tgt, problem.w, schedule, SETTINGS)
    assert orthogonality_error(found) < 1e-5


def test_the_rate_falls_in_a_straight_line() -> None:
    settings = changed(learning_rate=2.0, final_rate=0.1)
    assert [settings.rate(step, 4) for step in (1, 2, 3, 4)] == pytest.approx([2.0, 1.4, 0.8, 0.2])
    assert settings.rate(1, 1) == 2.0
    assert changed(learning_rate=3.0).rate(7, 9) == 3.0


def test_a_falling_rate_resumes_as_well() -> None:
    problem = planted(120, d=8, seed=8)
    settings = changed(learning_rate=2.0, final_rate=0.1)
    maps: list[Any] = []
    final = run_loop(problem.src, problem.tgt, near(problem), COARSE, settings, callback=lambda _, w: maps.append(w))
    resumed = run_loop(problem.src, problem.tgt, maps[3], COARSE, settings, first_step=4)
    assert_same(resumed, final)
    flat = run_loop(problem.src, problem.tgt, near(problem), COARSE, changed(settings, final_rate=1.0))
    assert (host(flat) != host(final)).any()


# --------------------------------------------------------------------------- the stage

STAGE = changed(coreset_size=20, epochs=2, steps=3, train_words=100)


def begun(problem: Planted) -> State:
    """Return the state before the first step."""
    return State(maps=Maps(near(problem)), stage="loop")


@pytest.mark.parametrize("coreset", ["random", "kmeans++"])
def test_the_stage_makes_the_steps_of_its_schedule_on_the_training_words(coreset: str) -> None:
    problem = planted(150, 120, d=8, seed=8)
    settings = changed(STAGE, coreset=coreset)
    events: list[Progress] = []
    monitor = Monitor(events.append)
    found = settings(problem_of(problem, seed=5), begun(problem), monitor)
    x, y = problem.src[:100], problem.tgt[:100]
    figures: list[StepFigures] = []
    expected = run_loop(
        x, y, near(problem), Schedule((Epochs(2, 3, 20),)), settings, seed=5, callback=lambda f, _: figures.extend(f)
    )
    assert_same(found.map, expected)
    assert found.done == 6
    assert [(record["stage"], record["step"]) for record in found.history] == [("loop", step) for step in range(1, 7)]
    assert [record["objective"] for record in found.history] == [figure.objective for figure in figures]
    steps = [event for event in events if event.stage == "loop"]
    assert [(event.done, event.total) for event in steps] == [(step, 6) for step in range(1, 7)]
    # The seconds of the coresets are counted separately.
    banks = [event for event in events if event.stage == "coresets"]
    assert bool(banks) == (coreset != "random")
    assert (monitor.seconds["coresets"] > 0) == (coreset != "random")


def test_a_long_loop_keeps_some_records_and_the_last() -> None:
    problem = planted(60, d=5, seed=8)
    settings = replace(changed(STAGE, coreset_size=10, epochs=1, steps=23), max_records=4)
    events: list[Progress] = []
    found = settings(problem_of(problem), begun(problem), Monitor(events.append))
    assert [record["step"] for record in found.history] == [6, 12, 18, 23]
    assert len([event for event in events if event.stage == "loop"]) == 23


def test_an_interrupted_stage_continues_from_any_saved_state() -> None:
    problem = planted(150, 120, d=8, seed=8)
    saved: list[State] = []
    monitor = Monitor(save=lambda state, _: saved.append(state), interval=0.0)
    whole = STAGE(problem_of(problem), begun(problem), monitor)
    assert [state.done for state in saved] == list(range(1, 7))
    for state in saved:
        resumed = STAGE(problem_of(problem), state, Monitor())
        assert_same(resumed.map, whole.map)
        assert resumed.history == whole.history


def test_problems_with_different_schedules_run_separately() -> None:
    # The 40 words of one problem need smaller coresets.
    problems = [planted(120, 90, d=6, seed=1), planted(40, 40, d=6, seed=2), planted(110, 95, d=6, seed=3)]
    settings = changed(STAGE, coreset_size=60, train_words=90, epsilon=0.3, sinkhorn_tol=1e-7, sinkhorn_max_iter=1000)
    monitors = [Monitor() for _ in problems]
    views = [problem_of(problem, seed=seed) for seed, problem in enumerate(problems)]
    together = settings.run_many(views, [begun(problem) for problem in problems], monitors)
    for problem, view, state in zip(problems, views, together, strict=True):
        alone = settings(view, begun(problem), Monitor())
        # A batch stops when its last problem converges.
        assert_close(state.map, alone.map, atol=1e-4)
        assert [record["k"] for record in state.history] == [record["k"] for record in alone.history]
    assert [state.history[0]["k"] for state in together] == [60, 40, 60]


def test_as_many_pairs_at_a_time_as_the_memory_allows() -> None:
    settings = changed(coreset_size=500, train_words=20_000, bank_size=64, pairs_per_step=4)
    each = 8 * 4 * 64 * 20_000 + 16 * 500 * 500 * 4
    assert settings.pairs_at_a_time(None) == settings.batch_bytes // each
    assert settings.pairs_at_a_time(3.5 * each / 2**30) == 3
    assert settings.pairs_at_a_time(1e-6) == 1


# --------------------------------------------------------------------------- what is refused


def test_bad_schedules_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"schedule": "linear"}, "schedule='linear' is not known; expected one of grave, fixed"),
        ({"steps": 0}, "steps=0 is out of range; expected 1 to 1,000,000"),
        ({"steps": 10**6 + 1}, "steps=1000001 is out of range"),
        ({"coreset_size": 0}, "coreset_size=0 is out of range; expected 1 to 1,000,000"),
        ({"epochs": -1}, "epochs=-1 is out of range; expected 1 to 1,000,000"),
    ]
    for change, message in cases:
        with pytest.raises(InputError, match=message):
            check(changed(**change))


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"coreset": "k-means"}, "coreset='k-means' is not known; expected one of random"),
        ({"ot": "sinkhorn"}, "ot='sinkhorn' is not known; expected one of balanced"),
        ({"learning_rate": float("nan")}, "learning_rate=nan is out of range; expected above 0"),
        ({"learning_rate": 0.0}, r"learning_rate=0\.0 is out of range; expected above 0"),
        ({"final_rate": 0.0}, r"final_rate=0\.0 is out of range; expected above 0"),
    ]
    for change, message in cases:
        with pytest.raises(InputError, match=message):
            check(changed(**change))


def test_the_settings_of_these_tests_are_allowed() -> None:
    check(SETTINGS)


def test_exact_transport_of_unequal_weights_needs_pot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    for same in (changed(coreset="random"), changed(weight_power=0.0)):
        check(changed(same, ot="exact"))
    message = "ot='exact' with weight_power=1 needs POT, which is not installed: pip install \"qwp[pot]\""
    with pytest.raises(InputError, match=re.escape(message)):
        check(changed(ot="exact", coreset="lloyd"))


BRIEF = Trial(words=250, steps=20, coreset=500, epsilon=0.05, batches=2)


def test_a_trial_improves_a_map_that_is_nearly_right() -> None:
    problem = planted(400, d=12, noise=0.2, seed=2)
    start = host(polar_svd(0.5 * problem.w + 0.5 * rotation(12, 8)))
    [found] = BRIEF.run([problem.src], [problem.tgt], [start], [0])
    assert orthogonality_error(found) < 1e-5
    assert problem.accuracy(found) > problem.accuracy(start) + 0.1


def test_trials_in_lock_step_are_those_one_by_one() -> None:
    one, other = planted(300, d=8, noise=0.2, seed=2), planted(350, 280, d=8, noise=0.2, seed=3)
    starts = [rotation(8, 1), rotation(8, 2)]
    both = BRIEF.run([one.src, other.src], [one.tgt, other.tgt], starts, [4, 5])
    for problem, start, seed, found in ((one, starts[0], 4, both[0]), (other, starts[1], 5, both[1])):
        assert_close(BRIEF.run([problem.src], [problem.tgt], [start], [seed])[0], found, atol=1e-5)


def test_batches_are_a_part_of_the_words() -> None:
    sizes = {n: BRIEF.points(np.zeros((n, 2)), np.zeros((2 * n, 2))) for n in (10, 150, 240, 5000)}
    assert sizes == {10: 10, 150: 150, 240: 200, 5000: 200}
    many = Trial(words=6000, steps=1, coreset=1000, epsilon=0.1, batches=1)
    assert [many.points(np.zeros((n, 2)), np.zeros((9000, 2))) for n in (1000, 2000, 6000, 8000)] == [
        250,
        500,
        1000,
        1000,
    ]
