"""Interrupted fits continue from every saved state to the result of an uninterrupted fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError, Lexicon, arrays
from qwp.methods import QWP, WP, Aligner
from qwp.methods.adversarial import Adversarial
from qwp.methods.compositions import LeastSquares, Procrustes, initializers
from qwp.methods.dema import DeMa
from qwp.methods.gromov import Gromov
from qwp.methods.proc_b import ProcB
from qwp.methods.rcsls import RCSLS
from qwp.methods.self_learning import SelfLearning
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity, Provenance
from qwp.stages.init.best_of import FALLBACK
from qwp.stages.stage import State
from tests.conftest import SHORT_SEARCH, planted_embeddings
from tests.libraries import skip_without_library
from tests.problems import planted, rotation
from tests.spaces.test_frequency import with_traces


class Keeping(Checkpoint):
    """Resumes from its folder, and keeps every saved state in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, resume=True, interval=0.0)
        self.folders: list[Path] = []
        self.states: list[Values] = []

    def save(self, state: State, seconds: Mapping[str, float], identity: Identity) -> None:
        super().save(state, seconds, identity)
        self.folders.append(self.path.parent / f"state{len(self.folders)}")
        self.folders[-1].mkdir()
        shutil.copy(self.path, self.folders[-1])
        self.states.append(state_values(state))
        self.identity = identity


Values = dict[str, Any]


def state_values(state: State) -> Values:
    """Return a state without its times."""
    assert state.maps is not None
    tensors = {"src": state.maps.src, "tgt": state.maps.tgt, **state.tensors}
    bits = {name: None if each is None else arrays.to_numpy(each).tobytes() for name, each in tensors.items()}
    values = json.loads(json.dumps(state.values))
    plain = replace(state, maps=None, tensors={}, values={})
    return {"bits": bits, "values": values, "state": json.loads(json.dumps(asdict(plain)))}


def result_values(found: Alignment) -> Values:
    """Return a result without its times."""
    seconds = found.provenance.seconds
    assert min(seconds.values()) >= 0
    content = replace(found, provenance=replace(found.provenance, seconds=dict.fromkeys(seconds, 0.0))).to_dict()
    maps = (found.src_map, found.tgt_map)
    return {"content": content, "maps": [None if w is None else w.tobytes() for w in maps]}


class Searching(QWP):
    """A short search that runs all of its rounds on hard problems."""

    method = "qwp"
    pipeline = replace(QWP.pipeline, init=initializers(replace(SHORT_SEARCH, rounds=2, continuations=1)))


LOOP: dict[str, Any] = {"coreset_size": 40, "bank_size": 3, "epochs": 2, "steps": 2, "pairs_per_step": 1}
FITTED: dict[str, Any] = {**LOOP, "start": "profiles", "refine": 3, "refine_first_words": 100}
PAIR = planted_embeddings(300, noise=0.1)
NOISE = PAIR[0], Embeddings([f"t{i}" for i in range(300)], planted(300, seed=9, dtype="float32").tgt)
HARD = planted_embeddings(300, d=24, noise=0.9, shuffle=True, seed=1)
# Too noisy for a short search, and a third of the words are spelt alike.
NAMESAKES = HARD[0], Embeddings([f"s{w[1:]}" if int(w[1:]) % 3 == 0 else w for w in HARD[1].words], HARD[1].vectors)
NARROW = Embeddings(PAIR[1].words, np.ascontiguousarray(PAIR[1].vectors[:, :9]))
# Words in random order, whose length and direction tell how frequent they are.
SHUFFLED = tuple(
    Embeddings([f"{side}{i}" for i in rows], with_traces(700, 12, 1)[rows] @ rotation(12, number).astype("f4"))
    for number, side in enumerate("st")
    for rows in [np.random.default_rng(number).permutation(700)]
)
LEXICON = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(0, 300, 2)))
# So little is found of these pairs that a refinement with anchors is tried as well.
UNRELATED = Lexicon(tuple((f"s{i}", f"t{7 * i % 300}") for i in range(300)))


@dataclass(frozen=True)
class Fit:
    """A fit to interrupt. stages: the stages whose states it saves."""

    aligner: type[Aligner]
    options: dict[str, Any]
    stages: str
    spaces: tuple[Embeddings, ...] = PAIR
    lexicon: Lexicon | None = None

    def __call__(self, checkpoint: Checkpoint | None) -> Alignment:
        """Fit from a checkpoint or from the beginning."""
        aligner = self.aligner(threads=1, device="cpu", **{"verdict": "none", **self.options})
        return aligner.fit(*self.spaces, lexicon=self.lexicon, checkpoint=checkpoint).alignment_


