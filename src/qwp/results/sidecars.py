"""Sidecar files: arrays cached beside a saved result, which can be computed again at any time.

A sidecar is bound to the index of its result, to its own name and to its content. A file that is missing, damaged,
renamed or of another result counts for nothing: the arrays are computed again.
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

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.judging.refits import refits
from qwp.maps.procrustes import Maps
from qwp.results import schema
from qwp.results.saved import LOOKUPS, Part
from qwp.spaces.io.files import replacing

Arrays = dict[str, np.ndarray]

# Raised when the arrays of any sidecar are computed in another way: files of an earlier format are ignored.
_FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """The folder an alignment was read from, the hash of its index, and the files whose content was not hashed."""

    folder: Path
    sha256: str
    unhashed: tuple[Part, ...] = ()

    @cached_property
    def is_intact(self) -> bool:
        """Whether the files are still there, each hashed once. An InputError where one does not hold what was saved.

        Where another result has been saved in the meantime, they are gone.
        """
        for part in self.unhashed:
            if not part.path.exists():
                return False
            part.check(content=True)
        return True


def write(origin: Origin | None, kind: str, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a sidecar of a result, where the folder can be written. kind: the pattern of such files.

    Raises an InputError if the vectors on the disk are not those that were saved: the arrays were computed from them.
    """
    if origin is None or not origin.is_intact:
        return
    path = _path(origin, kind, name)
    tensors = {each: np.ascontiguousarray(array) for each, array in arrays.items()}
    with suppress(OSError, InputError), replacing(path) as file:
        file.write(safetensors_bytes(tensors, metadata=_seal(origin, path, tensors)))


def read(origin: Origin | None, kind: str, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Arrays | None:
    """The arrays of a sidecar of this very result, or None unless it is there, undamaged and of these shapes."""
    if origin is None:
        return None
    path = _path(origin, kind, name)
    try:
        with safe_open(path, framework="numpy") as file:
            seal = file.metadata()
            tensors = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118  (it is no dictionary)
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError, KeyError):
        return None
    fits = {each: tensor.shape for each, tensor in tensors.items()} == dict(shapes)
    return tensors if fits and seal == _seal(origin, path, tensors) else None


def _path(origin: Origin, kind: str, name: str) -> Path:
    return origin.folder / kind.replace("*", name)


def _seal(origin: Origin, path: Path, tensors: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The metadata that binds a sidecar to its result, its name and its arrays (names, types, shapes and bytes)."""
    belongs = f"{_FORMAT}\n{path.name}\n{origin.sha256}"
    return {"alignment": origin.sha256, "sha256": schema.tensors_digest(belongs, tensors)}


_SIDES = ("src", "tgt")


def kept_or_made(origin: Origin | None, x: Array, y: Array, maps: Maps, csls_k: int) -> tuple[Maps, Maps]:
    """The refits of maps of x (n, d) and y (m, d): those kept beside the alignment, or made now and then kept."""
    # They are kept in half precision, which changes no cosine that matters; so they are always used as they are kept.
    known = read(origin, LOOKUPS, _name(csls_k), _shapes(x.shape[1]))
    if known is None:
        known = _tensors(refits(x, y, maps, csls_k=csls_k))
        write(origin, LOOKUPS, _name(csls_k), known)
    even, odd = (Maps(*(arrays.asarray(known[f"{side}_{number}"], x) for side in _SIDES)) for number in range(2))
    return even, odd


def _name(csls_k: int) -> str:
    return f"refits-{csls_k}"


def _shapes(width: int) -> dict[str, tuple[int, ...]]:
    return {f"{side}_{number}": (width, width) for side in _SIDES for number in range(2)}


def _tensors(made: tuple[Maps, Maps]) -> dict[str, np.ndarray]:
    found = {}
    for number, maps in enumerate(made):
        for side, matrix in zip(_SIDES, (maps.src, maps.tgt), strict=True):
            given = np.eye(len(maps.src)) if matrix is None else arrays.to_numpy(matrix)
            # The scale of a map changes no cosine either.
            found[f"{side}_{number}"] = (given / (np.abs(given).max() or 1.0)).astype(np.float16)
    return found
