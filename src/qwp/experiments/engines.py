"""Engines compute jobs, with processes on this machine or on a Ray cluster (`ray_engine.py`)."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from qwp.errors import InputError, installed, one_of
from qwp.experiments.data import load_all
from qwp.experiments.jobs import Engine, Job, JobDevice, JobOutcome, JobRecord, failure, local_devices

_END_SECONDS = 5.0


class LocalEngine:
    """Processes on this machine, one for each device, each started when there is a job for it."""

    def __init__(self, devices: Sequence[JobDevice]) -> None:
        self.slots = len(devices)
        self._free = list(reversed(devices))
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}
        self._waiting: deque[tuple[str, Job]] = deque()

    def submit(self, address: str, job: Job) -> None:
        """Give a job to a worker, or hold it until one is free."""
        self._waiting.append((address, job))
        self._dispatch()

    def outcomes(self) -> Iterator[JobOutcome]:
        """Yield what the workers report. The job of a worker that dies has failed; another worker replaces it."""
        while self._busy:
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                worker = self._busy.pop(ready)
                record = worker.result()
                if worker.alive:
                    self._idle.append(worker)
                else:
                    self._free.append(worker.device)
                outcome = JobOutcome(worker.address, record)
                self._dispatch()
                yield outcome

    def close(self) -> None:
        """End all processes."""
        self._waiting.clear()
        for worker in [*self._idle, *self._busy.values()]:
            worker.kill()
        self._idle, self._busy = [], {}

    def _dispatch(self) -> None:
        while self._waiting and (self._idle or self._free):
            worker = self._idle.pop() if self._idle else _Worker(self._free.pop())
            worker.begin(*self._waiting.popleft())
            self._busy[worker.connection] = worker


class _Worker:
    """A process that computes one job at a time."""

    def __init__(self, device: JobDevice) -> None:
        self.device, self.address, self.alive = device, "", True
        # Not forked: threads of BLAS and CUDA do not survive a fork.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, device), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        theirs.close()  # so that the pipe ends when the process ends

    def begin(self, address: str, job: Job) -> None:
        self.address = address
        with suppress(OSError):  # the process has died; `result` reports it
            self.connection.send(job)

    def result(self) -> JobRecord:
        """Receive the record of the job; call it when the connection is ready."""
        try:
            record: JobRecord = self.connection.recv()
            return record
        except (EOFError, OSError):
            self.alive = False
            self._process.join(_END_SECONDS)
            code = self._process.exitcode
            how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
            self.kill()
            return {"error": f"its process {how} (perhaps out of memory: fewer workers need less)"}

    def kill(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join(_END_SECONDS)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes started meanwhile: a terminal sends it to all of them, but the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, device: JobDevice) -> None:
    """Compute jobs until the connection closes: the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Records contain the warnings. Without a handler Python would print them into the table on the terminal.
    logging.getLogger("qwp").addHandler(logging.NullHandler())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_computed(job, device))


def _end_with_parent() -> None:
    """End this process when its parent ends: a parent that is killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _computed(job: Job, device: JobDevice) -> JobRecord:
    try:
        contents = load_all(job.sources())
        return job.finish(job.compute(device, contents), contents)
    except Exception as error:
        return failure(error)


# --------------------------------------------------------------------------- the choice of an engine

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


@dataclass(frozen=True)
class EngineChoice:
    """The engine that a user chose.

    Attributes:
        name: one of ENGINES.
        address: address of a Ray cluster.
        device: as for `qwp.align`.
        workers: jobs at a time; None for as many as the devices allow.
    """

    name: str = LOCAL
    address: str | None = None
    device: str = "auto"
    workers: int | None = None

    def check(self) -> None:
        """Raise an InputError for options that cannot work, before any file is read."""
        one_of(ENGINES, engine=self.name)
        if self.address is not None and self.name != RAY:
            raise InputError(f"--address {self.address} is that of a Ray cluster; expected --engine ray with it")
        if self.name == RAY:
            installed("ray", "--engine ray")

    def engine(self, jobs: int) -> Engine[Any]:
        """Return the engine for a number of jobs."""
        if self.name == LOCAL:
            return LocalEngine(local_devices(self.device, self.workers)[:jobs])
        from qwp.experiments.ray_engine import RayEngine

        return RayEngine(self.address, device=self.device, workers=self.workers)
