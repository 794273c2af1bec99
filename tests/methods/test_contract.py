"""The contract of every method."""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from typer.testing import CliRunner

import qwp
from qwp import Alignment, Embeddings, InputError, Lexicon
from qwp.cli.main import app
from qwp.methods import METHODS, Aligner, make_aligner
from qwp.methods.settings import IDENTICAL, REQUIRED
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from qwp.spaces import io
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_same, host, skip_without_library
from tests.problems import space

pytestmark = pytest.mark.usefixtures("short_trials")

Spaces = tuple[Embeddings, Embeddings]

COMMON: dict[str, Any] = {"device": "cpu", "threads": 1}
# The search for an initial map takes most of the time.
WITHOUT_SEARCH: dict[str, Any] = {"start": "identity", "epochs": 2, "steps": 3, "refine": 2}


def rotated(n_src: int = 400, n_tgt: int | None = None, d: int = 12) -> Spaces:
    """Return spaces with a random rotation and shuffled target words."""
    return planted_embeddings(n_src, n_tgt, d, noise=0.1, shuffle=True)


def turned_a_little(n_src: int = 400, n_tgt: int | None = None, d: int = 12) -> Spaces:
    """Return spaces with a rotation by at most 1.6 radians, which adversarial training from the identity can find."""
    n_tgt = n_src if n_tgt is None else n_tgt
    rng = np.random.default_rng(1)
    gaussian = rng.standard_normal((d, d))
    turn = gaussian - gaussian.T
    words = space(max(n_src, n_tgt), d, 0)
    tgt = words @ expm(1.6 * turn / np.abs(np.linalg.eigvals(turn)).max())
    order = rng.permutation(n_tgt)
    return (
        Embeddings([f"s{i}" for i in range(n_src)], words[:n_src].astype("f4")),
        Embeddings([f"t{i}" for i in order], tgt[order].astype("f4")),
    )


def namesakes(n_src: int = 400, n_tgt: int | None = None, d: int = 12) -> Spaces:
    """Return spaces with a random rotation; both sides spell every tenth word alike."""
    src, tgt = rotated(n_src, n_tgt, d)
    alike = {f"t{i}": f"s{i}" for i in range(0, n_src, 2 if n_src < 100 else 10)}
    return src, Embeddings([alike.get(word, word) for word in tgt.words], tgt.vectors)


@dataclass(frozen=True)
class Case:
    """The test case of a method.

    options: settings that make it quick; brief: those that make it quicker still, where nobody asks whether the map is
    right; spaces: the problem; words: how many of them it needs to be found; random: whether the seed matters.
    """

    options: dict[str, Any] = field(default_factory=dict)
    spaces: Callable[..., Spaces] = rotated
    random: bool = True
    words: int = 250
    brief: dict[str, Any] = field(default_factory=dict)


CASES = {
    "qwp": Case(QUICK, brief=WITHOUT_SEARCH),
    "wp": Case(QUICK, brief=WITHOUT_SEARCH),
    "self-learning": Case({"patience": 3}, brief={"patience": 1}),
    "gromov": Case(
        {"train_words": 400, "stages": 2, "steps": 10}, random=False, brief={"train_words": 100, "steps": 3}
    ),
    "adversarial": Case(
        {"epochs": 6, "steps": 100, "hidden_size": 64, "mapper_rate": 30.0},
        turned_a_little,
        words=400,
        brief={"epochs": 3, "steps": 5, "hidden_size": 8},
    ),
    "dema": Case(
        {"train_words": 200, "epochs": 6, "epoch_steps": 30}, words=400, brief={"epochs": 3, "epoch_steps": 4}
    ),
    "identical": Case(spaces=namesakes, random=False),
    "least-squares": Case(random=False),
    "procrustes": Case({"refine": 2}, random=False),
    "rcsls": Case({"steps": 5}, random=False),
    "proc-b": Case({"rounds": 3, "growth": 50}, random=False),
}
ITERATIVE = tuple(name for name in CASES if name != "least-squares")
# Methods with gradient steps, or of cubic cost in the words.
TRAINED = ("adversarial", "dema", "gromov")
every_method = pytest.mark.parametrize("method", [*METHODS])


