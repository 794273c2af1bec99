"""The independent reference implementation with NumPy and POT agrees with qwp."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import reference, run
from qwp.ot.coreset_source import Coresets
from qwp.ot.transport import Transport
from qwp.search import retrieval
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes, make_schedule
from tests.libraries import assert_close, assert_same
from tests.problems import planted
from tests.stages.problems import run_loop

pytest.importorskip("ot", reason='POT is not installed: pip install "qwp[pot]"')


def test_the_schedule_is_the_published_one() -> None:
    schedule = reference.published_schedule(500, 5000, 5, n_max=20_000)
    assert [(e.steps, e.batch) for e in schedule] == [(5000, 500), (1250, 1000), (312, 2000), (78, 4000), (19, 8000)]
    ours = make_schedule("grave", steps=5000, k=500, epochs=5, n_max=3000)
    clamped = reference.published_schedule(500, 5000, 5, n_max=3000)
    assert [(e.steps, e.batch) for e in clamped] == [(e.steps, e.k) for e in ours.epochs for _ in range(e.count)]


def test_one_step_of_the_loop_is_that_of_qwp() -> None:
    """Batches of all words make the draws irrelevant, so the steps agree within the Sinkhorn tolerance."""
    problem = planted(50, d=6, seed=4, noise=0.2)
    settings = WassersteinProcrustes(
        coresets=Coresets(kind="random"),
        transport=Transport(epsilon=0.05, tol=1e-10, max_iter=5000),
        learning_rate=0.8,
        final_rate=0.1,
    )
    schedule = make_schedule("fixed", steps=3, k=50, epochs=1, n_max=50)
    ours = run_loop(problem.src, problem.tgt, np.eye(6), schedule, settings)
    everything = reference.published_schedule(50, 3, 1, 50)
    theirs = reference.wasserstein_procrustes_reference(problem.src, problem.tgt, np.eye(6), everything)
    assert_close(theirs, ours, atol=1e-4)


def test_mutual_pairs_and_neighbourhood_means_are_those_of_qwp() -> None:
    problem = planted(90, 70, d=8, noise=0.5, seed=5)
    src, tgt = reference.mutual_pairs(problem.src @ problem.w, problem.tgt)
    ours = retrieval.cross_neighbours(problem.src @ problem.w, problem.tgt).mutual()
    assert_same(src, ours.src)
    assert_same(tgt, ours.tgt)
    means = reference.csls_means(problem.src, problem.tgt, 10)
    assert_close(means, retrieval.neighbourhood_means(problem.src, problem.tgt, 10))


@pytest.mark.slow
def test_the_reference_pipeline_finds_a_planted_rotation() -> None:
    # In float64 POT's default threshold ends its iterations early.
    problem = planted(250, d=12, seed=1, shuffle=True, dtype="float64")
    found = reference.pipeline_reference(
        problem.src,
        problem.tgt,
        reference.Published(start_words=250, start_steps=20, start_epsilon=0.2, batch=60, steps=40, epochs=2, rounds=2),
    )
    assert_close(found.map, problem.w, atol=1e-6)


@pytest.mark.slow
def test_make_bench_measures_every_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The quick form compares equal results, prints a table and saves the figures."""
    pytest.importorskip("sklearn")
    pytest.importorskip("gensim")
    output = tmp_path / "latest.json"
    run.main(["--quick", "--output", str(output)])
    figures: dict[str, Any] = json.loads(output.read_text("utf-8"))
    cases = [case for name in run.BENCHMARKS for case in figures.get(name, {}).get("cases", [])]
    assert all(math.isfinite(case["ratio"]) and case["qwp_seconds"] > 0 for case in cases)
    assert len(capsys.readouterr().out.splitlines()) == len(cases) + 1
    for case in figures["sinkhorn"]["cases"]:
        assert 0 < case["qwp_error"] <= case["pot_error"]
    for case in figures["frank_wolfe"]["cases"]:
        assert case["objective"] == pytest.approx(figures["frank_wolfe"]["qwp_objective"], rel=0.01)
