"""What an engine computes and how it is asked to: jobs, places, outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from qwp.experiments.material import Material, Source

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
