"""Runs of chance that are known: by what they are told apart, and how many are kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from qwp.judging import runs
from qwp.judging import verdict as verdict_module
from qwp.judging.chance import QUICK, Agreement, Run, searched
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps
from tests.problems import planted, rotation


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


def test_the_spaces_that_were_asked_for_last_are_kept() -> None:
    run = Run(np.arange(3), Agreement(1, 0.5, 0.2))
    for number in range(12):
        runs.known_of("first")
        runs.known_of(f"spaces {number}")[QUICK.name, 0] = run
    runs.known_of("first")[QUICK.name, 1] = run
    assert list(runs.known()) == [*(f"spaces {number}" for number in range(5, 12)), "first"]


def test_all_maps_of_two_spaces_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = planted(300, d=8, noise=0.3)
    x, y = problem.src, problem.tgt
    wrong = Maps(rotation(8, 1))
    expected = judge(x, y, wrong, estimated=False)
    runs.forget()
    judge(x, y, Maps(problem.w), estimated=False)
    made: list[int] = []

    def watched(*given: object, **options: object) -> list[Maps]:
        made.extend(given[3])  # type: ignore[arg-type]
        return searched(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(verdict_module, "searched", watched)
    judge(x, y, Maps(problem.w), estimated=False)
    assert made == []
    assert judge(x, y, wrong, estimated=False) == expected
