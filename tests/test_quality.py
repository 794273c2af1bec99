"""The verdict without a dictionary: it must tell a real alignment from one that only agrees with itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qwp.normalization import fit
from qwp.procrustes import reweighted
from qwp.quality import FAILED, SUCCEEDED, UNDECIDED, Quality, agreement, judge, random_rotation
from qwp.refine import RefineSettings, refine
from tests.problems import Array, planted, rotation


def test_a_true_map_succeeds() -> None:
    problem = planted(600, d=15, noise=0.3, dtype="float32")
    quality = judge(problem.src, problem.tgt, problem.w)
    assert quality.verdict == SUCCEEDED
    assert quality.ratio > 1.5
    assert quality.fitted.mean_csls > quality.random.mean_csls
    assert "real" in quality.explanation


@pytest.mark.parametrize("seed", range(4))
def test_a_self_consistent_but_wrong_map_fails(seed: int) -> None:
    problem = planted(600, d=15, noise=0.3, dtype="float32")
    wrong = refine(problem.src, problem.tgt, rotation(15, 100 + seed).astype("f4"), RefineSettings(rounds=1))
    if problem.accuracy(wrong) > 0.1:
        pytest.skip("refinement found the answer from a random rotation; nothing wrong to judge")
    quality = judge(problem.src, problem.tgt, wrong, seed=seed)
    assert quality.verdict == FAILED
    assert "failed" in quality.explanation


def test_maps_of_both_sides_are_judged_like_the_one_they_stand_for() -> None:
    problem = planted(600, d=15, noise=0.3)
    turn = rotation(15, 31)
    one_sided = judge(problem.src, problem.tgt, problem.w)
    two_sided = judge(problem.src, problem.tgt, problem.w @ turn, turn)
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=1e-9)
    for name in ("fitted", "random", "held_out", "held_out_random"):
        ours, theirs = getattr(two_sided, name), getattr(one_sided, name)
        assert (ours.pairs, ours.share) == (theirs.pairs, theirs.share)
        assert ours.mean_csls == pytest.approx(theirs.mean_csls)


def test_reweighted_maps_succeed_by_the_same_yardstick() -> None:
    problem = planted(600, d=15, noise=0.3)
    one_sided = judge(problem.src, problem.tgt, problem.w)
    maps = reweighted(problem.src[problem.gold[:, 0]], problem.tgt[problem.gold[:, 1]])
    two_sided = judge(problem.src, problem.tgt, *maps)
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=0.02)
    assert two_sided.random == one_sided.random
    assert two_sided.held_out_random == one_sided.held_out_random


@pytest.mark.parametrize("seed", range(4))
def test_wrong_maps_of_both_sides_fail(seed: int) -> None:
    problem = planted(600, d=15, noise=0.3)
    turn = rotation(15, 40 + seed)
    # Each is right with its own partner only.
    for maps in ((problem.w, turn), (problem.w @ turn, None), (problem.w @ turn, turn.T)):
        quality = judge(problem.src, problem.tgt, *maps, seed=seed)
        assert quality.verdict == FAILED
        assert quality.fitted.share < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_noise_fails_however_long_it_is_refined(seed: int) -> None:
    x = planted(600, d=15, seed=seed, dtype="float32").src
    noise: Array = fit(np.random.default_rng(seed).standard_normal((700, 15)).astype("f4"))[1]
    w = refine(x, noise, random_rotation(15, seed + 50, x), RefineSettings(rounds=10))
    assert judge(x, noise, w, seed=seed).verdict == FAILED


def test_too_few_words_are_undecided() -> None:
    for n in (2, 10, 150):
        problem = planted(n, d=5, dtype="float32")
        quality = judge(problem.src, problem.tgt, problem.w)
        assert quality.verdict == UNDECIDED
        assert str(n) in quality.explanation
        assert np.isfinite(quality.ratio)


def test_agreement_counts_mutual_pairs() -> None:
    problem = planted(100, d=10)
    found = agreement(problem.src, problem.tgt, problem.w, 5)
    assert found.pairs == 100
    assert found.share == 1.0


def test_json_round_trip() -> None:
    problem = planted(250, d=8, dtype="float32")
    quality = judge(problem.src, problem.tgt, problem.w)
    assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality
