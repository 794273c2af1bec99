from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.maps.pairs import from_pairs, identical_rows, lexicon_rows
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.spaces.lexicon import Lexicon
from qwp.starts.choice import best_starts
from qwp.starts.frank_wolfe import FrankWolfe, _half_gradient, _objective, frank_wolfe
from qwp.starts.matrix import given_matrix
from qwp.starts.profiles import profiles
from qwp.starts.similarities import similarity_factor
from tests.problems import planted, rotation

Array = npt.NDArray[Any]

SMALL = FrankWolfe(words=250, steps=30, epsilon=0.2, tol=1e-3, max_iter=100)


# --------------------------------------------------------------------------- the relaxation


@pytest.mark.parametrize(
    ("kind", "least"),
    [({}, 0.8), ({"shuffle": True}, 0.8), ({"n_tgt": 240, "shuffle": True, "noise": 0.02}, 0.3)],
    ids=["plain", "shuffled", "unequal and noisy"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recovers_a_planted_rotation_well_above_chance(kind: dict[str, Any], least: float, dtype: str) -> None:
    problem = planted(250, d=12, seed=1, dtype=dtype, **kind)
    w = frank_wolfe(problem.src, problem.tgt, SMALL)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    # Chance is 1 in 250.
    assert problem.accuracy(w) > least


def doubly_stochastic(n: int, seed: int) -> Array:
    """A convex combination of permutations (n, n)."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(6))
    return np.asarray(sum(w * np.eye(n)[rng.permutation(n)] for w in weights))


@given(n=st.integers(2, 9), d=st.integers(1, 9), seed=st.integers(0, 2**31 - 1))
@settings(deadline=None, max_examples=60)
def test_low_rank_formulas_agree_with_the_dense_ones(n: int, d: int, seed: int) -> None:
    x, y = np.random.default_rng(seed).standard_normal((2, n, d))
    (ux, sx), (uy, sy) = similarity_factor(x), similarity_factor(y)
    kx, ky = (ux * sx) @ ux.T, (uy * sy) @ uy.T
    np.testing.assert_allclose(kx @ kx, x @ x.T, atol=1e-9)  # K is the root of the similarities
    p = doubly_stochastic(n, seed)
    dense = p @ kx @ kx - 2 * ky @ p @ kx + ky @ ky @ p
    scale = 1 + float(np.abs(dense).max())
    np.testing.assert_allclose(_half_gradient(p @ ux, uy.T @ p, ux, sx, uy, sy), dense, atol=1e-10 * scale)
    objective = float(np.linalg.norm(p @ kx - ky @ p) ** 2)
    assert _objective(p @ ux, uy.T @ p, sx, uy, sy) == pytest.approx(objective, abs=1e-9 * scale)


def test_the_gradient_is_that_of_the_objective() -> None:
    # Central differences of the dense objective, entry by entry.
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5, 3))
    (ux, sx), (uy, sy) = similarity_factor(x), similarity_factor(y)
    kx, ky = (ux * sx) @ ux.T, (uy * sy) @ uy.T
    p = doubly_stochastic(5, 1)
    gradient = 2 * _half_gradient(p @ ux, uy.T @ p, ux, sx, uy, sy)
    for i in range(5):
        for j in range(5):
            step = np.zeros((5, 5))
            step[i, j] = 1e-5
            up, down = (np.linalg.norm(q @ kx - ky @ q) ** 2 for q in (p + step, p - step))
            assert gradient[i, j] == pytest.approx((up - down) / 2e-5, abs=1e-5)


def test_the_objective_falls_once_it_has_left_the_uniform_plan() -> None:
    # For centred spaces the uniform plan, the start, has nearly no objective and no information: the first
    # steps leave it, and only from there on does the objective fall.
    problem = planted(200, d=10, seed=1)
    seen: list[tuple[int, float]] = []
    frank_wolfe(problem.src, problem.tgt, SMALL, callback=lambda step, value: seen.append((step, value)))
    assert [step for step, _ in seen] == list(range(1, 31))
    values = [value for _, value in seen]
    assert values[-1] < 0.1 * max(values)
    assert max(values) in values[:5]
    # Entropic steps of fixed length may rise a little now and then, not over a stretch.
    assert all(later < earlier for earlier, later in pairwise(values[4::5]))


def test_the_first_objective_is_that_of_the_first_step() -> None:
    # One step: P = uniform / 3 + 2/3 of the plan; the value reported must be the one of this P, not of the
    # one before.
    problem = planted(40, d=4, seed=2)
    seen: list[float] = []
    frank_wolfe(
        problem.src,
        problem.tgt,
        FrankWolfe(steps=1, epsilon=1e6, tol=1e-10, max_iter=1000),
        callback=lambda _, value: seen.append(value),
    )
    # An epsilon this large makes the plan uniform again.
    (ux, sx), (uy, sy) = similarity_factor(problem.src), similarity_factor(problem.tgt)
    sy = sy * np.linalg.norm(sx) / np.linalg.norm(sy)
    p = np.full((40, 40), 1 / 40)
    expected = float(np.linalg.norm(p @ (ux * sx) @ ux.T - (uy * sy) @ uy.T @ p) ** 2)
    assert seen[0] == pytest.approx(expected, rel=1e-3)


def test_the_scale_of_a_space_does_not_matter() -> None:
    problem = planted(120, d=8, seed=1)
    one, two = (frank_wolfe(problem.src, factor * problem.tgt, SMALL) for factor in (1.0, 50.0))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_rotated_source_gives_the_rotated_map() -> None:
    problem = planted(120, d=8, seed=1)
    turn = rotation(8, 9)
    one = frank_wolfe(problem.src, problem.tgt, SMALL)
    two = frank_wolfe(problem.src @ turn, problem.tgt, SMALL)
    np.testing.assert_allclose(turn @ two, one, atol=1e-5)


def test_only_the_first_words_take_part() -> None:
    problem = planted(120, d=8, seed=1)
    few = FrankWolfe(words=60, steps=5, epsilon=0.2)
    np.testing.assert_array_equal(
        frank_wolfe(problem.src, problem.tgt, few), frank_wolfe(problem.src[:60], problem.tgt[:60], few)
    )


def test_fewer_words_than_dimensions() -> None:
    problem = planted(6, d=10, seed=1)
    assert orthogonality_error(frank_wolfe(problem.src, problem.tgt, SMALL)) < 1e-8


def test_array_api_strict() -> None:
    problem = planted(60, d=5, seed=1)
    few = FrankWolfe(words=60, steps=4, epsilon=0.3)
    strict = frank_wolfe(
        array_api_strict.asarray(problem.src),
        array_api_strict.asarray(problem.tgt),
        few,
        callback=lambda _, value: None,
    )
    np.testing.assert_allclose(arrays.to_numpy(strict), frank_wolfe(problem.src, problem.tgt, few), atol=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": 0}, "words=0 should be at least 1"),
        ({"steps": 0}, "steps=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 should be positive"),
    ],
)
def test_bad_settings_are_explained(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FrankWolfe(**change).check()


# --------------------------------------------------------------------------- profiles


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_profiles_recover_a_planted_rotation(dtype: str) -> None:
    problem = planted(250, d=12, shuffle=True, seed=1, dtype=dtype)
    w = profiles(problem.src, problem.tgt, 250)
    assert w.dtype == dtype
    assert orthogonality_error(w) < 1e-5
    assert problem.accuracy(w) > 0.9


def test_profiles_look_at_as_many_words_as_they_are_told() -> None:
    problem = planted(200, 150, d=8, shuffle=True, seed=1)
    few = profiles(problem.src, problem.tgt, 60)
    np.testing.assert_array_equal(few, profiles(problem.src[:60], problem.tgt[:60], 60))
    everything = profiles(problem.src, problem.tgt, 9999)
    np.testing.assert_array_equal(everything, profiles(problem.src, problem.tgt, 150))
    assert np.abs(few - everything).max() > 0.01


# --------------------------------------------------------------------------- several starts in turn


@dataclass(frozen=True)
class Ratio:
    """As much of a verdict as the choice of a start looks at."""

    ratio: float


@dataclass
class Staged:
    """Starts whose maps are known and whose verdicts are given: which of them are tried, and on what."""

    ratios: Sequence[dict[str, float]]
    tried: list[tuple[int, str]]

    MAPS: ClassVar[dict[str, Array]] = {
        "profiles": rotation(3, 0),
        "profiles of more words": rotation(3, 1),
        "frank-wolfe": rotation(3, 2),
    }

    def name(self, w: Array) -> str:
        return next(name for name, matrix in self.MAPS.items() if (matrix == w).all())

    def profiles(self, x: Array, y: Array, words: int) -> Array:
        return self.MAPS[{40: "profiles", 80: "profiles of more words"}[words]]

    def frank_wolfe(self, x: Array, y: Array, settings: FrankWolfe) -> Array:
        assert settings.words == 40
        return self.MAPS["frank-wolfe"]

    def judge(self, x: Array, y: Array, maps: Maps, *, seed: int, **_: Any) -> Ratio:
        """Pairs are told apart by their seeds."""
        assert maps.tgt is None
        self.tried.append((seed, self.name(maps.src)))
        return Ratio(self.ratios[seed][self.name(maps.src)])


def staged_starts(monkeypatch: pytest.MonkeyPatch, *ratios: Sequence[float]) -> tuple[list[str], list[tuple[int, str]]]:
    """The names of the starts that win for pairs with these ratios, and all that were tried."""
    stage = Staged([dict(zip(Staged.MAPS, each, strict=True)) for each in ratios], [])
    for name in ("profiles", "frank_wolfe", "judge"):
        monkeypatch.setattr(start_module, name, getattr(stage, name))
    monkeypatch.setattr(start_module, "_trial", lambda xs, ys, maps, seeds, callback: maps)
    spaces = [np.zeros((50, 3))] * len(ratios)
    found = best_starts(spaces, spaces, FrankWolfe(words=40), seeds=range(len(ratios)))
    assert found.shape == (len(ratios), 3, 3)
    return [stage.name(w) for w in found], stage.tried


def test_the_first_start_that_is_clearly_real_is_the_last_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(Staged.MAPS)
    for number, ratios in enumerate([(1.9, 9.0, 9.0), (1.1, 1.5, 9.0), (1.1, 1.4, 1.7)]):
        found, tried = staged_starts(monkeypatch, ratios)
        assert found == [names[number]]
        assert tried == [(0, name) for name in names[: number + 1]]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_where_none_is_clearly_real_the_best_one_wins(best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = [1.0, 1.1, 1.05]
    ratios[best] = 1.3
    found, tried = staged_starts(monkeypatch, ratios)
    assert found == [list(Staged.MAPS)[best]]
    assert len(tried) == 3


def test_each_pair_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = Staged.MAPS
    found, tried = staged_starts(monkeypatch, (1.2, 1.1, 1.0), (2.0, 9.0, 9.0), (1.0, 1.6, 9.0))
    assert found == [first, first, second]
    assert tried == [(0, first), (1, first), (2, first), (0, second), (2, second), (0, third)]


def test_trials_are_reported_by_the_name_of_their_start(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is ever clearly real, so that all three get their trial; and the best of them is still the answer.
    monkeypatch.setattr(start_module, "_CLEARLY_REAL", 99.0)
    monkeypatch.setattr(start_module, "_TRIAL_STEPS", 20)
    problem = planted(250, d=12, noise=0.05, shuffle=True, seed=1)
    seen: list[tuple[int, str, int, int]] = []
    found = best_starts(
        [problem.src],
        [problem.tgt],
        FrankWolfe(words=120, steps=10),
        seeds=[0],
        callback=lambda pair, name, step, total, _: seen.append((pair, name, step, total)),
    )
    assert seen == [(0, name, step, 20) for name in Staged.MAPS for step in range(1, 21)]
    assert orthogonality_error(found[0]) < 1e-5
    assert problem.accuracy(found[0]) > 0.5  # chance is 1 in 250


# --------------------------------------------------------------------------- the other starts


def test_from_pairs_recovers_the_map() -> None:
    problem = planted(80, 60, d=7, shuffle=True, seed=3)
    rows, columns = problem.gold.T
    found = from_pairs(problem.src, problem.tgt, rows, columns)
    np.testing.assert_allclose(found, problem.w, atol=1e-10)


def test_from_pairs_warns_of_too_few(caplog: pytest.LogCaptureFixture) -> None:
    problem = planted(80, d=7, seed=3)
    with caplog.at_level(logging.WARNING, logger="qwp"):
        w = from_pairs(problem.src, problem.tgt, np.arange(3), np.arange(3))
    assert "3 pairs for 7 dimensions" in caplog.text
    assert orthogonality_error(w) < 1e-10
    np.testing.assert_allclose(problem.src[:3] @ w, problem.tgt[:3], atol=1e-10)


def test_lexicon_rows_are_those_of_the_covered_pairs() -> None:
    lexicon = Lexicon((("a", "x"), ("b", "nowhere"), ("c", "y"), ("a", "y")))
    rows, columns = lexicon_rows(lexicon, {"a": 5, "b": 6, "c": 7}, {"x": 0, "y": 1})
    assert (rows.tolist(), columns.tolist()) == ([5, 7, 5], [0, 1, 1])


def test_no_covered_pair_is_explained() -> None:
    with pytest.raises(InputError, match=r"seed lexicon of 1 pairs: no pair is covered.*at least one"):
        lexicon_rows(Lexicon((("a", "x"),)), {"b": 0}, {"x": 0})
    with pytest.raises(InputError, match=r"identical strings: no pair is covered"):
        identical_rows(["a"], ["b"])


def test_from_pairs_array_api_strict() -> None:
    problem = planted(30, d=4, seed=3)
    rows = np.arange(30)
    x, y = (array_api_strict.asarray(z) for z in (problem.src, problem.tgt))
    np.testing.assert_allclose(arrays.to_numpy(from_pairs(x, y, rows, rows)), problem.w, atol=1e-10)


def test_identical_rows() -> None:
    rows, columns = identical_rows(["the", "2020", "Paris", "cat"], ["le", "Paris", "chat", "2020"])
    assert (rows.tolist(), columns.tolist()) == ([1, 2], [3, 1])


@given(
    src=st.lists(st.text("abc", max_size=2), unique=True, max_size=8),
    tgt=st.lists(st.text("abc", max_size=2), unique=True, max_size=8),
)
def test_identical_rows_are_all_the_common_words(src: list[str], tgt: list[str]) -> None:
    assume(set(src) & set(tgt))
    rows, columns = identical_rows(src, tgt)
    assert [src[i] for i in rows] == [tgt[j] for j in columns]
    assert {src[i] for i in rows} == set(src) & set(tgt)


def test_given_matrix() -> None:
    w = rotation(6, 0)
    np.testing.assert_allclose(given_matrix(w, 6), w, atol=1e-12)
    rounded = np.round(w, 4)
    repaired = given_matrix(rounded, 6)
    assert orthogonality_error(rounded) > 1e-6
    assert orthogonality_error(repaired) < 1e-12
    np.testing.assert_allclose(repaired, w, atol=1e-3)


def test_a_bad_given_matrix_is_explained() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 5\).*\(6, 6\)"):
        given_matrix(rotation(5, 0), 6)
    with pytest.raises(InputError, match=r"not orthogonal.*3.*0\.001 expected.*polar"):
        given_matrix(2 * rotation(5, 0), 5)
    broken = rotation(5, 0)
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        given_matrix(broken, 5)
