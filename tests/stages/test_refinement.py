"""Refinement: dictionaries against brute force, rounds against NumPy, the effect of each setting, planted problems."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps import procrustes
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.parameters import check, parameters, with_values
from qwp.search.retrieval import CrossNeighbours, Pairs
from qwp.showing.events import Progress
from qwp.spaces import normalization
from qwp.stages import refinement as refine_module
from qwp.stages.refinement import (
    Anchors,
    CslsRefinement,
    RoundFigures,
    induce_pairs,
    pair_weights,
)
from qwp.stages.stage import Monitor, State
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import Planted, planted, rotation, space
from tests.stages.problems import problem_of, refine_rounds

Array = npt.NDArray[Any]

SETTINGS = CslsRefinement(rounds=4, csls_k=5, words=0, directions="mutual")
# The refinement of qWP: the nearest neighbours of all words, weighted pairs, and both sides mapped.
REWEIGHTED = CslsRefinement(
    rounds=4,
    csls_k=5,
    words=0,
    directions="union",
    weights="csls",
    search_map="reweighted",
    map="reweighted",
)


def near(problem: Planted, distance: float = 0.9) -> Maps:
    d = problem.w.shape[0]
    noise = distance * np.random.default_rng(7).standard_normal((d, d)) / d**0.5
    return Maps(np.asarray(polar_svd(problem.w + noise.astype(problem.w.dtype))))


def two_sided(maps: Maps) -> tuple[Array, Array]:
    """Return the maps of both sides; fail if one is missing."""
    assert maps.tgt is not None
    return host(maps.src), host(maps.tgt)


def assert_same_maps(found: Maps, expected: Maps) -> None:
    """Compare two-sided maps bit by bit."""
    assert_same(found.src, expected.src)
    assert (found.tgt is None) == (expected.tgt is None)
    if found.tgt is not None:
        assert_same(found.tgt, expected.tgt)


def similarities(maps: Maps) -> Array:
    """Return the product of both maps, (d, d), which does not depend on the axes of the common space."""
    return np.asarray(maps.src if maps.tgt is None else maps.src @ maps.tgt.T)


def pair_list(pairs: Pairs) -> list[tuple[int, int]]:
    src, tgt = arrays.to_numpy(pairs.src).tolist(), arrays.to_numpy(pairs.tgt).tolist()
    return list(zip(src, tgt, strict=True))


@pytest.mark.parametrize("directions", ["mutual", "forward", "backward", "union"])
def test_improves_a_perturbed_map(directions: str) -> None:
    problem = planted(300, 240, d=12, noise=0.1, shuffle=True, seed=1)
    start = near(problem)
    found = replace(SETTINGS, directions=directions).refine(problem.src, problem.tgt, start)
    assert problem.accuracy(start.src) < 0.85
    assert problem.accuracy(found.src) > 0.97
    assert orthogonality_error(found.src) < 1e-8
    assert found.tgt is None


def test_the_planted_map_is_a_fixed_point() -> None:
    problem = planted(100, d=8, seed=2)
    found = SETTINGS.refine(problem.src, problem.tgt, Maps(problem.w))
    assert_close(found.src, problem.w, atol=1e-9)
    # All correlations are one, so with full de-whitening both maps are rotations.
    src, tgt = two_sided(replace(REWEIGHTED, dewhiten=1.0).refine(problem.src, problem.tgt, Maps(problem.w)))
    assert_close(src @ tgt.T, problem.w, atol=1e-9)
    assert orthogonality_error(src) < 1e-9
    assert orthogonality_error(tgt) < 1e-9


# --------------------------------------------------------------------------- the dictionary


def csls_by_hand(x: Array, y: Array, k: int) -> Array:
    """Return 2 cos minus the means of the k largest entries of the row and of the column, (n, m)."""
    cosine = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    k_row, k_column = min(k, *cosine.shape), min(k, *cosine.shape)
    row = -np.sort(-cosine, axis=1)[:, :k_row].mean(axis=1)
    column = -np.sort(-cosine, axis=0)[:k_column].mean(axis=0)
    return np.asarray(2 * cosine - row[:, None] - column)


@given(n=st.integers(1, 25), m=st.integers(1, 25), k=st.integers(1, 30), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25)
def test_pairs_agree_with_brute_force(n: int, m: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 4)), rng.standard_normal((m, 4))
    src, tgt = rng.standard_normal((2, 4, 4))
    scores = csls_by_hand(x @ src, y @ tgt, k)
    forward = [(i, int(scores[i].argmax())) for i in range(n)]
    backward = [(int(scores[:, j].argmax()), j) for j in range(m)]
    expected = {
        "forward": forward,
        "backward": backward,
        "union": forward + backward,
        "mutual": [pair for pair in forward if pair in backward],
    }
    for directions, wanted in expected.items():
        pairs = induce_pairs(x, y, Maps(src, tgt), csls_k=k, directions=directions)
        assert pair_list(pairs) == wanted
        assert len(pairs) == len(wanted)
        assert_close(pairs.scores, [scores[p] for p in wanted], atol=1e-10)


def test_mutual_pairs_of_a_known_case() -> None:
    # Three words in the plane: the nearest neighbour of the third source word prefers another one.
    degrees = np.deg2rad([[0.0, 90.0, 80.0], [2.0, 91.0, 200.0]])
    x, y = (np.stack([np.cos(a), np.sin(a)], axis=1) for a in degrees)
    pairs = induce_pairs(x, y, Maps(np.eye(2)), csls_k=1)
    assert pair_list(pairs) == [(0, 0), (1, 1)]
    forward = induce_pairs(x, y, Maps(np.eye(2)), csls_k=1, directions="forward")
    assert pair_list(forward) == [(0, 0), (1, 1), (2, 1)]


def test_the_true_map_gives_the_gold_pairs() -> None:
    problem = planted(120, d=8, shuffle=True, seed=3)
    gold = {tuple(pair) for pair in problem.gold.tolist()}
    turn = rotation(8, 5)
    for maps in (Maps(problem.w), Maps(problem.w @ turn, turn)):
        assert set(pair_list(induce_pairs(problem.src, problem.tgt, maps, csls_k=5))) == gold


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_rare_words_are_left_out(settings: CslsRefinement) -> None:
    problem = planted(150, 120, d=8, seed=3)
    limited = replace(settings, rounds=3, words=50)
    for figures, _, pairs in limited.iterate(problem.src, problem.tgt, Maps(problem.w)):
        assert figures.n_words == 50
        assert set(pair_list(pairs)) == {(i, i) for i in range(50)}
    # Rows beyond the limit have no effect.
    src, tgt = problem.src.copy(), problem.tgt.copy()
    src[50:], tgt[50:] = src[:1], tgt[:1]
    assert_same_maps(limited.refine(src, tgt, near(problem)), limited.refine(problem.src, problem.tgt, near(problem)))
    # Zero, or more than all words, means all words.
    for words in (0, 999):
        everything = replace(limited, words=words, directions="forward", rounds=1)
        ((figures, _, pairs),) = everything.iterate(problem.src, problem.tgt, Maps(problem.w))
        assert figures.n_words == len(pairs) == 150


# --------------------------------------------------------------------------- rounds


def test_figures_and_the_map_of_each_round() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    start = near(problem)
    seen: list[tuple[RoundFigures, Maps]] = []
    final = refine_rounds(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, maps: seen.append((f, maps)))
    assert [(f.round, f.n_rounds, f.n_words) for f, _ in seen] == [(i, 4, 150) for i in (1, 2, 3, 4)]
    assert_same_maps(seen[-1][1], final)
    maps = start
    for figures, after in seen:
        pairs = induce_pairs(problem.src, problem.tgt, maps, csls_k=5)
        assert figures.n_pairs == len(pairs)
        assert figures.mean_csls == pytest.approx(float(host(pairs.scores).mean()))
        maps = Maps(procrustes.procrustes(problem.src[host(pairs.src)], problem.tgt[host(pairs.tgt)]))
        assert_same_maps(after, maps)
    assert seen[-1][0].n_pairs > seen[0][0].n_pairs


@pytest.mark.parametrize("kind", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_the_rounds_are_those_of_refine(kind: CslsRefinement) -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    seen = list(kind.iterate(problem.src, problem.tgt, near(problem)))
    figures: list[RoundFigures] = []
    final = refine_rounds(problem.src, problem.tgt, near(problem), kind, callback=lambda f, _: figures.append(f))
    assert [f for f, _, _ in seen] == figures
    assert_same_maps(seen[-1][1], final)
    for figure, _, pairs in seen:
        assert figure.n_pairs == len(set(pair_list(pairs)))
        assert figure.mean_csls == pytest.approx(float(host(pairs.scores).mean()))
        # Mutual pairs occur twice and are counted once.
        if kind.directions == "union":
            assert len(pairs) == 150 + 120
            assert 150 <= figure.n_pairs < 250


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
@pytest.mark.parametrize("done", [1, 3])
def test_a_resumed_run_ends_at_the_same_maps(done: int, settings: CslsRefinement) -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4, dtype="float32")
    settings = replace(settings, first_words=60)
    seen: list[tuple[RoundFigures, Maps]] = []
    final = refine_rounds(problem.src, problem.tgt, near(problem), settings, callback=lambda f, m: seen.append((f, m)))
    before, begun = seen[done - 1]
    # The value that a finished round chose is fixed for later rounds.
    known = replace(settings, dewhiten=before.dewhiten) if done >= settings.choosing_round > 0 else settings
    figures: list[RoundFigures] = []
    resumed = refine_rounds(
        problem.src, problem.tgt, begun, known, first_round=done, callback=lambda f, _: figures.append(f)
    )
    assert_same_maps(resumed, final)
    assert final.src.dtype == np.float32
    # The words of a round depend on its number, not on how many rounds this call makes.
    assert [f.round for f in figures] == list(range(done + 1, 5))
    assert [f.n_words for f in figures] == [settings.words_of_round(i, 150) for i in range(done + 1, 5)]
    # The source map alone is a different state.
    if settings.map == "reweighted" and done < 4:
        alone = refine_rounds(problem.src, problem.tgt, Maps(begun.src), known, first_round=done)
        assert np.abs(similarities(alone) - similarities(final)).max() > 1e-3


@pytest.mark.parametrize("kind", ["orthogonal", "reweighted"])
def test_additional_rounds_continue_while_the_score_grows(kind: str) -> None:
    problem = planted(400, 400, d=20, noise=0.5, shuffle=True, seed=4)
    settings = replace(REWEIGHTED, rounds=1, map=kind)
    seen: list[tuple[RoundFigures, Maps]] = []
    begin = near(problem, 1.5)
    final = refine_rounds(problem.src, problem.tgt, begin, settings, more=30, callback=lambda f, m: seen.append((f, m)))
    figures = [f for f, _ in seen]
    assert [f.last for f in figures] == [False] * (len(figures) - 1) + [True]
    assert 3 < len(figures) < 31
    gains = [after.csls_per_word / before.csls_per_word for before, after in pairwise(figures)]
    assert min(gains[:-1]) >= settings.least_gain > gains[-1]
    # Additional rounds improve the score, and only the last map has the final kind.
    assert problem.accuracy(host(similarities(final))) > problem.accuracy(host(similarities(seen[0][1]))) + 0.05
    assert (final.tgt is None) == (kind == "orthogonal")
    assert all(maps.tgt is not None for _, maps in seen[:-1])
    # The last allowed round is marked as last, and an interrupted run continues to the same maps.
    cut = [f for f, *_ in settings.iterate(problem.src, problem.tgt, begin, more=2)]
    assert [(f.round, f.n_rounds, f.last) for f in cut] == [(1, 1, False), (2, 2, False), (3, 3, True)]
    before, begun = seen[1]
    known = replace(settings, dewhiten=before.dewhiten)
    options: dict[str, Any] = {"first_round": 2, "more": 30, "reached": before.csls_per_word}
    *_, (_, resumed, _) = known.iterate(problem.src, problem.tgt, begun, **options)
    assert_same_maps(resumed, final)


def test_no_further_rounds_end_as_ever() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    figures = [f for f, *_ in REWEIGHTED.iterate(problem.src, problem.tgt, near(problem))]
    assert [f.last for f in figures] == [False, False, False, True]


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_initial_maps_may_have_a_rotated_common_space(settings: CslsRefinement) -> None:
    # The same map in a rotated common space: x (w turn) and y turn.
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    turn, start = rotation(8, 21), near(problem)
    figures: list[RoundFigures] = []
    expected = refine_rounds(problem.src, problem.tgt, start, settings, callback=lambda f, _: figures.append(f))
    turned: list[RoundFigures] = []
    found = refine_rounds(
        problem.src,
        problem.tgt,
        Maps(start.src @ turn, turn),
        settings,
        callback=lambda f, _: turned.append(f),
    )
    # After the first round the initial common space has no effect.
    assert_close(similarities(found), similarities(expected), atol=1e-9)
    for one, two in zip(figures, turned, strict=True):
        assert (one.round, one.n_pairs) == (two.round, two.n_pairs)
        assert one.mean_csls == pytest.approx(two.mean_csls)


def test_a_source_map_alone_does_not_fit_a_rotated_target() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    turn, start = rotation(8, 21), near(problem)
    once = replace(SETTINGS, rounds=1)
    # The rotated source map alone is wrong.
    assert problem.accuracy(once.refine(problem.src, problem.tgt, Maps(start.src @ turn)).src) < 0.5
    assert problem.accuracy(once.refine(problem.src, problem.tgt, Maps(start.src @ turn, turn)).src) > 0.8


def test_initial_maps_need_not_be_rotations() -> None:
    # Both sides are transformed alike, so the first dictionary is correct.
    problem = planted(120, d=8, seed=3)
    stretch = np.diag(np.linspace(1.0, 0.5, 8)) @ rotation(8, 22)
    start = Maps(problem.w @ stretch, stretch)
    found = replace(SETTINGS, rounds=1).refine(problem.src, problem.tgt, start)
    assert found.tgt is None
    assert_close(found.src, problem.w, atol=1e-9)


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_zero_rounds_return_the_initial_maps(settings: CslsRefinement) -> None:
    problem = planted(30, d=4)
    start = near(problem)
    assert replace(settings, rounds=0).refine(problem.src, problem.tgt, start) is start


def test_without_pairs_the_maps_stay(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Rounding of nearly equal scores can leave no mutual pair."""
    problem = planted(2, d=4)
    start = near(problem)
    turn, level = np.array([1, 0]), np.zeros(2)
    monkeypatch.setattr(refine_module, "neighbours", lambda *_: CrossNeighbours(turn, level, turn[::-1], level))
    called: list[int] = []
    with caplog.at_level(logging.WARNING, logger="qwp"):
        found = refine_rounds(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, _: called.append(f.round))
    assert found is start
    assert called == []
    assert "round 1 found no pair" in caplog.text


