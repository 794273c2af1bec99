"""Arrays that are kept beside a result, to be found again sooner. They can be made again at any time.

A file that is missing, damaged or of another alignment counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from qwp.errors import InputError
from qwp.results import schema
from qwp.spaces.io.files import replacing

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Origin:
    """Where an alignment was read, and the hash of its index."""

    folder: Path
    sha256: str


def write(origin: Origin | None, kind: str, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep arrays beside their alignment, where that can be written. kind: the pattern of such files."""
    if origin is None:
        return
    tensors = {each: np.ascontiguousarray(array) for each, array in arrays.items()}
    about = {"alignment": origin.sha256, "sha256": schema.tensors_digest("", tensors)}
    with suppress(OSError, InputError), replacing(_path(origin, kind, name)) as file:
        file.write(safetensors_bytes(tensors, metadata=about))


def read(origin: Origin | None, kind: str, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Arrays | None:
    """The arrays that were kept for this very alignment, if they are there, whole and of these shapes."""
    if origin is None:
        return None
    try:
        with safe_open(_path(origin, kind, name), framework="numpy") as file:
            about = file.metadata() or {}
            tensors = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118  (it is no dictionary)
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError):
        return None
    fits = {each: tensor.shape for each, tensor in tensors.items()} == dict(shapes)
    if not fits or about != {"alignment": origin.sha256, "sha256": schema.tensors_digest("", tensors)}:
        return None
    return tensors


def _path(origin: Origin, kind: str, name: str) -> Path:
    return origin.folder / kind.replace("*", name)
