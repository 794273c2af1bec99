"""All benchmarks in one go: a table on the screen, the figures in benchmarks/results/latest.json.

    python -m benchmarks.run [--quick] [--all] [--json] [--only NAME ...]

Every stage is timed in turns with the library a user would take instead, in this very run, so that the ratio
means something on a busy machine even where the seconds do not. The whole pipeline takes much longer than the rest
and runs with --all, or when it is named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import coreset, csls, frank_wolfe, loader, pipeline, sinkhorn
from benchmarks.common import GEMM_SIZE, machine, save

RESULTS = Path(__file__).parent / "results" / "latest.json"
_QUICK_GEMM_SIZE = 500


@dataclass(frozen=True)
class Row:
    """One line of the table. Times in seconds; peak memory of qwp in bytes where it was measured."""

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
    """How to run one benchmark, at full size and in a few seconds, and how to read its figures.

    slow: takes so long that it has to be asked for.
    """

    run: Callable[..., dict[str, Any]]
    quick: dict[str, Any]
    rows: Callable[[dict[str, Any]], list[Row]]
    slow: bool = False


def _loader_rows(r: dict[str, Any]) -> list[Row]:
    what = f"read a .vec file, {r['n']} words x {r['d']}"
    return [Row(what, r["qwp_seconds"], "gensim", r["gensim_seconds"], r["peak_bytes"])]


def _coreset_rows(r: dict[str, Any]) -> list[Row]:
    return [
        Row(
            f"k-means++ coreset, k={case['k']} of {r['n']} x {r['d']}",
            case["qwp_seconds"],
            "scikit-learn",
            case["sklearn_seconds"],
            case["peak_bytes"],
        )
        for case in r["cases"]
    ]


def _sinkhorn_rows(r: dict[str, Any]) -> list[Row]:
    return [
        Row(
            f"Sinkhorn, k={case['k']}, same error, {case['label']}",
            case["qwp_seconds"],
            "POT",
            case["pot_seconds"],
            case["peak_bytes"],
        )
        for case in r["cases"]
    ]


def _frank_wolfe_rows(r: dict[str, Any]) -> list[Row]:
    what = f"Frank-Wolfe step, {r['words']} words x {r['d']}"
    return [
        Row(
            f"{what}, {case['reference']}",
            r["qwp_seconds_per_step"],
            "NumPy + POT",
            case["seconds_per_step"],
            r["peak_bytes"],
        )
        for case in r["cases"]
    ]


def _csls_rows(r: dict[str, Any]) -> list[Row]:
    size = f"{r['n']} x {r['n']} x {r['d']}"
    return [
        Row(f"{case['what']}, {size}", case["qwp_seconds"], case["other"], case["other_seconds"], case["peak_bytes"])
        for case in r["cases"]
    ]


def _pipeline_rows(r: dict[str, Any]) -> list[Row]:
    ours = r.get("ours")
    if ours is None:
        return []
    return [
        Row(
            f"whole alignment, {ours['n']} x {ours['d']}, {name}, P@1 {ours['csls_p1']:.1f} | {theirs['csls_p1']:.1f}",
            ours["total_seconds"],
            "NumPy + POT",
            theirs["total_seconds"],
            ours["peak_bytes"],
        )
        for name, theirs in r["references"].items()
        # An older record in the same file may be of other data.
        if all(theirs[key] == ours[key] for key in ("data", "n", "d"))
    ]


_QUICK_GROWTH = csls.GrowthSizes(keys=(500, 1000), points=(500, 1000), queries=50, centres=10, bank_size=2)
_QUICK_PIPELINE = {
    "n": 200,
    "d": 12,
    "settings": pipeline.ReferenceSettings(scale=0.002),
    "options": {"coreset_size": 100, "steps": 10, "epochs": 1, "start": "frank-wolfe", "start_steps": 5},
    "generated": True,
    "gemm_size": _QUICK_GEMM_SIZE,
    "output": None,
}
BENCHMARKS = {
    "loader": Benchmark(loader.run, {"n": 5000, "d": 100, "repeats": 1}, _loader_rows),
    "coreset": Benchmark(coreset.run, {"n": 3000, "d": 100, "ks": (50,), "repeats": 1, "bank_size": 8}, _coreset_rows),
    "sinkhorn": Benchmark(
        sinkhorn.run, {"ks": (100,), "repeats": 1, "d": 50, "n": 500, "generated": True}, _sinkhorn_rows
    ),
    "frank_wolfe": Benchmark(
        frank_wolfe.run, {"words": 200, "steps": 3, "d": 20, "generated": True}, _frank_wolfe_rows
    ),
    "csls": Benchmark(
        csls.run,
        {"n": 1000, "d": 50, "repeats": 1, "gemm_size": _QUICK_GEMM_SIZE, "growth": _QUICK_GROWTH},
        _csls_rows,
    ),
    "pipeline": Benchmark(pipeline.run, _QUICK_PIPELINE, _pipeline_rows, slow=True),
}


def run(
    names: list[str] | None = None,
    *,
    quick: bool = False,
    slow: bool = False,
    after_each: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the named benchmarks, one after the other; by default all, the slow ones only when asked for.

    after_each: given all figures so far whenever a benchmark has ended.
    """
    state = machine(_QUICK_GEMM_SIZE if quick else GEMM_SIZE)
    result: dict[str, Any] = {"quick": quick, "machine": state}
    for name in names or [name for name, benchmark in BENCHMARKS.items() if slow or not benchmark.slow]:
        benchmark = BENCHMARKS[name]
        result[name] = benchmark.run(**(benchmark.quick if quick else {}))
        after_each(result)
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


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line, print the table or the JSON, and save the latter."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description="All benchmarks of qwp")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast")
    parser.add_argument("--all", action="store_true", help="the slow ones as well")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="run these only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    options = parser.parse_args(arguments)
    result = run(
        options.only,
        quick=options.quick,
        slow=options.all,
        after_each=lambda figures: save(figures, options.output),
    )
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
