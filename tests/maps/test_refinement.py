"""Refinement: the dictionary against brute force, rounds against NumPy, what each setting does, planted problems."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps import procrustes
from qwp.maps import refinement as refine_module
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.maps.refinement import RefineSettings, RoundFigures, induce_pairs, pair_weights, refine, rounds
from qwp.search.retrieval import Pairs
from qwp.spaces import normalization
from tests.problems import Planted, planted, rotation, space

Array = npt.NDArray[Any]

SETTINGS = RefineSettings(rounds=4, csls_k=5, max_rank=0, directions="mutual")
# As qWP refines: every word brings its best partner, the better ones count more, and both sides are mapped.
REWEIGHTED = RefineSettings(
    rounds=4, csls_k=5, max_rank=0, directions="union", weights="csls", learn_map="reweighted", map="reweighted"
)


def near(problem: Planted, distance: float = 0.9) -> Maps:
    d = problem.w.shape[0]
    noise = distance * np.random.default_rng(7).standard_normal((d, d)) / d**0.5
    return Maps(np.asarray(polar_svd(problem.w + noise.astype(problem.w.dtype))))


def two_sided(maps: Maps) -> tuple[Array, Array]:
    """Maps that are there on both sides."""
    assert maps.tgt is not None
    return maps.src, maps.tgt


def assert_same_maps(found: Maps, expected: Maps) -> None:
    """Equal to the last bit, on both sides."""
    np.testing.assert_array_equal(found.src, expected.src)
    assert (found.tgt is None) == (expected.tgt is None)
    if found.tgt is not None:
        np.testing.assert_array_equal(found.tgt, expected.tgt)


def similarities(maps: Maps) -> Array:
    """What the maps make of any two rows, (d, d): the same whichever way the axes of the common space point."""
    return np.asarray(maps.src if maps.tgt is None else maps.src @ maps.tgt.T)


def pair_list(pairs: Pairs) -> list[tuple[int, int]]:
    src, tgt = arrays.to_numpy(pairs.src).tolist(), arrays.to_numpy(pairs.tgt).tolist()
    return list(zip(src, tgt, strict=True))


@pytest.mark.parametrize("directions", ["mutual", "forward", "backward", "union"])
def test_improves_a_perturbed_map(directions: str) -> None:
    problem = planted(300, 240, d=12, noise=0.1, shuffle=True, seed=1)
    start = near(problem)
    found = refine(problem.src, problem.tgt, start, RefineSettings(4, 5, 0, directions))
    assert problem.accuracy(start.src) < 0.85
    assert problem.accuracy(found.src) > 0.97
    assert orthogonality_error(found.src) < 1e-8
    assert found.tgt is None


def test_the_planted_map_is_kept() -> None:
    problem = planted(100, d=8, seed=2)
    found = refine(problem.src, problem.tgt, Maps(problem.w), SETTINGS)
    np.testing.assert_allclose(found.src, problem.w, atol=1e-9)
    # Correlations of one stretch nothing: with all of the extent put back the two maps are rotations, too.
    src, tgt = two_sided(refine(problem.src, problem.tgt, Maps(problem.w), replace(REWEIGHTED, dewhiten=1.0)))
    np.testing.assert_allclose(src @ tgt.T, problem.w, atol=1e-9)
    assert orthogonality_error(src) < 1e-9
    assert orthogonality_error(tgt) < 1e-9


# --------------------------------------------------------------------------- the dictionary


def csls_by_hand(x: Array, y: Array, k: int) -> Array:
    """2 cos - mean of the k largest in the row - mean of the k largest in the column. Returns (n, m)."""
    cosine = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    k_row, k_column = min(k, *cosine.shape), min(k, *cosine.shape)
    row = -np.sort(-cosine, axis=1)[:, :k_row].mean(axis=1)
    column = -np.sort(-cosine, axis=0)[:k_column].mean(axis=0)
    return np.asarray(2 * cosine - row[:, None] - column)


@given(n=st.integers(1, 25), m=st.integers(1, 25), k=st.integers(1, 30), seed=st.integers(0, 2**31 - 1))
@settings(deadline=None, max_examples=60)
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
        np.testing.assert_allclose(pairs.scores, [scores[p] for p in wanted], atol=1e-10)


def test_mutual_pairs_of_a_known_case() -> None:
    # Three words in the plane: the third source word is closest to a target word that prefers another.
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
def test_max_rank_leaves_rare_words_out(settings: RefineSettings) -> None:
    problem = planted(150, 120, d=8, seed=3)
    limited = replace(settings, rounds=3, max_rank=50)
    for figures, _, pairs in rounds(problem.src, problem.tgt, Maps(problem.w), limited):
        assert figures.n_words == 50
        assert set(pair_list(pairs)) == {(i, i) for i in range(50)}
    # Rows beyond the rank have no say at all: garbage there changes nothing.
    src, tgt = problem.src.copy(), problem.tgt.copy()
    src[50:], tgt[50:] = src[:1], tgt[:1]
    assert_same_maps(refine(src, tgt, near(problem), limited), refine(problem.src, problem.tgt, near(problem), limited))
    # No rank, or one beyond the vocabulary, means all of it.
    for rank in (0, 999):
        everything = replace(limited, max_rank=rank, directions="forward", rounds=1)
        ((figures, _, pairs),) = rounds(problem.src, problem.tgt, Maps(problem.w), everything)
        assert figures.n_words == len(pairs) == 150


# --------------------------------------------------------------------------- rounds


def test_figures_and_the_map_of_each_round() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    start = near(problem)
    seen: list[tuple[RoundFigures, Maps]] = []
    final = refine(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, maps: seen.append((f, maps)))
    assert [(f.round, f.n_rounds, f.n_words) for f, _ in seen] == [(i, 4, 150) for i in (1, 2, 3, 4)]
    assert_same_maps(seen[-1][1], final)
    maps = start
    for figures, after in seen:
        pairs = induce_pairs(problem.src, problem.tgt, maps, csls_k=5)
        assert figures.n_pairs == len(pairs)
        assert figures.mean_csls == pytest.approx(float(pairs.scores.mean()))
        maps = Maps(procrustes.procrustes(problem.src[pairs.src], problem.tgt[pairs.tgt]))
        assert_same_maps(after, maps)
    assert seen[-1][0].n_pairs > seen[0][0].n_pairs


@pytest.mark.parametrize("kind", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_rounds_come_one_by_one_and_are_those_of_refine(kind: RefineSettings) -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    seen = list(rounds(problem.src, problem.tgt, near(problem), kind))
    figures: list[RoundFigures] = []
    final = refine(problem.src, problem.tgt, near(problem), kind, callback=lambda f, _: figures.append(f))
    assert [f for f, _, _ in seen] == figures
    assert_same_maps(seen[-1][1], final)
    for figure, _, pairs in seen:
        assert figure.n_pairs == len(set(pair_list(pairs)))
        assert figure.mean_csls == pytest.approx(float(pairs.scores.mean()))
        # Pairs that both of their words bring are there twice, and counted once.
        if kind.directions == "union":
            assert len(pairs) == 150 + 120
            assert 150 <= figure.n_pairs < 250


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
@pytest.mark.parametrize("done", [1, 3, 4])
def test_a_resumed_run_ends_at_the_same_maps(done: int, settings: RefineSettings) -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4, dtype="float32")
    settings = replace(settings, first_rank=60)
    maps: list[Maps] = []
    final = refine(problem.src, problem.tgt, near(problem), settings, callback=lambda _, m: maps.append(m))
    figures: list[RoundFigures] = []
    resumed = refine(
        problem.src,
        problem.tgt,
        maps[done - 1],
        settings,
        first_round=done,
        callback=lambda f, _: figures.append(f),
    )
    assert_same_maps(resumed, final)
    assert final.src.dtype == np.float32
    # The words of a round are those of its number, not of how many were run.
    assert [f.round for f in figures] == list(range(done + 1, 5))
    assert [f.n_words for f in figures] == [settings.words(i, 150) for i in range(done + 1, 5)]
    # Without its partner a map of the source leads elsewhere.
    if settings.map == "reweighted" and done < 4:
        alone = refine(problem.src, problem.tgt, Maps(maps[done - 1].src), settings, first_round=done)
        assert np.abs(similarities(alone) - similarities(final)).max() > 1e-3


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_a_start_may_lead_to_a_turned_target(settings: RefineSettings) -> None:
    # The same map seen from a turned target space: x (w turn) beside y turn.
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    turn, start = rotation(8, 21), near(problem)
    figures: list[RoundFigures] = []
    expected = refine(problem.src, problem.tgt, start, settings, callback=lambda f, _: figures.append(f))
    turned: list[RoundFigures] = []
    found = refine(
        problem.src,
        problem.tgt,
        Maps(start.src @ turn, turn),
        settings,
        callback=lambda f, _: turned.append(f),
    )
    # After the first round it is forgotten where the start led.
    np.testing.assert_allclose(similarities(found), similarities(expected), atol=1e-9)
    for one, two in zip(figures, turned, strict=True):
        assert (one.round, one.n_pairs) == (two.round, two.n_pairs)
        assert one.mean_csls == pytest.approx(two.mean_csls)


def test_a_start_alone_does_not_lead_to_a_turned_target() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    turn, start = rotation(8, 21), near(problem)
    once = replace(SETTINGS, rounds=1)
    # Without its partner the turned map is just a wrong one.
    assert problem.accuracy(refine(problem.src, problem.tgt, Maps(start.src @ turn), once).src) < 0.5
    assert problem.accuracy(refine(problem.src, problem.tgt, Maps(start.src @ turn, turn), once).src) > 0.8


def test_a_start_need_not_be_a_rotation() -> None:
    # Stretched and turned on both sides alike: the first dictionary is right, and Procrustes needs no more.
    problem = planted(120, d=8, seed=3)
    stretch = np.diag(np.linspace(1.0, 0.5, 8)) @ rotation(8, 22)
    start = Maps(problem.w @ stretch, stretch)
    found = refine(problem.src, problem.tgt, start, replace(SETTINGS, rounds=1))
    assert found.tgt is None
    np.testing.assert_allclose(found.src, problem.w, atol=1e-9)


@pytest.mark.parametrize("settings", [SETTINGS, REWEIGHTED], ids=["plain", "re-weighted"])
def test_no_rounds_leave_the_maps_as_they_are(settings: RefineSettings) -> None:
    problem = planted(30, d=4)
    start = near(problem)
    assert refine(problem.src, problem.tgt, start, replace(settings, rounds=0)) is start


def test_without_pairs_the_maps_stay(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(30, d=4)
    start = near(problem)
    none = np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(refine_module, "induce_pairs", lambda *_, **__: Pairs(none, none, np.zeros(0)))
    called: list[int] = []
    with caplog.at_level(logging.WARNING, logger="qwp"):
        found = refine(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, _: called.append(f.round))
    assert found is start
    assert called == []
    assert "round 1 found no pair" in caplog.text


@pytest.mark.parametrize("weights", ["equal", "csls"])
def test_one_word_on_each_side(weights: str) -> None:
    # Its CSLS is zero, so that by weight there would be nothing to learn from.
    x, y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    for kind in (SETTINGS, REWEIGHTED):
        maps = refine(x, y, Maps(np.eye(2)), replace(kind, weights=weights))
        left, right = x @ maps.src, y if maps.tgt is None else y @ maps.tgt
        np.testing.assert_allclose(left, right, atol=1e-12)
        assert float(np.linalg.norm(left)) > 0.1


def test_array_api_strict() -> None:
    problem = planted(60, 50, d=5, noise=0.1, seed=5)
    start = near(problem)
    x, y, w = (array_api_strict.asarray(z) for z in (problem.src, problem.tgt, start.src))
    for directions in ("mutual", "forward", "backward", "union"):
        for kind in (SETTINGS, REWEIGHTED):
            options = replace(kind, rounds=2, max_rank=40, first_rank=20, directions=directions)
            strict = refine(x, y, Maps(w), options, callback=lambda f, _: None)
            ours = refine(problem.src, problem.tgt, start, options)
            found = Maps(*(None if side is None else arrays.to_numpy(side) for side in strict))
            np.testing.assert_allclose(similarities(found), similarities(ours), atol=1e-9)


# --------------------------------------------------------------------------- what the settings do


@given(
    n_rounds=st.integers(1, 20),
    first_rank=st.integers(0, 3000),
    max_rank=st.integers(0, 3000),
    available=st.integers(1, 3000),
)
def test_words_grow_from_the_first_rank_to_all(n_rounds: int, first_rank: int, max_rank: int, available: int) -> None:
    settings = RefineSettings(rounds=n_rounds, max_rank=max_rank, first_rank=first_rank)
    everything = min(max_rank, available) if max_rank else available
    words = [settings.words(number, available) for number in range(1, n_rounds + 1)]
    assert words[-1] == everything
    assert all(a <= b for a, b in pairwise(words))
    if 0 < first_rank < everything and n_rounds > 1:
        assert words[0] == first_rank
    else:
        assert set(words) == {everything}


def test_words_grow_by_a_constant_factor() -> None:
    settings = RefineSettings(rounds=5, max_rank=0, first_rank=100)
    assert [settings.words(number, 1600) for number in range(1, 6)] == [100, 200, 400, 800, 1600]
    capped = replace(settings, max_rank=900, rounds=3)
    assert [capped.words(number, 1600) for number in (1, 2, 3)] == [100, 300, 900]


def test_the_first_rounds_see_the_frequent_words_alone() -> None:
    problem = planted(400, 300, d=8, noise=0.2, seed=4)
    settings = replace(SETTINGS, rounds=3, first_rank=100)
    for kind in (settings, replace(REWEIGHTED, rounds=3, first_rank=100)):
        seen = list(rounds(problem.src, problem.tgt, near(problem), kind))
        assert [figures.n_words for figures, _, _ in seen] == [100, 200, 400]
        # Both sides are cut alike; the smaller one has no more to give in the end.
        for (_, _, pairs), (src, tgt) in zip(seen, [(100, 100), (200, 200), (400, 300)], strict=True):
            assert int(pairs.src.max()) < src
            assert int(pairs.tgt.max()) < tgt
        assert int(seen[-1][2].src.max()) >= 200
    # So the first map is that of a problem that ends there.
    first = next(rounds(problem.src[:100], problem.tgt[:100], near(problem), replace(settings, first_rank=0)))
    assert_same_maps(next(rounds(problem.src, problem.tgt, near(problem), settings))[1], first[1])


def reweighted_by_hand(x: Array, y: Array, weights: Array, power: float, dewhiten: float) -> Maps:
    """Maps for matched rows x, y (p, d), by singular values of the weighted rows themselves."""
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
    settings = RefineSettings(
        rounds=1,
        csls_k=5,
        max_rank=100,
        directions=directions,
        weights=weights,
        map=kind,
        reweight=0.8,
        dewhiten=0.6,
    )
    found = refine(problem.src, problem.tgt, start, settings)
    x, y = problem.src[:100], problem.tgt[:100]
    scores = csls_by_hand(x @ start.src, y @ turn, 5)
    forward = [(i, int(scores[i].argmax())) for i in range(100)]
    backward = [(int(scores[:, j].argmax()), j) for j in range(100)]
    pairs = forward + backward if directions == "union" else [pair for pair in forward if pair in backward]
    src, tgt = np.array(pairs).T
    share = np.maximum(scores[src, tgt], 0.0) if weights == "csls" else np.ones(len(pairs))
    if kind == "orthogonal":
        assert found.tgt is None
        np.testing.assert_allclose(found.src, polar_svd((x[src] * share[:, None]).T @ y[tgt]), atol=1e-9)
    else:
        expected = reweighted_by_hand(x[src], y[tgt], share, 0.8, 0.6)
        np.testing.assert_allclose(similarities(found), similarities(expected), atol=1e-9)


def test_the_maps_between_the_rounds_and_after_them_are_of_the_kinds_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = planted(150, 120, d=8, noise=0.3, shuffle=True, seed=4)
    asked: list[str] = []
    fit = procrustes.fitted

    def listening(kind: str, *rows: Array, **rest: Any) -> Maps:
        asked.append(kind)
        return fit(kind, *rows, **rest)

    monkeypatch.setattr(procrustes, "fitted", listening)
    for between, last in (("reweighted", "orthogonal"), ("orthogonal", "reweighted")):
        asked.clear()
        settings = replace(REWEIGHTED, learn_map=between, map=last)
        maps = [maps for _, maps, _ in rounds(problem.src, problem.tgt, near(problem), settings)]
        assert asked == [between] * 3 + [last]
        assert [m.tgt is None for m in maps] == [kind == "orthogonal" for kind in asked]
    # An interrupted run knows which of its rounds is the last.
    asked.clear()
    refine(problem.src, problem.tgt, near(problem), settings, first_round=3)
    assert asked == ["reweighted"]


@pytest.mark.parametrize(("n", "kind"), [(7, "orthogonal"), (8, "orthogonal"), (9, "reweighted")])
def test_with_no_more_words_than_dimensions_the_map_is_orthogonal(n: int, kind: str) -> None:
    problem = planted(n, d=8, noise=0.1, seed=4)
    found = refine(problem.src, problem.tgt, Maps(problem.w), REWEIGHTED)
    assert (found.tgt is None) == (kind == "orthogonal")
    assert (orthogonality_error(found.src) < 1e-8) == (kind == "orthogonal")
    if kind == "orthogonal":
        plain = replace(REWEIGHTED, learn_map="orthogonal", map="orthogonal")
        assert_same_maps(found, refine(problem.src, problem.tgt, Maps(problem.w), plain))


def test_every_round_has_words_enough_or_an_orthogonal_map(caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(160, d=20, noise=0.1, seed=4)
    settings = replace(REWEIGHTED, rounds=5, first_rank=10)
    with caplog.at_level(logging.INFO, logger="qwp"):
        seen = list(rounds(problem.src, problem.tgt, near(problem, 0.3), settings))
    assert [figures.n_words for figures, _, _ in seen] == [10, 20, 40, 80, 160]
    assert [maps.tgt is None for _, maps, _ in seen] == [True, True, False, False, False]
    assert [orthogonality_error(maps.src) < 1e-8 for _, maps, _ in seen] == [True, True, False, False, False]
    assert caplog.text.count("too few to re-weight 20 dimensions") == 2
    # The limit of the rank counts, not the words that there are.
    assert refine(problem.src, problem.tgt, near(problem, 0.3), replace(REWEIGHTED, max_rank=20)).tgt is None


def test_an_orthogonal_map_after_reweighted_rounds() -> None:
    problem = planted(300, 240, d=12, noise=0.3, shuffle=True, seed=1)
    settings = replace(REWEIGHTED, map="orthogonal", first_rank=100)
    found = refine(problem.src, problem.tgt, near(problem), settings)
    assert found.tgt is None
    assert orthogonality_error(found.src) < 1e-10
    assert problem.accuracy(found.src) > problem.accuracy(near(problem).src)
    # The dictionaries were found under other maps than those of plain rounds.
    plain = refine(problem.src, problem.tgt, near(problem), replace(settings, learn_map="orthogonal"))
    assert np.abs(found.src - plain.src).max() > 1e-4


def test_pair_weights() -> None:
    rows = np.arange(4)
    pairs = Pairs(rows, rows, np.array([0.3, -0.2, 0.0, 0.7]))
    assert pair_weights(pairs, "equal") is None
    np.testing.assert_array_equal(pair_weights(pairs, "csls"), [0.3, 0.0, 0.0, 0.7])
    np.testing.assert_array_equal(pairs.scores, [0.3, -0.2, 0.0, 0.7])
    # Where none is better than its neighbourhood, all are alike.
    for scores in ([-0.1, -0.2, 0.0, -0.3], [0.0, 0.0, 0.0, 0.0]):
        assert pair_weights(Pairs(rows, rows, np.array(scores)), "csls") is None


@pytest.mark.parametrize("kind", ["orthogonal", "reweighted"])
def test_pairs_with_a_negative_csls_have_no_say(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = planted(100, d=6, noise=0.1, seed=3)
    rows, scores = np.arange(100), np.random.default_rng(0).uniform(0.1, 1.0, 100)
    wrong = np.roll(rows, 1)
    settings = replace(REWEIGHTED, rounds=1, map=kind)

    def fitted_to(*dictionary: Array) -> Maps:
        monkeypatch.setattr(refine_module, "induce_pairs", lambda *_, **__: Pairs(*dictionary))
        return refine(problem.src, problem.tgt, near(problem), settings)

    right = fitted_to(rows, rows, scores)
    both = np.append(rows, rows), np.append(rows, wrong)
    for useless in (np.zeros(100), -scores):
        found = fitted_to(*both, np.append(scores, useless))
        np.testing.assert_allclose(similarities(found), similarities(right), atol=1e-10)
    assert np.abs(similarities(fitted_to(*both, np.append(scores, scores))) - similarities(right)).max() > 0.01
    # Nothing but negative scores: every pair counts, none is preferred.
    negative = fitted_to(rows, rows, -scores)
    np.testing.assert_allclose(similarities(negative), similarities(fitted_to(rows, rows, np.ones(100))), atol=1e-10)


# --------------------------------------------------------------------------- where the re-weighted rounds win


def with_noise_of_its_own_on_each_side(n: int, d: int, seed: int) -> Planted:
    """A rotated copy whose sides are blurred in directions of their own, a quarter of all; row i belongs to row i."""
    rng = np.random.default_rng(seed)
    words, w = space(n, d, seed), rotation(d, seed + 2)
    blurred = [
        words + 0.3 * rng.standard_normal((n, d // 4)) @ rotation(d, seed + 11 + side)[: d // 4] for side in (0, 1)
    ]
    src, tgt = normalization.fit(blurred[0])[1], normalization.fit(blurred[1] @ w)[1]
    return Planted(src, tgt, w, np.stack([np.arange(n)] * 2, axis=1))


def csls_accuracy(problem: Planted, maps: Maps) -> float:
    """Share of the words whose best target word by CSLS is the right one."""
    found = induce_pairs(problem.src, problem.tgt, maps, directions="forward")
    return float(np.mean(found.tgt == problem.gold[:, 1]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reweighted_rounds_beat_plain_ones_where_each_side_has_noise_of_its_own(seed: int) -> None:
    problem = with_noise_of_its_own_on_each_side(500, 20, seed)

    def refined(kind: RefineSettings) -> float:
        kind = replace(kind, rounds=5, csls_k=10)
        return csls_accuracy(problem, refine(problem.src, problem.tgt, near(problem, 0.5), kind))

    # Measured: 0.33 to 0.40 and 0.82 to 0.90.
    plain, ours = refined(SETTINGS), refined(REWEIGHTED)
    assert ours > plain + 0.3
    # No rotation can do it, not even the planted one: the blurred directions have to count less.
    assert ours > csls_accuracy(problem, Maps(problem.w)) + 0.2
    # The maps between the rounds bring more than the last one, and an orthogonal last map has its share of that.
    assert ours > refined(replace(REWEIGHTED, learn_map="orthogonal")) + 0.2
    both_orthogonal = replace(REWEIGHTED, learn_map="orthogonal", map="orthogonal")
    assert refined(replace(REWEIGHTED, map="orthogonal")) > refined(both_orthogonal) + 0.03


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directions": "both"}, "'both' is not known; expected one of mutual, forward, backward, union"),
        ({"rounds": -1}, "rounds=-1 should be at least 0"),
        ({"csls_k": 0}, "csls_k=0 should be at least 1"),
        ({"max_rank": -5}, "max_rank=-5 should be at least 0"),
        ({"weights": "cosine"}, "refine_weights 'cosine' is not known; expected one of equal, csls"),
        ({"first_rank": -1}, "refine_first_rank=-1 should be at least 0"),
        ({"learn_map": "affine"}, "refine_map 'affine' is not known; expected one of reweighted, orthogonal"),
        ({"map": "affine"}, "map 'affine' is not known; expected one of reweighted, orthogonal"),
        ({"reweight": -0.5}, r"reweight=-0\.5 should lie between 0 and 10"),
        ({"reweight": 10.5}, r"reweight=10\.5 should lie between 0 and 10"),
        ({"reweight": float("nan")}, "reweight=nan"),
        ({"dewhiten": -0.1}, r"dewhiten=-0\.1 should lie between 0 and 1"),
        ({"dewhiten": 1.5}, r"dewhiten=1\.5 should lie between 0 and 1"),
    ],
)
def test_bad_settings_are_explained(options: dict[str, Any], message: str) -> None:
    problem = planted(20, d=3)
    with pytest.raises(InputError, match=message):
        refine(problem.src, problem.tgt, Maps(problem.w), replace(SETTINGS, **options))
