"""Null runs: searches from random rotations, and their cache."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from qwp import arrays
from qwp.judging import null
from qwp.judging.null import QUICK, THOROUGH, NullRun
from qwp.judging.verdict import Quality, judge
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.stages.agreement import Agreement, both_ways
from tests.libraries import as_strict, assert_close, host
from tests.problems import SMALL_EFFORT, null_maps_of, planted, rotation


def test_batch_size_changes_null_maps_by_rounding_only() -> None:
    problem = planted(300, d=8, noise=0.3)
    effort = SMALL_EFFORT.quick
    two = null_maps_of(problem.src, problem.tgt, [0, 1], seed=5, csls_k=10, effort=effort)
    [second] = null_maps_of(problem.src, problem.tgt, [1], seed=5, csls_k=10, effort=effort)
    assert_close(second.src, two[1].src, atol=1e-6)
    assert orthogonality_error(two[0].src) < 1e-6
    assert np.abs(host(two[0].src) - host(two[1].src)).max() > 0.01


@pytest.mark.slow
def test_thorough_search_reaches_higher_agreement_on_long_tails() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_t(2, (1200, 60)).astype("f4") for _ in range(2))
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    quick, thorough = (
        [both_ways(x, y, maps, 10).mean_csls for maps in null_maps_of(x, y, [0, 1], seed=1, csls_k=10, effort=effort)]
        for effort in (QUICK, THOROUGH)
    )
    assert max(quick) < min(thorough)


def test_array_api_strict() -> None:
    problem = planted(40, d=3, noise=0.1)
    x, y = as_strict(problem.src), as_strict(problem.tgt)
    short = replace(QUICK, trial=replace(QUICK.trial, steps=5))
    [found] = null_maps_of(x, y, [0], seed=0, csls_k=5, effort=short)
    [expected] = null_maps_of(problem.src, problem.tgt, [0], seed=0, csls_k=5, effort=short)
    assert_close(found.src, expected.src, atol=1e-6)


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    null.clear_cache()
    yield
    null.clear_cache()


def test_cache_key_depends_on_spaces_seed_and_neighbourhood() -> None:
    x, y = planted(50, d=5).src, planted(50, d=5, seed=1).src
    same = null.cache_key(x, y, 0, 10)
    assert null.cache_key(x.copy(), np.asfortranarray(y), 0, 10) == same
    others = [(y, x, 0, 10), (x, y, 1, 10), (x, y, 0, 5), (x, y[:40], 0, 10), (x.astype("float32"), y, 0, 10)]
    assert len({same, *(null.cache_key(*other) for other in others)}) == 6


def test_null_runs_are_shared_until_the_cache_is_cleared() -> None:
    run = NullRun(np.arange(3), Agreement(1, 0.5, 0.2))
    null.cached_runs("spaces")[QUICK.key, 0] = run
    assert null.cached_runs("spaces") == {(QUICK.key, 0): run}
    assert null.cached_runs("others") == {}
    null.clear_cache()
    assert null.cached_runs("spaces") == {}


def test_runs_of_other_code_have_another_key() -> None:
    x, y = planted(50, d=5).src, planted(50, d=5, seed=1).src
    before = null.cache_key(x, y, 0, 10)
    assert null.cache_key(x, y, 0, 10, code="0.2.0+other") != before


def test_concurrent_verdicts_are_equal() -> None:
    problem = planted(220, d=6, noise=0.3)
    maps = [Maps(problem.w), Maps(rotation(6, 1))]

    def judged(each: Maps) -> Quality:
        with arrays.use_threads(1):
            return judge(problem.src, problem.tgt, each, effort=SMALL_EFFORT)

    expected = [judged(each) for each in maps]
    null.clear_cache()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(judged, maps)) == expected


def test_maps_of_the_same_spaces_share_null_runs() -> None:
    problem = planted(250, d=8, noise=0.3)
    x, y, effort = problem.src, problem.tgt, replace(SMALL_EFFORT, estimated=False)
    wrong = Maps(rotation(8, 1))
    alone = judge(x, y, wrong, effort=effort)
    null.clear_cache()
    judge(x, y, Maps(problem.w), effort=effort)
    assert judge(x, y, wrong, effort=effort) == alone
    # Cached runs are used, not computed again.
    known = null.cached_runs(null.cache_key(x, y, 0, 10))
    for key, run in known.items():
        known[key] = replace(run, score=replace(run.score, share=run.score.share / 2))
    assert judge(x, y, wrong, effort=effort).ratio > 1.5 * alone.ratio
    # Another seed has other null runs.
    assert judge(x, y, wrong, seed=1, effort=effort).ratio < 1.2
