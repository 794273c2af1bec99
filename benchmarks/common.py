"""Helpers of the benchmarks: timing in turns, generated vectors, a description of the machine, JSON files."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.spaces.io.files import atomic_write

Floats = npt.NDArray[np.float32]

GEMM_SIZE = 4000
_CPU_INFO = Path("/proc/cpuinfo")


def in_turns(tasks: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Time every task `repeats` times, in seconds. The tasks alternate, so other load affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - begin)
    return times


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median time of each task."""
    return {name: statistics.median(values) for name, values in times.items()}


def comparison(what: str, times: Mapping[str, list[float]], other: str, peak_bytes: int) -> dict[str, Any]:
    """Return a row of `benchmarks.run`: median seconds of "qwp" and of another library, and peak memory of qwp."""
    middle = medians(times)
    ours, theirs = middle["qwp"], middle[other]
    figures = {"qwp_seconds": ours, "other_seconds": theirs, "ratio": theirs / ours, "times": dict(times)}
    return {"what": what, "other": other, **figures, "peak_bytes": peak_bytes}


def clustered_space(n: int, d: int, seed: int = 0, clusters: int = 200) -> Floats:
    """Return n unit rows (n, d) that resemble word vectors: Zipf-sized clusters, directions of unequal variance."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1, d + 1) ** -0.35
    sizes = 1.0 / np.arange(1, clusters + 1)
    centres = rng.standard_normal((clusters, d)) * scales
    members = rng.choice(clusters, size=n, p=sizes / sizes.sum())
    rows = centres[members] + rng.standard_normal((n, d)) * scales
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def random_rotation(d: int, rng: np.random.Generator) -> Floats:
    """Return a uniformly random orthogonal matrix (d, d)."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float32)


def gemm_call(size: int = GEMM_SIZE) -> Callable[[], Floats]:
    """Return a call that multiplies two float32 matrices (size, size): 2 size^3 FLOP."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    out = np.empty_like(left)
    return lambda: np.matmul(left, right, out=out)


def gemm_rate(size: int = GEMM_SIZE, repeats: int = 5) -> float:
    """Return the median FLOP/s of a float32 product of two (size, size) matrices."""
    call = gemm_call(size)
    call()  # the first call starts the threads
    return 2 * size**3 / medians(in_turns({"gemm": call}, repeats))["gemm"]


def save(result: dict[str, Any], path: Path) -> None:
    """Write figures as JSON, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(result, indent=2) + "\n").encode())


def machine(gemm_size: int = GEMM_SIZE) -> dict[str, Any]:
    """Describe the machine: processor, cores, FLOP/s of a matrix product, load, versions."""
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
    """Return the name of the processor, as far as the system knows it."""
    if _CPU_INFO.exists() and (found := re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(), re.MULTILINE)):
        return found[1].strip()
    return platform.processor()
