"""Peak memory of mapping a large array in a stream: `qwp export --src big.npy --src-out mapped.npy`.

    python -m benchmarks.streaming --rows 1000000 --dim 768

writes a random float16 array (1.5 GB at this size), maps it by a saved alignment in a process of its own, and prints
the peak memory of that process and the time. All files are in a temporary folder and are removed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks.memory import ROOT
from qwp.spaces.io import open_writer

_TRAINED = 2000
_BLOCK = 20_000


def write_rows(path: Path, rows: int, dim: int) -> None:
    """Random float16 rows without words."""
    rng = np.random.default_rng(0)
    with open_writer(path, dim, dtype="float16", words=False) as writer:
        for begin in range(0, rows, _BLOCK):
            size = min(_BLOCK, rows - begin)
            writer.write([str(row) for row in range(size)], rng.standard_normal((size, dim), dtype=np.float32))


def measure(rows: int, dim: int, folder: Path) -> dict[str, Any]:
    """Map an array in a process of its own."""
    big, mapped = folder / "big.npy", folder / "mapped.npy"
    write_rows(big, rows, dim)
    first = np.array(np.load(big, mmap_mode="r")[:_TRAINED], dtype=np.float32)
    pairs = [(f"src:{row}", f"tgt:{row}") for row in range(_TRAINED)]
    options: dict[str, Any] = {"method": "procrustes", "lexicon": pairs, "refine": 0, "verdict": "none"}
    alignment = qwp.align(first, first[:, ::-1].copy(), **options)
    alignment.save(folder / "saved")
    command = [
        sys.executable,
        "-m",
        "qwp",
        "export",
        str(folder / "saved"),
        "--src",
        str(big),
        "--src-out",
        str(mapped),
    ]
    begin = time.perf_counter()
    subprocess.run([*command, "--dtype", "float16", "--json"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    found, row = np.load(mapped, mmap_mode="r"), rows - 1
    last = np.array(np.load(big, mmap_mode="r")[row], dtype=np.float32)
    assert found.shape == (rows, dim)
    assert np.abs(found[row] - alignment.transform(last)).max() < 1e-2
    sizes = {"rows": rows, "dim": dim, "bytes_in": big.stat().st_size, "bytes_out": mapped.stat().st_size}
    return {**sizes, "peak_bytes": peak, "seconds": seconds}


def main() -> None:
    """Measure once and print JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streaming", description="Peak memory of a mapped stream."
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=768)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qwp-streaming-") as name:
        print(json.dumps(measure(given.rows, given.dim, Path(name))))


if __name__ == "__main__":
    main()