def gold(spaces: Spaces) -> Lexicon:
    """Return the true pairs."""
    src, tgt = spaces
    known = {word: f"t{word[1:]}" if f"t{word[1:]}" in tgt else word for word in src.words}
    return Lexicon(tuple((a, b) for a, b in known.items() if b in tgt))


def some_gold(method: str, spaces: Spaces) -> Lexicon | None:
    """Return the supervision that the method needs: a sixth of the true pairs."""
    return Lexicon(gold(spaces).pairs[::6]) if METHODS[method].supervision == REQUIRED else None


def aligner(method: str, **options: Any) -> Aligner:
    skip_without_library(method)
    return make_aligner(method, **{**COMMON, **CASES[method].options, **options})


def fit(method: str, spaces: Spaces, **options: Any) -> Alignment:
    return aligner(method, **options).fit(*spaces, lexicon=some_gold(method, spaces)).alignment_


def fit_briefly(method: str, spaces: Spaces, **options: Any) -> Alignment:
    """Fit with few steps, for tests that need neither a correct map nor a verdict."""
    return fit(method, spaces, **{**CASES[method].brief, "verdict": "none", **options})


def test_every_method_has_a_case() -> None:
    assert set(CASES) == set(METHODS)


@pytest.mark.parametrize(
    "method", [pytest.param(method, marks=pytest.mark.slow if method in TRAINED else ()) for method in METHODS]
)
def test_recovers_a_planted_rotation(method: str) -> None:
    spaces = CASES[method].spaces(CASES[method].words)
    alignment = fit(method, spaces)
    assert qwp.evaluate(alignment, gold(spaces), bootstrap=0).p_at_1() > 0.95
    assert alignment.quality.verdict == "succeeded"
    assert alignment.provenance.method == method


@every_method
def test_a_seed_gives_the_same_bytes_again_and_another_does_not(method: str) -> None:
    options: dict[str, Any] = {"refine": 0} if "refine" in METHODS[method].parameter_names() else {}
    # The last dictionary of self-learning is not random, so two seeds differ only before convergence.
    options |= {"max_steps": 2} if method == "self-learning" else {}
    spaces = CASES[method].spaces(120, 140, 12)
    maps = [fit_briefly(method, spaces, seed=seed, **options).src_map.tobytes() for seed in (3, 3, 4)]
    assert maps[0] == maps[1]
    assert (maps[0] != maps[2]) == CASES[method].random


@pytest.mark.slow
@every_method
def test_survives_ten_words_and_two_with_default_sizes(method: str) -> None:
    # All sizes exceed the data; only the numbers of steps are reduced.
    steps = {"qwp": {"steps": 1}, "wp": {"steps": 1}}
    steps |= {"adversarial": {"epochs": 2, "steps": 5}, "dema": {"epochs": 2, "epoch_steps": 5}}
    options: dict[str, Any] = steps.get(method, {})
    skip_without_library(method)
    for n in (2, 10):
        spaces = CASES[method].spaces(n, n + 1, 4)
        lexicon = Lexicon(gold(spaces).pairs[:5]) if METHODS[method].supervision == REQUIRED else None
        alignment = make_aligner(method, **COMMON, **options).fit(*spaces, lexicon=lexicon).alignment_
        assert alignment.quality.verdict == "undecided"
        assert np.isfinite(host(alignment.mapped("src"))).all()
        assert np.isfinite(host(alignment.mapped("tgt"))).all()
        assert len(alignment.translate("s0", k=50)["s0"]) == n + 1


@every_method
def test_unequal_sizes(method: str) -> None:
    for sizes in ((70, 110), (110, 70)):
        alignment = fit_briefly(method, CASES[method].spaces(*sizes))
        assert (len(alignment.src), len(alignment.tgt)) == sizes
        assert np.isfinite(host(alignment.mapped("src"))).all()


