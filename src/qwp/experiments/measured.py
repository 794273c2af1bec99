"""Measured scores and seconds by condition and seed, and bootstrap estimates over resampled queries."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from qwp import arrays
from qwp.arrays import Floats, Stream
from qwp.experiments.cells import DONE, unpacked_ranks
from qwp.experiments.jobs import JobRecord
from qwp.experiments.run import PlannedTable, Slot
from qwp.judging.evaluation import bootstrap_counts

Name = TypeVar("Name", bound=Hashable)

RESAMPLES, LEVEL = 1000, 0.05
BEST, LEVEL_WITH_BEST, WORSE = "best", "level", "worse"
SIZE = "coreset_size"


@dataclass(frozen=True)
class Bootstrap:
    """A measure, and its values in the B resamples, (B,)."""

    value: float
    resamples: Floats

    def minus(self, other: Bootstrap) -> Bootstrap:
        """Return the difference of two estimates on the same resamples."""
        return Bootstrap(self.value - other.value, self.resamples - other.resamples)

    def interval(self) -> tuple[float, float]:
        """Return the central 95 % of the resamples, widened if necessary to contain the value."""
        low, high = np.quantile(self.resamples, [LEVEL / 2, 1 - LEVEL / 2])
        return min(float(low), self.value), max(float(high), self.value)

    def p_value(self) -> float:
        """Return the two-sided p-value of the hypothesis that the value is zero."""
        count = len(self.resamples)
        against = min(np.count_nonzero(self.resamples <= 0), np.count_nonzero(self.resamples >= 0))
        return min(1.0, 2 * (1 + int(against)) / (1 + count))


@dataclass(frozen=True)
class Mark:
    """The rank of a system: best, level (not significantly worse at 5 %) or worse. p: p-value of the difference."""

    rank: str
    p: float


def mean(estimates: list[Bootstrap]) -> Bootstrap:
    """Return the mean of estimates on the same resamples, or on those of different queries, which are independent."""
    values = float(np.mean([each.value for each in estimates]))
    return Bootstrap(values, np.mean([each.resamples for each in estimates], axis=0))


def resample(
    shares: Floats, weights: Floats, generator: np.random.Generator, *, block_elements: int = 1 << 21
) -> list[Bootstrap]:
    """Bootstrap the measures of q systems on the same w queries.

    Args:
        shares, weights: (w, q). A measure is the ratio of their sums over the queries.
        generator: random numbers.
        block_elements: numbers in one block of resamples; the default takes 16 MB.
    """
    blocks = bootstrap_counts(shares.shape[0], RESAMPLES, generator, block_elements=block_elements)
    found = np.concatenate([(counts @ shares) / (counts @ weights) for counts in blocks])
    values = shares.sum(axis=0) / weights.sum(axis=0)
    return [Bootstrap(float(value), found[:, i]) for i, value in enumerate(values)]


def marks(estimates: Mapping[Name, Bootstrap]) -> dict[Name, Mark]:
    """Mark the best system and those not significantly worse. A single system gets no mark."""
    if len(estimates) < 2:
        return {}
    best = max(estimates, key=lambda name: estimates[name].value)
    found = {best: Mark(BEST, 1.0)}
    for name, estimate in estimates.items():
        if name != best:
            p = estimates[best].minus(estimate).p_value()
            found[name] = Mark(WORSE if p < LEVEL else LEVEL_WITH_BEST, p)
    return found


GridPoint = Mapping[str, Any]
Key = tuple[tuple[str, Any], ...]


def point_key(point: GridPoint) -> Key:
    """Return a grid point as a hashable key."""
    return tuple(point.items())


@dataclass(frozen=True)
class Condition:
    """A system on a direction at a grid point of a table, with all seeds."""

    table: str
    direction: str
    system: str
    point: Key = ()

    @property
    def size(self) -> Any:
        """Size of the coreset, if the grid has it."""
        return dict(self.point).get(SIZE)


class MeasuredTables:
    """The records of some tables.

    Attributes:
        scores: in percent, by condition and seed.
        seconds: by condition and seed.
        estimates: in percent, by condition, if its records have ranks of queries.
    """

    def __init__(
        self, tables: Iterable[PlannedTable], records: Mapping[str, JobRecord], retrieval: str | None = None
    ) -> None:
        """retrieval: the retrieval method whose scores count, instead of those of the tables."""
        self.tables = {table.name: table for table in tables}
        self.scores: dict[Condition, dict[int, float]] = {}
        self.seconds: dict[Condition, dict[int, float]] = {}
        self.records: dict[Condition, dict[int, JobRecord]] = {}
        self._retrieval = retrieval
        for table in self.tables.values():
            for slot, record in _done(table, records):
                condition = Condition(table.name, slot.direction, slot.system, point_key(slot.point))
                score = 100 * record["scores"][self.retrieval(table)][table.measure]
                self.scores.setdefault(condition, {})[slot.seed] = score
                self.records.setdefault(condition, {})[slot.seed] = record
                if "seconds" in record:
                    self.seconds.setdefault(condition, {})[slot.seed] = record["seconds"]
        self.estimates: dict[Condition, Bootstrap] = dict(self._estimates())

    def retrieval(self, table: PlannedTable) -> str:
        """Return the retrieval method whose scores count in a table."""
        return self._retrieval or table.retrieval

    def mean(self, condition: Condition) -> float | None:
        """Return the mean score over the seeds."""
        return statistics.mean(self.scores[condition].values()) if condition in self.scores else None

    def _estimates(self) -> Iterator[tuple[Condition, Bootstrap]]:
        """Yield the estimates. Conditions on the same queries share their resamples."""
        groups: dict[str, list[Condition]] = {}
        for condition, records in self.records.items():
            queries = {_queries(record) for record in records.values()}
            if len(queries) == 1 and None not in queries:
                groups.setdefault(str(queries.pop()), []).append(condition)
        for number, name in enumerate(sorted(groups)):
            shares, weights = zip(*(self._shares(condition) for condition in groups[name]), strict=True)
            generator = arrays.rng(0, Stream.BOOTSTRAP, number)
            found = resample(np.stack(shares, axis=1), np.stack(weights, axis=1), generator)
            yield from zip(groups[name], found, strict=True)

    def _shares(self, condition: Condition) -> tuple[Floats, Floats]:
        """Return the contribution of each query in percent, averaged over the seeds, and its weight, both (w,)."""
        table = self.tables[condition.table]
        retrieval = self.retrieval(table)
        ranks = [unpacked_ranks(record["ranks"], retrieval) for record in self.records[condition].values()]
        shares, weights = zip(*(each.shares(table.measure) for each in ranks), strict=True)
        return 100 * np.mean(shares, axis=0), weights[0]


def _done(table: PlannedTable, records: Mapping[str, JobRecord]) -> Iterator[tuple[Slot, JobRecord]]:
    for slot in table.slots:
        record = records.get(slot.address or "", {})
        if record.get("status") == DONE:
            yield slot, record


def _queries(record: JobRecord) -> str | None:
    """Return a key that is equal for records of the same queries; None for a record without ranks."""
    if "ranks" not in record:
        return None
    inputs = record.get("inputs", {})
    files = [inputs.get(name, "") for name in ("src", "tgt", "gold")]
    return " ".join([record["direction"], *files, str(record.get("max_vocab"))])
