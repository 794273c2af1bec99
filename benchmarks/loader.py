"""Time and memory of reading a .vec file: qwp and gensim."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import comparison, in_turns
from benchmarks.memory import in_fresh_process
from qwp.spaces.io import load

_LETTERS = np.array(list("etaoinshrdlucmfwypvbgkqjxzéüñøабвгд日本語"))
_DISTINCT_ROWS = 2000  # formatting numbers is slow in Python, so the rows repeat


def run(n: int = 200_000, d: int = 300, repeats: int = 3) -> dict[str, Any]:
    """Read a generated file of n words with d numbers each."""
    from gensim.models import KeyedVectors

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.vec"
        write_sample(path, n, d)
        load(path, max_vocab=min(n, 1000))  # the first call imports modules
        times = in_turns(
            {"qwp": lambda: load(path), "gensim": lambda: KeyedVectors.load_word2vec_format(str(path))}, repeats
        )
        memory = in_fresh_process(prepare_load, path=str(path))
        size = path.stat().st_size
    case = comparison(f"read a .vec file, {n} words x {d}", times, "gensim", memory.peak_bytes)
    return {"n": n, "d": d, "file_bytes": size, "matrix_bytes": memory.value, "cases": [case]}


def write_sample(path: Path, n: int, d: int, seed: int = 0) -> None:
    """Write a file like fastText's: frequent words are short, some are not ASCII, numbers have four decimals."""
    rng = np.random.default_rng(seed)
    rows = [
        " ".join(f"{value:.4f}" for value in vector) + " \n"
        for vector in rng.normal(scale=0.2, size=(min(n, _DISTINCT_ROWS), d))
    ]
    weights = 1 / np.arange(1, len(_LETTERS) + 1)
    letters = rng.choice(_LETTERS, size=(n, 4), p=weights / weights.sum())
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        handle.write(f"{n} {d}\n")
        for rank in range(n):
            # The rank makes words distinct, and rarer words longer.
            handle.write(f"{''.join(letters[rank])}{rank:x} {rows[rank % len(rows)]}")


def prepare_load(path: str) -> Callable[[], int]:
    """Return the call whose memory is measured: it reads the file and returns the bytes of the matrix."""
    return lambda: int(load(path).vectors.nbytes)