@pytest.mark.parametrize("weights", ["equal", "csls"])
def test_one_word_on_each_side(weights: str) -> None:
    # Its CSLS is zero, so weights by CSLS would all be zero.
    x, y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    for kind in (SETTINGS, REWEIGHTED):
        maps = replace(kind, weights=weights).refine(x, y, Maps(np.eye(2)))
        left, right = x @ maps.src, y if maps.tgt is None else y @ maps.tgt
        assert_close(left, right, atol=1e-12)
        assert float(np.linalg.norm(left)) > 0.1


def test_array_api_strict() -> None:
    problem = planted(60, 50, d=5, noise=0.1, seed=5)
    start = near(problem)
    x, y, w = (as_strict(z) for z in (problem.src, problem.tgt, start.src))
    for directions in ("mutual", "forward", "backward", "union"):
        for kind in (SETTINGS, REWEIGHTED):
            options = replace(kind, rounds=2, words=40, first_words=20, directions=directions)
            strict = refine_rounds(x, y, Maps(w), options, callback=lambda f, _: None)
            ours = options.refine(problem.src, problem.tgt, start)
            found = Maps(*(host(side) for side in strict))
            assert_close(similarities(found), similarities(ours), atol=1e-9)


# --------------------------------------------------------------------------- what the settings do


