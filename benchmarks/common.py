"""What the benchmarks share: timing in turns, generated vectors, the state of the machine, saving figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.spaces.io.files import replacing

Floats = npt.NDArray[np.float32]

GEMM_SIZE = 4000
TABLES_BEGIN, TABLES_END = "<!-- tables -->", "<!-- /tables -->"
_CPU_INFO = Path("/proc/cpuinfo")


def in_turns(tasks: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every call. The tasks alternate: whatever else the machine does meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - begin)
    return times


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """The median of each task's times."""
    return {name: statistics.median(values) for name, values in times.items()}


def clustered_space(n: int, d: int, seed: int = 0, clusters: int = 200) -> Floats:
    """n unit rows (n, d) with the structure of word vectors: Zipf-sized clusters, unequal directions."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1, d + 1) ** -0.35
    sizes = 1.0 / np.arange(1, clusters + 1)
    centres = rng.standard_normal((clusters, d)) * scales
    members = rng.choice(clusters, size=n, p=sizes / sizes.sum())
    rows = centres[members] + rng.standard_normal((n, d)) * scales
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def gemm_rate(size: int = GEMM_SIZE, repeats: int = 5) -> float:
    """FLOP/s of a float32 product of two (size, size) matrices, the median of several: what the machine can do."""
    call = gemm_call(size)
    call()  # the first call pays for threads
    return 2 * size**3 / medians(in_turns({"gemm": call}, repeats))["gemm"]


def gemm_call(size: int = GEMM_SIZE) -> Callable[[], Floats]:
    """A float32 product of two (size, size) matrices, 2 size^3 FLOP, ready to be timed."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    out = np.empty_like(left)
    return lambda: np.matmul(left, right, out=out)


def options_parser(
    module: str,
    description: str,
    *,
    repeats: int,
    n: int | None = None,
    d: int | None = None,
    device: str | None = None,
) -> argparse.ArgumentParser:
    """The options that several benchmarks have; those without a default are left out. Add others to it."""
    parser = argparse.ArgumentParser(prog=module, description=description)
    if device is not None:
        parser.add_argument("--device", default=device, help="auto, cpu, cuda or cuda:N")
        parser.add_argument("--output", type=Path, default=None, help="write the JSON here as well")
    if n is not None:
        parser.add_argument("--n", type=int, default=n, help="words, of each side where there are two")
    if d is not None:
        parser.add_argument("--d", type=int, default=d, help="dimensions")
    parser.add_argument("--repeats", type=int, default=repeats, help="runs of each, in turns where there are several")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


def suite_options(
    module: str,
    description: str | None,
    suites: Collection[str],
    results: Path,
    bench: Path,
    arguments: Sequence[str] | None = None,
) -> argparse.Namespace:
    """The options of a benchmark made of suites that keep their records: suites, device, output, table.

    Suites that are not known, and data that is not there where it is needed, end the program.
    """
    parser = argparse.ArgumentParser(prog=module, description=description)
    parser.add_argument("suites", nargs="*", help=f"some of {', '.join(suites)} (default: all)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--output", type=Path, default=results, help="file of the records")
    parser.add_argument("--table", action="store_true", help="run nothing, put the tables into docs/accuracy.md")
    options = parser.parse_args(arguments)
    unknown = [suite for suite in options.suites if suite not in suites]
    if unknown:
        parser.error(f"unknown suites {', '.join(unknown)}; expected some of {', '.join(suites)}")
    if not options.table:
        if not bench.is_dir():
            parser.error(f"no benchmark vectors in {bench}: set QWP_BENCH to their folder")
        options.output.parent.mkdir(parents=True, exist_ok=True)
    return options


def save(result: dict[str, Any], path: Path) -> None:
    """Write the figures as JSON; the file appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write((json.dumps(result, indent=2) + "\n").encode())


Record = dict[str, Any]


def read_records(path: Path) -> list[Record]:
    """The records of a results file so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep_record(record: Record, path: Path, shown: Sequence[str]) -> None:
    """Add a record to a results file as soon as it is there, and print some of its figures."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print({key: record[key] for key in shown if key in record}, flush=True)


def put_tables(tables: str, document: Path, begin: str = TABLES_BEGIN, end: str = TABLES_END) -> None:
    """Replace what stands between two marks of a document."""
    text = document.read_text()
    before, after = text.split(begin)[0], text.split(end)[1]
    with replacing(document) as file:
        file.write(f"{before}{begin}\n{tables}{end}{after}".encode())


def show_tables(
    options: argparse.Namespace, tables: Callable[[list[Record]], str], document: Path, begin: str, end: str
) -> None:
    """Print the tables of the records that there are; with `--table` they go into a document, too."""
    made = tables(read_records(options.output))
    if options.table:
        put_tables(made, document, begin, end)
    print(made)


def machine(gemm_size: int = GEMM_SIZE) -> dict[str, Any]:
    """What a reader needs to judge the figures: processor, cores, what it reaches, and how busy it was."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "model": processor_model(),
        "cores": cores,
        "gemm_size": gemm_size,
        "gemm_flops_per_second": gemm_rate(gemm_size),
        "load_at_start": load,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def processor_model() -> str:
    """The name the processor gives itself, as far as the system tells."""
    if _CPU_INFO.exists() and (found := re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(), re.MULTILINE)):
        return found[1].strip()
    return platform.processor()
