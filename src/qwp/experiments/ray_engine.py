"""The engine for a Ray cluster: an existing one, or one on this machine that ends with the run.

The machine that starts the run reads each file once and puts its content into the object store. Workers need no files,
only the same version of this package. If a worker is lost, another one computes its job again.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import signal
import socket
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from qwp.errors import InputError, at_least, installed
from qwp.experiments.data import DataFile, FileCache
from qwp.experiments.jobs import Job, JobDevice, JobOutcome, JobRecord, failure, local_devices
from qwp.spaces.embeddings import Embeddings
from qwp.version import code_version

# Retries of a job whose worker was lost: the default of Ray.
RETRIES = 3
_ANSWER_SECONDS = 5.0
# A path to a socket may have 107 characters, and Ray adds up to 70.
_MAX_FOLDER = 30
_FOLDER = "qwp-ray-"
# Clusters speak HTTP/2: the greeting with an empty settings frame, and the type of the frame that answers it.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_FRAME_BYTES = 9
_SETTINGS = b"\x04"


@dataclass(frozen=True)
class ClusterShare:
    """The resources of one job on a cluster, and how many jobs can run at a time."""

    device: JobDevice
    slots: int

    @property
    def resources(self) -> dict[str, float]:
        """The resources of one job in the terms of Ray."""
        return {"num_cpus": self.device.threads or 1, "num_gpus": 1 if self.device.name.startswith("cuda") else 0}


class RayEngine:
    """Computes jobs as Ray tasks.

    Args:
        address: address of a cluster to join; None starts one on this machine, which ends with the engine.
        device: as for `qwp.align`.
        workers: jobs at a time; None for as many as the cluster has room for.
        retries: how often to compute a job again whose worker was lost.
    """

    def __init__(
        self, address: str | None = None, *, device: str = "auto", workers: int | None = None, retries: int = RETRIES
    ) -> None:
        installed("ray", "engine 'ray'")
        self._retries = retries
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        with _own_signals():
            share = self._start(device, workers) if address is None else self._join(address, device, workers)
        self.slots = share.slots
        self._device = share.device
        ray = _ray()
        # max_calls: otherwise Ray ends a process that has used a GPU, and its cached stages are lost.
        options = {"max_retries": retries, "max_calls": 0, **share.resources}
        self._remote = ray.remote(**options)(_compute)
        self._put: dict[DataFile, Any] = {}
        self._pending: dict[Any, tuple[str, Job]] = {}
        self._unreadable: deque[JobOutcome] = deque()

    def submit(self, address: str, job: Job) -> None:
        """Submit a job as a task, after putting the files it needs into the object store."""
        try:
            sources = job.sources()
            contents = [(name, source, self._reference(source)) for name, source in sources.items()]
        except Exception as error:
            self._unreadable.append(JobOutcome(address, failure(error)))
            return
        self._pending[self._remote.remote(code_version(), job, self._device, contents)] = (address, job)

    def outcomes(self) -> Iterator[JobOutcome]:
        """Yield what the tasks return. A task has failed if its worker was lost too often."""
        ray = _ray()
        while self._pending or self._unreadable:
            while self._unreadable:
                yield self._unreadable.popleft()
            if not self._pending:
                continue
            [ready], _ = ray.wait(list(self._pending), num_returns=1)
            address, job = self._pending.pop(ready)
            yield JobOutcome(address, self._record(job, ready))

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        ray = _ray()
        for task in self._pending:
            with suppress(Exception):
                ray.cancel(task, force=True)
        self._pending.clear()
        self._put.clear()
        ray.shutdown()
        if self._folder is not None:
            self._folder.cleanup()

    def _record(self, job: Job, ready: Any) -> JobRecord:
        ray = _ray()
        try:
            result = ray.get(ready)
            return job.finish(result, {name: ray.get(self._put[s]) for name, s in job.sources().items()})
        except ray.exceptions.RayTaskError as error:
            return failure(error.cause if isinstance(error.cause, Exception) else error)
        except ray.exceptions.RayError as error:
            lost = f"{self._retries + 1} workers were lost"
            return {"error": f"{lost} ({type(error).__name__}: perhaps out of memory: fewer workers need less)"}
        except Exception as error:
            return failure(error)

    def _reference(self, source: DataFile) -> Any:
        """Return a reference to the content of a file in the object store."""
        ray = _ray()
        if source not in self._put:
            loaded = source.load()
            if isinstance(loaded.content, Embeddings):
                loaded.content.sha256()  # once here, not once by every worker
            self._put[source] = ray.put(loaded)
        return self._put[source]

    # ----------------------------------------------------------------- the cluster

    def _start(self, device: str, workers: int | None) -> ClusterShare:
        """Start a cluster on this machine with the resources that `LocalEngine` would use."""
        devices = local_devices(device, workers)
        on_gpu = devices[0].name.startswith("cuda")
        base = tempfile.gettempdir() if len(tempfile.gettempdir()) <= _MAX_FOLDER else "/tmp"
        _remove_left_over(Path(base))
        prefix = f"{_FOLDER}{os.getpid()}-"
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True)
        cpus = sum(each.threads or 1 for each in devices)
        gpus = len(devices) if on_gpu else 0
        try:
            _init(num_cpus=cpus, num_gpus=gpus, include_dashboard=False, _temp_dir=self._folder.name)
        except Exception as error:
            reason = f"{error}".partition("\n")[0]
            raise InputError(f"Ray cannot be started here ({reason}); expected --address, or --engine local") from error
        # A task sees only its own GPU.
        return ClusterShare(JobDevice("cuda:0" if on_gpu else "cpu", devices[0].threads), len(devices))

    def _join(self, address: str, device: str, workers: int | None) -> ClusterShare:
        if workers is not None:
            at_least(1, workers=workers)
        _check_answer(address)
        try:
            _init(address=address)
        except Exception as error:
            raise _no_answer(address, f"{error}".partition("\n")[0].partition(". ")[0]) from error
        ray = _ray()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        try:
            return cluster_share(nodes, device, workers)
        except InputError:
            ray.shutdown()
            raise


def cluster_share(nodes: list[Mapping[str, float]], device: str, workers: int | None) -> ClusterShare:
    """Return the resources of each job. nodes: number of "CPU" and "GPU" of each node."""
    gpus = [int(node.get("GPU", 0)) for node in nodes]
    cpus = [int(node.get("CPU", 0)) for node in nodes]
    on_gpu = device.startswith("cuda") or (device == "auto" and sum(gpus) > 0)
    if on_gpu and not sum(gpus):
        raise InputError(
            f"device {device!r} was asked for, but the cluster has no GPU; expected device 'cpu' or 'auto'"
        )
    if on_gpu:
        slots = sum(gpus)
        threads = min(max(1, cores // number) for cores, number in zip(cpus, gpus, strict=True) if number)
    else:
        # The cores are divided as on one machine; a job stays on one node.
        threads = 1 if workers is None else max(1, sum(cpus) // workers)
        threads = min(threads, max(cpus, default=1))
        slots = sum(cores // threads for cores in cpus)
    if workers is not None and workers > slots:
        what = "GPUs" if on_gpu else "cores"
        raise InputError(f"{workers} workers were asked for on a cluster of {slots} {what}; expected at most that many")
    if slots < 1:
        raise InputError("the cluster has no core for a job; expected one with at least one CPU")
    return ClusterShare(JobDevice("cuda:0" if on_gpu else "cpu", threads), slots if workers is None else workers)


def _ray() -> Any:
    """Import Ray when it is needed, which takes a second."""
    return importlib.import_module("ray")


def _init(**options: Any) -> None:
    """Start Ray or join a cluster, without output on the terminal and without usage statistics."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # silences a warning about tasks without GPU
    ray = _ray()
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # importing Ray sets another level
    ray.init(log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=False, **options)