@given(
    n_rounds=st.integers(1, 20),
    first=st.integers(0, 3000),
    most=st.integers(0, 3000),
    available=st.integers(1, 3000),
)
def test_words_grow_from_the_first_to_all(n_rounds: int, first: int, most: int, available: int) -> None:
    settings = CslsRefinement(rounds=n_rounds, words=most, first_words=first)
    everything = min(most, available) if most else available
    words = [settings.words_of_round(number, available) for number in range(1, n_rounds + 1)]
    assert words[-1] == everything
    assert all(a <= b for a, b in pairwise(words))
    if 0 < first < everything and n_rounds > 1:
        assert words[0] == first
    else:
        assert set(words) == {everything}


def test_words_grow_by_a_constant_factor() -> None:
    settings = CslsRefinement(rounds=5, words=0, first_words=100)
    assert [settings.words_of_round(number, 1600) for number in range(1, 6)] == [100, 200, 400, 800, 1600]
    capped = replace(settings, words=900, rounds=3)
    assert [capped.words_of_round(number, 1600) for number in (1, 2, 3)] == [100, 300, 900]


def test_the_first_rounds_see_the_frequent_words_alone() -> None:
    problem = planted(400, 300, d=8, noise=0.2, seed=4)
    settings = replace(SETTINGS, rounds=3, first_words=100)
    for kind in (settings, replace(REWEIGHTED, rounds=3, first_words=100)):
        seen = list(kind.iterate(problem.src, problem.tgt, near(problem)))
        assert [figures.n_words for figures, _, _ in seen] == [100, 200, 400]
        # Both sides have the same limit, and the smaller one is used up.
        for (_, _, pairs), (src, tgt) in zip(seen, [(100, 100), (200, 200), (400, 300)], strict=True):
            assert host(pairs.src).max() < src
            assert host(pairs.tgt).max() < tgt
        assert host(seen[-1][2].src).max() >= 200
    # The first map is that of the problem cut to these words.
    first = next(replace(settings, first_words=0).iterate(problem.src[:100], problem.tgt[:100], near(problem)))
    assert_same_maps(next(settings.iterate(problem.src, problem.tgt, near(problem)))[1], first[1])


