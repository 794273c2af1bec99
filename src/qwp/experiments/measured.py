"""What was measured, by place in the tables: scores and seconds for each seed, and what resampled queries say."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Stream
from qwp.experiments.cells import DONE, Record
from qwp.experiments.packing import unpacked_ranks
from qwp.experiments.plan import PlannedTable, Slot
from qwp.experiments.significance import Estimate, Floats, resample

Point = Mapping[str, Any]
Key = tuple[tuple[str, Any], ...]
SIZE = "coreset_size"


def point_key(point: Point) -> Key:
    """A point of a grid as something to look up."""
    return tuple(point.items())


@dataclass(frozen=True)
class Spot:
    """A place in a table, all seeds together."""

    table: str
    direction: str
    system: str
    point: Key = ()

    @property
    def size(self) -> Any:
        """Of the coreset, where the grid has it."""
        return dict(self.point).get(SIZE)


class Measured:
    """The records of some tables. scores, in percent, and seconds: by spot and seed; estimates: in percent, by spot.

    A spot without ranks in its records has no estimate.
    """

    def __init__(
        self, tables: Iterable[PlannedTable], records: Mapping[str, Record], retrieval: str | None = None
    ) -> None:
        """retrieval: instead of those of the tables."""
        self.tables = {table.name: table for table in tables}
        self.scores: dict[Spot, dict[int, float]] = {}
        self.seconds: dict[Spot, dict[int, float]] = {}
        self.records: dict[Spot, dict[int, Record]] = {}
        self._retrieval = retrieval
        for table in self.tables.values():
            for slot, record in _done(table, records):
                spot = Spot(table.name, slot.direction, slot.system, point_key(slot.point))
                score = 100 * record["scores"][self.retrieval(table)][table.measure]
                self.scores.setdefault(spot, {})[slot.seed] = score
                self.records.setdefault(spot, {})[slot.seed] = record
                if "seconds" in record:
                    self.seconds.setdefault(spot, {})[slot.seed] = record["seconds"]
        self.estimates: dict[Spot, Estimate] = dict(self._estimates())

    def retrieval(self, table: PlannedTable) -> str:
        """The one whose scores count in a table."""
        return self._retrieval or table.retrieval

    def mean(self, spot: Spot) -> float | None:
        """Over the seeds."""
        return statistics.mean(self.scores[spot].values()) if spot in self.scores else None

    def _estimates(self) -> Iterator[tuple[Spot, Estimate]]:
        """Spots on the same queries share their resamples."""
        groups: dict[str, list[Spot]] = {}
        for spot, records in self.records.items():
            queries = {_queries(record) for record in records.values()}
            if len(queries) == 1 and None not in queries:
                groups.setdefault(str(queries.pop()), []).append(spot)
        for number, name in enumerate(sorted(groups)):
            shares, weights = zip(*(self._shares(spot) for spot in groups[name]), strict=True)
            generator = arrays.rng(0, Stream.BOOTSTRAP, number)
            found = resample(np.stack(shares, axis=1), np.stack(weights, axis=1), generator)
            yield from zip(groups[name], found, strict=True)

    def _shares(self, spot: Spot) -> tuple[Floats, Floats]:
        """What each query brings, in percent, the mean over the seeds; and its weight, both (w,)."""
        table = self.tables[spot.table]
        retrieval = self.retrieval(table)
        ranks = [unpacked_ranks(record["ranks"], retrieval) for record in self.records[spot].values()]
        shares, weights = zip(*(each.shares(table.measure) for each in ranks), strict=True)
        return 100 * np.mean(shares, axis=0), weights[0]


def _done(table: PlannedTable, records: Mapping[str, Record]) -> Iterator[tuple[Slot, Record]]:
    for slot in table.slots:
        record = records.get(slot.address or "", {})
        if record.get("status") == DONE:
            yield slot, record


def _queries(record: Record) -> str | None:
    """What tells whether two records are of the same queries; None for a record without ranks."""
    if "ranks" not in record:
        return None
    inputs = record.get("inputs", {})
    files = [inputs.get(name, "") for name in ("src", "tgt", "gold")]
    return " ".join([record["direction"], *files, str(record.get("max_vocab"))])
