"""Density matching: known answers, the gradient against autograd, seeds, resuming, small inputs, refused parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import Embeddings, InputError, Lexicon
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.methods.dema import DeMa, DensityMatching
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from qwp.stages.agreement import agreement
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.problems import rotation

torch = pytest.importorskip("torch")

# Small and quick, with all parts of the method.
QUICK: dict[str, Any] = {"threads": 1, "train_words": 400, "epochs": 6, "epoch_steps": 20, "restarts": 4}


def p1(aligner: DeMa, n: int = 400) -> float:
    gold = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))
    return qwp.evaluate(aligner.alignment_, gold, bootstrap=0).p_at_1()


@pytest.mark.slow
def test_recovers_a_planted_rotation() -> None:
    aligner = DeMa(**QUICK).fit(*planted_embeddings(noise=0.1, shuffle=True))
    assert p1(aligner) > 0.95
    assert aligner.quality_.verdict == "succeeded"
    assert orthogonality_error(aligner.map_) < 1e-5


@pytest.mark.slow
def test_density_matching_alone_finds_it() -> None:
    assert p1(DeMa(refine=0, **QUICK).fit(*planted_embeddings(noise=0.1))) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("start", ["identity", "profiles"])
def test_other_initializers_reach_a_nearby_rotation(start: str) -> None:
    src, tgt = planted_embeddings(noise=0.1)
    if start == "identity":
        skew = np.random.default_rng(0).standard_normal((12, 12))
        near = host(polar_svd(np.eye(12) + 0.05 * (skew - skew.T)))
        tgt = Embeddings(tgt.words, (src.vectors @ near).astype("f4"))
    aligner = DeMa(start=start, refine=0, **QUICK).fit(src, tgt)
    assert p1(aligner) > 0.9


def test_the_gradient_is_that_of_the_objective() -> None:
    rng = np.random.default_rng(0)
    stage = DensityMatching(frequency_power=0.7, back_translation=0.3, train_words=40)
    x, y = (torch.nn.functional.normalize(torch.asarray(rng.standard_normal((n, 5))), dim=1) for n in (40, 30))
    src, tgt = stage._mixture("source", x), stage._mixture("target", y)
    maps = torch.asarray(np.stack([[rotation(5, 1), rotation(5, 2)], [rotation(5, 3), rotation(5, 4)]]))
    maps.requires_grad_()
    variance, batch_x, batch_y = 0.2, x[:7], y[:9]

    def log_density(points: Any, mixture: Any) -> Any:
        squares = ((points[..., :, None, :] - mixture.means) ** 2).sum(dim=-1)
        return torch.logsumexp(mixture.log_weights - squares / (2 * variance), dim=-1).mean(dim=-1)

    there, back = batch_x @ maps[0], batch_y @ maps[1]
    likelihood = log_density(there, tgt) + log_density(back, src)
    cosine = torch.nn.functional.cosine_similarity
    returned = cosine(there @ maps[1], batch_x, dim=-1).mean(dim=-1) + cosine(back @ maps[0], batch_y, dim=-1).mean(
        dim=-1
    )
    log_determinant = torch.linalg.slogdet(maps)[1].sum(dim=0)
    objective = variance * (likelihood + log_determinant) + 0.3 * returned
    (expected,) = torch.autograd.grad(objective.sum(), maps)
    with torch.no_grad():
        gradient, value = stage._gradient(maps, batch_x, batch_y, src, tgt, variance)

        def turning(g: Any) -> Any:
            inner = maps.transpose(-1, -2) @ g
            return (inner - inner.transpose(-1, -2)).numpy()

        # They differ in the normal component, which is projected out.
        assert_close(turning(gradient), turning(expected), atol=1e-12)
        assert_close(value.numpy(), likelihood.numpy(), atol=1e-12)


def test_the_best_epoch_is_returned_not_the_last() -> None:
    seen: list[Progress] = []
    src, _ = planted_embeddings()
    # The initial map is correct; large train_words and batches of three words move away from it.
    wide = {
        "start": "identity",
        "sigma": 3.0,
        "final_sigma": 3.0,
        "batch_size": 3,
        "epoch_steps": 1,
        "refine": 0,
        "device": "cpu",
    }
    aligner = DeMa(**{**QUICK, **wide}).fit(src, src, progress=seen.append)
    train = [event for event in seen if event.stage == "train"]
    best = max(event.figures["mean_csls"] for event in train)
    assert train[-1].figures["mean_csls"] < best
    assert train[-1].figures["best_mean_csls"] == best
    x, y = (torch.asarray(aligner.alignment_.mapped(side)) for side in ("src", "tgt"))
    found = agreement(x, y, Maps(torch.eye(12)), aligner.csls_k)
    assert found.mean_csls == pytest.approx(best, abs=1e-4)


def test_batches_follow_the_weights() -> None:
    stage = DensityMatching(train_words=50, batch_size=50, epoch_steps=400, frequency_power=1.0)
    side = stage._mixture("source", torch.eye(50))
    words = stage._batches(side, 0, 0, 0)
    share = np.bincount(words.numpy().ravel(), minlength=50) / words.numel()
    weights = 1.0 / np.arange(1, 51)
    assert_close(share, weights / weights.sum(), atol=0.005)
    uniform = DensityMatching(train_words=50, batch_size=50, epoch_steps=3)
    words = uniform._batches(uniform._mixture("source", torch.eye(50)), 0, 0, 0)
    assert_same(words.numpy(), np.tile(np.arange(50), (3, 1)))


def test_sigma_is_annealed_from_the_first_to_the_last_step() -> None:
    stage = DensityMatching(sigma=0.8, final_sigma=0.2, epochs=3, epoch_steps=5)
    sigmas = [stage._sigma(step) for step in range(15)]
    assert (sigmas[0], sigmas[-1]) == pytest.approx((0.8, 0.2))
    assert_close(np.diff(np.log(sigmas)), np.log(0.25) / 14)


@pytest.mark.slow
def test_identical_strings_are_used_only_when_asked() -> None:
    src, tgt = planted_embeddings(noise=0.1)
    renamed = Embeddings(src.words[:], tgt.vectors)
    options = {**QUICK, "refine": 0, "restarts": 1, "epochs": 2, "seed": 3}
    plain = DeMa(**options).fit(src, renamed)
    helped = DeMa(identical=True, identical_weight=20.0, **options).fit(src, renamed)
    hits = [
        np.mean([best[0].word == word for word, best in aligner.alignment_.translate(src.words, k=1).items()])
        for aligner in (plain, helped)
    ]
    assert hits[0] < 0.5
    assert hits[1] > 0.9


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    spaces = planted_embeddings(noise=0.2)
    options = {**QUICK, "refine": 0, "epochs": 2, "epoch_steps": 5}
    maps = [DeMa(seed=seed, **options).fit(*spaces).map_.tobytes() for seed in (3, 3, 4)]
    assert maps[0] == maps[1] != maps[2]


@pytest.mark.parametrize(("stage", "step"), [("train", 4), ("refine", 2)])
def test_an_interrupted_run_resumes_to_the_same_map(tmp_path: Path, stage: str, step: int) -> None:
    spaces = planted_embeddings(150, noise=0.2)
    options: dict[str, Any] = {**QUICK, "epoch_steps": 5, "restarts": 2, "refine": 2, "seed": 5}
    whole = DeMa(**options).fit(*spaces)

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DeMa(**options).fit(*spaces, checkpoint=Checkpoint(tmp_path, interval=0.0), progress=interrupt)
    resumed = DeMa(**options).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True))
    assert resumed.map_.tobytes() == whole.map_.tobytes()
    history = [[(r["stage"], r["step"]) for r in a.alignment_.history] for a in (whole, resumed)]
    assert history[0] == history[1]


def test_tiny_vocabularies_work_and_are_undecided() -> None:
    cases: list[tuple[int, int]] = [(1, 2), (10, 11), (11, 10)]
    for n_src, n_tgt in cases:
        aligner = DeMa(**QUICK).fit(*planted_embeddings(n_src, n_tgt, d=4))
        assert aligner.quality_.verdict == "undecided"
        assert np.isfinite(aligner.map_).all()


@pytest.mark.slow
def test_unequal_sizes() -> None:
    assert p1(DeMa(**QUICK).fit(*planted_embeddings(300, 400, noise=0.05)), 300) > 0.9


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"start": "magic"}, "'magic' is not known"),
        ({"restarts": 0}, "restarts=0"),
        ({"train_words": 0}, "train_words=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"epoch_steps": 0}, "epoch_steps=0"),
        ({"sigma": 0.0}, r"sigma=0\.0"),
        ({"final_sigma": float("nan")}, "final_sigma=nan"),
        ({"sigma": 0.1, "final_sigma": 0.2}, "at most sigma=0.1"),
        ({"learning_rate": -1.0}, "learning_rate=-1"),
        ({"back_translation": -0.1}, "back_translation=-0.1"),
        ({"identical_weight": -1.0}, "identical_weight=-1"),
        ({"frequency_power": -1.0}, "frequency_power=-1"),
        ({"backend": "numpy"}, "needs torch"),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            DeMa(**options).fit(*planted_embeddings(50))
