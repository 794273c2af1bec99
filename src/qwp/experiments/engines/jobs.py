"""What an engine computes and how it is asked to: jobs, places, outcomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from qwp.experiments.data import Material, Source

Record = dict[str, Any]

_LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Device:
    """Where a job is computed."""

    device: str = "cpu"
    threads: int | None = 1


class Job(Protocol):
    """Something to compute from files. It is sent to other processes, so it has to be small."""

    def sources(self) -> Mapping[str, Source]:
        """The files it needs, by name."""
        ...

    def compute(self, place: Device, material: Material) -> Any:
        """Compute it, anywhere: no file is read or written. What is returned is sent back."""
        ...

    def keep(self, found: Any, material: Material) -> Record:
        """Make a record of what was computed, on the machine that the run was started on: files may be written here."""
        ...

    def kinship(self) -> tuple[str, ...]:
        """What it has in common with others, step by step: those that are alike up to a step share all until then."""
        ...


J = TypeVar("J", bound=Job)
J_in = TypeVar("J_in", bound=Job, contravariant=True)


@dataclass(frozen=True)
class Outcome:
    """What came of a job: its record, or `error` and nothing else."""

    address: str
    found: Record


class Engine(Protocol[J_in]):
    """Computes jobs somewhere."""

    slots: int
    """How many at a time; more may be submitted, and wait."""

    def submit(self, address: str, job: J_in) -> None:
        """Take a job."""
        ...

    def iterate(self) -> Iterator[Outcome]:
        """What came of the jobs, each as soon as it is known, until none is left. More may be submitted meanwhile."""
        ...

    def close(self) -> None:
        """Stop at once, whatever is not done."""
        ...


def failure(error: BaseException) -> Record:
    """Why a job failed: no error stops the others."""
    return {"error": f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]}


class Queue(Generic[J]):
    """Jobs in an order in which those that have parts in common follow each other, in one process if they can.

    Jobs that are alike in the first two steps are a group: for cells, the same files and start. A process that has
    begun a group ends it; then it begins another, of the same files if there is one; and where all are begun it helps
    with the one of which most is left.
    """

    def __init__(self, jobs: Iterable[tuple[str, J]]) -> None:
        self._groups: dict[tuple[str, ...], deque[tuple[str, J]]] = {}
        for address, job in _akin_together(jobs):
            self._groups.setdefault(_group(job), deque()).append((address, job))
        self._begun: set[tuple[str, ...]] = set()

    def after(self, job: J | None = None) -> tuple[str, J] | None:
        """The next for a process that has computed this job, or none yet."""
        if not self._groups:
            return None
        own = None if job is None else _group(job)
        fresh = [group for group in self._groups if group not in self._begun]
        if own in self._groups:
            group = own
        elif fresh:
            group = next((each for each in fresh if own is not None and each[0] == own[0]), fresh[0])
        else:
            group = max(self._groups, key=lambda each: len(self._groups[each]))
        helping = group in self._begun and group != own
        self._begun.add(group)
        members = self._groups[group]
        # From the other end, which is the least akin to what the others are at.
        found = members.pop() if helping else members.popleft()
        if not members:
            del self._groups[group]
        return found


def _group(job: Job) -> tuple[str, ...]:
    return job.kinship()[:2]


def _akin_together(jobs: Iterable[tuple[str, J]]) -> list[tuple[str, J]]:
    """Jobs with those beside each other that are alike, more or less in the order they came in."""
    first: dict[tuple[str, ...], int] = {}
    keyed = []
    for number, (address, job) in enumerate(jobs):
        kinship = job.kinship()
        steps = [kinship[: step + 1] for step in range(len(kinship))]
        keyed.append(([first.setdefault(step, number) for step in steps], address, job))
    return [(address, job) for _, address, job in sorted(keyed, key=lambda each: each[0])]


class Dispatch(Generic[J]):
    """Hands jobs to an engine, as many as it has slots for, and closes it at the end of the context.

    wanted: whether a job that has its turn is still to be computed, by its address.
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

    def next_after(self, outcome: Outcome) -> None:
        """Give the engine another job: the process that is free now is the one that this outcome came from."""
        self.running -= 1
        self._submit(self._jobs[outcome.address])

    def _submit(self, after: J | None) -> None:
        while (following := self._queue.after(after)) is not None:
            if self._wanted is None or self._wanted(following[0]):
                self._engine.submit(*following)
                self.running += 1
                return
