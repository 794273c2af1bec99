"""Checkpoints: the state comes back exactly, and only to the run it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import InputError
from qwp.results.checkpoints import Checkpoint, RunState
from tests.problems import Array

STATE = RunState(
    "loop",
    7,
    np.eye(3, dtype=np.float32) * 0.1,
    {"best": np.arange(4.0)},
    {"rate": 0.5},
    [{"stage": "loop", "step": 7}],
    {"start": 1.5},
)
FINGERPRINT = {"seed": 1, "config": {"epsilon": 0.05}}


def test_round_trip_is_exact(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, FINGERPRINT)
    state = Checkpoint(tmp_path, resume=True).load(FINGERPRINT)
    assert state is not None
    np.testing.assert_array_equal(state.map, STATE.map)
    np.testing.assert_array_equal(state.arrays["best"], STATE.arrays["best"])
    assert state.values == STATE.values
    assert (state.stage, state.done, state.history, state.seconds) == (
        "loop",
        7,
        STATE.history,
        STATE.seconds,
    )


def test_whatever_a_method_remembers_comes_back(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {
        "map": np.ones((2, 2)),  # not to be taken for the map of the state
        "array.map": np.arange(3, dtype=np.int64),
        "stack": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "flags": np.array([True, False]),
        "none": np.zeros((0, 3)),
    }
    values: dict[str, Any] = {
        "rate": 0.1,
        "best": -np.inf,
        "phase": 3,
        "runs": [{"history": [{"step": 1, "loss": -0.25}], "seconds": {"loop": 0.5}}],
        "word": "Straße 語",
        "nothing": None,
        "done": False,
    }
    saved = RunState("train", 3, np.arange(9.0).reshape(3, 3).T, arrays, values)
    Checkpoint(tmp_path).save(saved, FINGERPRINT)
    state = Checkpoint(tmp_path, resume=True).load(FINGERPRINT)
    assert state is not None
    np.testing.assert_array_equal(state.map, saved.map)
    assert state.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert state.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(state.arrays[name], array, strict=True)
    assert state.values == values
    assert (state.history, state.seconds) == ([], {})


def test_a_later_state_replaces_the_earlier_one_whole(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.save(STATE, FINGERPRINT)
    checkpoint.save(RunState("refine", 1, np.eye(2)), FINGERPRINT)
    state = checkpoint.load(FINGERPRINT)
    assert state is not None
    assert (state.stage, state.done, state.arrays, state.values) == ("refine", 1, {}, {})
    assert state.map.shape == (2, 2)


def test_nothing_is_loaded_unless_asked(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, FINGERPRINT)
    assert Checkpoint(tmp_path).load(FINGERPRINT) is None
    assert Checkpoint(tmp_path / "empty", resume=True).load(FINGERPRINT) is None


def test_another_run_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, FINGERPRINT)
    with pytest.raises(InputError, match=r"config.epsilon was 0.05, now 0.1"):
        Checkpoint(tmp_path, resume=True).load({"seed": 1, "config": {"epsilon": 0.1}})


def test_a_damaged_checkpoint_is_explained(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.path.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="delete it"):
        checkpoint.load(FINGERPRINT)


def test_clear(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.clear()
    checkpoint.save(STATE, FINGERPRINT)
    checkpoint.clear()
    assert not checkpoint.path.exists()
