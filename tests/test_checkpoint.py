"""Checkpoints: the state comes back exactly, and only to the run it belongs to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import InputError
from qwp.checkpoint import Checkpoint, RunState

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
