"""Golden runs, which tell whether a change of the code changes a result.

    python -m benchmarks.golden record FOLDER     # before the change
    python -m benchmarks.golden check FOLDER      # after it, on the same machine

The runs are every method on the demo and on zhang es-en with two seeds, and the default method on novels en-es. A run
agrees if the verdict is equal, and maps and estimate are equal within a tolerance. Records hold on one machine and
backend only, so the repository has none. Nothing is scored: supervised methods learn from 1,000 pairs of the gold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.data import novels, zhang
from qwp.methods import METHODS, make_aligner
from qwp.methods.settings import REQUIRED
from qwp.spaces.demo import load_demo
from qwp.spaces.io.files import atomic_write

TOLERANCE = 1e-5
SEED_PAIRS = 1000
SEEDS = (0, 1)
DATA = {"demo": load_demo, "zhang": zhang("es-en").load, "novels": novels("en-es").load}

Record = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """One fit: a method on a pair of spaces with a seed."""

    method: str
    data: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the record file."""
        return f"{self.data}-{self.method}-{self.seed}.npz"

    def run(self, device: str) -> Record:
        """Fit and return the maps, the verdict and the estimate."""
        src, tgt, gold = DATA[self.data]()
        aligner = make_aligner(self.method, seed=self.seed, device=device, threads=1)
        lexicon = qwp.Lexicon(gold.pairs[:SEED_PAIRS]) if METHODS[self.method].supervision == REQUIRED else None
        alignment = aligner.fit(src, tgt, lexicon=lexicon).alignment_
        quality = alignment.quality
        estimate = np.nan if quality.estimate is None else quality.estimate.overall.p1
        maps = {"src": alignment.src_map, "tgt": np.zeros(0) if alignment.tgt_map is None else alignment.tgt_map}
        return {**maps, "verdict": np.array(quality.verdict), "estimate": np.array(estimate)}


def cases(data: list[str], methods: list[str]) -> Iterator[Case]:
    """Yield the cases; only the default method has one on the novels."""
    for pair in data:
        for method in methods if pair != "novels" else ["qwp"]:
            yield from (Case(method, pair, seed) for seed in (SEEDS if pair != "novels" else SEEDS[:1]))


def difference(found: Record, expected: Record) -> float:
    """Return the largest difference of maps and estimate; infinite if shapes or verdicts differ."""
    if str(found["verdict"]) != str(expected["verdict"]):
        return np.inf
    largest = 0.0
    for name in ("src", "tgt", "estimate"):
        if found[name].shape != expected[name].shape:
            return np.inf
        if found[name].size:
            gap = np.abs(found[name].astype(np.float64) - expected[name].astype(np.float64))
            largest = max(largest, float(np.where(np.isnan(found[name]) & np.isnan(expected[name]), 0.0, gap).max()))
    return largest


def main() -> int:
    """Record or check the runs. Returns 1 if a run differs by more than the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("record", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for case in cases(args.data, args.methods):
        found = case.run(args.device)
        path = args.folder / case.name
        if args.task == "record":
            with atomic_write(path) as file:
                np.savez(file, **found)  # type: ignore[arg-type]
            print(f"{case.name:36} {found['verdict']}", flush=True)
            continue
        with np.load(path) as expected:
            gap = difference(found, dict(expected))
        failed += gap > TOLERANCE
        print(f"{case.name:36} {found['verdict']!s:10} {gap:.1e}{'  DIFFERS' if gap > TOLERANCE else ''}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
