"""Jobs by processes on this machine."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from qwp import arrays
from qwp.errors import InputError, at_least
from qwp.experiments.data import read_all
from qwp.experiments.engines.jobs import Device, Job, Outcome, Record, failure

_END_SECONDS = 5.0


def local_places(device: str = "auto", workers: int | None = None) -> list[Device]:
    """A place for each worker of this machine: one for each GPU, or the cores shared out."""
    if workers is not None:
        at_least(1, workers=workers)
    first = arrays.choose_device(device).device
    if not first.startswith("cuda"):
        return places_on_cores(arrays.threads(), workers)
    return places_on_gpus([first] if ":" in device else _gpus(), arrays.threads(), workers)


def places_on_cores(cores: int, workers: int | None = None) -> list[Device]:
    """The cores shared out among the workers, by default one for each."""
    count = cores if workers is None else workers
    if count > cores:
        raise InputError(f"{count} workers were asked for on {cores} cores; expected at most one for each core")
    return [Device("cpu", max(1, cores // count))] * count


def places_on_gpus(devices: list[str], cores: int, workers: int | None = None) -> list[Device]:
    """A GPU for each worker, and the cores shared out among them."""
    if workers is not None and workers > len(devices):
        raise InputError(f"{workers} workers were asked for on {len(devices)} GPUs; expected at most one for each GPU")
    devices = devices[:workers]
    return [Device(name, max(1, cores // len(devices))) for name in devices]


def _gpus() -> list[str]:
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


class LocalEngine:
    """Processes on this machine, one for each place, started when there is something to do."""

    def __init__(self, places: Sequence[Device]) -> None:
        self.slots = len(places)
        self._free = list(reversed(places))
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}
        self._waiting: deque[tuple[str, Job]] = deque()

    def submit(self, address: str, job: Job) -> None:
        """Hand it to a worker, or keep it until one is free."""
        self._waiting.append((address, job))
        self._dispatch()

    def iterate(self) -> Iterator[Outcome]:
        """What the workers report. One that dies has failed its job, and another takes its place."""
        while self._busy:
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                worker = self._busy.pop(ready)
                found = worker.result()
                if worker.alive:
                    self._idle.append(worker)
                else:
                    self._free.append(worker.place)
                outcome = Outcome(worker.address, found)
                self._dispatch()
                yield outcome

    def close(self) -> None:
        """End all processes."""
        self._waiting.clear()
        workers = [*self._idle, *self._busy.values()]
        for worker in workers:
            worker.kill()
        self._idle, self._busy = [], {}

    def _dispatch(self) -> None:
        while self._waiting and (self._idle or self._free):
            worker = self._idle.pop() if self._idle else _Worker(self._free.pop())
            worker.begin(*self._waiting.popleft())
            self._busy[worker.connection] = worker


class _Worker:
    """A process that computes one job after the other."""

    def __init__(self, place: Device) -> None:
        self.place, self.address, self.alive = place, "", True
        # Not forked: threads of BLAS and CUDA do not survive that.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, place), daemon=True)
        with _interrupts_held():
            self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def begin(self, address: str, job: Job) -> None:
        self.address = address
        with suppress(OSError):  # it has died: `result` says so
            self.connection.send(job)

    def result(self) -> Record:
        """What it found; called when there is something to receive."""
        try:
            found: Record = self.connection.recv()
            return found
        except (EOFError, OSError):
            self.alive = False
            self._process.join(_END_SECONDS)
            code = self._process.exitcode
            how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
            self.kill()
            return {"error": f"its process {how} (out of memory, perhaps: fewer workers need less)"}

    def kill(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join(_END_SECONDS)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started meanwhile never gets Ctrl-C, which goes to all of a terminal: the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, place: Device) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Warnings are in the records; Python would write them onto the terminal, into the table there.
    logging.getLogger("qwp").addHandler(logging.NullHandler())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_computed(job, place))


def _end_with_parent() -> None:
    """A killed parent cannot end its workers: they look themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _computed(job: Job, place: Device) -> Record:
    """A record, or why it failed."""
    try:
        material = read_all(job.sources())
        return job.keep(job.compute(place, material), material)
    except Exception as error:
        return failure(error)
