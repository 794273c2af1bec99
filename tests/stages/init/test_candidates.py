"""The ensemble vote of weak candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.maps.procrustes import orthogonality_error, polar_svd
from qwp.stages.init.candidates import ensemble_vote, shared_pairs
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import Planted, planted, rotation

Array = npt.NDArray[Any]


def weak(problem: Planted, share: float, seed: int) -> Array:
    """Return an orthogonal map between the planted one and a random rotation. share: of the planted one."""
    mixed: Array = host(polar_svd(share * problem.w + (1 - share) * rotation(problem.w.shape[0], seed)))
    return mixed


def test_the_vote_of_weak_candidates_is_better_than_each() -> None:
    problem = planted(800, d=30, noise=0.2, seed=3)
    maps = [weak(problem, 0.4, 100 + i) for i in range(8)]
    alone = [problem.accuracy(w) for w in maps]
    found = ensemble_vote(problem.src, problem.tgt, maps)
    assert found is not None
    assert orthogonality_error(found) < 1e-5
    assert max(alone) < 0.1
    assert problem.accuracy(found) > 0.9


def test_only_pairs_of_several_maps_are_shared() -> None:
    problem = planted(300, d=10, noise=0.05, seed=1)
    elsewhere = rotation(10, 77)
    src, tgt, counts = shared_pairs(problem.src, problem.tgt, [problem.w, problem.w, elsewhere, problem.w])
    assert set(counts) <= {3, 4}
    gold = dict(problem.gold.tolist())
    assert np.mean([gold[int(i)] == j for i, j in zip(src, tgt, strict=True)]) > 0.95
    alone = shared_pairs(problem.src, problem.tgt, [problem.w, elsewhere])
    assert len(alone[0]) < 20
    assert set(alone[2]) <= {2}


def test_too_few_pairs_give_no_map() -> None:
    problem = planted(300, d=10, noise=0.05, seed=1)
    assert ensemble_vote(problem.src, problem.tgt, [problem.w, rotation(10, 77)]) is None
    assert ensemble_vote(problem.src, problem.tgt, [problem.w]) is None


def test_only_frequent_words_are_compared() -> None:
    problem = planted(300, d=10, noise=0.05, seed=1)
    few = shared_pairs(problem.src[:120], problem.tgt[:120], [problem.w] * 2)
    found = shared_pairs(problem.src, problem.tgt, [problem.w] * 2, words=120)
    assert_same(np.stack(found), np.stack(few))


def test_array_api_strict() -> None:
    problem = planted(150, d=6, noise=0.1, seed=2)
    maps = [weak(problem, 0.9, seed) for seed in (1, 2)]
    ours = ensemble_vote(problem.src, problem.tgt, maps)
    theirs = ensemble_vote(as_strict(problem.src), as_strict(problem.tgt), [as_strict(w) for w in maps])
    assert ours is not None
    assert theirs is not None
    assert_close(theirs, ours, atol=1e-6)
