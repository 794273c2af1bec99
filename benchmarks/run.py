"""Time and memory of each stage, and of the library that one would otherwise use.

    python -m benchmarks.run [--quick] [--all] [--json] [--only NAME ...]

Both sides run in turns in one process, so the ratio is meaningful on a busy machine too. The whole pipeline takes much
longer than the rest; it runs with --all or by name. The figures go to benchmarks/results/latest.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import coreset, csls, frank_wolfe, loader, pipeline, records, sinkhorn
from benchmarks.common import GEMM_SIZE, machine, save

RESULTS = records.FOLDER / "latest.json"
_QUICK_GEMM_SIZE = 500


@dataclass(frozen=True)
class Benchmark:
    """A benchmark and its arguments in the quick form. slow: whether it runs only on request."""

    run: Callable[..., dict[str, Any]]
    quick: dict[str, Any]
    slow: bool = False


_QUICK_GROWTH = csls.GrowthSizes(keys=(500, 1000), points=(500, 1000), queries=50, centres=10, bank_size=2)
_QUICK_OPTIONS = {"coreset_size": 100, "steps": 10, "epochs": 1, "start": "frank-wolfe", "start_steps": 5}
BENCHMARKS = {
    "loader": Benchmark(loader.run, {"n": 5000, "d": 100, "repeats": 1}),
    "coreset": Benchmark(coreset.run, {"n": 3000, "d": 100, "ks": (50,), "repeats": 1, "bank_size": 8}),
    "sinkhorn": Benchmark(sinkhorn.run, {"ks": (100,), "repeats": 1, "d": 50, "n": 500, "generated": True}),
    "frank_wolfe": Benchmark(frank_wolfe.run, {"words": 200, "steps": 3, "d": 20, "generated": True}),
    "csls": Benchmark(
        csls.run, {"n": 1000, "d": 50, "repeats": 1, "gemm_size": _QUICK_GEMM_SIZE, "growth": _QUICK_GROWTH}
    ),
    "pipeline": Benchmark(
        pipeline.run, {"n": 200, "d": 12, "scale": 0.002, "options": _QUICK_OPTIONS, "generated": True}, slow=True
    ),
}


def table(result: dict[str, Any]) -> str:
    """Return the comparisons as aligned text."""
    lines = [("what", "qwp", "alternative", "", "ratio", "peak memory")]
    for case in (case for name in BENCHMARKS for case in result.get(name, {}).get("cases", [])):
        times = [_time(case[name]) for name in ("qwp_seconds", "other_seconds")]
        peak = f"{case['peak_bytes'] / 2**20:.0f} MiB"
        lines.append((case["what"], times[0], case["other"], times[1], f"{case['ratio']:.1f} x", peak))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmarks, save the figures after each, print the table or the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--all", action="store_true", help="include the slow benchmarks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="run these only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file that gets the JSON")
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {
        "quick": options.quick,
        "machine": machine(_QUICK_GEMM_SIZE if options.quick else GEMM_SIZE),
    }
    for name, benchmark in BENCHMARKS.items():
        if name in options.only if options.only else options.all or not benchmark.slow:
            result[name] = benchmark.run(**(benchmark.quick if options.quick else {}))
            save(result, options.output)
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
