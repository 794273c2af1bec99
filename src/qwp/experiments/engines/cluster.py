"""Jobs by a Ray cluster: one that is there already, or one of this machine for the time of the run.

The machine that starts the run reads the files and puts what is in them into the object store, each once; the workers
need no files, only the same version of this package. A worker that is lost is replaced, and its job is computed again.
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
from qwp.experiments.data import Shelf, Source
from qwp.experiments.engines.jobs import Device, Job, Outcome, Record, failure
from qwp.experiments.engines.local import local_places
from qwp.spaces.embeddings import Embeddings
from qwp.version import code_version

# How often a job is begun again whose worker was lost: the default of Ray.
RETRIES = 3
_ANSWER_SECONDS = 5.0
# A path to a socket may have 107 letters, and Ray adds up to 70.
_LONGEST_FOLDER = 30
_FOLDER = "qwp-ray-"
# Clusters speak HTTP/2: the greeting, with an empty frame of settings, and the kind of frame that is the answer.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_FRAME_BYTES = 9
_SETTINGS = b"\x04"


@dataclass(frozen=True)
class Share:
    """What one job gets of a cluster, and how many can run at a time."""

    place: Device
    slots: int

    @property
    def resources(self) -> dict[str, float]:
        """As Ray wants to hear it."""
        return {"num_cpus": self.place.threads or 1, "num_gpus": 1 if self.place.device.startswith("cuda") else 0}


class RayEngine:
    """Tasks of Ray. address: of a cluster to join; None for one of this machine, which ends with the engine."""

    def __init__(
        self, address: str | None = None, *, device: str = "auto", workers: int | None = None, retries: int = RETRIES
    ) -> None:
        installed("ray", "engine 'ray'")
        self._retries = retries
        self._address = address
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        with _own_signals():
            share = self._start(device, workers) if address is None else self._join(address, device, workers)
        self.slots = share.slots
        self._place = share.place
        ray = _ray()
        # max_calls: a process that has held a GPU would not be used again otherwise, and loses what it has computed.
        options = {"max_retries": retries, "max_calls": 0, **share.resources}
        self._remote = ray.remote(**options)(_compute)
        self._put: dict[Source, Any] = {}
        self._pending: dict[Any, tuple[str, Job]] = {}
        self._refused: deque[Outcome] = deque()

    def submit(self, address: str, job: Job) -> None:
        """Make a task of it. What it needs is read and put into the object store where that was not done before."""
        try:
            sources = job.sources()
            contents = [(name, source, self._reference(source)) for name, source in sources.items()]
        except Exception as error:
            self._refused.append(Outcome(address, failure(error)))
            return
        self._pending[self._remote.remote(code_version(), job, self._place, contents)] = (address, job)

    def iterate(self) -> Iterator[Outcome]:
        """What the tasks return. One whose worker was lost too often has failed."""
        ray = _ray()
        while self._pending or self._refused:
            while self._refused:
                yield self._refused.popleft()
            if not self._pending:
                continue
            [ready], _ = ray.wait(list(self._pending), num_returns=1)
            address, job = self._pending.pop(ready)
            yield Outcome(address, self._record(job, ready))

    def close(self) -> None:
        """Leave the cluster; one of this machine ends."""
        ray = _ray()
        for task in self._pending:
            with suppress(Exception):
                ray.cancel(task, force=True)
        self._pending.clear()
        self._put.clear()
        ray.shutdown()
        if self._folder is not None:
            self._folder.cleanup()

    def _record(self, job: Job, ready: Any) -> Record:
        ray = _ray()
        try:
            found = ray.get(ready)
            return job.keep(found, {name: ray.get(self._put[s]) for name, s in job.sources().items()})
        except ray.exceptions.RayTaskError as error:
            return failure(error.cause if isinstance(error.cause, Exception) else error)
        except ray.exceptions.RayError as error:
            lost = f"{self._retries + 1} workers were lost"
            return {"error": f"{lost} ({type(error).__name__}: out of memory, perhaps: fewer workers need less)"}
        except Exception as error:
            return failure(error)

    def _reference(self, source: Source) -> Any:
        """What is in a file, in the object store."""
        ray = _ray()
        if source not in self._put:
            read = source.read()
            if isinstance(read.content, Embeddings):
                read.content.sha256()  # once here, not once by every worker
            self._put[source] = ray.put(read)
        return self._put[source]

    # ----------------------------------------------------------------- the cluster

    def _start(self, device: str, workers: int | None) -> Share:
        """A cluster of this machine, with what `LocalEngine` would use of it."""
        places = local_places(device, workers)
        on_gpu = places[0].device.startswith("cuda")
        base = tempfile.gettempdir() if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"
        _remove_left_over(Path(base))
        prefix = f"{_FOLDER}{os.getpid()}-"
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True)
        cpus = sum(place.threads or 1 for place in places)
        gpus = len(places) if on_gpu else 0
        try:
            _init(num_cpus=cpus, num_gpus=gpus, include_dashboard=False, _temp_dir=self._folder.name)
        except Exception as error:
            reason = f"{error}".partition("\n")[0]
            raise InputError(f"Ray cannot be started here ({reason}); expected --address, or --engine local") from error
        # Ray shows a task its own GPU only.
        return Share(Device("cuda:0" if on_gpu else "cpu", places[0].threads), len(places))

    def _join(self, address: str, device: str, workers: int | None) -> Share:
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


def cluster_share(nodes: list[Mapping[str, float]], device: str, workers: int | None) -> Share:
    """What each job gets of a cluster. nodes: what each has of "CPU" and "GPU"."""
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
        # Cores shared out as on one machine; a job stays on one node.
        threads = 1 if workers is None else max(1, sum(cpus) // workers)
        threads = min(threads, max(cpus, default=1))
        slots = sum(cores // threads for cores in cpus)
    if workers is not None and workers > slots:
        what = "GPUs" if on_gpu else "cores"
        raise InputError(f"{workers} workers were asked for on a cluster of {slots} {what}; expected at most that many")
    if slots < 1:
        raise InputError("the cluster has no core for a job; expected one with at least one CPU")
    return Share(Device("cuda:0" if on_gpu else "cpu", threads), slots if workers is None else workers)


def _ray() -> Any:
    """The library, loaded when it is needed: that takes a second."""
    return importlib.import_module("ray")


def _init(**options: Any) -> None:
    """Start Ray or join it, without a word on the terminal and without a call to the network."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # says how it shows no GPU to those that want none
    ray = _ray()
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # it has set another one when it was loaded
    ray.init(log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=False, **options)


def _check_answer(address: str) -> None:
    """Refuse an address at which no cluster listens: Ray itself would wait for ever."""
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
        raise _no_answer(address, "something else does")


def _no_answer(address: str, reason: object) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address!r} ({reason}); expected the address of one that runs, HOST:6379 as `ray "
        "start --head` shows it, or none to start one here"
    )


def _remove_left_over(base: Path) -> None:
    """Remove what runs have left that were killed: each is named after its process."""
    for folder in base.glob(f"{_FOLDER}*-*"):
        number = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray would take over SIGTERM, which the command line has a use for."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, handler)


# --------------------------------------------------------------------------- on the workers


def _compute(version: str, job: Job, place: Device, contents: list[tuple[str, Source, Any]]) -> Any:
    """The task. contents: references to what is in the files."""
    if version != code_version():
        raise InputError(
            f"a worker has qwp {code_version()}, the run is of {version}; expected the same code everywhere"
        )
    ray = _ray()
    # In the object store, where the arrays stay: they can only be read.
    material = {name: _SHELF.take(source, partial(ray.get, reference)) for name, source, reference in contents}
    return job.compute(place, material)


_SHELF = Shelf()
