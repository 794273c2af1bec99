"""Scores of the default method under the BLAS kernels of several CPUs. `python -m benchmarks.kernels --help`.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.kernels --pairs "demo en-es" "zhang es-en" "zhang it-en"

OpenBLAS has kernels for each family of CPUs and takes those of OPENBLAS_CORETYPE when NumPy loads it, so each alignment
runs in a process of its own. The kernels round differently, because they add in another order. P@1 is that of CSLS over
covered words: the novels are scored on the test split of MUSE, the others by the dictionary that comes with them. The
records replace earlier ones of the same kernel, pair and seed; `make generated` writes their table into
docs/reproducibility.md. The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from threadpoolctl import threadpool_info

import qwp
from benchmarks.common import Record, processor_model, save
from benchmarks.tasks import novels, scored, zhang
from qwp import Embeddings, Lexicon
from qwp.spaces.demo import load_demo

RESULTS = Path(__file__).parent / "results" / "kernels.json"
KERNELS = ("Haswell", "SkylakeX", "Nehalem")
PAIRS: dict[str, Callable[[], tuple[Embeddings, Embeddings, Lexicon]]] = {
    "demo en-es": load_demo,
    **{task.name: task.load for task in (zhang("es-en"), zhang("it-en"), novels("en-es"))},
}


class KernelError(Exception):
    """This machine cannot run a kernel."""


# --------------------------------------------------------------------------- measuring


def measure(pair: str, seed: int) -> Record:
    """Align a pair with the kernels of this process and score the alignment."""
    src, tgt, lexicon = PAIRS[pair]()
    begin = time.process_time()
    alignment = qwp.align(src, tgt, seed=seed, device="cpu")
    seconds = time.process_time() - begin
    estimate = alignment.quality.estimate
    return {
        "pair": pair,
        "seed": seed,
        **scored(alignment, lexicon, "cpu"),
        "estimate": None if estimate is None else 100 * estimate.overall.p1,
        "cpu_seconds": seconds,
        "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        "processor": processor_model(),
    }


def kernels_in_use() -> set[str]:
    """Return the kernels of every OpenBLAS that this process has loaded."""
    return {library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}


def measure_with(kernel: str, pair: str, seed: int) -> Record:
    """Measure in a new process with these kernels."""
    command = [sys.executable, "-m", "benchmarks.kernels", "--alone", kernel, pair, str(seed)]
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    root = Path(__file__).parents[1]
    ran = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        reason = ran.stderr.strip().splitlines()[-1:] or [f"exit code {ran.returncode}"]
        raise KernelError(f"{kernel}, {pair}, seed {seed}: {reason[0]}")
    return {"kernel": kernel, **json.loads(ran.stdout)}


def alone(kernel: str, pair: str, seed: int) -> None:
    """Print the record of one alignment, unless OpenBLAS has taken other kernels than it was asked for."""
    if (used := kernels_in_use()) != {kernel}:
        sys.exit(f"OpenBLAS uses {', '.join(sorted(used)) or 'no known kernels'} on {processor_model()}")
    print(json.dumps(measure(pair, seed)))


# --------------------------------------------------------------------------- records


def read(path: Path = RESULTS) -> list[Record]:
    """Return the records so far."""
    records: list[Record] = json.loads(path.read_text("utf-8"))["records"] if path.exists() else []
    return records


def merged(records: Iterable[Record], new: Record) -> list[Record]:
    """Return the records with a new one in the place of that of the same kernel, pair and seed, in order."""
    by_key = {_key(record): record for record in (*records, new)}
    return sorted(by_key.values(), key=_key)


def _key(record: Record) -> tuple[int, str, str, int]:
    names = list(PAIRS)
    place = names.index(record["pair"]) if record["pair"] in names else len(names)
    return place, record["pair"], record["kernel"], record["seed"]


def table(records: Sequence[Record]) -> str:
    """Return a row for each pair and kernel, and how much kernels and seeds differ, as Markdown."""
    if not records:
        return "No scores are recorded yet."
    head = "| pair | kernels | verdict | estimated P@1 | P@1 of each seed | covered words | CPU seconds |"
    lines = [head, "|---|---|---|---:|---:|---:|---:|"]
    for (pair, kernel), group in groupby(records, lambda record: (record["pair"], record["kernel"])):
        runs = list(group)
        verdicts = ", ".join(sorted({run["verdict"] for run in runs}))
        estimates = [run["estimate"] for run in runs if run["estimate"] is not None]
        estimated = f"{statistics.mean(estimates):.1f}" if estimates else "-"
        scores = ", ".join(f"{run['csls_p1']:.2f}" for run in runs)
        covered = f"{runs[0]['covered']:,} of {runs[0]['gold_words']:,}"
        seconds = statistics.mean(run["cpu_seconds"] for run in runs)
        lines.append(f"| {pair} | {kernel} | {verdicts} | {estimated} | {scores} | {covered} | {seconds:.1f} |")
    return "\n".join([*lines, "", _differences(records)])


def _differences(records: Sequence[Record]) -> str:
    between_kernels = _largest_difference(records, ("pair", "seed"))
    between_seeds = _largest_difference(records, ("pair", "kernel"))
    return (
        f"P@1 differs by at most {between_kernels:.2f} points between kernels (same pair and seed) "
        f"and by at most {between_seeds:.2f} points between seeds (same pair and kernel)."
    )


def _largest_difference(records: Iterable[Record], names: Sequence[str]) -> float:
    """Return the largest range of P@1 among records that agree in these fields."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record["csls_p1"])
    return max(max(scores) - min(scores) for scores in groups.values())


# --------------------------------------------------------------------------- command line


def main(arguments: list[str] | None = None) -> None:
    """Measure, save every record as soon as it is known, print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.kernels", description="Scores under the kernels of several CPUs")
    parser.add_argument("--kernels", nargs="+", default=KERNELS, help="values of OPENBLAS_CORETYPE")
    parser.add_argument("--pairs", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    parser.add_argument("--seeds", type=int, default=2, help="how many, from 0")
    parser.add_argument("--output", type=Path, default=RESULTS, help="add the records to this file")
    parser.add_argument("--alone", nargs=3, metavar=("KERNEL", "PAIR", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone is not None:
        kernel, pair, seed = options.alone
        alone(kernel, pair, int(seed))
        return
    for pair in options.pairs:
        for seed in range(options.seeds):
            for kernel in options.kernels:
                try:
                    record = measure_with(kernel, pair, seed)
                except KernelError as error:
                    print(f"skipped {error}", file=sys.stderr)
                    continue
                print(f"{kernel}, {pair}, seed {seed}: {record['verdict']}, P@1 {record['csls_p1']:.2f}", flush=True)
                save({"records": merged(read(options.output), record)}, options.output)
    print(table(read(options.output)))


if __name__ == "__main__":
    main()
