"""Reading and writing vector files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from qwp.embeddings import Embeddings
from qwp.io import text
from qwp.io.files import check_file
from qwp.io.reading import Batch, Reading, collect, first_of_each

def load(path: str | PathLike[str], *, max_vocab: int | None = None, format: str | None = None,
         errors: str = "raise", dtype: str = "float32") -> Embeddings:
    path = Path(path)
    check_file(path)
    if format is None and path.suffix == ".npz":
        z = np.load(path)
        n = max_vocab or len(z["words"])
        return Embeddings([str(w) for w in z["words"][:n]], z["vectors"][:n].astype(dtype))
    if format is None:
        from qwp.io.files import read_head
        format = "text" if text.HEADER.match(read_head(path, 200)) else "glove"
    reading = Reading(path, format, np.dtype(dtype), errors, max_vocab)
    return collect(first_of_each(text.read(reading), reading), reading)
