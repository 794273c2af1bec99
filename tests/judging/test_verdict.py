"""The verdict without a dictionary: it must tell a real alignment from one that only agrees with itself."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qwp.judging import verdict as quality_module
from qwp.judging.verdict import (
    FAILED,
    QUICK_YARDSTICK,
    SUCCEEDED,
    UNDECIDED,
    YARDSTICK,
    Agreement,
    Quality,
    agreement,
    judge,
    random_rotation,
)
from qwp.maps.procrustes import Maps, orthogonality_error, reweighted
from qwp.maps.refinement import WEIGHTED, RefineSettings, refine
from qwp.spaces.normalization import fit
from tests.libraries import host
from tests.problems import Array, Planted, planted, rotation


def test_a_true_map_succeeds() -> None:
    problem = planted(600, d=15, noise=0.3, dtype="float32")
    quality = judge(problem.src, problem.tgt, Maps(problem.w))
    assert quality.verdict == SUCCEEDED
    assert quality.ratio > 1.5
    assert quality.fitted.mean_csls > quality.random.mean_csls
    assert "real" in quality.explanation


@pytest.mark.parametrize("seed", range(4))
def test_a_self_consistent_but_wrong_map_fails(seed: int) -> None:
    problem = planted(600, d=15, noise=0.3, dtype="float32")
    start = Maps(rotation(15, 100 + seed).astype("f4"))
    wrong = refine(problem.src, problem.tgt, start, RefineSettings(refine=1))
    if problem.accuracy(wrong.src) > 0.1:
        pytest.skip("refinement found the answer from a random rotation; nothing wrong to judge")
    quality = judge(problem.src, problem.tgt, wrong, seed=seed)
    assert quality.verdict == FAILED
    assert "failed" in quality.explanation


def test_maps_of_both_sides_are_judged_like_the_one_they_stand_for() -> None:
    problem = planted(600, d=15, noise=0.3)
    turn = rotation(15, 31)
    one_sided = judge(problem.src, problem.tgt, Maps(problem.w))
    two_sided = judge(problem.src, problem.tgt, Maps(problem.w @ turn, turn))
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=1e-9)
    for name in ("fitted", "random", "held_out", "held_out_random"):
        ours, theirs = getattr(two_sided, name), getattr(one_sided, name)
        assert (ours.pairs, ours.share) == (theirs.pairs, theirs.share)
        assert ours.mean_csls == pytest.approx(theirs.mean_csls)


def test_reweighted_maps_succeed_by_the_same_yardstick() -> None:
    problem = planted(600, d=15, noise=0.3)
    one_sided = judge(problem.src, problem.tgt, Maps(problem.w))
    maps = reweighted(problem.src[problem.gold[:, 0]], problem.tgt[problem.gold[:, 1]])
    two_sided = judge(problem.src, problem.tgt, maps)
    assert two_sided.verdict == SUCCEEDED
    assert two_sided.ratio == pytest.approx(one_sided.ratio, rel=0.02)
    assert two_sided.random == one_sided.random
    assert two_sided.held_out_random == one_sided.held_out_random


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_wrong_maps_of_both_sides_fail(seed: int) -> None:
    problem = planted(600, d=15, noise=0.3)
    turn = rotation(15, 40 + seed)
    # Each is right with its own partner only.
    for maps in (Maps(problem.w, turn), Maps(problem.w @ turn), Maps(problem.w @ turn, turn.T)):
        quality = judge(problem.src, problem.tgt, maps, seed=seed)
        assert quality.verdict == FAILED
        assert quality.fitted.share < 0.5


def test_held_out_words_are_judged_under_an_orthogonal_map(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever kind came in: a map that stretches must not be measured by another yardstick than a rotation.
    problem = planted(400, d=10, noise=0.3)
    maps = reweighted(problem.src[problem.gold[:, 0]], problem.tgt[problem.gold[:, 1]], 1.0, dewhiten=0.5)
    assert orthogonality_error(maps.src) > 0.1
    seen: list[tuple[int, Maps]] = []

    def watched(x: Array, y: Array, under: Maps, csls_k: int) -> Agreement:
        seen.append((x.shape[0], under))
        return agreement(x, y, under, csls_k)

    monkeypatch.setattr(quality_module, "agreement", watched)
    judge(problem.src, problem.tgt, maps)
    # The fitted maps, and two random rotations, one of which went through two refinements.
    assert [n for n, _ in seen] == [400, 400, 200, *[200] * 3]
    assert seen[0][1] is maps
    for _, under in seen[1:]:
        assert under.tgt is None
        assert orthogonality_error(under.src) < 1e-10


def yardstick_by_hand(problem: Planted, seed: int, settings: RefineSettings) -> Agreement:
    """What a random rotation reaches on the words held out, after a refinement."""
    lost = refine(problem.src, problem.tgt, Maps(random_rotation(10, seed, problem.src)), settings)
    refitted = refine(problem.src[::2], problem.tgt, lost, RefineSettings(refine=2, refine_words=0))
    return agreement(problem.src[1::2], problem.tgt, refitted, 10)


@pytest.mark.slow
def test_the_yardstick_is_a_random_rotation_after_the_refinement_that_was_asked_for() -> None:
    problem = planted(1000, d=10, noise=0.3)
    full = judge(problem.src, problem.tgt, Maps(problem.w), seed=3)
    quick = judge(problem.src, problem.tgt, Maps(problem.w), seed=3, yardstick=QUICK_YARDSTICK)
    assert (full.fitted, full.random, full.held_out) == (quick.fitted, quick.random, quick.held_out)
    assert full.held_out_random == yardstick_by_hand(problem, 3, YARDSTICK)
    assert quick.held_out_random == yardstick_by_hand(problem, 3, QUICK_YARDSTICK)
    for quality in (full, quick):
        assert quality.ratio == pytest.approx(quality.held_out.mean_csls / quality.held_out_random.mean_csls)
    # The whole refinement of qWP leads elsewhere.
    assert full.held_out_random != quick.held_out_random


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 999])
def test_with_few_words_the_best_of_several_yardsticks_counts(n: int) -> None:
    problem = planted(n, d=10, noise=0.3)
    full = judge(problem.src, problem.tgt, Maps(problem.w), seed=3)
    half = replace(YARDSTICK, refine=5)
    found = [yardstick_by_hand(problem, *each) for each in ((3, half), (4, half), (3, QUICK_YARDSTICK))]
    assert full.held_out_random == max(found, key=lambda one: one.mean_csls)
    assert len({one.mean_csls for one in found}) == 3
    # What is shown of a random rotation as it is stays that of the first.
    assert full.random == agreement(problem.src, problem.tgt, Maps(random_rotation(10, 3, problem.src)), 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_noise_fails_however_long_it_is_refined(seed: int) -> None:
    x = planted(600, d=15, seed=seed, dtype="float32").src
    noise: Array = host(fit(np.random.default_rng(seed).standard_normal((700, 15)).astype("f4"))[1])
    start = Maps(random_rotation(15, seed + 50, x))
    plain = RefineSettings(refine=10)
    ours = replace(WEIGHTED, refine_words=plain.refine_words, refine_first_words=200)
    for settings in (plain, ours):
        maps = refine(x, noise, start, settings)
        assert judge(x, noise, maps, seed=seed).verdict == FAILED


def test_too_few_words_are_undecided() -> None:
    for n in (2, 10, 150):
        problem = planted(n, d=5, dtype="float32")
        quality = judge(problem.src, problem.tgt, Maps(problem.w))
        assert quality.verdict == UNDECIDED
        assert str(n) in quality.explanation
        assert np.isfinite(quality.ratio)


def test_agreement_counts_mutual_pairs() -> None:
    problem = planted(100, d=10)
    found = agreement(problem.src, problem.tgt, Maps(problem.w), 5)
    assert found.pairs == 100
    assert found.share == 1.0
    # The same in any other common space, and nothing of it where one side is left behind.
    turn = rotation(10, 3)
    turned = agreement(problem.src, problem.tgt, Maps(problem.w @ turn, turn), 5)
    assert (turned.pairs, turned.share) == (100, 1.0)
    assert turned.mean_csls == pytest.approx(found.mean_csls)
    assert agreement(problem.src, problem.tgt, Maps(problem.w @ turn), 5).pairs < 60


def test_json_round_trip() -> None:
    problem = planted(250, d=8, dtype="float32")
    quality = judge(problem.src, problem.tgt, Maps(problem.w))
    assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality
