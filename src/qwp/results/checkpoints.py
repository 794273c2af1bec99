"""Checkpoints: the state of an interrupted run and the time spent so far."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from qwp import arrays
from qwp.errors import InputError
from qwp.maps.procrustes import Maps
from qwp.results import saved, schema
from qwp.results.provenance import IDENTITY, Identity
from qwp.results.schema import Anything, Flag, Int, ListOf, MapOf, Number, Optional, Record, Text
from qwp.spaces.io import locks
from qwp.spaces.io.arguments import parse_json
from qwp.spaces.io.files import atomic_write
from qwp.stages.stage import State

FILE_NAME = "checkpoint.safetensors"
SCHEMA = 5
_MAPS, _ARRAY = ("map", "map.tgt"), "array."
_ABOUT = Record(
    {
        "schema": Int(SCHEMA, SCHEMA),
        "identity": IDENTITY,
        "seconds": MapOf(Number()),
        "stage": Text(most=100),
        "done": Int(),
        "order": Text(choices=("given", "estimated")),
        "projected": Flag(),
        "values": MapOf(Anything()),
        "history": ListOf(MapOf(Anything())),
        "candidates": ListOf(MapOf(Anything())),
        "initializer": Optional(Text()),
        "accepted": Optional(Flag()),
        "remark": Text(),
    }
)
# Fields of a state that are plain JSON.
_PLAIN = ("stage", "done", "order", "projected", "initializer", "accepted", "remark")
_KINDS = {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "I64", "U64", "F64"}


class Checkpoint:
    """The checkpoint file of a folder. It records which run it belongs to.

    resume: whether `load` returns a saved state. interval: least number of seconds between two saved states of a stage;
    None for the default.
    """

    def __init__(self, folder: str | Path, *, resume: bool = False, interval: float | None = None) -> None:
        self.path = Path(folder) / FILE_NAME
        self.resume, self.interval = resume, interval

    def save(self, state: State, seconds: Mapping[str, float], identity: Identity) -> None:
        """Replace the checkpoint atomically by a state. seconds: the time of each stage."""
        about = {
            **{name: getattr(state, name) for name in _PLAIN},
            "values": dict(state.values),
            "history": list(state.history),
            "candidates": list(state.candidates),
        }
        text = json.dumps({"schema": SCHEMA, "identity": identity.to_dict(), "seconds": dict(seconds), **about})
        assert state.maps is not None, "a checkpoint has a map"
        tensors = {name: w for name, w in zip(_MAPS, state.maps, strict=True) if w is not None}
        tensors |= {_ARRAY + name: array for name, array in state.tensors.items()}
        whole = {name: np.ascontiguousarray(arrays.to_numpy(tensor)) for name, tensor in tensors.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # With the lock of the folder, temporary files of killed runs differ from those being written.
        with locks.exclusive(self.path.parent), atomic_write(self.path) as file:
            file.write(save(whole, metadata={"about": text, "sha256": schema.tensors_digest(text, whole)}))
            file.flush()
            os.fsync(file.fileno())

    def load(self, identity: Identity) -> tuple[State, dict[str, float]] | None:
        """Return the saved state, with NumPy arrays, and the seconds; None without a checkpoint or without `resume`.

        An InputError if the checkpoint is damaged or of another run. The hash and the identity of the run imply that
        the stage and the shapes are right.
        """
        if not self.resume or not self.path.exists():
            return None
        about, tensors = self._read()
        self._refuse_other(identity, about["identity"])
        return State(
            maps=Maps(tensors[_MAPS[0]], tensors.get(_MAPS[1])),
            tensors={name.removeprefix(_ARRAY): each for name, each in tensors.items() if name not in _MAPS},
            values=about["values"],
            history=tuple(about["history"]),
            candidates=tuple(about["candidates"]),
            **{name: about[name] for name in _PLAIN},
        ), about["seconds"]

    def check_settings(self, settings: Identity) -> None:
        """Raise an InputError if the checkpoint has other settings, before the vectors are read and compared."""
        if self.resume and self.path.exists():
            about, _ = self._read()
            self._refuse_other(settings, {**about["identity"], "inputs": {}, "order": []})

    def _refuse_other(self, now: Identity, was: Mapping[str, Any]) -> None:
        difference = now.difference(was)
        if difference is not None:
            raise InputError(
                f"{self.path} belongs to another run ({difference}): "
                "give the same inputs and options, or start afresh (--force)"
            )

    def _read(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Read and validate the description of the run and the arrays."""
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata: dict[str, str] = file.metadata() or {}
                kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
                if not set(kinds.values()) <= _KINDS:
                    raise self._damaged("it holds arrays of unknown type")
                tensors = {name: file.get_tensor(name) for name in kinds}
            text = metadata["about"]
            if metadata.get("sha256") != schema.tensors_digest(text, tensors):
                raise self._damaged("its content does not have its hash")
            about = parse_json(text.encode("utf-8", "surrogatepass"))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise self._damaged(repr(error) if isinstance(error, KeyError) else str(error)) from error
        problem = _ABOUT.problem(about, "")
        if problem is not None:
            raise self._damaged(problem)
        return about, tensors

    def _damaged(self, problem: str) -> InputError:
        return InputError(
            f"{self.path} is not a checkpoint that this version of qwp can continue ({problem}): "
            "delete it, or start afresh (--force)"
        )

    def clear(self) -> None:
        """Remove the checkpoint of a finished run, and temporary files of killed ones."""
        if not self.path.parent.is_dir():
            return
        with locks.exclusive(self.path.parent):
            saved.remove_temporary(self.path.parent, FILE_NAME)
            self.path.unlink(missing_ok=True)