FITS = {
    "coresets": Fit(QWP, FITTED, "loop refine finished"),
    "lloyd, growing": Fit(QWP, {**FITTED, "coreset": "lloyd", "schedule": "grave"}, "loop refine finished"),
    "batches": Fit(WP, {**FITTED, "map": "orthogonal"}, "loop refine finished"),
    "without refinement": Fit(QWP, {**FITTED, "refine": 0}, "loop refine finished"),
    "other widths": Fit(QWP, FITTED, "loop refine finished", (NARROW, PAIR[0])),
    "other widths, not refined": Fit(QWP, {**FITTED, "refine": 0}, "loop refine finished", (PAIR[0], NARROW)),
    "estimated order": Fit(QWP, FITTED, "loop refine finished", SHUFFLED),
    "lexicon": Fit(QWP, {**FITTED, "start": "lexicon", "anchor_weight": 5.0}, "loop refine finished", PAIR, LEXICON),
    "held-out pairs": Fit(
        QWP, {**FITTED, "start": "lexicon", "verdict": "quick"}, "loop refine finished", NOISE, UNRELATED
    ),
    "self-learning": Fit(SelfLearning, {"patience": 2, "max_steps": 12}, "learn finished"),
    "Gromov": Fit(Gromov, {"train_words": 100, "steps": 3, "refine": 2}, "couple refine finished"),
    "adversarial": Fit(Adversarial, {"epochs": 3, "steps": 5, "hidden_size": 8}, "train refine finished"),
    "density": Fit(DeMa, {"epochs": 3, "epoch_steps": 4, "train_words": 100, "restarts": 2}, "train refine finished"),
    "relaxed CSLS": Fit(RCSLS, {"steps": 8, "learning_rate": 20.0}, "train finished", PAIR, LEXICON),
    "bootstrapping": Fit(ProcB, {"rounds": 3, "growth": 50}, "learn finished", PAIR, LEXICON),
    "Procrustes": Fit(Procrustes, {"refine": 3}, "refine finished", PAIR, LEXICON),
    "least squares": Fit(LeastSquares, {}, "finished", PAIR, LEXICON),
}
SEARCHES = {
    "noise": Fit(Searching, {**FITTED, "start": "auto"}, "initialize loop refine finished", NOISE),
    "a fallback": Fit(
        Searching, {**FITTED, "start": "auto", "start_words": 150}, "initialize loop refine finished", NAMESAKES
    ),
    "items": Fit(Searching, {**FITTED, "start": "auto", "order": "none"}, "initialize loop refine finished", NOISE),
    "an estimated order": Fit(
        Searching, {**FITTED, "start": "auto", "start_words": 100}, "initialize loop refine finished", SHUFFLED
    ),
}


@pytest.mark.parametrize("name", [*FITS, *(pytest.param(name, marks=pytest.mark.slow) for name in SEARCHES)])
def test_resumed_fits_equal_uninterrupted_ones(name: str, tmp_path: Path) -> None:
    """The result and the states that are saved on the way are the same, so a fit may be interrupted again."""
    fit = {**FITS, **SEARCHES}[name]
    skip_without_library(fit.aligner.method)
    undisturbed, whole = result_values(fit(None)), Keeping(tmp_path)
    assert result_values(fit(whole)) == undisturbed
    stages = [values["state"]["stage"] for values in whole.states]
    assert " ".join(dict.fromkeys(stages)) == fit.stages
    for number, folder in enumerate(whole.folders):
        continued = Keeping(folder)
        assert result_values(fit(continued)) == undisturbed
        assert continued.states == whole.states[number + 1 :]


@pytest.mark.parametrize("name", ["coresets", "self-learning"])
def test_damaged_states_are_refused(name: str, tmp_path: Path) -> None:
    fit, whole = FITS[name], Keeping(tmp_path)
    fit(whole)
    for stage in fit.stages.split():
        number = [values["state"]["stage"] for values in whole.states].index(stage)
        checkpoint = Checkpoint(whole.folders[number], resume=True)
        data = checkpoint.path.read_bytes()
        flipped = bytearray(data)
        flipped[-10] ^= 1
        for damaged in (b"", data[: len(data) // 2], data[:-1], bytes(flipped)):
            checkpoint.path.write_bytes(damaged)
            with pytest.raises(InputError, match=r"is not a checkpoint that this version .*start afresh \(--force\)"):
                fit(checkpoint)
        checkpoint.path.write_bytes(data)
        for other in (replace(fit, options={**fit.options, "seed": 1}), replace(fit, spaces=fit.spaces[::-1])):
            with pytest.raises(InputError, match="belongs to another run"):
                other(checkpoint)
        assert checkpoint.path.read_bytes() == data, "what was refused is kept"


# --------------------------------------------------------------------------- what these fits meet


def provenance_of(name: str) -> Provenance:
    found = {**FITS, **SEARCHES}[name](None)
    assert isinstance(found, Alignment)
    return found.provenance


def test_orders_are_estimated_and_pairs_held_out() -> None:
    assert provenance_of("estimated order").order == "estimated"
    held_out = FITS["held-out pairs"](None)
    assert isinstance(held_out, Alignment)
    rounds = [record for record in held_out.history if record["stage"] == "refine"]
    assert [record["step"] for record in rounds] == [1, 2, 3, 1, 2, 3], "the second time with anchors"


@pytest.mark.slow
def test_fits_reach_the_intended_stages() -> None:
    assert provenance_of("a fallback").initializer == FALLBACK
    assert provenance_of("an estimated order").order == "estimated"
    assert len(provenance_of("noise").candidates) >= 8, "a hopeless search ends after its first round"
    items = SEARCHES["items"](None)
    assert isinstance(items, Alignment)
    rounds = [record for record in items.history if record["stage"] == "refine"]
    assert len(rounds) > 3, "more rounds follow a weak initial map of items"
