"""Peak memory of mapping a large array: `qwp export --src big.npy --src-out mapped.npy`.

    python -m benchmarks.streaming --rows 1000000 --dim 768

Writes a random float16 array (1.5 GB by default) to a temporary folder, maps it in a process of its own, and prints the
peak memory of this process and the time.
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
    """Write random float16 rows without words."""
    rng = np.random.default_rng(0)
    with open_writer(path, dim, dtype="float16", words=False) as writer:
        for begin in range(0, rows, _BLOCK):
            size = min(_BLOCK, rows - begin)
            writer.write([str(row) for row in range(size)], rng.standard_normal((size, dim), dtype=np.float32))


def measure(rows: int, dim: int, folder: Path) -> dict[str, Any]:
    """Align the first rows with their reversed columns, and map all rows in a process of its own."""
    big, mapped = folder / "big.npy", folder / "mapped.npy"
    write_rows(big, rows, dim)
    first = np.array(np.load(big, mmap_mode="r")[:_TRAINED], dtype=np.float32)
    pairs = [(f"src:{row}", f"tgt:{row}") for row in range(_TRAINED)]
    options: dict[str, Any] = {"method": "procrustes", "lexicon": pairs, "refine": 0, "verdict": "none"}
    alignment = qwp.align(first, first[:, ::-1].copy(), **options)
    saved = alignment.save(folder / "saved")
    command = [sys.executable, "-m", "qwp", "export", str(saved), "--src", str(big), "--src-out", str(mapped)]
    begin = time.perf_counter()
    subprocess.run([*command, "--dtype", "float16", "--json"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    found = np.load(mapped, mmap_mode="r")
    last = np.array(np.load(big, mmap_mode="r")[-1], dtype=np.float32)
    assert found.shape == (rows, dim)
    assert np.abs(found[-1] - alignment.transform(last)).max() < 1e-2
    sizes = {"rows": rows, "dim": dim, "bytes_in": big.stat().st_size, "bytes_out": mapped.stat().st_size}
    return {**sizes, "peak_bytes": peak, "seconds": seconds}


def main() -> None:
    """Measure once and print JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streaming", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=768)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qwp-streaming-") as name:
        print(json.dumps(measure(options.rows, options.dim, Path(name))))


if __name__ == "__main__":
    main()
