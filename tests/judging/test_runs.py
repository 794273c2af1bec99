"""Runs of chance that are known: by what they are told apart, and how many are kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from qwp import arrays
from qwp.judging import runs
from qwp.judging.chance import QUICK, Run
from qwp.judging.verdict import Quality, judge
from qwp.maps.procrustes import Maps
from qwp.stages.agreement import Agreement
from tests.problems import SMALL_EFFORT, planted, rotation


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    runs.forget()
    yield
    runs.forget()


def test_spaces_seeds_and_neighbourhoods_have_keys_of_their_own() -> None:
    x, y = planted(50, d=5).src, planted(50, d=5, seed=1).src
    same = runs.key_of(x, y, 0, 10)
    assert runs.key_of(x.copy(), np.asfortranarray(y), 0, 10) == same
    others = [(y, x, 0, 10), (x, y, 1, 10), (x, y, 0, 5), (x, y[:40], 0, 10), (x.astype("float32"), y, 0, 10)]
    assert len({same, *(runs.key_of(*other) for other in others)}) == 6


def test_the_runs_on_some_spaces_are_shared_until_they_are_forgotten() -> None:
    run = Run(np.arange(3), Agreement(1, 0.5, 0.2))
    runs.known_of("spaces")[QUICK.name, 0] = run
    assert runs.known_of("spaces") == {(QUICK.name, 0): run}
    assert runs.known_of("others") == {}
    runs.forget()
    assert runs.known_of("spaces") == {}


def test_runs_of_other_code_have_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = planted(50, d=5).src, planted(50, d=5, seed=1).src
    before = runs.key_of(x, y, 0, 10)
    monkeypatch.setattr(runs, "code_version", lambda: "0.2.0+other")
    assert runs.key_of(x, y, 0, 10) != before


def test_threads_that_judge_at_the_same_time_say_the_same() -> None:
    problem = planted(220, d=6, noise=0.3)
    maps = [Maps(problem.w), Maps(rotation(6, 1))]

    def judged(each: Maps) -> Quality:
        with arrays.use_threads(1):
            return judge(problem.src, problem.tgt, each, effort=SMALL_EFFORT)

    expected = [judged(each) for each in maps]
    runs.forget()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(judged, maps)) == expected


def test_all_maps_of_two_spaces_share_them() -> None:
    problem = planted(250, d=8, noise=0.3)
    x, y, effort = problem.src, problem.tgt, replace(SMALL_EFFORT, estimated=False)
    wrong = Maps(rotation(8, 1))
    alone = judge(x, y, wrong, effort=effort)
    runs.forget()
    judge(x, y, Maps(problem.w), effort=effort)
    assert judge(x, y, wrong, effort=effort) == alone
    # Nothing is made again: what is known of a run counts.
    known = runs.known_of(runs.key_of(x, y, 0, 10))
    for key, run in known.items():
        known[key] = replace(run, reached=replace(run.reached, share=run.reached.share / 2))
    assert judge(x, y, wrong, effort=effort).ratio > 1.5 * alone.ratio
    # Another seed has other runs.
    assert judge(x, y, wrong, seed=1, effort=effort).ratio < 1.2
