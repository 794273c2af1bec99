from __future__ import annotations

import logging
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import backend
from qwp import refine as refine_module
from qwp.errors import InputError
from qwp.procrustes import orthogonality_error, polar_svd, procrustes
from qwp.refine import RefineSettings, RoundFigures, induce_pairs, refine
from qwp.retrieval import Pairs
from tests.problems import Planted, planted, rotation

Array = npt.NDArray[Any]

SETTINGS = RefineSettings(rounds=4, csls_k=5, max_rank=0, directions="mutual")


def near(problem: Planted, distance: float = 0.9) -> Array:
    d = problem.w.shape[0]
    noise = distance * np.random.default_rng(7).standard_normal((d, d)) / d**0.5
    return np.asarray(polar_svd(problem.w + noise.astype(problem.w.dtype)))


def pair_list(pairs: Pairs) -> list[tuple[int, int]]:
    src, tgt = backend.to_numpy(pairs.src).tolist(), backend.to_numpy(pairs.tgt).tolist()
    return list(zip(src, tgt, strict=True))


@pytest.mark.parametrize("directions", ["mutual", "forward", "backward", "union"])
def test_improves_a_perturbed_map(directions: str) -> None:
    problem = planted(300, 240, d=12, noise=0.1, shuffle=True, seed=1)
    start = near(problem)
    found = refine(problem.src, problem.tgt, start, RefineSettings(4, 5, 0, directions))
    assert problem.accuracy(start) < 0.85
    assert problem.accuracy(found) > 0.97
    assert orthogonality_error(found) < 1e-8


def test_the_planted_map_is_kept() -> None:
    problem = planted(100, d=8, seed=2)
    np.testing.assert_allclose(refine(problem.src, problem.tgt, problem.w, SETTINGS), problem.w, atol=1e-9)


# --------------------------------------------------------------------------- the dictionary


def csls_by_hand(x: Array, y: Array, w: Array, k: int) -> Array:
    """2 cos - mean of the k largest in the row - mean of the k largest in the column. Returns (n, m)."""
    x = x @ w
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
    scores = csls_by_hand(x, y, np.eye(4), k)
    forward = [(i, int(scores[i].argmax())) for i in range(n)]
    backward = [(int(scores[:, j].argmax()), j) for j in range(m)]
    expected = {
        "forward": forward,
        "backward": backward,
        "union": forward + backward,
        "mutual": [pair for pair in forward if pair in backward],
    }
    for directions, wanted in expected.items():
        pairs = induce_pairs(x, y, np.eye(4), RefineSettings(1, k, 0, directions))
        assert pair_list(pairs) == wanted
        assert len(pairs) == len(wanted)
        np.testing.assert_allclose(pairs.scores, [scores[p] for p in wanted], atol=1e-10)


def test_mutual_pairs_of_a_known_case() -> None:
    # Three words in the plane: the third source word is closest to a target word that prefers another.
    degrees = np.deg2rad([[0.0, 90.0, 80.0], [2.0, 91.0, 200.0]])
    x, y = (np.stack([np.cos(a), np.sin(a)], axis=1) for a in degrees)
    pairs = induce_pairs(x, y, np.eye(2), RefineSettings(1, 1, 0, "mutual"))
    assert pair_list(pairs) == [(0, 0), (1, 1)]
    forward = induce_pairs(x, y, np.eye(2), RefineSettings(1, 1, 0, "forward"))
    assert pair_list(forward) == [(0, 0), (1, 1), (2, 1)]


def test_the_true_map_gives_the_gold_pairs() -> None:
    problem = planted(120, d=8, shuffle=True, seed=3)
    assert set(pair_list(induce_pairs(problem.src, problem.tgt, problem.w, SETTINGS))) == {
        tuple(pair) for pair in problem.gold.tolist()
    }


def test_max_rank_leaves_rare_words_out() -> None:
    problem = planted(150, 120, d=8, seed=3)
    pairs = induce_pairs(problem.src, problem.tgt, problem.w, RefineSettings(1, 5, 50, "mutual"))
    assert pair_list(pairs) == [(i, i) for i in range(50)]
    # Rows beyond the rank have no say at all: garbage there changes nothing.
    src, tgt = problem.src.copy(), problem.tgt.copy()
    src[50:], tgt[50:] = src[:1], tgt[:1]
    limited = RefineSettings(3, 5, 50, "mutual")
    np.testing.assert_array_equal(
        refine(src, tgt, near(problem), limited), refine(problem.src, problem.tgt, near(problem), limited)
    )
    assert len(induce_pairs(problem.src, problem.tgt, problem.w, RefineSettings(1, 5, 0, "forward"))) == 150
    # A rank beyond the vocabulary means all of it.
    assert len(induce_pairs(problem.src, problem.tgt, problem.w, RefineSettings(1, 5, 999, "forward"))) == 150


# --------------------------------------------------------------------------- rounds


