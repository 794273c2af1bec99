"""The last table of the paper at its own size, for two generated languages. `python -m benchmarks.full_size --help`.

    python -m benchmarks.full_size --folder DIR

A folder laid out like the public downloads is made (`wiki.en.vec`, `wiki.es.vec`, `dictionaries/en-es.5000-6500.txt`
and so on; 200,000 words of 300 dimensions), and `qwp experiment run table4` goes over it with every system and one
seed. What is measured is the memory of all its processes together, shared pages counted once, and the time. The words
of the two sides are the same points under a rotation and noise, so that scores say only that nothing is broken.

Most of the time goes into the exact scores by CSLS, for which every word is compared with every other. The folder
stays: what was interrupted continues with the same command, and the figures are then those of the rest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import clustered_space, machine, read_records, save
from qwp import Embeddings
from qwp.spaces.io import save as save_vectors

RESULTS = Path(__file__).parent / "results" / "full-size.json"
_TABLE, _DIRECTION = "table4", "en-es"
# How far the ranks of two words that translate each other lie apart, as a deviation of their logarithms.
_RANK_NOISE = 0.3
_NOISE = 0.5
_DICTIONARY_PARTS = {"0-5000": slice(0, 5000), "5000-6500": slice(5000, 6500)}
_SECONDS_BETWEEN_LOOKS = 2.0


def make_folder(folder: Path, n: int, d: int, seed: int = 0) -> None:
    """Two languages of n words and d dimensions, and their dictionaries, laid out like the public downloads."""
    rng = np.random.default_rng(seed)
    base = clustered_space(n, d, seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    # The vectors of frequent words are longer.
    lengths = (1.0 + 2.0 * np.exp(-np.arange(n) / (n / 10)))[:, None].astype(np.float32)
    src, tgt = (
        (base + _NOISE * rng.standard_normal((n, d), dtype=np.float32) / np.sqrt(d, dtype=np.float32)) * lengths
        for _ in range(2)
    )
    order = np.argsort(np.log(np.arange(n) + 10.0) + _RANK_NOISE * rng.standard_normal(n))
    place = np.argsort(order)
    for language, vectors in (("en", src), ("es", (tgt @ turn)[order])):
        save_vectors(Embeddings([f"{language}{i}" for i in range(n)], vectors), folder / f"wiki.{language}.vec")
    (folder / "dictionaries").mkdir(exist_ok=True)
    for name, part in _DICTIONARY_PARTS.items():
        lines = (f"en{i} es{place[i]}\n" for i in range(n)[part])
        (folder / "dictionaries" / f"{_DIRECTION}.{name}.txt").write_text("".join(lines))


def processes(parent: int) -> Iterator[int]:
    """A process and all that it began, as far as they are still there."""
    yield parent
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it ended just now
            continue
        for child in children:
            yield from processes(int(child))


def memory_of(parent: int) -> int:
    """Bytes that a process and all that it began have in memory; of pages that several share, each counts its part."""
    total = 0
    for process in set(processes(parent)):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:  # it ended just now
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def watched(command: Sequence[str | Path]) -> tuple[float, int]:
    """Run a command. Returns its seconds, and the largest memory of its processes together, in bytes."""
    begin, most = time.perf_counter(), 0
    running = subprocess.Popen([str(part) for part in command])
    while running.poll() is None:
        most = max(most, memory_of(running.pid))
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    if running.returncode != 0:
        raise SystemExit(f"the experiment ended with exit code {running.returncode}")
    return time.perf_counter() - begin, most


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.full_size", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="for vectors and results: 2 GB")
    parser.add_argument("--words", type=int, default=200_000, help="of each language")
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    if not Path("/proc/self/smaps_rollup").exists():
        parser.error("memory is read from /proc/PID/smaps_rollup, which this system does not have: use Linux")
    data, results = chosen.folder / "vectors", chosen.folder / "results"
    if not (data / "dictionaries").is_dir():
        data.mkdir(parents=True, exist_ok=True)
        make_folder(data, chosen.words, chosen.dim)
    before = len(read_records(results / "results.jsonl"))
    run = [sys.executable, "-m", "qwp", "experiment", "run", _TABLE, "--data", data, "--results", results]
    seconds, most = watched([*run, "--directions", _DIRECTION, "--seeds", "1", "--device", chosen.device])
    cells: list[dict[str, Any]] = read_records(results / "results.jsonl")
    found = {
        "words": chosen.words,
        "dim": chosen.dim,
        "device": chosen.device,
        "seconds": seconds,
        "peak_bytes": most,
        "cells": len(cells),
        "cells_before": before,
        "failed": sum(cell["status"] != "done" for cell in cells),
        "scores": [{"method": c["method"], "P@1": c["scores"]["csls"]["P@1"], "seconds": c["seconds"]} for c in cells],
        "machine": machine(),
    }
    save(found, chosen.output)
    print(f"{len(cells)} cells ({before} before), {found['failed']} failed: {seconds:.0f} s, {most / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
