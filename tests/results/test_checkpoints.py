"""Checkpoints restore a state exactly, and only for the run it belongs to."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from qwp import InputError, arrays
from qwp.maps.procrustes import Maps
from qwp.results import checkpoints, schema
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity
from qwp.stages.stage import State
from tests.libraries import assert_same
from tests.problems import Array

STATE = State(
    Maps(np.eye(3, dtype=np.float32) * 0.1),
    stage="loop",
    done=7,
    tensors={"best": np.arange(4.0)},
    values={"rate": 0.5},
    history=({"stage": "loop", "step": 7},),
)
SECONDS = {"initialize": 1.5}
RUN = Identity("1", "qwp", {"epsilon": 0.05}, 1, {"src": "0" * 64, "tgt": "1" * 64})


def loaded(checkpoint: Checkpoint) -> State:
    """Return the state of an existing checkpoint."""
    found = checkpoint.load(RUN)
    assert found is not None
    return found[0]


def test_round_trip_is_exact(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, SECONDS, RUN)
    found = Checkpoint(tmp_path, resume=True).load(RUN)
    assert found is not None
    state, seconds = found
    assert_same(state.map, STATE.map)
    assert_same(state.tensors["best"], STATE.tensors["best"])
    assert replace(state, maps=None, tensors={}) == replace(STATE, maps=None, tensors={})
    assert seconds == SECONDS
    assert [path.name for path in tmp_path.iterdir()] == [checkpoints.FILE_NAME]


def test_every_field_of_a_state_is_restored(tmp_path: Path) -> None:
    full = State(
        Maps(np.eye(2), 2.0 * np.eye(2)),
        projected=True,
        order="estimated",
        stage="refine",
        done=3,
        tensors={"best": np.ones(2)},
        values={"last": True},
        history=({"stage": "initialize", "step": 1}, {"stage": "refine", "step": 3}),
        candidates=({"initializer": "profiles", "order": "given", "score": 1.25, "rescore": None},),
        initializer="profiles",
        accepted=False,
        remark="Pairs were kept.",
    )
    blank = State()
    assert all(getattr(full, each.name) != getattr(blank, each.name) for each in fields(State) if each.name != "maps")
    Checkpoint(tmp_path).save(full, {}, RUN)
    state = loaded(Checkpoint(tmp_path, resume=True))
    assert state.maps is not None
    assert full.maps is not None
    assert_same(state.maps.src, full.maps.src)
    assert_same(state.maps.tgt, full.maps.tgt)
    assert_same(state.tensors["best"], full.tensors["best"])
    assert replace(state, maps=None, tensors={}) == replace(full, maps=None, tensors={})


def test_settings_are_compared_before_the_inputs_are_known(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.check_settings(RUN)  # nothing is there
    checkpoint.save(STATE, SECONDS, RUN)
    checkpoint.check_settings(replace(RUN, inputs={}))
    other = replace(RUN, inputs={}, seed=2)
    with pytest.raises(InputError, match=r"belongs to another run \(seed was 1, now 2\): give the same inputs"):
        checkpoint.check_settings(other)
    Checkpoint(tmp_path).check_settings(other)  # it is not to be continued


def test_a_run_of_other_code_is_not_continued(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, SECONDS, replace(RUN, code="1+aaaa"))
    checkpoint = Checkpoint(tmp_path, resume=True)
    assert checkpoint.load(replace(RUN, code="1+aaaa")) is not None
    with pytest.raises(InputError, match=r"another run \(it was made by other code: 1\+aaaa, this is 1\+bbbb\)"):
        checkpoint.load(replace(RUN, code="1+bbbb"))


def test_values_and_tensors_of_methods_are_restored(tmp_path: Path) -> None:
    tensors: dict[str, Array] = {
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
    saved = State(Maps(np.arange(9.0).reshape(3, 3).T), stage="train", done=3, tensors=tensors, values=values)
    Checkpoint(tmp_path).save(saved, {}, RUN)
    found = Checkpoint(tmp_path, resume=True).load(RUN)
    assert found is not None
    state, seconds = found
    assert_same(state.map, saved.map)
    assert state.tensors.keys() == tensors.keys()
    for name, array in tensors.items():
        assert state.tensors[name].dtype == array.dtype
        np.testing.assert_array_equal(state.tensors[name], array, strict=True)
    assert state.values == values
    assert (state.history, seconds) == ((), {})


def test_a_later_state_replaces_the_earlier_one_whole(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.save(STATE, SECONDS, RUN)
    checkpoint.save(State(Maps(np.eye(2)), stage="refine", done=1), {}, RUN)
    state = loaded(checkpoint)
    assert (state.stage, state.done, state.tensors, state.values) == ("refine", 1, {}, {})
    assert state.map.shape == (2, 2)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arrays_of_any_library_are_saved(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    on_device = STATE.on_device(arrays.choose_device("cpu", library).put(np.zeros((1, 1)), "float32"))
    assert type(on_device.map).__module__.startswith(library)
    Checkpoint(tmp_path).save(on_device, {}, RUN)
    state = loaded(Checkpoint(tmp_path, resume=True))
    assert isinstance(state.map, np.ndarray)
    assert_same(state.map, STATE.map)
    again = state.on_device(on_device.map)
    assert type(again.map) is type(on_device.map)
    assert again.map.dtype == on_device.map.dtype
    # Arrays in float64 stay in float64.
    assert again.tensors["best"].dtype == on_device.tensors["best"].dtype
    assert_same(again.tensors["best"], STATE.tensors["best"])


def test_nothing_is_loaded_without_resume(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, SECONDS, RUN)
    assert Checkpoint(tmp_path).load(RUN) is None
    assert Checkpoint(tmp_path / "empty", resume=True).load(RUN) is None


def test_another_run_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(STATE, SECONDS, RUN)
    with pytest.raises(InputError, match=r"config.epsilon was 0.05, now 0.1"):
        Checkpoint(tmp_path, resume=True).load(replace(RUN, config={"epsilon": 0.1}))


# --------------------------------------------------------------------------- damaged ones


def sealed(path: Path, about: object, tensors: dict[str, Array]) -> None:
    """Write a checkpoint with any content and the right hash."""
    text = about if isinstance(about, str) else json.dumps(about)
    save_file(tensors, path, metadata={"about": text, "sha256": schema.tensors_digest(text, tensors)})


@pytest.fixture
def good(tmp_path: Path) -> tuple[Checkpoint, dict[str, Any], dict[str, Array]]:
    """Return a checkpoint, its description of the run, and its arrays."""
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.save(STATE, SECONDS, RUN)
    about, tensors = checkpoint._read()
    return checkpoint, about, tensors


def test_invalid_files_are_explained(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    for content in (b"", b"not a checkpoint", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}"):
        checkpoint.path.write_bytes(content)
        with pytest.raises(InputError, match=r"delete it, or start afresh \(--force\)"):
            checkpoint.load(RUN)


def test_every_flipped_bit_is_noticed(good: tuple[Checkpoint, dict[str, Any], dict[str, Array]]) -> None:
    checkpoint = good[0]
    data = checkpoint.path.read_bytes()
    for at in range(0, len(data), 7):
        checkpoint.path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(InputError):
            checkpoint.load(RUN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"done": -1}, "done is -1"),
        ({"done": 1.5}, "done is 1.5"),
        ({"done": None}, "done is None"),
        ({"stage": 3}, "stage is 3"),
        ({"values": []}, "values is"),
        ({"history": [1]}, r"history\[0\] is 1"),
        ({"seconds": {"loop": "x"}}, "seconds.loop is 'x'"),
        ({"seconds": {"loop": float("nan")}}, "seconds.loop is nan"),
        ({"order": "alphabetical"}, "order is 'alphabetical'; expected one of given, estimated"),
        ({"projected": 1}, "projected is 1; expected true or false"),
        ({"candidates": {}}, "candidates is"),
        ({"candidates": ["profiles"]}, r"candidates\[0\] is 'profiles'"),
        ({"initializer": 1}, "initializer is 1"),
        ({"accepted": "yes"}, "accepted is 'yes'"),
        ({"remark": None}, "remark is None"),
        ({"identity": {}}, "identity.version is missing"),
        ({"schema": 1}, "schema is 1"),
        ({"more": 1}, "'more' is not known"),
    ],
)
def test_unexpected_states_are_refused(
    good: tuple[Checkpoint, dict[str, Any], dict[str, Array]], change: dict[str, Any], message: str
) -> None:
    checkpoint, about, tensors = good
    sealed(checkpoint.path, {**about, **change}, tensors)
    with pytest.raises(InputError, match=message):
        checkpoint.load(RUN)


def test_invalid_descriptions_are_refused(good: tuple[Checkpoint, dict[str, Any], dict[str, Array]]) -> None:
    checkpoint, _, tensors = good
    for text in ("", "{", "[]", "9" * 5000, "[" * 100_000, '{"schema": 2, "schema": 2}'):
        sealed(checkpoint.path, text, tensors)
        with pytest.raises(InputError, match="delete it"):
            checkpoint.load(RUN)


def test_a_checkpoint_of_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    # Version 0.1 wrote them without a hash.
    save_file({"map": np.eye(3)}, checkpoint.path, metadata={"state": "{}", "fingerprint": "{}"})
    with pytest.raises(InputError, match="not a checkpoint that this version of qwp can continue"):
        checkpoint.load(RUN)


# --------------------------------------------------------------------------- the end


def test_clear(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.clear()
    checkpoint.save(STATE, SECONDS, RUN)
    (tmp_path / ".checkpoint.safetensors.0a1b2c3d.tmp").write_text("of a killed run")
    (tmp_path / "notes.tmp").write_text("of the user")
    checkpoint.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.tmp"]
    Checkpoint(tmp_path / "none").clear()
    assert not (tmp_path / "none").exists()


def test_a_failed_save_keeps_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path, resume=True)
    checkpoint.save(STATE, SECONDS, RUN)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises((OSError, InputError), match="No space left"):
            checkpoint.save(replace(STATE, done=8), SECONDS, RUN)
    assert [path.name for path in tmp_path.iterdir()] == [checkpoints.FILE_NAME]
    assert loaded(checkpoint).done == 7
