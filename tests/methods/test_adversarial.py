"""Adversarial training: a planted rotation, steps against simple references, seeds, resuming, small inputs."""

from __future__ import annotations

import logging
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from qwp import Alignment, Embeddings, InputError, arrays
from qwp.maps.procrustes import orthogonality_error
from qwp.methods.adversarial import Adversarial, AdversarialTraining, mean_cosine
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from tests.conftest import planted_embeddings
from tests.libraries import assert_same
from tests.problems import Planted, planted, space

pytest.importorskip("torch")

QUICK: dict[str, Any] = {"epochs": 3, "steps": 20, "hidden_size": 32, "device": "cpu", "threads": 1}
TRAINED: dict[str, Any] = {"epochs": 6, "steps": 100, "hidden_size": 64, "device": "cpu", "threads": 1}


def fit(src: Any, tgt: Any, *, progress: Any = None, checkpoint: Checkpoint | None = None, **options: Any) -> Alignment:
    return Adversarial(**options).fit(src, tgt, progress=progress, checkpoint=checkpoint).alignment_


# ----------------------------------------------------------------- the method


@pytest.mark.slow
def test_finds_a_planted_rotation_without_and_with_refinement() -> None:
    """Return a rotation by up to 1.6 radians with shuffled rows, which retrieval from the identity cannot solve."""
    d, rng = 12, np.random.default_rng(1)
    gaussian = rng.standard_normal((d, d))
    turn = gaussian - gaussian.T
    w = expm(1.6 * turn / np.abs(np.linalg.eigvals(turn)).max())
    src, order = space(400, d, 0), rng.permutation(400)
    tgt = (src @ w)[order] + 0.05 / d**0.5 * rng.standard_normal((400, d))
    problem = Planted(src.astype("f4"), tgt.astype("f4"), w, np.stack([order, np.arange(400)], axis=1))

    trained = fit(problem.src, problem.tgt, **TRAINED, refine=0)
    assert problem.accuracy(np.eye(d)) < 0.2
    assert problem.accuracy(trained.src_map) > 0.6
    refined = fit(problem.src, problem.tgt, **TRAINED)
    assert problem.accuracy(refined.src_map) > 0.95
    assert refined.quality.verdict == "succeeded"
    for alignment in (trained, refined):
        assert orthogonality_error(alignment.src_map) < 1e-5


@pytest.mark.slow
def test_a_step_follows_the_update_rules() -> None:
    """With one word a side every batch is equal, so torch.nn and its SGD can repeat three steps."""
    import torch

    from qwp.methods.adversarial import _Game

    settings = AdversarialTraining(
        steps=3,
        batch_size=4,
        hidden_size=5,
        discriminator_steps=2,
        learning_rate=0.1,
        mapper_rate=3.0,
        dropout=0.0,
        smoothing=0.2,
        beta=0.03,
    )
    x, y = (torch.as_tensor(planted(8, d=6, seed=s).src[:1]) for s in (0, 1))
    game = _Game(x, y, settings, 0)
    leak = 0.2
    network = torch.nn.Sequential(
        *(torch.nn.Linear(6, 5), torch.nn.LeakyReLU(leak), torch.nn.Linear(5, 5), torch.nn.LeakyReLU(leak)),
        torch.nn.Linear(5, 1),
    ).double()
    with torch.no_grad():
        for parameter, weight in zip(network.parameters(), game.tensors().values(), strict=True):
            parameter.copy_(weight)
    w = torch.eye(6, dtype=torch.float64, requires_grad=True)
    players = [torch.optim.SGD(network.parameters(), lr=0.05), torch.optim.SGD([w], lr=1.5)]
    smoothed = torch.tensor([0.8, 0.2], dtype=torch.float64)
    for _ in range(3):
        for player, labels in ((players[0], smoothed), (players[0], smoothed), (players[1], 1 - smoothed)):
            player.zero_grad()
            scores = network(torch.cat([x @ w, y]))[:, 0]
            torch.nn.functional.binary_cross_entropy_with_logits(scores, labels).backward()  # type: ignore[no-untyped-call]
            player.step()
        with torch.no_grad():
            w.copy_(1.03 * w - 0.03 * w @ w.T @ w)

    with arrays.RepeatedStep(game.step, x) as repeated:
        game.epoch(repeated, 1, 0.5)
    torch.testing.assert_close(game.map(), w.detach())
    for parameter, weight in zip(network.parameters(), game.tensors().values(), strict=True):
        torch.testing.assert_close(weight, parameter)
    assert float((game.map() - torch.eye(6)).abs().max()) > 1e-3


def test_the_criterion_is_the_mean_cosine_of_csls_translations() -> None:
    problem = planted(60, 80, 8, noise=0.3)
    cosine = problem.src @ problem.w @ problem.tgt.T
    near_tgt = np.sort(cosine, axis=1)[:, -5:].mean(axis=1, keepdims=True)
    near_src = np.sort(cosine, axis=0)[-5:].mean(axis=0)
    best = (2 * cosine - near_tgt - near_src).argmax(axis=1)
    expected = cosine[np.arange(60), best].mean()
    assert mean_cosine(problem.src, problem.tgt, problem.w, 5) == pytest.approx(expected)
    # Rows and map of any length: only directions count.
    assert mean_cosine(problem.src, problem.tgt, 3 * problem.w, 5) == pytest.approx(expected)


def trained_epochs(alignment: Alignment) -> list[dict[str, Any]]:
    return [record for record in alignment.history if record["stage"] == "train"]


