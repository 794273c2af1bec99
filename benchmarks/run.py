"""All benchmarks in one go: a table on the screen, the figures in benchmarks/results/latest.json.

    python -m benchmarks.run [--quick] [--json] [--only NAME ...]

Every stage is timed in turns with the library a user would take instead, in this very run, so that the ratio
means something on a busy machine even where the seconds do not.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import coreset, loader, sinkhorn
from benchmarks.common import machine

RESULTS = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True)
class Row:
    """One line of the table. Times in seconds; peak memory in bytes where it was measured."""

    what: str
    ours: float
    other: str
    theirs: float
    peak_bytes: int | None = None

    @property
    def ratio(self) -> float:
        """How many times longer the alternative takes."""
        return self.theirs / self.ours


@dataclass(frozen=True)
class Benchmark:
    """How to run one benchmark, at full size and in a few seconds, and how to read its figures."""

    run: Callable[..., dict[str, Any]]
    quick: dict[str, Any]
    rows: Callable[[dict[str, Any]], list[Row]]


def _loader_rows(r: dict[str, Any]) -> list[Row]:
    what = f"read a .vec file, {r['n']} words x {r['d']}"
    return [Row(what, r["qwp_seconds"], "gensim", r["gensim_seconds"], r["peak_bytes"])]


def _coreset_rows(r: dict[str, Any]) -> list[Row]:
    what = f"k-means++ coreset, k={r['k']} of {r['n']} x {r['d']}"
    return [Row(what, r["qwp_seconds"], "scikit-learn", r["sklearn_seconds"])]


def _sinkhorn_rows(r: dict[str, Any]) -> list[Row]:
    return [
        Row(f"Sinkhorn, k={case['k']}, same error", case["qwp_seconds"], "POT", case["pot_seconds"])
        for case in r["cases"]
    ]


BENCHMARKS = {
    "loader": Benchmark(loader.run, {"n": 5000, "d": 100, "repeats": 1}, _loader_rows),
    "coreset": Benchmark(coreset.run, {"n": 3000, "d": 100, "k": 50, "repeats": 1}, _coreset_rows),
    "sinkhorn": Benchmark(sinkhorn.run, {"ks": (200,), "repeats": 3}, _sinkhorn_rows),
}


def run(names: list[str] | None = None, *, quick: bool = False) -> dict[str, Any]:
    """Run the named benchmarks (all by default), one after the other."""
    result: dict[str, Any] = {"quick": quick, "machine": machine()}
    for name in names or list(BENCHMARKS):
        benchmark = BENCHMARKS[name]
        result[name] = benchmark.run(**(benchmark.quick if quick else {}))
    return result


def table(result: dict[str, Any]) -> str:
    """The figures of `run` as aligned text."""
    lines = [("what", "qwp", "alternative", "", "ratio", "peak memory")]
    for name, benchmark in BENCHMARKS.items():
        for row in benchmark.rows(result[name]) if name in result else []:
            peak = "" if row.peak_bytes is None else f"{row.peak_bytes / 2**20:.0f} MiB"
            lines.append((row.what, _time(row.ours), row.other, _time(row.theirs), f"{row.ratio:.1f} x", peak))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def save(result: dict[str, Any], path: Path = RESULTS) -> None:
    """Write the figures as JSON; the file appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line, print the table or the JSON, and save the latter."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description="All benchmarks of qwp")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="run these only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    options = parser.parse_args(arguments)
    result = run(options.only, quick=options.quick)
    save(result, options.output)
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