def reweighted_by_hand(x: Array, y: Array, weights: Array, power: float, dewhiten: float) -> Maps:
    """Return re-weighted maps of matched rows x, y (p, d), by the SVD of the weighted rows."""
    (_, sx, vx), (_, sy, vy) = (np.linalg.svd(np.sqrt(weights)[:, None] * side, full_matrices=False) for side in (x, y))
    white_x, white_y = vx.T / sx @ vx, vy.T / sy @ vy
    u, s, vt = np.linalg.svd(white_x @ (x * weights[:, None]).T @ y @ white_y)
    back_x, back_y = vx.T * sx**dewhiten @ vx, vy.T * sy**dewhiten @ vy
    stretch = np.diag(s**power)
    return Maps(white_x @ u @ stretch @ u.T @ back_x @ u, white_y @ vt.T @ stretch @ vt @ back_y @ vt.T)


@pytest.mark.parametrize("weights", ["equal", "csls"])
@pytest.mark.parametrize("directions", ["mutual", "union"])
@pytest.mark.parametrize("kind", ["orthogonal", "reweighted"])
def test_a_round_by_hand(kind: str, directions: str, weights: str) -> None:
    problem = planted(150, 120, d=8, noise=0.5, shuffle=True, seed=4)
    turn = rotation(8, 3)
    start = Maps(near(problem).src @ turn, turn)
    settings = CslsRefinement(
        rounds=1,
        csls_k=5,
        words=100,
        directions=directions,
        weights=weights,
        map=kind,
        reweight=0.8,
        dewhiten=0.6,
    )
    found = settings.refine(problem.src, problem.tgt, start)
    x, y = problem.src[:100], problem.tgt[:100]
    scores = csls_by_hand(x @ start.src, y @ turn, 5)
    forward = [(i, int(scores[i].argmax())) for i in range(100)]
    backward = [(int(scores[:, j].argmax()), j) for j in range(100)]
    pairs = forward + backward if directions == "union" else [pair for pair in forward if pair in backward]
    src, tgt = np.array(pairs).T
    share = np.maximum(scores[src, tgt], 0.0) if weights == "csls" else np.ones(len(pairs))
    if kind == "orthogonal":
        assert found.tgt is None
        assert_close(found.src, polar_svd((x[src] * share[:, None]).T @ y[tgt]), atol=1e-9)
    else:
        expected = reweighted_by_hand(x[src], y[tgt], share, 0.8, 0.6)
        assert_close(similarities(found), similarities(expected), atol=1e-9)


