"""Both languages of an alignment as the two files of the TensorFlow projector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from qwp import arrays
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.spaces.embeddings import told_apart
from qwp.spaces.io.files import replacing
from qwp.spaces.io.projector import vector_lines
from qwp.spaces.sides import SIDES

VECTORS, METADATA = "vectors.tsv", "metadata.tsv"
_HEAD = "word\tlanguage\n"
# A line of metadata is one word and one language.
_BREAKS = re.compile(r"[\t\r\n]")


def check_projector(folder: Path) -> None:
    """Refuse a folder that cannot be made."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected the name of a folder for {VECTORS} and {METADATA}")
    if not folder.parent.is_dir():
        raise InputError(f"{folder.parent} does not exist; expected a folder in which to make {folder.name}")


def write_projector(alignment: Alignment, folder: Path) -> dict[str, Any]:
    """All saved words of both languages in the common space, unit rows, and what each of them is.

    Returns what was written as plain JSON types.
    """
    folder.mkdir(exist_ok=True)
    names = told_apart([alignment.src, alignment.tgt])
    with replacing(folder / VECTORS) as vectors, replacing(folder / METADATA) as metadata:
        metadata.write(_HEAD.encode())
        for side, name in zip(SIDES, names, strict=True):
            vectors.writelines(vector_lines(arrays.to_numpy(alignment.mapped(side))))
            for word in alignment.side(side).space.words:
                metadata.write(f"{_BREAKS.sub('_', word)}\t{_BREAKS.sub('_', name)}\n".encode())
    return {
        "out": str(folder),
        "words": len(alignment.src) + len(alignment.tgt),
        "dim": int(alignment.src_map.shape[1]),
    }