@pytest.mark.parametrize(
    ("method", "dims"),
    [
        *(pytest.param(method, (12, 15), marks=pytest.mark.slow if method in TRAINED else ()) for method in METHODS),
        *((method, (15, 12)) for method in ("qwp", "rcsls")),
    ],
)
def test_spaces_of_different_width(method: str, dims: tuple[int, int], tmp_path: Path) -> None:
    """With a wider target the map has orthonormal rows; with a wider source it has orthonormal columns."""
    src, tgt = CASES[method].spaces(CASES[method].words)
    whole = np.linalg.qr(np.random.default_rng(5).standard_normal((15, 15)))[0].astype("f4")
    # Adversarial training starts at the identity, so the rotation has to be small.
    turn = np.eye(12, 15, dtype="f4") if method == "adversarial" else whole[:12, :]
    wide = [side.vectors if dim == 12 else side.vectors @ turn for side, dim in zip((src, tgt), dims, strict=True)]
    spaces = Embeddings(src.words, wide[0]), Embeddings(tgt.words, wide[1])
    alignment = fit(method, spaces)
    # Mixtures are harder to match if some dimensions are empty.
    assert qwp.evaluate(alignment, gold(spaces), bootstrap=0).p_at_1() > (0.7 if method == "dema" else 0.95)
    common = 12 if alignment.tgt_map is not None else dims[1]
    assert alignment.src_map.shape == (dims[0], common)
    assert alignment.transform(src.words[0]).shape == (common,)
    assert alignment.transform(wide[1][:3], "tgt").shape == (3, common)
    loaded = Alignment.load(alignment.save(tmp_path / "saved"))
    for side in ("src", "tgt"):
        assert_same(loaded.mapped(side), alignment.mapped(side))
    assert alignment.quality.verdict == "succeeded"
    if method == "qwp":
        assert loaded.judge_again().verdict == "succeeded"
    assert loaded.translate(vectors=wide[0][0], k=1) == alignment.translate(vectors=wide[0][0], k=1)


@every_method
def test_saves_and_loads(method: str, tmp_path: Path) -> None:
    alignment = fit_briefly(method, CASES[method].spaces(60, 60, 6), verdict="full")
    loaded = Alignment.load(alignment.save(tmp_path / "saved"))
    assert_same(loaded.src_map, alignment.src_map)
    assert (loaded.tgt_map is None) == (alignment.tgt_map is None)
    for side in ("src", "tgt"):
        assert_same(loaded.mapped(side), alignment.mapped(side))
    assert loaded.quality == alignment.quality
    assert loaded.provenance == alignment.provenance
    assert loaded.provenance.config == aligner(method, **CASES[method].brief).config()


@every_method
def test_refuses_vectors_that_are_not_numbers(method: str) -> None:
    (src, tgt) = spaces = CASES[method].spaces(60, 60, 6)
    vectors = tgt.vectors.copy()
    vectors[7, 2] = np.nan
    with pytest.raises(InputError, match="finite"):
        aligner(method).fit(src, vectors, lexicon=some_gold(method, spaces))


@every_method
def test_only_supervised_methods_require_a_lexicon(method: str) -> None:
    src, tgt = CASES[method].spaces(60, 60, 6)
    if METHODS[method].supervision == REQUIRED:
        with pytest.raises(InputError, match=f"'{method}' is supervised and needs a seed lexicon"):
            aligner(method).fit(src, tgt)
    elif METHODS[method].supervision == IDENTICAL:
        with pytest.raises(InputError, match="identical strings: no pair is covered"):
            aligner(method).fit(*rotated(60, 60, 6))
    else:
        aligner(method, **CASES[method].brief).fit(src, tgt)


