"""Scores of the default method under the BLAS kernels of several CPUs.

    OPENBLAS_NUM_THREADS=1 QWP_BENCH=FOLDER python -m benchmarks.kernels [PAIR ...]

OpenBLAS has kernels for each family of CPUs. It takes those of OPENBLAS_CORETYPE when NumPy loads it, so each alignment
runs in a fresh process. The kernels add in different orders and therefore round differently. The score is P@1 by CSLS
over covered words. The test split of MUSE scores the novels; the other pairs come with a dictionary.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import qwp
from benchmarks import records
from benchmarks.common import processor_model
from benchmarks.data import novels, scored, zhang
from benchmarks.records import Record, Run, cell, markdown, mean, select, values
from qwp import Embeddings, Lexicon
from qwp.spaces.demo import load_demo
from tools import portable

RESULTS = records.FOLDER / "kernels.jsonl"
KERNELS = ("Haswell", "SkylakeX", "Nehalem")
SEEDS = 2
PAIRS: dict[str, Callable[[], tuple[Embeddings, Embeddings, Lexicon]]] = {
    "demo en-es": load_demo,
    **{task.name: task.load for task in (zhang("es-en"), zhang("it-en"), novels("en-es"))},
}


def suite(pair: str, _: str) -> Iterator[Run]:
    """Align a pair with every kernel that this CPU can run."""
    available = [kernel for kernel in KERNELS if portable.kernel({"OPENBLAS_CORETYPE": kernel}) == kernel]
    for seed, kernel in product(range(SEEDS), available):
        yield Run({"kernel": kernel, "pair": pair, "seed": seed}, partial(in_child, kernel, pair, seed))


def in_child(kernel: str, pair: str, seed: int) -> Record:
    """Measure in a fresh process with these kernels."""
    program = f"from benchmarks import kernels; kernels.measure({pair!r}, {seed})"
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    root = Path(__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, stdout=subprocess.PIPE, check=True)
    found: Record = json.loads(ran.stdout)
    return found


def measure(pair: str, seed: int) -> None:
    """Align a pair with the kernels of this process, score it and print the record."""
    src, tgt, lexicon = PAIRS[pair]()
    begin = time.process_time()
    alignment = qwp.align(src, tgt, seed=seed, device="cpu")
    seconds = time.process_time() - begin
    estimate = alignment.quality.estimate
    record = {
        **scored(alignment, lexicon, "cpu"),
        "estimate": None if estimate is None else 100 * estimate.overall.p1,
        "cpu_seconds": seconds,
        "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        "processor": processor_model(),
    }
    print(json.dumps(record))


def tables(found: Sequence[Record]) -> str:
    """Return how the records were made, a row for each pair and kernel, and the largest differences."""
    rows = []
    for pair, kernel in product(PAIRS, sorted(KERNELS)):
        if not (runs := select(found, pair=pair, kernel=kernel)):
            continue
        estimates = [run for run in runs if run["estimate"] is not None]
        rows.append(
            [
                *(pair, kernel, ", ".join(sorted(values(runs, "verdict"))), cell(mean(estimates, "estimate"))),
                ", ".join(f"{run['csls_p1']:.2f}" for run in runs),
                f"{runs[0]['covered']:,} of {runs[0]['gold_words']:,}",
                cell(mean(runs, "cpu_seconds")),
            ]
        )
    head = ["pair", "kernels", "verdict", "estimated P@1", "P@1 of each seed", "covered words", "CPU seconds"]
    between_kernels, between_seeds = (largest_difference(found, ("pair", each)) for each in ("seed", "kernel"))
    return (
        "`python -m benchmarks.kernels` aligns each pair with the default method, in a process whose OpenBLAS uses\n"
        "the kernels of one family of CPUs. Scores are P@1 by CSLS over covered words, in percent. Processor:\n"
        f"{', '.join(sorted(values(found, 'processor')))}; "
        f"BLAS threads: {', '.join(sorted(values(found, 'threads')))}.\n\n"
        f"{markdown(head, rows)}\n\n"
        f"P@1 differs by at most {between_kernels:.2f} points between kernels (same pair and seed)\n"
        f"and by at most {between_seeds:.2f} points between seeds (same pair and kernel)."
    )


def largest_difference(found: Sequence[Record], fields: Sequence[str]) -> float:
    """Return the largest range of P@1 among records that agree in these fields."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for record in found:
        groups.setdefault(tuple(record[name] for name in fields), []).append(record["csls_p1"])
    return max(max(scores) - min(scores) for scores in groups.values())


if __name__ == "__main__":
    records.main("benchmarks.kernels", __doc__, {pair: partial(suite, pair) for pair in PAIRS}, RESULTS)