def test_figures_and_the_map_of_each_round() -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    start = near(problem)
    seen: list[tuple[RoundFigures, Array]] = []
    final = refine(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, w: seen.append((f, w)))
    assert [(f.round, f.n_rounds) for f, _ in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    np.testing.assert_array_equal(seen[-1][1], final)
    w = start
    for figures, after in seen:
        pairs = induce_pairs(problem.src, problem.tgt, w, SETTINGS)
        assert figures.n_pairs == len(pairs)
        assert figures.mean_csls == pytest.approx(float(pairs.scores.mean()))
        w = procrustes(problem.src[pairs.src], problem.tgt[pairs.tgt])
        np.testing.assert_array_equal(after, w)
    assert seen[-1][0].n_pairs > seen[0][0].n_pairs


@pytest.mark.parametrize("done", [1, 3, 4])
def test_a_resumed_run_ends_at_the_same_map(done: int) -> None:
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4, dtype="float32")
    maps: list[Array] = []
    final = refine(problem.src, problem.tgt, near(problem), SETTINGS, callback=lambda _, w: maps.append(w))
    rounds: list[int] = []
    resumed = refine(
        problem.src,
        problem.tgt,
        maps[done - 1],
        SETTINGS,
        first_round=done,
        callback=lambda f, _: rounds.append(f.round),
    )
    np.testing.assert_array_equal(resumed, final)
    assert rounds == list(range(done + 1, 5))


def test_the_first_round_may_lead_to_another_target() -> None:
    # The same map seen from a turned target space: x (w turn) beside y turn.
    problem = planted(150, 120, d=8, noise=0.2, shuffle=True, seed=4)
    turn, start = rotation(8, 21), near(problem)
    figures: list[RoundFigures] = []
    expected = refine(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, _: figures.append(f))
    turned: list[RoundFigures] = []
    found = refine(
        problem.src,
        problem.tgt,
        start @ turn,
        SETTINGS,
        first_target=problem.tgt @ turn,
        callback=lambda f, _: turned.append(f),
    )
    # From the first round on the map leads to the target itself.
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert problem.accuracy(found) > 0.9
    for one, two in zip(figures, turned, strict=True):
        assert (one.round, one.n_pairs) == (two.round, two.n_pairs)
        assert one.mean_csls == pytest.approx(two.mean_csls)
    # Without it the turned map is just a wrong one.
    once = RefineSettings(1, 5, 0, "mutual")
    assert problem.accuracy(refine(problem.src, problem.tgt, start @ turn, once)) < 0.5
    assert problem.accuracy(refine(problem.src, problem.tgt, start @ turn, once, first_target=problem.tgt @ turn)) > 0.8


def test_a_first_target_need_not_be_a_rotation() -> None:
    # Stretched and turned on both sides alike: the first dictionary is right, and Procrustes needs no more.
    problem = planted(120, d=8, seed=3)
    stretch = np.diag(np.linspace(1.0, 0.5, 8)) @ rotation(8, 22)
    found = refine(
        problem.src,
        problem.tgt,
        problem.w @ stretch,
        RefineSettings(1, 5, 0, "mutual"),
        first_target=problem.tgt @ stretch,
    )
    np.testing.assert_allclose(found, problem.w, atol=1e-9)


def test_no_rounds_leave_the_map_as_it_is() -> None:
    problem = planted(30, d=4)
    start = near(problem)
    assert refine(problem.src, problem.tgt, start, RefineSettings(0, 5, 0, "mutual")) is start


def test_without_pairs_the_map_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(30, d=4)
    start = near(problem)
    none = np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(refine_module, "induce_pairs", lambda *_: Pairs(none, none, np.zeros(0)))
    called: list[int] = []
    with caplog.at_level(logging.WARNING, logger="qwp"):
        found = refine(problem.src, problem.tgt, start, SETTINGS, callback=lambda f, _: called.append(f.round))
    assert found is start
    assert called == []
    assert "round 1 found no pair" in caplog.text


def test_one_word_on_each_side() -> None:
    x, y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    w = refine(x, y, np.eye(2), SETTINGS)
    np.testing.assert_allclose(x @ w, y, atol=1e-12)


def test_array_api_strict() -> None:
    problem = planted(60, 50, d=5, noise=0.1, seed=5)
    start = near(problem)
    x, y, w = (array_api_strict.asarray(z) for z in (problem.src, problem.tgt, start))
    for directions in ("mutual", "forward", "backward", "union"):
        options = RefineSettings(2, 5, 40, directions)
        strict = refine(x, y, w, options, callback=lambda f, _: None)
        ours = refine(problem.src, problem.tgt, start, options)
        np.testing.assert_allclose(backend.to_numpy(strict), ours, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((5, 10, 0, "both"), "'both' is not known; expected one of mutual, forward, backward, union"),
        ((-1, 10, 0, "mutual"), "rounds=-1 should be at least 0"),
        ((1, 0, 0, "mutual"), "csls_k=0 should be at least 1"),
        ((1, 10, -5, "mutual"), "max_rank=-5 should be at least 0"),
    ],
)
def test_bad_settings_are_explained(options: tuple[int, int, int, str], message: str) -> None:
    problem = planted(20, d=3)
    with pytest.raises(InputError, match=message):
        refine(problem.src, problem.tgt, problem.w, RefineSettings(*options))