@every_method
def test_an_order_that_means_nothing_is_refused(method: str) -> None:
    spaces = CASES[method].spaces(60, 60, 6)
    with pytest.raises(InputError, match="order='alphabetical' is not known; expected one of auto, given"):
        aligner(method, order="alphabetical").fit(*spaces, lexicon=some_gold(method, spaces))


@pytest.mark.slow
@pytest.mark.parametrize("method", ITERATIVE)
def test_progress_is_reported_and_an_interrupted_run_ends_the_same(method: str, tmp_path: Path) -> None:
    spaces = CASES[method].spaces(120, 120, 8)
    lexicon = some_gold(method, spaces)
    events: list[Progress] = []
    options = CASES[method].brief
    if method == "qwp":
        options = {**options, "start": "auto"}
    whole = aligner(method, **options).fit(*spaces, lexicon=lexicon, progress=events.append)
    assert all(event.done <= event.total for event in events)
    for stage in {event.stage for event in events} - {"initialize"}:  # `auto` may try a second initializer
        steps = [event.done for event in events if event.stage == stage]
        assert all(b > a for a, b in pairwise(steps)), stage
    stop_at = max(1, len(events) - 3)

    def interrupt(_: Progress, seen: list[int] = [0]) -> None:  # noqa: B006
        seen[0] += 1
        if seen[0] > stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aligner(method, **options).fit(
            *spaces, lexicon=lexicon, progress=interrupt, checkpoint=Checkpoint(tmp_path, interval=0.0)
        )
    again: list[Progress] = []
    checkpoint = Checkpoint(tmp_path, resume=True)
    resumed = aligner(method, **options).fit(*spaces, lexicon=lexicon, progress=again.append, checkpoint=checkpoint)
    assert_same(resumed.map_, whole.map_)
    for side in ("src", "tgt"):
        assert_same(resumed.alignment_.mapped(side), whole.alignment_.mapped(side))
    assert len(again) < len(events)


@pytest.mark.parametrize(
    ("method", "size"),
    [
        *((method, "coreset_size") for method in ("qwp", "wp")),
        ("self-learning", "train_words"),
        ("gromov", "train_words"),
        ("adversarial", "train_words"),
        ("dema", "train_words"),
        ("rcsls", "train_words"),
    ],
)
def test_a_size_that_the_data_does_not_hold_is_clamped_and_logged(
    method: str, size: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        fit_briefly(method, CASES[method].spaces(60, 60, 6), **{size: 5000})
    assert "60" in caplog.text
    assert "clamped" in caplog.text or f"{size}=5000" in caplog.text or "(source)=5000" in caplog.text


@pytest.mark.parametrize("method", [name for name, kind in METHODS.items() if kind.needs_pot])
def test_without_pot_it_says_what_to_install(method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    expected = f"method '{method}' needs POT, which is not installed: pip install \"qwp[pot]\""
    with pytest.raises(InputError, match=re.escape(expected)):
        make_aligner(method).validate()
    # Before any file is read: these do not exist.
    absent = [str(tmp_path / name) for name in ("src.npz", "tgt.npz")]
    result = CliRunner().invoke(app, ["align", *absent, "--method", method, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert expected in result.stderr


@pytest.mark.parametrize("method", [name for name, kind in METHODS.items() if kind.needs_torch])
def test_without_torch_it_says_what_to_install(method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    expected = f"method '{method}' needs torch, which is not installed: pip install \"qwp[torch]\""
    with pytest.raises(InputError, match=re.escape(expected)):
        make_aligner(method).fit(*rotated(20, 20, 3))
    files = [str(tmp_path / name) for name in ("src.npz", "tgt.npz")]
    for vectors, file in zip(rotated(20, 20, 3), files, strict=True):
        io.save(vectors, file)
    result = CliRunner().invoke(app, ["align", *files, "--method", method, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "qwp[torch]" in result.stderr
    with pytest.raises(InputError, match="needs torch, but backend 'numpy' was asked for"):
        make_aligner(method, backend="numpy").fit(*rotated(20, 20, 3))
