"""Jobs and the protocol of engines: the devices that compute jobs, and the order of jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from qwp import arrays
from qwp.errors import InputError, at_least
from qwp.experiments.data import Contents, DataFile

JobRecord = dict[str, Any]
Affinity = tuple[str, ...]

_MAX_ERROR = 2000


@dataclass(frozen=True)
class JobDevice:
    """The device and the number of threads that compute a job."""

    name: str = "cpu"
    threads: int | None = 1


class Job(Protocol):
    """A computation from files. Engines send it to other processes, so it must be small."""

    def sources(self) -> Mapping[str, DataFile]:
        """Return the files it needs, by name."""
        ...

    def compute(self, device: JobDevice, contents: Contents) -> Any:
        """Compute the result on any machine, without reading or writing files."""
        ...

    def finish(self, result: Any, contents: Contents) -> JobRecord:
        """Make a record of the result on the machine that started the run; this may write files."""
        ...

    def affinity(self) -> Affinity:
        """Return what it shares with other jobs, step by step. Jobs with a common prefix share that many steps."""
        ...


J = TypeVar("J", bound=Job)
J_in = TypeVar("J_in", bound=Job, contravariant=True)


@dataclass(frozen=True)
class JobOutcome:
    """The record of a job, which has only `error` if the job failed."""

    address: str
    record: JobRecord


class Engine(Protocol[J_in]):
    """Computes jobs."""

    slots: int
    """Jobs that run at a time; further jobs wait."""

    def submit(self, address: str, job: J_in) -> None:
        """Accept a job."""
        ...

    def outcomes(self) -> Iterator[JobOutcome]:
        """Yield each outcome as soon as it is known, until no job is left. Callers may submit more meanwhile."""
        ...

    def close(self) -> None:
        """Stop all jobs at once."""
        ...


def failure(error: BaseException) -> JobRecord:
    """Return the record of a job that raised an error; the other jobs continue."""
    return {"error": f"{type(error).__name__}: {error}"[:_MAX_ERROR]}


# --------------------------------------------------------------------------- the order of jobs


class Queue(Generic[J]):
    """Jobs in an order that lets one process compute those with common steps one after the other.

    Jobs with the same affinity form a bundle, which one process computes: cells with the same loop. Bundles with the
    same first two steps form a group: cells with the same files and initialization. A process that has started a group
    finishes it. It then starts another group, preferably with the same files. When all groups are started, it helps
    with the group that has most bundles left.
    """

    def __init__(self, jobs: Iterable[tuple[str, J]]) -> None:
        self._bundles: dict[Affinity, deque[tuple[str, J]]] = {}
        self._groups: dict[Affinity, deque[Affinity]] = {}
        for affinity, address, job in _by_affinity(jobs):
            if affinity not in self._bundles:
                self._groups.setdefault(affinity[:2], deque()).append(affinity)
            self._bundles.setdefault(affinity, deque()).append((address, job))
        self._started: set[Affinity] = set()

    def next_after(self, job: J | None = None) -> tuple[str, J] | None:
        """Return the next job for a process that has computed `job` last, or None if no job is left for it."""
        affinity = None if job is None else job.affinity()
        if affinity not in self._bundles:
            affinity = self._next_bundle(None if affinity is None else affinity[:2])
        if affinity is None:
            return None
        bundle = self._bundles[affinity]
        found = bundle.popleft()
        if not bundle:
            del self._bundles[affinity]
        return found

    def _next_bundle(self, own: Affinity | None) -> Affinity | None:
        """Return the affinity of the next bundle for a process whose last job belonged to the group `own`."""
        if not self._groups:
            return None
        fresh = [group for group in self._groups if group not in self._started]
        if own in self._groups:
            group = own
        elif fresh:
            group = next((each for each in fresh if own is not None and each[0] == own[0]), fresh[0])
        else:
            group = max(self._groups, key=lambda each: len(self._groups[each]))
        helping = group in self._started and group != own
        self._started.add(group)
        bundles = self._groups[group]
        # A helper takes bundles from the other end, which has least in common with those the others compute.
        found = bundles.pop() if helping else bundles.popleft()
        if not bundles:
            del self._groups[group]
        return found


def _by_affinity(jobs: Iterable[tuple[str, J]]) -> list[tuple[Affinity, str, J]]:
    """Sort jobs with their affinities so that those with common steps are neighbours, otherwise in the order given."""
    first: dict[Affinity, int] = {}
    keyed = []
    for number, (address, job) in enumerate(jobs):
        affinity = job.affinity()
        steps = [affinity[: step + 1] for step in range(len(affinity))]
        keyed.append(([first.setdefault(step, number) for step in steps], affinity, address, job))
    return [(affinity, address, job) for _, affinity, address, job in sorted(keyed, key=lambda each: each[0])]


class Dispatch(Generic[J]):
    """Gives jobs to an engine, as many as it has slots for, and closes it at the end of the context.

    Args:
        engine: the engine.
        jobs: jobs by address.
        wanted: whether the job at an address is still to be computed, asked when its turn comes.
    """

    def __init__(self, engine: Engine[J], jobs: Mapping[str, J], wanted: Callable[[str], bool] | None = None) -> None:
        self._engine, self._jobs, self._wanted = engine, jobs, wanted
        self._queue = Queue(jobs.items())
        self.running = 0

    def __enter__(self) -> Dispatch[J]:
        try:
            for _ in range(self._engine.slots):
                self._submit(None)
        except BaseException:
            self._engine.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def next_after(self, outcome: JobOutcome) -> None:
        """Give the process that computed this outcome another job."""
        self.running -= 1
        self._submit(self._jobs[outcome.address])

    def _submit(self, after: J | None) -> None:
        while (following := self._queue.next_after(after)) is not None:
            if self._wanted is None or self._wanted(following[0]):
                self._engine.submit(*following)
                self.running += 1
                return


# --------------------------------------------------------------------------- the devices of this machine


def local_devices(device: str = "auto", workers: int | None = None) -> list[JobDevice]:
    """Return a device for each worker of this machine: its GPUs, or its cores divided among the workers."""
    if workers is not None:
        at_least(1, workers=workers)
    first = arrays.choose_device(device).device
    if not first.startswith("cuda"):
        return cpu_devices(arrays.threads(), workers)
    return gpu_devices([first] if ":" in device else _gpus(), arrays.threads(), workers)


def cpu_devices(cores: int, workers: int | None = None) -> list[JobDevice]:
    """Divide the cores among the workers; by default each core is a worker."""
    count = cores if workers is None else workers
    if count > cores:
        raise InputError(f"{count} workers were asked for on {cores} cores; expected at most one for each core")
    return [JobDevice("cpu", max(1, cores // count))] * count


def gpu_devices(names: list[str], cores: int, workers: int | None = None) -> list[JobDevice]:
    """Give each worker a GPU, and divide the cores among the workers."""
    if workers is not None and workers > len(names):
        raise InputError(f"{workers} workers were asked for on {len(names)} GPUs; expected at most one for each GPU")
    names = names[:workers]
    return [JobDevice(name, max(1, cores // len(names))) for name in names]


def _gpus() -> list[str]:
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
