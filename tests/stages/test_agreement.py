"""The agreement of two spaces under a map: mutual pairs, held-out words, random rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp.maps.procrustes import Maps, orthogonality_error, reweighted
from qwp.stages.agreement import (
    REFIT_ROUNDS,
    SAME,
    Agreement,
    agreement,
    both_ways,
    from_both_sides,
    held_out,
    mean_agreement,
    mean_csls_ratio,
    per_word_ratio,
    random_rotation,
    share_alike,
    translations,
)
from qwp.stages.refinement import CslsRefinement, induce_pairs
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation


def test_random_rotations_are_orthogonal_and_others_for_other_numbers() -> None:
    like = np.zeros(1)
    drawn = [host(random_rotation(8, seed, like, number)) for seed in (0, 1) for number in (0, 1, 2)]
    assert max(orthogonality_error(w) for w in drawn) < 1e-12
    assert all(np.abs(a - b).max() > 0.1 for i, a in enumerate(drawn) for b in drawn[:i])
    assert_same(random_rotation(8, 1, like, 2), drawn[5])


def are_the_same(x: Any, y: Any, one: Maps, other: Maps) -> bool:
    return share_alike(*(translations(x, y, maps, csls_k=10) for maps in (one, other))) >= SAME


def test_maps_are_the_same_by_what_they_translate() -> None:
    problem = planted(400, d=12, noise=0.3)
    x, y, w, turn = problem.src, problem.tgt, problem.w, rotation(12, 3)
    assert are_the_same(x, y, Maps(w), Maps(w @ turn, turn))
    assert are_the_same(x, y, Maps(w), reweighted(x[problem.gold[:, 0]], y[problem.gold[:, 1]]))
    assert not are_the_same(x, y, Maps(w), Maps(w @ turn))


def test_agreement_counts_mutual_pairs() -> None:
    problem = planted(100, d=10)
    found = agreement(problem.src, problem.tgt, Maps(problem.w), 5)
    assert found.pairs == 100
    assert found.share == 1.0
    # The same in any rotated common space; no agreement if only one side is rotated.
    turn = rotation(10, 3)
    turned = agreement(problem.src, problem.tgt, Maps(problem.w @ turn, turn), 5)
    assert (turned.pairs, turned.share) == (100, 1.0)
    assert turned.mean_csls == pytest.approx(found.mean_csls)
    assert agreement(problem.src, problem.tgt, Maps(problem.w @ turn), 5).pairs < 60


def test_agreement_is_a_share_of_the_smaller_side() -> None:
    problem = planted(120, 80, d=10, noise=0.3)
    found = agreement(problem.src, problem.tgt, Maps(problem.w), 10)
    pairs = induce_pairs(problem.src, problem.tgt, Maps(problem.w), csls_k=10)
    assert (found.pairs, found.share) == (len(pairs), len(pairs) / 80)
    assert found.mean_csls == pytest.approx(float(host(pairs.scores).mean()))
    assert found.csls_per_word == pytest.approx(found.share * found.mean_csls)


def test_held_out_words_take_no_part_in_the_refit() -> None:
    problem = planted(300, d=10, noise=0.3)
    x, y = problem.src, problem.tgt
    # A re-weighted map in a rotated common space.
    maps = reweighted(x[problem.gold[:, 0]], y[problem.gold[:, 1]], 1.0, dewhiten=0.5)
    assert orthogonality_error(maps.src) > 0.1
    refitted = CslsRefinement(rounds=REFIT_ROUNDS, words=0).refine(x[::2], y, maps)
    assert refitted.tgt is None
    assert orthogonality_error(refitted.src) < 1e-10
    assert held_out(x, y, maps, 10) == agreement(x[1::2], y, refitted, 10)


def test_words_of_each_side_are_held_out() -> None:
    problem = planted(300, 260, d=10, noise=0.5)
    maps = Maps(problem.w)
    ways = [held_out(problem.src, problem.tgt, maps, 10), held_out(problem.tgt, problem.src, Maps(problem.w.T), 10)]
    for found, way in zip(from_both_sides(problem.src, problem.tgt, maps, 10), ways, strict=True):
        assert (found.pairs, found.share) == (way.pairs, way.share)
        assert found.mean_csls == pytest.approx(way.mean_csls)
    both = both_ways(problem.src, problem.tgt, maps, 10)
    assert both.pairs == ways[0].pairs + ways[1].pairs
    assert both.share == pytest.approx((ways[0].share + ways[1].share) / 2)
    assert both.mean_csls == pytest.approx((ways[0].mean_csls + ways[1].mean_csls) / 2)


def test_means_of_several() -> None:
    found = [Agreement(10, 0.2, 0.3), Agreement(13, 0.6, 0.1)]
    mean = mean_agreement(found)
    assert mean.pairs == 12
    assert (mean.share, mean.mean_csls) == pytest.approx((0.4, 0.2))
    assert mean_agreement(found, pairs=sum).pairs == 23


def test_undefined_ratios_are_zero() -> None:
    found, baseline = Agreement(10, 0.5, 0.3), Agreement(10, 0.25, 0.2)
    assert mean_csls_ratio(found, baseline) == pytest.approx(1.5)
    assert per_word_ratio(found, baseline) == pytest.approx(3.0)
    for nothing in (Agreement(0, 0.0, 0.0), Agreement(3, 0.1, -0.2), Agreement(3, 0.1, float("nan"))):
        assert mean_csls_ratio(found, nothing) == 0.0
        assert per_word_ratio(found, nothing) == 0.0
    assert mean_csls_ratio(Agreement(1, 0.1, float("inf")), baseline) == 0.0


def test_array_api_strict() -> None:
    problem = planted(60, d=5, noise=0.1)
    x, y, w = (as_strict(each) for each in (problem.src, problem.tgt, problem.w))
    ours, theirs = agreement(problem.src, problem.tgt, Maps(problem.w), 5), agreement(x, y, Maps(w), 5)
    assert (theirs.pairs, theirs.share) == (ours.pairs, ours.share)
    assert theirs.mean_csls == pytest.approx(ours.mean_csls)
    assert_close(
        translations(x, y, Maps(w), csls_k=5), translations(problem.src, problem.tgt, Maps(problem.w), csls_k=5)
    )