@pytest.mark.slow
def test_the_map_of_the_best_epoch_is_returned() -> None:
    spaces = planted_embeddings(200, noise=0.2)
    options = {**QUICK, "epochs": 12, "mapper_rate": 40.0, "refine": 0}
    whole = fit(*spaces, **options)
    best = int(np.argmax([record["criterion"] for record in trained_epochs(whole)])) + 1
    assert 1 < best < 12
    assert_same(whole.src_map, fit(*spaces, **{**options, "epochs": best}).src_map)
    assert not np.array_equal(whole.src_map, fit(*spaces, **{**options, "epochs": best - 1}).src_map)


@pytest.mark.slow
def test_rates_decay_and_are_halved_when_the_criterion_falls() -> None:
    alignment = fit(
        *planted_embeddings(200, noise=0.2),
        **{**QUICK, "epochs": 12, "mapper_rate": 200.0, "learning_rate": 0.2, "rate_decay": 0.9},
    )
    epochs = trained_epochs(alignment)
    fell = [b["criterion"] < a["criterion"] for a, b in pairwise(epochs)]
    assert any(fell[:-1])
    assert not all(fell)
    rates = [record["rate"] for record in epochs]
    assert rates[:2] == pytest.approx([0.2, 0.18])
    factors = [later / earlier for earlier, later in pairwise(rates[1:])]
    assert factors == pytest.approx([0.45 if drop else 0.9 for drop in fell[:-1]])


# ----------------------------------------------------------------- seeds, resuming, small and bad inputs


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    spaces = planted_embeddings(200, noise=0.2)
    maps = [fit(*spaces, seed=s, **{**QUICK, "refine": 0}).src_map.tobytes() for s in (3, 3, 4)]
    assert maps[0] == maps[1] != maps[2]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "step"), [("train", 2), ("refine", 2)])
def test_an_interrupted_run_resumes_to_the_same_result(tmp_path: Path, stage: str, step: int) -> None:
    spaces = planted_embeddings(200, 250, noise=0.2)
    options = {**QUICK, "epochs": 5, "mapper_rate": 40.0, "seed": 5}
    whole = fit(*spaces, **options)

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(*spaces, progress=interrupt, checkpoint=Checkpoint(tmp_path, interval=0.0), **options)
    seen: list[Progress] = []
    resumed = fit(*spaces, progress=seen.append, checkpoint=Checkpoint(tmp_path, resume=True), **options)
    assert resumed.src_map.tobytes() == whole.src_map.tobytes()
    assert resumed.history == whole.history
    first = next((event.done for event in seen if event.stage == "train"), None)
    assert first == (step if stage == "train" else None)


@pytest.mark.parametrize(("n_src", "n_tgt"), [(1, 2), (10, 300), (300, 10)])
def test_tiny_and_unequal_vocabularies(n_src: int, n_tgt: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        alignment = fit(*planted_embeddings(n_src, n_tgt, d=4), **QUICK)
    assert alignment.quality.verdict == "undecided"
    assert np.isfinite(alignment.src_map).all()
    most = max(n_src, n_tgt)
    for name in ("train_words=50000", "criterion_words=10000"):
        assert f"{name} is more than the data holds: {most} is used" in caplog.text


def test_zero_vectors_never_produce_nan() -> None:
    src, tgt = planted_embeddings(100)
    vectors = src.vectors.copy()
    vectors[[5, 50]] = 0.0
    assert np.isfinite(fit(Embeddings(src.words, vectors), tgt, **QUICK).src_map).all()


def test_a_large_gradient_is_clipped() -> None:
    alignment = fit(*planted_embeddings(100), **{**QUICK, "mapper_rate": 1e6, "refine": 0})
    assert orthogonality_error(alignment.src_map) < 1e-5
    assert all(np.isfinite(epoch["criterion"]) for epoch in trained_epochs(alignment))
    assert len(trained_epochs(alignment)) == QUICK["epochs"]


def test_a_diverging_training_warns_and_returns_the_last_finite_map(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    criteria = iter([0.5, float("nan")])
    monkeypatch.setattr("qwp.methods.adversarial.mean_cosine", lambda *_: next(criteria))
    diverged = fit(*planted_embeddings(100), **{**QUICK, "refine": 0})
    assert "diverged in epoch 2" in caplog.text
    monkeypatch.undo()
    one_epoch = fit(*planted_embeddings(100), **{**QUICK, "epochs": 1, "refine": 0})
    assert_same(diverged.src_map, one_epoch.src_map)


@pytest.mark.slow
def test_only_frequent_words_are_drawn() -> None:
    src, tgt = planted_embeddings(100)
    other = src.vectors.copy()
    other[50:] = other[50:][::-1]
    options = {**QUICK, "criterion_words": 50, "refine": 0, "normalize": "unit"}
    for words, same in ((50, True), (100, False)):
        first, second = (fit(v, tgt, **{**options, "train_words": words}).src_map for v in (src.vectors, other))
        assert np.array_equal(first, second) == same


def test_bad_options_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epochs": -1}, "epochs=-1"),
        ({"steps": 0}, "steps=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"hidden_size": 0}, "hidden_size=0"),
        ({"discriminator_steps": 0}, "discriminator_steps=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"mapper_rate": -1.0}, "mapper_rate=-1.0"),
        ({"mapper_rate": float("inf")}, "mapper_rate=inf"),
        ({"rate_decay": 0.0}, "rate_decay=0.0"),
        ({"rate_decay": 1.5}, "rate_decay=1.5"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"smoothing": 0.5}, "smoothing=0.5"),
        ({"beta": -0.1}, "beta=-0.1"),
        ({"train_words": 0}, "train_words=0"),
        ({"criterion_words": 0}, "criterion_words=0"),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"backend": "numpy"}, "needs torch"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            fit(*planted_embeddings(30), **options)


def test_the_module_can_be_imported_without_torch() -> None:
    code = """
import sys

class NoTorch:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
import qwp.methods.adversarial
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
