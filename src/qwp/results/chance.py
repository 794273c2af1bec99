"""Runs of chance, kept beside a result for other methods on the same two spaces: small numbers, no vectors.

They are not part of the result. A file that is missing, damaged or of other spaces counts for nothing, and what a
verdict says does not depend on whether its runs were made or found.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from qwp.errors import InputError
from qwp.judging import runs
from qwp.judging.chance import Agreement, Run
from qwp.results import schema
from qwp.spaces.io.files import replacing

FILE = "chance.safetensors"


def write(folder: Path) -> None:
    """Keep the runs that this process knows in the folder of a result, where that can be written."""
    tensors = {}
    for key, of_spaces in runs.known().items():
        for (effort, number), run in of_spaces.items():
            name = f"{key}/{effort}/{number}"
            tensors[f"{name}/translations"] = np.asarray(run.translations, dtype=np.int32)
            reached = (run.reached.pairs, run.reached.share, run.reached.mean_csls)
            tensors[f"{name}/reached"] = np.array(reached, dtype=np.float64)
    if tensors:
        about = {"sha256": schema.tensors_digest("", tensors)}
        with suppress(OSError, InputError), replacing(folder / FILE) as file:
            file.write(safetensors_bytes(tensors, metadata=about))


def read_beside(folder: Path) -> None:
    """Know the runs that were kept in a folder, and in those beside it."""
    for path in sorted({folder / FILE, *folder.absolute().parent.glob(f"*/{FILE}")}):
        for name, run in _read(path).items():
            key, effort, number = name.split("/")
            runs.known_of(key).setdefault((effort, int(number)), run)


def _read(path: Path) -> dict[str, Run]:
    """The runs of a file by name, none if it is not whole."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            tensors = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118  (it is no dictionary)
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError):
        return {}
    if about != {"sha256": schema.tensors_digest("", tensors)}:
        return {}
    found = {}
    for name in {each.rpartition("/")[0] for each in tensors}:
        with suppress(KeyError, ValueError):
            pairs, share, mean = tensors[f"{name}/reached"].tolist()
            _key, _effort, number = name.split("/")
            int(number)
            found[name] = Run(tensors[f"{name}/translations"], Agreement(int(pairs), share, mean))
    return found