def test_the_maps_between_the_rounds_and_after_them_are_of_the_kinds_asked_for() -> None:
    problem = planted(150, 120, d=8, noise=0.3, shuffle=True, seed=4)
    for between, last in (("reweighted", "orthogonal"), ("orthogonal", "reweighted")):
        settings = replace(REWEIGHTED, search_map=between, map=last)
        maps = [maps for _, maps, _ in settings.iterate(problem.src, problem.tgt, near(problem))]
        assert [m.tgt is None for m in maps] == [kind == "orthogonal" for kind in [between] * 3 + [last]]
        # A resumed run makes the right round its last.
        [only] = [maps for _, maps, _ in settings.iterate(problem.src, problem.tgt, near(problem), first_round=3)]
        assert (only.tgt is None) == (last == "orthogonal")


@pytest.mark.parametrize(("n", "kind"), [(7, "orthogonal"), (8, "orthogonal"), (9, "reweighted")])
def test_with_no_more_words_than_dimensions_the_map_is_orthogonal(n: int, kind: str) -> None:
    problem = planted(n, d=8, noise=0.1, seed=4)
    found = REWEIGHTED.refine(problem.src, problem.tgt, Maps(problem.w))
    assert (found.tgt is None) == (kind == "orthogonal")
    assert (orthogonality_error(found.src) < 1e-8) == (kind == "orthogonal")
    if kind == "orthogonal":
        plain = replace(REWEIGHTED, search_map="orthogonal", map="orthogonal")
        assert_same_maps(found, plain.refine(problem.src, problem.tgt, Maps(problem.w)))