def _check_answer(address: str) -> None:
    """Raise an InputError if no cluster listens at an address: Ray itself would wait for ever."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "auto"
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.sendall(_GREETING)
            answer = connection.recv(_FRAME_BYTES)
    except (OSError, ValueError, OverflowError) as error:
        raise _no_answer(address, getattr(error, "strerror", None) or error) from error
    if "RAY_USE_TLS" not in os.environ and answer[3:4] != _SETTINGS:
        raise _no_answer(address, "another program does")


def _no_answer(address: str, reason: object) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address!r} ({reason}); expected the address of one that runs, HOST:6379 as `ray "
        "start --head` shows it, or none to start one here"
    )


def _remove_left_over(base: Path) -> None:
    """Remove the folders of runs that were killed. Their names contain the number of their process."""
    for folder in base.glob(f"{_FOLDER}*-*"):
        number = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore our signal handlers: Ray replaces that of SIGTERM, which the command line uses."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, handler)


# --------------------------------------------------------------------------- on the workers


def _compute(version: str, job: Job, device: JobDevice, references: list[tuple[str, DataFile, Any]]) -> Any:
    """Compute a job: the function of each task. references: names, files, and their contents in the object store."""
    if version != code_version():
        raise InputError(
            f"a worker has qwp {code_version()}, the run has {version}; expected the same version everywhere"
        )
    ray = _ray()
    # The arrays stay in the object store, so they are read-only.
    contents = {name: _CACHE.load(source, partial(ray.get, reference)) for name, source, reference in references}
    return job.compute(device, contents)


_CACHE = FileCache()
