"""Where an interrupted run continues: the current map, how far it is, and what was measured on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from qwp.errors import InputError
from qwp.results.identity import Identity
from qwp.spaces.io.files import replacing

FILE_NAME = "checkpoint.safetensors"
_ARRAY = "array."


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    done: finished steps of `stage`; map: (d, d) after them; tensors, values: what else the method has to remember;
    history: records so far; seconds: spent per stage.
    """

    stage: str
    done: int
    map: np.ndarray
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Checkpoint:
    """A checkpoint file in a folder, which says which run it belongs to."""

    def __init__(self, folder: str | Path, *, resume: bool = False) -> None:
        self.path = Path(folder) / FILE_NAME
        self.resume = resume

    def save(self, state: RunState, identity: Identity) -> None:
        """Replace the checkpoint by this state, atomically."""
        about = {name: getattr(state, name) for name in ("stage", "done", "values", "history", "seconds")}
        metadata = {"state": json.dumps(about), "fingerprint": json.dumps(identity.to_dict(), sort_keys=True)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            tensors = {"map": state.map, **{_ARRAY + name: array for name, array in state.tensors.items()}}
            file.write(save({name: np.ascontiguousarray(t) for name, t in tensors.items()}, metadata=metadata))

    def load(self, identity: Identity) -> RunState | None:
        """The saved state if resuming was asked for and there is one. A checkpoint of another run is an error."""
        if not self.resume or not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata, names = file.metadata(), list(file.keys())
                tensors = {name: file.get_tensor(name) for name in names}
                matrix = tensors.pop("map")
            state, saved = json.loads(metadata["state"]), json.loads(metadata["fingerprint"])
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.path} is not a checkpoint qwp can read ({error}): delete it, or run without --resume"
            ) from error
        difference = identity.difference(saved)
        if difference is not None:
            raise InputError(
                f"{self.path} belongs to another run ({difference}): "
                "give the same inputs and options, or run without --resume to start afresh"
            )
        arrays = {name.removeprefix(_ARRAY): tensor for name, tensor in tensors.items()}
        return RunState(map=matrix, tensors=arrays, **state)

    def clear(self) -> None:
        """Remove the checkpoint of a finished run."""
        self.path.unlink(missing_ok=True)
