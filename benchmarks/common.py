"""What the benchmarks share: timing in turns, generated vectors, the state of the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


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


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures: processor, cores, and how busy it was."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": cores,
        "load_at_start": load,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
