"""Pairs on a Ray cluster against processes of this machine, with the same cores. `python -m benchmarks.cluster --help`.

    python -m benchmarks.cluster --pairs 30

Generated languages, all rotations of one, are aligned in pairs: by two local workers, and by a cluster of two nodes on
this machine with a core each (`ray.cluster_utils`). The two take turns, so that whatever else the machine does meets
both; each turn begins new processes. On one machine the maps must be identical. The figure is the throughput of Ray
over that of the local engine; the time to start the cluster is reported separately, because users have one already.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import clustered_space, machine, save
from qwp import Alignment, Embeddings
from qwp.experiments.data import Source
from qwp.experiments.engines.cluster import RayEngine
from qwp.experiments.engines.jobs import Device, Dispatch, Engine
from qwp.experiments.engines.local import LocalEngine
from qwp.experiments.pairs import PairJob
from qwp.spaces.io import save as save_vectors

RESULTS = Path(__file__).parent / "results" / "cluster.json"
NODES = 2
_LANGUAGES = 6
_WORDS, _DIM = 2000, 50
# Pairs that take a second or two: what an engine costs beside them shows.
_OPTIONS = {"seed": 0, "start": "profiles", "verdict": "none"}


def make_jobs(folder: Path, count: int) -> dict[str, PairJob]:
    """Languages as files, and jobs for so many of their pairs; the results go below `out`, which is set later."""
    base = clustered_space(_WORDS, _DIM)
    sources = []
    for number in range(_LANGUAGES):
        rng = np.random.default_rng(number)
        turn, _ = np.linalg.qr(rng.standard_normal((_DIM, _DIM)))
        noisy = base @ turn + 0.1 * rng.standard_normal(base.shape) / np.sqrt(_DIM)
        path = folder / f"l{number}.vec"
        save_vectors(Embeddings([f"w{i}" for i in range(_WORDS)], noisy.astype(np.float32)), path)
        sources.append(Source.vectors(path))
    pairs = islice(permutations(sources, 2), count)
    return {f"{src.path.stem}-{tgt.path.stem}": PairJob(src, tgt, None, folder, "qwp", _OPTIONS) for src, tgt in pairs}


def run(engine: Engine[Any], jobs: dict[str, PairJob], out: Path) -> float:
    """Align all pairs below `out`. Returns the seconds that took, from the first job to the last result."""
    placed = {name: PairJob(job.src, job.tgt, None, out / name, job.method, job.options) for name, job in jobs.items()}
    begin = time.perf_counter()
    with Dispatch(engine, placed) as dispatch:
        for outcome in engine.iterate():
            if "error" in outcome.found:
                raise RuntimeError(f"{outcome.address}: {outcome.found['error']}")
            dispatch.next_after(outcome)
        return time.perf_counter() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 1 if results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    from ray.cluster_utils import Cluster

    begin = time.perf_counter()
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(NODES - 1):
        cluster.add_node(num_cpus=1)
    started = time.perf_counter() - begin
    engines: dict[str, Callable[[], Engine[Any]]] = {
        "local": lambda: LocalEngine([Device("cpu", 1)] * NODES),
        "ray": lambda: RayEngine(cluster.address, device="cpu"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    try:
        with tempfile.TemporaryDirectory(prefix="qwp-cluster-") as folder:
            jobs = make_jobs(Path(folder), chosen.pairs)
            for number in range(chosen.repeats):
                for name, make in engines.items():
                    seconds[name].append(run(make(), jobs, Path(folder) / f"{name}{number}"))
                    print(f"{name}: {len(jobs)} pairs in {seconds[name][-1]:.1f} s", flush=True)
            maps = {name: [_bits(Path(folder) / f"{name}0" / job) for job in jobs] for name in engines}
    finally:
        cluster.shutdown()
    same = maps["local"] == maps["ray"]
    ratios = [local / ray for local, ray in zip(seconds["local"], seconds["ray"], strict=True)]
    figures = {"pairs": len(jobs), "nodes": NODES, "seconds": seconds, "throughput": statistics.median(ratios)}
    save({"machine": machine(), "same_maps": same, "start_seconds": started, **figures}, chosen.output)
    print(f"throughput of Ray: {figures['throughput']:.2f} of local ({', '.join(f'{r:.2f}' for r in ratios)}); {same=}")
    return 0 if same else 1


def _bits(folder: Path) -> list[bytes]:
    found = Alignment.load(folder)
    return [each.tobytes() for each in (found.src_map, found.tgt_map) if each is not None]


if __name__ == "__main__":
    sys.exit(main())
