"""Reading a .vec file: qwp against gensim, in time, and qwp's peak memory.

    python -m benchmarks.loader [--n 200000] [--d 300] [--repeats 3] [--json]

Both read the same generated file in the same run, in turns, so that whatever else the machine does meets
both.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import in_turns, medians, options_parser
from benchmarks.memory import in_fresh_process
from qwp.spaces.io import load

_LETTERS = np.array(list("etaoinshrdlucmfwypvbgkqjxzéüñøабвгд日本語"))
_DISTINCT_ROWS = 2000  # formatting is slow in Python; the readers cannot tell that rows come again


def run(n: int = 200_000, d: int = 300, repeats: int = 3) -> dict[str, Any]:
    """Time both readers on a generated file of n words and d numbers each.

    Returns:
        medians in seconds, all times, the ratio of the medians, and qwp's peak memory as a multiple of the
        float32 matrix it returns.
    """
    from gensim.models import KeyedVectors

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.vec"
        write_sample(path, n, d)
        readers: dict[str, Callable[[], Any]] = {
            "qwp": lambda: load(path),
            "gensim": lambda: KeyedVectors.load_word2vec_format(str(path)),
        }
        load(path, max_vocab=min(n, 1000))  # the first call pays for imports
        times = in_turns(readers, repeats)
        memory = in_fresh_process(prepare_load, path=str(path))
        size = path.stat().st_size
    middle = medians(times)
    return {
        "n": n,
        "d": d,
        "file_bytes": size,
        "qwp_seconds": middle["qwp"],
        "gensim_seconds": middle["gensim"],
        "ratio": middle["gensim"] / middle["qwp"],
        "times": times,
        "matrix_bytes": memory.value,
        "peak_bytes": memory.peak_bytes,
        "peak_over_matrix": memory.peak_bytes / memory.value,
    }


def write_sample(path: Path, n: int, d: int, seed: int = 0) -> None:
    """A file like fastText's: frequent words short, some not ASCII, numbers with four decimals."""
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
            # The rank makes words different, and longer the rarer they are.
            handle.write(f"{''.join(letters[rank])}{rank:x} {rows[rank % len(rows)]}")


def prepare_load(path: str) -> Callable[[], int]:
    """The call whose memory is measured: reading the file, which tells the bytes of its matrix."""
    return lambda: int(load(path).vectors.nbytes)


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = options_parser("benchmarks.loader", "Reading .vec: qwp and gensim", n=200_000, d=300, repeats=3)
    options = parser.parse_args(arguments)
    result = run(options.n, options.d, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['n']} words x {result['d']} numbers, {result['file_bytes'] / 1e6:.0f} MB of text")
    print(f"qwp     {result['qwp_seconds']:8.2f} s   peak {result['peak_over_matrix']:.2f} x the matrix")
    print(f"gensim  {result['gensim_seconds']:8.2f} s   {result['ratio']:.1f} x qwp's time")


if __name__ == "__main__":
    main()
