"""Time of each stage of an alignment, compared with the rates that the machine reaches.

    python -m benchmarks.stages [--device auto|cpu|cuda] [--repeats 3] [--seeds 1] [--n 20000] [--json]

Aligns novels en-es, or generated vectors if those are missing, with the default parameters. Compares the seconds of
each stage with its work (`benchmarks.work`) at the rates of a large float32 product and a large copy on the same
device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks import work
from benchmarks.common import machine, save
from benchmarks.data import SpacePair, space_pair
from qwp import arrays
from qwp.methods import QWP
from qwp.results.alignment import Alignment
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes

MEASURED = ("initialize", "coresets", "loop", "refine")
_GEMM_SIZE = {"cpu": 4000, "cuda": 8192}
_COPY_NUMBERS = {"cpu": 1 << 26, "cuda": 1 << 28}


def run(device: str = "auto", repeats: int = 3, seeds: int = 1, n: int = 20_000, **options: Any) -> dict[str, Any]:
    """Align `repeats` times for each seed after a warm-up.

    Returns:
        The rates, median seconds and work of each stage, P@1 of each seed, and all times.
    """
    pair = space_pair(n)
    chosen = arrays.choose_device(device)
    ceilings = {"flop_per_second": flop_rate(chosen), "bytes_per_second": copy_rate(chosen)}
    qwp.align(pair.src, pair.tgt, device=device, **options)
    times: list[dict[str, float]] = []
    scores = []
    for seed in range(seeds):
        for _ in range(repeats):
            alignment = qwp.align(pair.src, pair.tgt, seed=seed, device=device, **options)
            times.append(dict(alignment.provenance.seconds))
        scores.append(_score(alignment, pair, device))
    middle = {stage: statistics.median(t.get(stage, 0.0) for t in times) for stage in times[0]}
    return {
        "data": pair.name,
        "n": len(pair.src),
        "d": pair.src.dim,
        "device": str(chosen),
        **ceilings,
        "seconds": statistics.median(sum(t[stage] for stage in MEASURED) for t in times),
        "stages": _stages(alignment, middle, ceilings),
        "csls_p1": scores,
        "times": times,
    }


def _score(alignment: Alignment, pair: SpacePair, device: str) -> float:
    found = qwp.evaluate(alignment.on(device), pair.gold, retrieval=("csls",), bootstrap=0)
    return 100 * found.p_at_1()


def _stages(alignment: Alignment, seconds: dict[str, float], ceilings: dict[str, float]) -> list[dict[str, Any]]:
    counted = counted_work(alignment)
    rows = []
    for stage, taken in seconds.items():
        row: dict[str, Any] = {"stage": stage, "seconds": taken, "share": taken / sum(seconds.values())}
        if stage in counted:
            done = counted[stage]
            floor = done.floor(ceilings["flop_per_second"], ceilings["bytes_per_second"])
            rates = {"flop_per_second": done.flop / taken, "bytes_per_second": done.moved / taken}
            row |= {"flop": done.flop, "bytes": done.moved, **rates, "floor": floor, "times_floor": taken / floor}
        rows.append(row)
    return rows


def counted_work(alignment: Alignment) -> dict[str, work.Work]:
    """Return the work of each stage of an alignment made with the default initializer."""
    aligner = QWP(**alignment.provenance.config)
    solve, refine = aligner.composition.pipeline.solve, aligner.composition.pipeline.refine
    assert isinstance(solve, WassersteinProcrustes)
    assert isinstance(refine, AnchoredRefinement)
    n, m, d = len(alignment.src), len(alignment.tgt), alignment.src.dim
    loop = [record for record in alignment.history if record["stage"] == "loop"]
    k, steps = loop[-1]["k"], loop[-1]["step"]
    sweeps = statistics.mean(record["sinkhorn_iterations"] for record in loop)
    size = solve.coresets.coresets_in_bank(k)
    trained = [min(words, solve.train_words) for words in (n, m)]
    return {
        "initialize": work.initial_map(min(aligner.start_words, n, m), d, sweeps),
        "coresets": work.bank(trained[0], d, k, size) + work.bank(trained[1], d, k, size),
        "loop": work.transport_step(k, d, sweeps, solve.coresets.pairs_per_step).times(steps),
        "refine": work.refinement(n, m, d, refine.refinement),
        "verdict": work.judgement(min(n, m), d, sweeps),
    }


# --------------------------------------------------------------------------- ceilings


def flop_rate(device: arrays.Device, repeats: int = 5) -> float:
    """Return the FLOP/s of a large float32 product."""
    size = _GEMM_SIZE[device.device.partition(":")[0]]
    left, right = (
        device.put(np.random.default_rng(i).standard_normal((size, size), dtype=np.float32), "float32") for i in (0, 1)
    )
    return 2 * size**3 / _median_seconds(lambda: left @ right, left, repeats)


def copy_rate(device: arrays.Device, repeats: int = 7) -> float:
    """Return the bytes per second that a large copy on all threads reads and writes."""
    n = _COPY_NUMBERS[device.device.partition(":")[0]]
    source = device.put(np.random.default_rng(0).random(n, dtype=np.float32), "float32")
    target = device.put(np.zeros(n, dtype=np.float32), "float32")
    parts = arrays.threads() if device == arrays.HOST else 1

    def copy() -> None:
        def part(rows: slice) -> None:
            target[rows] = source[rows]

        arrays.map_blocks(part, n, -(-n // parts), source)

    return 2 * 4 * n / _median_seconds(copy, source, repeats)


def _median_seconds(call: Callable[[], Any], like: Any, repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        arrays.synchronize(like)
        begin = time.perf_counter()
        call()
        arrays.synchronize(like)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


# --------------------------------------------------------------------------- the command


def table(result: dict[str, Any]) -> str:
    """Return the figures of `run` as aligned text."""
    header = ("stage", "time", "share", "FLOP", "bytes", "FLOP/s", "bytes/s", "floor", "times floor")
    lines = [header]
    for row in result["stages"]:
        cells = [row["stage"], f"{row['seconds']:.3f} s", f"{100 * row['share']:.0f} %"]
        if "flop" in row:
            rates = ((row[name], result[name]) for name in ("flop_per_second", "bytes_per_second"))
            of_ceiling = (f"{reached:.2g} ({100 * reached / ceiling:.0f} %)" for reached, ceiling in rates)
            cells += [f"{row['flop']:.2g}", f"{row['bytes']:.2g}", *of_ceiling]
            cells += [f"{row['floor']:.3f} s", f"{row['times_floor']:.1f}"]
        lines.append((*cells, *[""] * (len(header) - len(cells))))
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    body = "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
    scores = ", ".join(f"{score:.1f}" for score in result["csls_p1"])
    return (
        f"{result['data']}, {result['n']} x {result['d']}, {result['place']}: {result['seconds']:.3f} s from start to "
        f"refinement, CSLS P@1 {scores}\n"
        f"ceilings: {result['flop_per_second']:.3g} FLOP/s, {result['bytes_per_second']:.3g} bytes/s\n{body}"
    )


def main() -> None:
    """Run from the command line and print a table or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--n", type=int, default=20_000, help="words of each side")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--output", type=Path, help="file that gets the JSON")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    result = {"machine": machine(1000), **run(options.device, options.repeats, options.seeds, options.n)}
    if options.output is not None:
        save(result, options.output)
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
