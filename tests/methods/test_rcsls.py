"""Relaxed CSLS: the loss and its gradient against plain loops, and a monotone descent."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

from qwp import InputError
from qwp.arrays import block_rows, unit, use_memory, use_threads
from qwp.maps.procrustes import least_squares, procrustes
from qwp.methods.rcsls import RCSLS, relaxed_csls
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import matched, normalised, seeds
from tests.problems import Array, rotation

OPTIONS: dict[str, Any] = {"threads": 1, "dtype": "float64", "verdict": "none"}


def problem(seed: int = 0, p: int = 8, n: int = 15, m: int = 12, d: int = 4) -> tuple[Array, Array, Array, Array]:
    """Matched unit rows (p, d) twice, and two spaces (n, d), (m, d) that begin with them."""
    rng = np.random.default_rng(seed)
    x, y = (host(unit(rng.standard_normal((rows, d)))) for rows in (n, m))
    return x[:p], y[:p], x, y


def loss_by_hand(w: Array, src: Array, tgt: Array, src_space: Array, tgt_space: Array, k: int) -> float:
    """The loss of the paper, one pair and one neighbour at a time."""
    total = 0.0
    for x, y in zip(src, tgt, strict=True):
        total -= 2.0 * float(x @ w @ y)
        forward = sorted((float(x @ w @ z) for z in tgt_space), reverse=True)[:k]
        backward = sorted((float(z @ w @ y) for z in src_space), reverse=True)[:k]
        total += sum(forward) / len(forward) + sum(backward) / len(backward)
    return total / len(src)


def data_of(aligner: RCSLS, pairs: int) -> tuple[Array, Array, Array, Array]:
    """Return the normalised rows of the lexicon s<i>, t<i> and both normalised spaces."""
    return *matched(aligner.alignment_, seeds(pairs)), *normalised(aligner.alignment_)


def losses(aligner: RCSLS) -> list[float]:
    return [record["loss"] for record in aligner.alignment_.history if record["stage"] == "train"]


# --------------------------------------------------------------------------- the loss


@pytest.mark.parametrize("k", [1, 3, 99])
@pytest.mark.parametrize("seed", range(2))
def test_the_loss_against_plain_loops(k: int, seed: int) -> None:
    data = problem(seed)
    w = np.random.default_rng(seed + 10).standard_normal((4, 4))
    assert relaxed_csls(w, *data, k)[0] == pytest.approx(loss_by_hand(w, *data, k), abs=1e-12)


@pytest.mark.parametrize(("k", "seed"), [(1, 0), (4, 1)])
def test_the_gradient_against_central_differences(k: int, seed: int) -> None:
    # Within a step this small no neighbour changes, so the loss is linear and the difference exact up to rounding.
    data = problem(seed)
    w = np.random.default_rng(seed + 10).standard_normal((4, 4))
    _, gradient = relaxed_csls(w, *data, k)
    step, differences = 1e-6, np.zeros_like(w)
    for i, j in np.ndindex(*w.shape):
        moved = np.zeros_like(w)
        moved[i, j] = step
        up, down = loss_by_hand(w + moved, *data, k), loss_by_hand(w - moved, *data, k)
        differences[i, j] = (up - down) / (2 * step)
    assert_close(gradient, differences, atol=1e-8)


def test_the_loss_is_convex() -> None:
    data = problem(4)
    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b = rng.standard_normal((2, 4, 4))
        (at_a, gradient), (at_b, _) = relaxed_csls(a, *data, 3), relaxed_csls(b, *data, 3)
        # A convex function lies above its tangents.
        assert at_b >= at_a + float(np.sum(host(gradient) * (b - a))) - 1e-12


def test_the_loss_of_a_known_case() -> None:
    # One pair of equal words: -2 + 1 + 1 with itself as the only neighbour.
    x = np.array([[1.0, 0.0]])
    loss, gradient = relaxed_csls(np.eye(2), x, x, x, x, 1)
    assert loss == pytest.approx(0.0)
    assert_close(gradient, 0.0, atol=1e-15)
    # With a neighbour at a right angle as well, both means are a half.
    both = np.eye(2)
    assert relaxed_csls(np.eye(2), x, x, both, both, 2)[0] == pytest.approx(-1.0)


def test_small_blocks_and_array_api_strict_change_results_by_rounding_alone() -> None:
    data, w = problem(6), rotation(4, 6)
    loss, gradient = relaxed_csls(w, *data, 3)
    libraries: list[Any] = [np, array_api_strict]
    for xp in libraries:
        src, tgt, x, y = (xp.asarray(part) for part in data)
        with use_threads(1), use_memory(1e-6):
            assert block_rows(12, data[0]) < 4
            found, its_gradient = relaxed_csls(xp.asarray(w), src, tgt, x, y, 3)
        assert found == pytest.approx(loss, abs=1e-12)
        assert_close(its_gradient, gradient, atol=1e-12)


# --------------------------------------------------------------------------- the descent


@pytest.mark.parametrize("start", ["least-squares", "procrustes"])
def test_zero_steps_return_the_initial_map(start: str) -> None:
    aligner = RCSLS(start=start, steps=0, **OPTIONS).fit(*planted_embeddings(200, noise=0.4), lexicon=seeds(40))
    x, y, _, _ = data_of(aligner, 40)
    expected = least_squares(x, y) if start == "least-squares" else procrustes(x, y)
    assert_close(aligner.map_, expected, atol=1e-12)
    assert losses(aligner) == []


@pytest.mark.parametrize("learning_rate", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("constraint", ["none", "spectral"])
def test_the_loss_never_rises(constraint: str, learning_rate: float) -> None:
    aligner = RCSLS(constraint=constraint, learning_rate=learning_rate, start="procrustes", **OPTIONS)
    aligner.fit(*planted_embeddings(200, 180, noise=0.4, shuffle=True), lexicon=seeds(60))
    data = data_of(aligner, 60)
    history = losses(aligner)
    # The spectral constraint also removes rounding from the singular values of the initial map.
    first = relaxed_csls(procrustes(*data[:2]), *data, 10)[0] + 1e-6
    assert all(after <= before for before, after in zip([first, *history], history, strict=False))
    assert history[-1] < first
    # What is reported is the loss of the map that is returned.
    assert relaxed_csls(aligner.map_, *data, 10)[0] == pytest.approx(history[-1], abs=1e-10)


def test_the_first_step_goes_down_the_gradient() -> None:
    aligner = RCSLS(start="procrustes", steps=1, learning_rate=0.5, **OPTIONS)
    aligner.fit(*planted_embeddings(200, noise=0.4), lexicon=seeds(60))
    data = data_of(aligner, 60)
    w = procrustes(*data[:2])
    assert_close(aligner.map_, w - 0.5 * relaxed_csls(w, *data, 10)[1], atol=1e-12)


def test_a_huge_step_is_undone() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(30)
    start = RCSLS(steps=0, **OPTIONS).fit(*spaces, lexicon=lexicon)
    data = data_of(start, 30)
    before, gradient = relaxed_csls(start.map_, *data, 10)
    assert relaxed_csls(start.map_ - 1e6 * gradient, *data, 10)[0] > before
    aligner = RCSLS(learning_rate=1e6, steps=5, **OPTIONS).fit(*spaces, lexicon=lexicon)
    # Halved five times, the rate is still far too large, so the initial map is returned.
    assert_same(aligner.map_, start.map_)
    assert losses(aligner) == pytest.approx([before] * 5, abs=1e-12)
    rates = [record["rate"] for record in aligner.alignment_.history if record["stage"] == "train"]
    assert rates == [1e6 / 2**number for number in range(1, 6)]


def test_a_huge_step_is_halved_until_it_helps() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(30)
    aligner = RCSLS(learning_rate=1e3, steps=40, **OPTIONS).fit(*spaces, lexicon=lexicon)
    history = losses(aligner)
    assert history[-1] < history[0]
    assert relaxed_csls(aligner.map_, *data_of(aligner, 30), 10)[0] == pytest.approx(history[-1], abs=1e-10)


def test_only_frequent_words_are_neighbours() -> None:
    aligner = RCSLS(start="procrustes", steps=1, train_words=50, **OPTIONS)
    aligner.fit(*planted_embeddings(200, noise=0.4), lexicon=seeds(60))
    src, tgt, x, y = data_of(aligner, 60)
    w = procrustes(src, tgt)
    assert_close(aligner.map_, w - relaxed_csls(w, src, tgt, x[:50], y[:50], 10)[1], atol=1e-12)


# --------------------------------------------------------------------------- the constraint


def largest_singular_value(aligner: RCSLS) -> float:
    return float(np.linalg.norm(aligner.map_.astype(np.float64), 2))


def test_the_spectral_constraint_holds() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4), seeds(60)
    free, bound = (
        RCSLS(start="procrustes", constraint=constraint, **OPTIONS).fit(*spaces, lexicon=lexicon)
        for constraint in ("none", "spectral")
    )
    assert largest_singular_value(free) > 1.1
    assert largest_singular_value(bound) < 1.0 + 1e-9


@pytest.mark.parametrize("steps", [0, 5])
def test_the_spectral_constraint_holds_from_the_start(steps: int) -> None:
    # Least squares on few pairs stretches some directions.
    aligner = RCSLS(constraint="spectral", steps=steps, **OPTIONS)
    aligner.fit(*planted_embeddings(300, noise=0.3), lexicon=seeds(20))
    assert largest_singular_value(aligner) < 1.0 + 1e-9


# --------------------------------------------------------------------------- what is refused


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"start": "magic"}, "start='magic' is not known; expected one of least-squares, procrustes"),
        ({"constraint": "magic"}, "constraint='magic' is not known; expected one of none, spectral"),
        ({"steps": -1}, "steps=-1 is out of range; expected 0 to"),
        ({"learning_rate": 0.0}, r"learning_rate=0\.0 is out of range; expected above 0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan is out of range; expected above 0"),
        ({"train_words": 0}, "train_words=0 is out of range; expected 1 to"),
        ({"csls_k": 0}, "csls_k=0"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            RCSLS(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))


def test_one_pair_is_enough_to_run() -> None:
    aligner = RCSLS(threads=1, steps=3).fit(*planted_embeddings(10, d=4), lexicon=seeds(1))
    assert np.isfinite(aligner.map_).all()
