"""The benchmark of engines: its jobs are pairs that can be aligned, all different."""

from __future__ import annotations

from pathlib import Path

from benchmarks import cluster
from qwp.experiments.engines.jobs import Place
from qwp.experiments.engines.local import LocalEngine


def test_jobs_are_pairs_of_generated_languages(tmp_path: Path) -> None:
    jobs = cluster.make_jobs(tmp_path, 30)
    assert len(jobs) == 30
    assert len(list(tmp_path.glob("*.vec"))) == 6
    few = {name: jobs[name] for name in ("l0-l1",)}
    assert cluster.run(LocalEngine([Place()]), few, tmp_path / "out") > 0
    assert len(cluster._bits(tmp_path / "out" / "l0-l1")) > 0
