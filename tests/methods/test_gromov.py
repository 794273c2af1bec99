"""Gromov-Wasserstein: the mass and the pairs of the coupling, and the map that Procrustes fits to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import InputError
from qwp.maps.procrustes import orthogonality_error, procrustes
from qwp.methods.gromov import Gromov, GromovWasserstein
from qwp.showing.events import Progress
from qwp.stages.stage import Monitor, State
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import problem_of
from tests.problems import Array, Planted, planted, rotation

pytest.importorskip("ot", reason='POT is not installed: pip install "qwp[pot]"')

# Small and quick, but the whole method.
QUICK: dict[str, Any] = {"threads": 1, "train_words": 120, "stages": 3, "steps": 10, "sinkhorn_max_iter": 50}


def run(stage: GromovWasserstein, problem: Planted) -> State:
    """Return the state after the stage."""
    return stage(problem_of(problem), State(), Monitor())


def couple(problem: Planted, **options: Any) -> tuple[Array, list[float]]:
    """Return the coupling (n, m) and the distance after each stage."""
    composition = Gromov(**{**QUICK, **options}).composition
    assert isinstance(composition.pipeline.solve, GromovWasserstein)
    state = run(composition.pipeline.solve, problem)
    assert [(record["stage"], record["step"]) for record in state.history] == [("couple", n) for n in (1, 2, 3)]
    return host(state.tensors["coupling"]), [record["gromov_wasserstein"] for record in state.history]


def distance_by_hand(coupling: Array, x: Array, y: Array) -> float:
    """Sum over i, j, k, l of (x_i x_j - y_k y_l)^2 P_ik P_jl, with all four indices at once."""
    differences = (x @ x.T)[:, :, None, None] - (y @ y.T)[None, None, :, :]
    return float(np.einsum("ijkl,ik,jl->", differences**2, coupling, coupling))


# --------------------------------------------------------------------------- the coupling


def test_the_coupling_finds_the_planted_pairs() -> None:
    problem = planted(70, d=8, shuffle=True, seed=1)
    coupling, distances = couple(problem)
    assert coupling.shape == (70, 70)
    rows, columns = problem.gold.T
    assert np.mean(coupling[rows].argmax(axis=1) == columns) > 0.95
    # Epsilon decreases from stage to stage, so the distance approaches zero, its true value.
    assert len(distances) == 3
    assert distances[0] > distances[1] > distances[2] > 0


def test_every_word_has_the_same_mass() -> None:
    cases: list[tuple[int, int]] = [(60, 60), (60, 45), (30, 50)]
    for n, m in cases:
        # With this much entropy the projections converge well within their limit.
        options = {"epsilon": 0.5, "anneal": 1.0, "sinkhorn_max_iter": 500, "sinkhorn_tol": 1e-9}
        coupling, _ = couple(planted(n, m, d=6, shuffle=True, seed=2), **options)
        assert coupling.shape == (n, m)
        assert (coupling >= 0).all()
        assert_close(coupling.sum(axis=0), 1 / m, atol=1e-4)
        assert_close(coupling.sum(axis=1), 1 / n, atol=1e-4)


@pytest.mark.slow
def test_the_reported_distance_is_that_of_the_coupling() -> None:
    problem = planted(20, 15, d=4, noise=0.2, seed=3)
    coupling, distances = couple(problem, steps=30, sinkhorn_max_iter=500, sinkhorn_tol=1e-9)
    assert distances[-1] == pytest.approx(distance_by_hand(coupling, problem.src, problem.tgt), rel=1e-3)
    independent = np.full((20, 15), 1 / 300)
    assert distances[-1] < 0.7 * distance_by_hand(independent, problem.src, problem.tgt)


def test_rotations_do_not_change_the_descriptors() -> None:
    problem = planted(50, d=6, noise=0.1, seed=4)
    turned = Planted(problem.src @ rotation(6, 9), problem.tgt, problem.w, problem.gold)
    assert_close(couple(turned)[0], couple(problem)[0], atol=1e-8)


def test_regularisation_is_relative_and_falls_from_stage_to_stage() -> None:
    problem = planted(30, 40, d=5, seed=5)
    seen: list[tuple[float, Any]] = []

    class Watched(GromovWasserstein):
        def _solve(
            self, similarities: list[Any], masses: list[Any], epsilon: float, start: Any
        ) -> tuple[Array, dict[str, Any]]:
            seen.append((epsilon, start))
            return np.full((30, 40), float(len(seen))), {"gw_dist": 1.0}

    state = run(Watched(epsilon=0.2, anneal=0.5, stages=3), problem)
    mean_squares = [np.mean((side @ side.T) ** 2) for side in (problem.src, problem.tgt)]
    scale = float(np.sqrt(mean_squares[0] * mean_squares[1]))
    assert [epsilon for epsilon, _ in seen] == pytest.approx([0.2 * scale, 0.1 * scale, 0.05 * scale])
    # Every stage continues from the coupling of the previous one.
    assert seen[0][1] is None
    assert [float(start[0, 0]) for _, start in seen[1:]] == [1.0, 2.0]
    assert float(host(state.tensors["coupling"])[0, 0]) == 3.0


# --------------------------------------------------------------------------- the map


def with_coupling(coupling: Array) -> GromovWasserstein:
    """Return a stage whose solver returns this coupling (n, m)."""

    class Known(GromovWasserstein):
        def _solve(self, *_: Any) -> tuple[Array, dict[str, Any]]:
            return coupling, {"gw_dist": 0.0}

    return Known(stages=1)


def random_rows(n: int, m: int, seed: int) -> Planted:
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((rows, 5)) for rows in (n, m))
    return Planted(x, y, np.eye(5), np.zeros((0, 2), dtype=np.int64))


def test_the_map_of_a_permutation_is_procrustes_on_its_pairs() -> None:
    problem = random_rows(30, 30, 6)
    order = np.random.default_rng(6).permutation(30)
    coupling = np.zeros((30, 30))
    coupling[np.arange(30), order] = 1 / 30
    w = run(with_coupling(coupling), problem).map
    assert_close(w, procrustes(problem.src, problem.tgt[order]), atol=1e-10)


def test_the_map_is_the_best_rotation_for_the_coupling() -> None:
    problem = random_rows(20, 15, 7)
    coupling = np.random.default_rng(7).random((20, 15))
    w = run(with_coupling(coupling), problem).map
    assert orthogonality_error(w) < 1e-10
    gain = float(np.sum(coupling * (problem.src @ host(w) @ problem.tgt.T)))
    for seed in range(20):
        assert float(np.sum(coupling * (problem.src @ rotation(5, seed) @ problem.tgt.T))) < gain


def test_the_coupling_alone_gives_nearly_the_planted_map() -> None:
    events: list[Progress] = []
    problem = planted(200, d=12, dtype="float32")
    aligner = Gromov(refine=0, **QUICK).fit(*planted_embeddings(200), progress=events.append)
    assert aligner.map_.dtype == np.float32
    assert orthogonality_error(aligner.map_) < 1e-5
    assert problem.accuracy(aligner.map_) > 0.95
    assert [(event.done, event.total) for event in events if event.stage == "couple"] == [(1, 3), (2, 3), (3, 3)]
    assert {"couple", "refine"} <= set(aligner.alignment_.provenance.seconds)


def test_only_frequent_words_are_coupled() -> None:
    src, tgt = planted_embeddings(200)
    plain = Gromov(refine=0, normalize="none", **QUICK).fit(src, tgt)
    # Words beyond `train_words` have no effect.
    changed = tgt.vectors.copy()
    changed[120:] = changed[:80]
    again = Gromov(refine=0, normalize="none", **QUICK).fit(src, type(tgt)(tgt.words, changed))
    assert_same(plain.map_, again.map_)


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"train_words": 0}, "train_words=0 is out of range; expected 1 to"),
        ({"stages": 0}, "stages=0 is out of range; expected 1 to"),
        ({"steps": 0}, "steps=0 is out of range; expected 1 to"),
        ({"sinkhorn_max_iter": 0}, "sinkhorn_max_iter=0 is out of range; expected 1 to"),
        ({"anneal": 1.5}, r"anneal=1\.5 is out of range; expected 0\.01 to 1"),
        ({"anneal": 0.0}, r"anneal=0\.0 is out of range"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 is out of range; expected above 0"),
        ({"epsilon": float("nan")}, "epsilon=nan is out of range; expected above 0"),
        ({"sinkhorn_tol": -1.0}, r"sinkhorn_tol=-1\.0 is out of range; expected above 0"),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Gromov(threads=1, **options).fit(*planted_embeddings(50))
