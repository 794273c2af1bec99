"""The Ray engine: a real cluster on this machine, killed workers, the results of the local engine."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from qwp.errors import InputError
from qwp.experiments.cells import Cell
from qwp.experiments.config import read_experiment
from qwp.experiments.data import Contents, Data, DirectionFiles
from qwp.experiments.jobs import JobDevice, JobOutcome, JobRecord
from qwp.experiments.ray_engine import RayEngine, cluster_share
from qwp.experiments.run import RecordStore, make_plan, run
from tests.experiments.test_cells import OPTIONS
from tests.experiments.test_run import Inline, fitted, lasting

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="Ray is not installed",
)


def test_resources_of_a_job() -> None:
    nodes: list[dict[str, float]] = [{"CPU": 8.0}, {"CPU": 4.0}]
    assert cluster_share([*nodes], "auto", None).device == JobDevice("cpu", 1)
    assert cluster_share([*nodes], "cpu", None).slots == 12
    few = cluster_share([*nodes], "cpu", 3)
    assert (few.slots, few.device.threads, few.resources) == (3, 4, {"num_cpus": 4, "num_gpus": 0})
    mixed: list[dict[str, float]] = [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 4.0}]
    share = cluster_share([*mixed], "auto", None)
    assert (share.slots, share.device, share.resources) == (2, JobDevice("cuda:0", 8), {"num_cpus": 8, "num_gpus": 1})
    assert cluster_share([*mixed], "cpu", None).slots == 20
    with pytest.raises(InputError, match="device 'cuda' was asked for, but the cluster has no GPU"):
        cluster_share([*nodes], "cuda", None)
    with pytest.raises(InputError, match="13 workers were asked for on a cluster of 12 cores"):
        cluster_share([*nodes], "cpu", 13)


@needs_ray
def test_an_address_without_answer_raises() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=r"no Ray cluster answers at '127.*Connection refused"):
            RayEngine(address)
    with pytest.raises(InputError, match=r"no Ray cluster answers at '127.0.0.1:x'"):
        RayEngine("127.0.0.1:x")


@needs_ray
def test_another_program_at_the_address_raises() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(InputError, match=r"\(another program does\); expected the address of one that runs"):
            RayEngine(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@dataclass(frozen=True)
class Deadly(Cell):
    """A cell whose process is killed the first time. mark: a file that records the kill."""

    mark: Path = Path()
    always: bool = False

    def compute(self, device: JobDevice, contents: Contents) -> JobRecord:
        if self.always or not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        assert not contents["src"].content.vectors.flags.writeable, "arrays stay in the object store"
        return super().compute(device, contents)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A node with two cores."""
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    found: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        yield found
    finally:
        found.shutdown()


def outcomes(engine: Any, jobs: dict[str, Cell]) -> dict[str, JobRecord]:
    try:
        for address, job in jobs.items():
            engine.submit(address, job)
        found: list[JobOutcome] = list(engine.outcomes())
    finally:
        engine.close()
    assert len(found) == len(jobs)
    return {outcome.address: {**outcome.record, "seconds": 0, "shared_seconds": 0, "stages": {}} for outcome in found}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_cluster_computes_what_this_process_does(
    cluster: Any, folder: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole experiment, and then jobs whose workers are killed: no result is lost, and all bits are equal."""
    plan = make_plan(read_experiment(str(config)), Data.below(folder))
    here, there = RecordStore(tmp_path / "here"), RecordStore(tmp_path / "there")
    run(plan, here, Inline(compute=fitted), lambda _: None)
    engine = RayEngine(cluster.address, device="cpu")
    assert engine.slots == 2
    summary = run(plan, there, engine, lambda _: None)
    assert (summary.done, summary.computed) == (16, 16)
    assert lasting(there.known) == lasting(here.known)
    assert len(there.path.read_text().splitlines()) == 16

    inputs = DirectionFiles(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    options = {**OPTIONS, "coreset_size": 40}
    killed = Deadly("en-es", "qwp", options, 0, inputs, mark=tmp_path / "mark")
    cell = Cell("en-es", "qwp", options, 0, inputs)
    lost = replace(killed, always=True)
    unreadable = replace(cell, inputs=replace(inputs, gold=folder / "none.txt"))
    jobs: dict[str, Cell] = {"killed": killed, "whole": cell, "lost": lost, "unreadable": unreadable}
    found = outcomes(RayEngine(cluster.address, device="cpu", retries=1), jobs)
    assert (tmp_path / "mark").exists()
    assert found["killed"] == found["whole"] == outcomes(Inline(compute=fitted), {"x": cell})["x"]
    assert found["lost"]["error"].startswith("2 workers were lost (")
    assert found["unreadable"]["error"].startswith("InputError: ")
    assert "none.txt" in found["unreadable"]["error"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_local_cluster_prints_and_leaves_nothing(folder: Path, config: Path, tmp_path: Path) -> None:
    """If a run is killed, its processes end; the next run has the results of the local engine."""
    pytest.importorskip("ray", reason="Ray is not installed")
    options = ["--data", str(folder), "--workers", "1", "--device", "cpu", "--seeds", "1"]
    line = [sys.executable, "-m", "qwp", "experiment", "run", str(config), *options]

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*line, "--results", str(tmp_path / "r"), "--engine", "ray"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    first = begin()
    assert first.stderr is not None
    while "1/8 cells" not in (said := first.stderr.readline()):
        assert "/8 cells" in said  # and nothing of Ray
    first.kill()
    first.wait()
    again = begin()
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0
    assert all("/8 cells" in each for each in said.splitlines())
    ours, expected = RecordStore(tmp_path / "r"), RecordStore(tmp_path / "expected")
    plan = make_plan(read_experiment(str(config)), Data.below(folder), seeds=1)
    run(plan, expected, Inline(compute=fitted), lambda _: None)
    assert lasting(ours.refresh()) == lasting(expected.known)
    assert len(ours.path.read_text().splitlines()) == len(ours.known) == 8
    deadline = time.monotonic() + 30
    while processes_of(first.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not processes_of(first.pid)


def processes_of(session: int) -> list[str]:
    """Return the processes of a session that compute or schedule, without zombies and the slow agents of Ray."""
    shown = subprocess.run(["ps", "-e", "-o", "sess=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [row.split(maxsplit=2) for row in shown.stdout.splitlines()]
    own = [row[2] for row in rows if len(row) > 2 and row[0] == str(session) and not row[1].startswith("Z")]
    return [args for args in own if "Agent" not in args]
