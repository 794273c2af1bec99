"""Where an interrupted run continues: the current map, how far it is, and what was measured on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from qwp.errors import InputError
from qwp.results import locks, saved, schema
from qwp.results.identity import IDENTITY, Identity
from qwp.results.schema import Anything, ByName, Each, Number, Record, Text, Whole
from qwp.spaces.io.files import replacing

FILE_NAME = "checkpoint.safetensors"
SCHEMA = 2
_MAP, _ARRAY = "map", "array."
_ABOUT = Record(
    {
        "schema": Whole(SCHEMA, SCHEMA),
        "identity": IDENTITY,
        "stage": Text(most=100),
        "done": Whole(),
        "values": ByName(Anything()),
        "history": Each(ByName(Anything())),
        "seconds": ByName(Number()),
    }
)
_STATE = ("stage", "done", "values", "history", "seconds")
_KINDS = {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "I64", "U64", "F64"}


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    done: finished steps of `stage`; map: (d, d) after them, or (L, d, d) for L languages; tensors, values: what else
    the method has to remember; history: records so far; seconds: spent per stage.
    """

    stage: str
    done: int
    map: np.ndarray
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Expected:
    """What the state of a run can be: its stages, and one map (d, d), or 1 to `languages` of them, (L, d, d)."""

    stages: Collection[str]
    dim: int
    languages: int | None = None

    def problem(self, state: RunState) -> str | None:
        """What is wrong with a state, in words, or None."""
        if state.stage not in self.stages:
            return f"the stage is {schema.shown(state.stage)}; expected one of {', '.join(self.stages)}"
        square, shape = (self.dim, self.dim), state.map.shape
        if self.languages is None and shape != square:
            return f"the map has shape {shape}; expected {square}"
        if self.languages is not None and (shape[1:] != square or not 1 <= shape[0] <= self.languages):
            return f"the maps have shape {shape}; expected 1 to {self.languages} of {square}"
        return None


class Checkpoint:
    """A checkpoint file in a folder, which says which run it belongs to.

    interval: seconds between two states of a stage that are saved, at least; None for the usual ones.
    """

    def __init__(self, folder: str | Path, *, resume: bool = False, interval: float | None = None) -> None:
        self.path = Path(folder) / FILE_NAME
        self.resume, self.interval = resume, interval

    def save(self, state: RunState, identity: Identity) -> None:
        """Replace the checkpoint by this state, atomically."""
        about = {name: getattr(state, name) for name in _STATE}
        text = json.dumps({"schema": SCHEMA, "identity": identity.to_dict(), **about})
        tensors = {_MAP: state.map, **{_ARRAY + name: array for name, array in state.tensors.items()}}
        whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Alone in the folder: so what a killed run left there can be told from what another one is writing.
        with locks.exclusive(self.path.parent), replacing(self.path) as file:
            file.write(save(whole, metadata={"about": text, "sha256": schema.tensors_digest(text, whole)}))
            file.flush()
            os.fsync(file.fileno())

    def load(self, identity: Identity, expected: Expected | None = None) -> RunState | None:
        """The saved state if resuming was asked for and there is one.

        A checkpoint of another run, or one that is damaged, is an error. expected: what the run can have saved.
        """
        if not self.resume or not self.path.exists():
            return None
        about, tensors = self._read()
        self._refuse_other(identity, about["identity"])
        arrays = {name.removeprefix(_ARRAY): tensor for name, tensor in tensors.items() if name != _MAP}
        state = RunState(map=tensors[_MAP], tensors=arrays, **{name: about[name] for name in _STATE})
        problem = None if expected is None else expected.problem(state)
        if problem is not None:
            raise self._damaged(problem)
        return state

    def check_settings(self, settings: Identity) -> None:
        """Refuse to continue a run of other settings, before the vectors are read: `load` compares these as well."""
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
        """What the file says about the run, and its arrays, both checked."""
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
            about = schema.parse(text.encode("utf-8", "surrogatepass"))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise self._damaged(repr(error) if isinstance(error, KeyError) else str(error)) from error
        problem = _ABOUT.problem(about, "") or _problem_of(tensors)
        if problem is not None:
            raise self._damaged(problem)
        return about, tensors

    def _damaged(self, problem: str) -> InputError:
        return InputError(
            f"{self.path} is not a checkpoint that this version of qwp can continue ({problem}): "
            "delete it, or start afresh (--force)"
        )

    def clear(self) -> None:
        """Remove the checkpoint of a finished run, and what killed ones left unfinished."""
        if not self.path.parent.is_dir():
            return
        with locks.exclusive(self.path.parent):
            saved.remove_temporary(self.path.parent, FILE_NAME)
            self.path.unlink(missing_ok=True)


def _problem_of(tensors: Mapping[str, np.ndarray]) -> str | None:
    """What is wrong with the arrays of a checkpoint, in words, or None."""
    strange = [name for name in tensors if name != _MAP and not name.startswith(_ARRAY)]
    if strange or _MAP not in tensors:
        return f"the array {strange[0]!r} is not known" if strange else "the map is missing"
    matrix = tensors[_MAP]
    if matrix.dtype.name not in ("float32", "float64") or not np.isfinite(matrix).all():
        return f"the map is not made of finite numbers ({matrix.dtype})"
    return None