def test_every_round_has_words_enough_or_an_orthogonal_map(caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(160, d=20, noise=0.1, seed=4)
    settings = replace(REWEIGHTED, rounds=5, first_words=10)
    with caplog.at_level(logging.INFO, logger="qwp"):
        seen = list(settings.iterate(problem.src, problem.tgt, near(problem, 0.3)))
    assert [figures.n_words for figures, _, _ in seen] == [10, 20, 40, 80, 160]
    assert [maps.tgt is None for _, maps, _ in seen] == [True, True, False, False, False]
    assert [orthogonality_error(maps.src) < 1e-8 for _, maps, _ in seen] == [True, True, False, False, False]
    assert caplog.text.count("too few to re-weight 20 dimensions") == 2
    # Words beyond the limit have no effect.
    assert replace(REWEIGHTED, words=20).refine(problem.src, problem.tgt, near(problem, 0.3)).tgt is None


def test_an_orthogonal_map_after_reweighted_rounds() -> None:
    problem = planted(300, 240, d=12, noise=0.3, shuffle=True, seed=1)
    settings = replace(REWEIGHTED, map="orthogonal", first_words=100)
    found = settings.refine(problem.src, problem.tgt, near(problem))
    assert found.tgt is None
    assert orthogonality_error(found.src) < 1e-10
    assert problem.accuracy(found.src) > problem.accuracy(near(problem).src)
    # The dictionaries differ from those of plain rounds, because the maps differ.
    plain = replace(settings, search_map="orthogonal").refine(problem.src, problem.tgt, near(problem))
    assert np.abs(host(found.src) - host(plain.src)).max() > 1e-4


def test_pair_weights() -> None:
    rows = np.arange(4)
    pairs = Pairs(rows, rows, np.array([0.3, -0.2, 0.0, 0.7]))
    assert pair_weights(pairs, "equal") is None
    assert_same(pair_weights(pairs, "csls"), [0.3, 0.0, 0.0, 0.7])
    assert_same(pairs.scores, [0.3, -0.2, 0.0, 0.7])
    # Without a positive CSLS all pairs have equal weight.
    for scores in ([-0.1, -0.2, 0.0, -0.3], [0.0, 0.0, 0.0, 0.0]):
        assert pair_weights(Pairs(rows, rows, np.array(scores)), "csls") is None


@pytest.mark.parametrize("kind", ["orthogonal", "reweighted"])
def test_pairs_with_a_negative_csls_have_no_weight(kind: str) -> None:
    problem = planted(100, d=6, noise=0.1, seed=3)
    rows, scores = np.arange(100), np.random.default_rng(0).uniform(0.1, 1.0, 100)
    wrong = np.roll(rows, 1)

    def fitted_to(src: Array, tgt: Array, scores: Array) -> Maps:
        weights = pair_weights(Pairs(src, tgt, scores), "csls")
        return procrustes.fitted(kind, problem.src[src], problem.tgt[tgt], weights=weights)

    right = fitted_to(rows, rows, scores)
    both = np.append(rows, rows), np.append(rows, wrong)
    for useless in (np.zeros(100), -scores):
        found = fitted_to(*both, np.append(scores, useless))
        assert_close(similarities(found), similarities(right), atol=1e-10)
    assert np.abs(similarities(fitted_to(*both, np.append(scores, scores))) - similarities(right)).max() > 0.01
    # All scores are negative, so all pairs have equal weight.
    negative = fitted_to(rows, rows, -scores)
    assert_close(similarities(negative), similarities(fitted_to(rows, rows, np.ones(100))), atol=1e-10)


# --------------------------------------------------------------------------- where the re-weighted rounds win


def with_noise_of_its_own_on_each_side(n: int, d: int, seed: int) -> Planted:
    """Return a space and its rotated copy, each with noise in a quarter of its directions; row i matches row i."""
    rng = np.random.default_rng(seed)
    words, w = space(n, d, seed), rotation(d, seed + 2)
    blurred = [
        words + 0.3 * rng.standard_normal((n, d // 4)) @ rotation(d, seed + 11 + side)[: d // 4] for side in (0, 1)
    ]
    src, tgt = (host(normalization.fit(side)[1]) for side in (blurred[0], blurred[1] @ w))
    return Planted(src, tgt, w, np.stack([np.arange(n)] * 2, axis=1))


def csls_accuracy(problem: Planted, maps: Maps) -> float:
    """Return the share of the words whose CSLS translation is correct."""
    found = induce_pairs(problem.src, problem.tgt, maps, directions="forward")
    return float(np.mean(host(found.tgt) == problem.gold[:, 1]))


@pytest.mark.parametrize("seed", [0, 1])
def test_reweighted_rounds_beat_plain_ones_where_each_side_has_noise_of_its_own(seed: int) -> None:
    problem = with_noise_of_its_own_on_each_side(500, 20, seed)

    def refined(kind: CslsRefinement) -> float:
        kind = replace(kind, rounds=5, csls_k=10)
        return csls_accuracy(problem, kind.refine(problem.src, problem.tgt, near(problem, 0.5)))

    # Measured: 0.33 to 0.40 and 0.82 to 0.90.
    plain, ours = refined(SETTINGS), refined(REWEIGHTED)
    assert ours > plain + 0.3
    # No rotation is accurate, not even the planted one: the noisy directions need smaller weights.
    assert ours > csls_accuracy(problem, Maps(problem.w)) + 0.2
    # The maps of the searches matter more than the last map, so an orthogonal last map gains, too.
    assert ours > refined(replace(REWEIGHTED, search_map="orthogonal")) + 0.2
    both_orthogonal = replace(REWEIGHTED, search_map="orthogonal", map="orthogonal")
    assert refined(replace(REWEIGHTED, map="orthogonal")) > refined(both_orthogonal) + 0.03


# --------------------------------------------------------------------------- the stage


def begun(maps: Maps, **fields: Any) -> State:
    """Return the state before the first round."""
    return State(maps=maps, stage="refine", **fields)


def watched() -> tuple[list[Progress], list[State], Monitor]:
    """Return a monitor, its events and its saved states."""
    events: list[Progress] = []
    saved: list[State] = []
    return events, saved, Monitor(events.append, lambda state, _: saved.append(state))


def maps_of(state: State) -> Maps:
    assert state.maps is not None
    return state.maps


def test_the_stage_makes_the_rounds_and_reports_each() -> None:
    planted_problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    start = near(planted_problem)
    settings = replace(SETTINGS, rounds=3, words=100)
    events, saved, monitor = watched()
    found = settings(problem_of(planted_problem), begun(start, history=({"stage": "loop", "step": 9},)), monitor)
    assert_same_maps(maps_of(found), settings.refine(planted_problem.src, planted_problem.tgt, start))
    assert [(record["stage"], record["step"]) for record in found.history] == [
        ("loop", 9),
        *(("refine", step) for step in (1, 2, 3)),
    ]
    assert {record["n_words"] for record in found.history[1:]} == {100}
    assert all(0 < record["n_pairs"] <= 100 for record in found.history[1:])
    assert [(e.stage, e.done, e.total) for e in events] == [("refine", step, 3) for step in (1, 2, 3)]
    assert events[-1].figures == {key: v for key, v in found.history[-1].items() if key not in ("stage", "step")}
    # Every round is saved.
    assert [state.done for state in saved] == [1, 2, 3]


def test_a_stage_without_rounds_leaves_the_map() -> None:
    planted_problem = planted(100, d=8, seed=2)
    found = replace(SETTINGS, rounds=0)(problem_of(planted_problem), begun(Maps(planted_problem.w)), Monitor())
    assert_same(maps_of(found).src, planted_problem.w)
    assert found.history == ()


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_an_interrupted_stage_continues_with_both_maps(settings: CslsRefinement) -> None:
    planted_problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    problem = problem_of(planted_problem)
    _, saved, monitor = watched()
    whole = settings(problem, begun(near(planted_problem)), monitor)
    assert (maps_of(whole).tgt is None) == (settings is SETTINGS)
    for state in saved:
        events, _, monitor = watched()
        resumed = settings(problem, state, monitor)
        assert_same_maps(maps_of(resumed), maps_of(whole))
        assert resumed.history == whole.history
        assert [event.done for event in events] == list(range(state.done + 1, settings.rounds + 1))


FURTHER = replace(REWEIGHTED, rounds=1, further_rounds=20)


def test_interrupted_additional_rounds_have_the_same_result() -> None:
    planted_problem = planted(200, d=12, noise=0.9, seed=4)
    problem = problem_of(planted_problem, ordered=False)
    _, saved, monitor = watched()
    whole = FURTHER(problem, begun(near(planted_problem, 1.5), accepted=False), monitor)
    assert 2 < whole.done < 21
    for state in saved:
        resumed = FURTHER(problem, state, Monitor())
        assert_same_maps(maps_of(resumed), maps_of(whole))
        assert resumed.history == whole.history


@pytest.mark.parametrize(("ordered", "accepted"), [(True, False), (False, True), (False, None)])
def test_no_further_rounds_for_words_or_after_a_search_that_succeeded(ordered: bool, accepted: bool | None) -> None:
    planted_problem = planted(200, d=12, noise=0.9, seed=4)
    start = begun(near(planted_problem, 1.5), accepted=accepted)
    assert FURTHER(problem_of(planted_problem, ordered=ordered), start, Monitor()).done == 1


def test_all_unordered_items_take_part_from_the_first_round() -> None:
    planted_problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    settings = replace(SETTINGS, rounds=2, first_words=60)
    for ordered, words in ((True, [60, 150]), (False, [150, 150])):
        found = settings(problem_of(planted_problem, ordered=ordered), begun(near(planted_problem)), Monitor())
        assert [record["n_words"] for record in found.history] == words


# --------------------------------------------------------------------------- what is refused


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"refine_directions": "both"},
            "refine_directions='both' is not known; expected one of mutual, forward, backward, union",
        ),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to 1,000,000"),
        ({"csls_k": 0}, "csls_k=0 is out of range; expected 1 to"),
        ({"refine_words": -5}, "refine_words=-5 is out of range; expected 0 to 100,000,000"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known; expected one of equal, csls"),
        ({"refine_first_words": -1}, "refine_first_words=-1 is out of range; expected 0 to"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"map": "affine"}, "map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"reweight": -0.5}, r"reweight=-0\.5 is out of range; expected 0 to 10"),
        ({"reweight": 10.5}, r"reweight=10\.5 is out of range; expected 0 to 10"),
        ({"reweight": float("nan")}, "reweight=nan is out of range"),
        ({"dewhiten": -0.1}, r"dewhiten=-0\.1 is out of range; expected 0 to 1"),
        ({"dewhiten": 1.5}, r"dewhiten=1\.5 is out of range; expected 0 to 1"),
    ]
    check(SETTINGS)
    for options, message in cases:
        assert options.keys() <= parameters(SETTINGS).keys()
        with pytest.raises(InputError, match=message):
            check(with_values(SETTINGS, options))


def test_a_reweighted_map_needs_a_round() -> None:
    message = "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
    with pytest.raises(InputError, match=message):
        check(replace(SETTINGS, rounds=0, map="reweighted"))
    check(replace(SETTINGS, rounds=1, map="reweighted"))
    # If re-weighting is the default of the method, no rounds are no error.
    unasked = replace(SETTINGS, rounds=0, map="reweighted", map_is_default=True)
    check(unasked)
    start = begun(near(planted(50, d=4)))
    assert_same_maps(maps_of(unasked(problem_of(planted(50, d=4)), start, Monitor())), maps_of(start))


def test_anchors_replace_the_induced_pairs_of_their_words() -> None:
    pairs = Pairs(np.array([0, 1, 2, 3]), np.array([5, 6, 7, 8]), np.array([0.2, 0.4, 0.6, -0.2]))
    anchors = Anchors(np.array([0, 9, 1]), np.array([7, 1, 99]), weight=3.0)
    found = anchors.among(pairs, (10, 10))
    # The anchors replace pairs of word 0 and target 7; the third anchor is beyond the words of the round.
    assert pair_list(found) == [(1, 6), (3, 8), (0, 7), (9, 1)]
    assert_close(found.scores, np.array([0.4, -0.2, 0.9, 0.9]), atol=1e-12)


def test_rounds_hold_on_to_anchors() -> None:
    """Wrong anchors move the map towards them, and larger weights move it further."""
    problem = planted(300, d=12, noise=0.05, seed=1)
    rows = np.arange(30)
    wrong = rotation(12, 9)
    tgt = problem.tgt.copy()
    tgt[problem.gold[rows, 1]] = problem.tgt[problem.gold[rows, 1]] @ wrong

    def distance(weight: float | None) -> float:
        pairs = None if weight is None else Anchors(problem.gold[rows, 0], problem.gold[rows, 1], weight)
        maps = refine_rounds(problem.src, tgt, Maps(problem.w), replace(SETTINGS, weights="csls"), anchors=pairs)
        src, image = problem.src[problem.gold[rows, 0]] @ host(maps.src), tgt[problem.gold[rows, 1]]
        return float(np.linalg.norm(src - image))

    assert distance(100.0) < distance(1.0)
    assert distance(0.0) <= distance(None) + 1e-3


def test_anchors_with_array_api_strict() -> None:
    problem = planted(60, d=6, noise=0.1, seed=2)
    anchors = Anchors(problem.gold[:5, 0], problem.gold[:5, 1], weight=3.0)
    expected = refine_rounds(problem.src, problem.tgt, near(problem), REWEIGHTED, anchors=anchors)
    strict = Maps(as_strict(near(problem).src))
    found = refine_rounds(as_strict(problem.src), as_strict(problem.tgt), strict, REWEIGHTED, anchors=anchors)
    assert_close(similarities(Maps(*(host(side) for side in found))), similarities(expected), atol=1e-9)
