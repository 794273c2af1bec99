"""Time against vocabulary and dimensions, with fitted exponents.

    python -m benchmarks.growth --device cpu [--threads 2] [--vocabularies ...] [--dimensions ...]

Generated pairs: a clustered space and its rotated, noisy copy. Each run is the default fit with its verdict, then the
lexicon of all words and the export of both sides as .npy files. Every stage is a part of the record of its run, so an
interrupted benchmark continues where it stopped. The exponent of a stage is the slope of log(seconds) over log(size).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import qwp
from benchmarks import records
from benchmarks.common import machine
from benchmarks.daily import related
from benchmarks.records import Record, Run
from qwp import arrays

RESULTS = records.FOLDER / "growth.jsonl"
VOCABULARIES = (5000, 10_000, 20_000, 50_000, 100_000, 200_000)
DIMENSIONS = (50, 100, 300, 512, 1024)
# The vocabulary and the dimensions that the other size varies at.
USUAL = (20_000, 300)
STAGES = ("initialize", "loop", "refine", "verdict", "lexicon", "export")
# A lexicon of more words takes minutes on a CPU.
MOST_ON_CPU = 50_000


def runs(device: str, threads: int, vocabularies: Iterable[int], dimensions: Iterable[int]) -> Iterator[Run]:
    """Yield a run for each size."""
    sizes = [(n, USUAL[1]) for n in vocabularies] + [(USUAL[0], d) for d in dimensions]
    for n, d in dict.fromkeys(sizes):
        key = {"device": device, "threads": threads, "n": n, "d": d}
        yield Run(key, partial(measured, device, threads, n, d))


def measured(device: str, threads: int, n: int, d: int) -> Record:
    """Return the seconds of each stage for n words of d dimensions."""
    src, tgt = related(n, d)
    if device != "cpu":  # the first call on a GPU loads its libraries
        qwp.align(src.head(2000), tgt.head(2000), device=device, verdict="none", order="given")
    with arrays.use_threads(threads):
        found = qwp.align(src, tgt, device=device, threads=threads, order="given", start="unsupervised")
        seconds = {stage: found.provenance.seconds[stage] for stage in STAGES if stage in found.provenance.seconds}
        alignment = found.on(device)
        if device != "cpu" or n <= MOST_ON_CPU:
            seconds["lexicon"] = _timed(alignment.induce)
        seconds["export"] = _timed(lambda: _exported(alignment))
    return {"seconds": seconds, "verdict": found.quality.verdict, "machine": machine(gemm_size=2000)}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _exported(alignment: qwp.Alignment) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for side in (alignment.src, alignment.tgt):
            np.save(
                Path(folder) / "mapped.npy",
                alignment.transform(side.vectors, side="src" if side is alignment.src else "tgt"),
            )


def exponents(found: Sequence[Record], size: str) -> dict[str, float]:
    """Return the exponent of each stage in "n" or "d" over the records at the usual value of the other size."""
    other, usual = ("d", USUAL[1]) if size == "n" else ("n", USUAL[0])
    chosen = [record for record in found if record[other] == usual]
    stages = {stage: _points(chosen, size, stage) for stage in STAGES}
    return {stage: _slope(points) for stage, points in stages.items() if len(points) > 2}


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the logarithms of points (x, y)."""
    x, y = np.log(np.asarray(points)).T
    return float(np.polyfit(x, y, 1)[0])


def _points(found: Iterable[Record], size: str, stage: str) -> list[tuple[float, float]]:
    return [(each[size], each["seconds"][stage]) for each in found if each["seconds"].get(stage, 0.0) > 0]


def table(found: Sequence[Record], size: str) -> str:
    """Return a Markdown table of the records of one device and number of threads by vocabulary or dimensions."""
    other, usual = ("d", USUAL[1]) if size == "n" else ("n", USUAL[0])
    chosen = sorted((record for record in found if record[other] == usual), key=lambda record: int(record[size]))
    powers = exponents(found, size)
    head = f"| {'words a side' if size == 'n' else 'dimensions'} | {' | '.join(STAGES)} |"
    lines = [head, "|---:" * (1 + len(STAGES)) + "|"]
    for each in chosen:
        lines.append(f"| {each[size]:,} | {' | '.join(_shown(each['seconds'], stage) for stage in STAGES)} |")
    lines.append(f"| exponent | {' | '.join(f'{powers[s]:.2f}' if s in powers else '' for s in STAGES)} |")
    return "\n".join(lines)


def _shown(seconds: Mapping[str, float], stage: str) -> str:
    return f"{seconds[stage]:.2f} s" if stage in seconds else ""


def main() -> None:
    """Measure the missing sizes and print tables of all records."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vocabularies", type=int, nargs="*", default=VOCABULARIES)
    parser.add_argument("--dimensions", type=int, nargs="*", default=DIMENSIONS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    wanted = runs(options.device, options.threads, options.vocabularies, options.dimensions)
    records.measure_missing(wanted, options.output)
    known = records.read_records(options.output)
    for device, threads in dict.fromkeys((each["device"], each["threads"]) for each in known):
        chosen = [each for each in known if (each["device"], each["threads"]) == (device, threads)]
        for size in ("n", "d"):
            print(f"\n{device}, {threads} threads\n\n{table(chosen, size)}")


if __name__ == "__main__":
    main()
