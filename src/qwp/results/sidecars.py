"""Sidecar files: cached arrays of a saved result, which can be computed again at any time.

A seal binds a sidecar to the index of its result, to its own name and to its content. A file that is missing, damaged,
renamed or of another result is ignored, and the arrays are computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from qwp.errors import InputError
from qwp.results import schema
from qwp.results.saved import Part
from qwp.spaces.io.files import atomic_write

Arrays = dict[str, np.ndarray]

# Increased when the arrays of any sidecar are computed in another way. Files of an earlier format are ignored.
_FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """The folder an alignment was read from, the hash of its index, and the files whose content was not hashed."""

    folder: Path
    sha256: str
    unhashed: tuple[Part, ...] = ()

    @cached_property
    def is_intact(self) -> bool:
        """Whether the unhashed files still exist; an InputError if the content of one has changed.

        They are gone if another result has been saved in the meantime. Each is hashed once.
        """
        for part in self.unhashed:
            if not part.path.exists():
                return False
            part.check(content=True)
        return True


def write(origin: Origin | None, kind: str, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a sidecar of a result, if its folder is writable. kind: the pattern of the file name.

    An InputError if the vectors on the disk, from which the arrays were computed, have changed since they were saved.
    """
    if origin is None or not origin.is_intact:
        return
    path = _path(origin, kind, name)
    tensors = {each: np.ascontiguousarray(array) for each, array in arrays.items()}
    with suppress(OSError, InputError), atomic_write(path) as file:
        file.write(safetensors_bytes(tensors, metadata=_seal(origin, path, tensors)))


def read(origin: Origin | None, kind: str, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Arrays | None:
    """Return the arrays of a sidecar, or None unless it is undamaged, of this result and has these shapes."""
    if origin is None:
        return None
    path = _path(origin, kind, name)
    try:
        with safe_open(path, framework="numpy") as file:
            seal = file.metadata()
            tensors = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError, KeyError):
        return None
    fits = {each: tensor.shape for each, tensor in tensors.items()} == dict(shapes)
    return tensors if fits and seal == _seal(origin, path, tensors) else None


def _path(origin: Origin, kind: str, name: str) -> Path:
    return origin.folder / kind.replace("*", name)


def _seal(origin: Origin, path: Path, tensors: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the metadata that bind a sidecar to its result, its name and its arrays (names, types, shapes, bytes)."""
    belongs = f"{_FORMAT}\n{path.name}\n{origin.sha256}"
    return {"alignment": origin.sha256, "sha256": schema.tensors_digest(belongs, tensors)}
