"""The tables of an experiment for people: what was measured, the published figures, and the difference.

`make_report` makes plain tables of a plan and its records; each form in `forms.py` is one function that writes them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from qwp.experiments.cells import DONE, FAILED, Record
from qwp.experiments.claims import Outcome, outcomes
from qwp.experiments.figures import AVERAGE, PublishedTable, published
from qwp.experiments.measured import SIZE, Estimate, Mark, Measured, Point, Spot, marks, mean, point_key
from qwp.experiments.plan import Plan, PlannedTable


@dataclass(frozen=True)
class Entry:
    """One cell in percent. ours: a figure for each seed; published: that of the paper.

    mark: among the systems of the same place, best, level (not significantly worse than the best at 5 %) or worse, ""
    where that is not known; p: of the difference from the best; seconds: of one fit, the mean over the seeds.
    """

    ours: tuple[float, ...] = ()
    published: float | None = None
    mark: str = ""
    p: float | None = None
    seconds: float | None = None

    @property
    def mean(self) -> float | None:
        """Over the seeds."""
        return statistics.mean(self.ours) if self.ours else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds, where there are several."""
        return statistics.stdev(self.ours) if len(self.ours) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class Row:
    """group: what rows below each other share, a direction or nothing."""

    group: str
    label: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class View:
    """A table as it is shown. heads: what the first columns are; above: what the others are together."""

    name: str
    title: str
    about: str
    heads: tuple[str, ...]
    above: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    done: int
    failed: int
    wanted: int
    compared: bool


@dataclass(frozen=True)
class PlanPicture:
    """A small transport plan of one direction. src, tgt: names of its rows and columns; plan: packed, row by row."""

    direction: str
    about: str
    src: tuple[str, ...]
    tgt: tuple[str, ...]
    plan: str


@dataclass(frozen=True)
class Report:
    """All tables of an experiment. failures: direction, method and error of each failed cell; places: where it ran."""

    title: str
    views: tuple[View, ...]
    missing: tuple[str, ...]
    failures: tuple[str, ...]
    citation: str
    claims: tuple[Outcome, ...] = ()
    plans: tuple[PlanPicture, ...] = ()
    places: tuple[str, ...] = ()


def make_report(plan: Plan, records: Mapping[str, Record], *, retrieval: str | None = None) -> Report:
    """What is known of a plan. retrieval: for all tables instead of their own."""
    wanted = list(dict.fromkeys(slot.address for table in plan.tables for slot in table.slots if slot.address))
    found = [records[address] for address in wanted if address in records]
    failures = [
        f"{record['direction']}, {record.get('method', '')}: {record['error']}"
        for record in found
        if record["status"] == FAILED
    ]
    measured = Measured(plan.tables, records, retrieval)
    places = sorted({_place(record["place"]) for record in found if "place" in record})
    return Report(
        plan.title,
        tuple(_Lookup(table, records, measured).view() for table in plan.tables),
        plan.missing,
        tuple(dict.fromkeys(failures)),
        published().citation,
        outcomes(measured),
        tuple(_plans(measured)),
        tuple(places),
    )


def _place(place: Any) -> str:
    return ", ".join(str(value) for value in place.values()) if isinstance(place, Mapping) else str(place)


def _plans(measured: Measured) -> Iterator[PlanPicture]:
    """One for each direction, of the cell with the best score among those that kept one."""
    best: dict[str, tuple[float, Spot, Record]] = {}
    for spot, records in measured.records.items():
        for seed, record in records.items():
            score = measured.scores[spot][seed]
            if "plan" in record and score > best.get(spot.direction, (-1.0,))[0]:
                best[spot.direction] = (score, spot, record)
    for direction, (score, spot, record) in sorted(best.items()):
        measure = measured.tables[spot.table].measure
        size = "" if spot.size is None else f", coresets of {spot.size} points"
        kept = record["plan"]
        about = f"{spot.system}{size}, {measure} {score:.1f}"
        yield PlanPicture(direction, about, tuple(kept["src"]), tuple(kept["tgt"]), kept["plan"])


class _Lookup:
    """The figures of one table by place."""

    def __init__(self, table: PlannedTable, records: Mapping[str, Record], measured: Measured) -> None:
        self.table, self.measured = table, measured
        self.paper: PublishedTable | None = None if table.published is None else published().tables[table.published]
        keys = dict.fromkeys(point_key(slot.point) for slot in table.slots)
        self.points: list[Point] = [dict(key) for key in keys]
        self.statuses = [records.get(slot.address or "", {}).get("status") for slot in table.slots]
        self.marks: dict[Spot, Mark] = {}
        for point in self.points:
            for direction in table.directions:
                here = [self._spot(direction, system, point) for system in table.systems]
                self.marks |= marks({spot: measured.estimates[spot] for spot in here if spot in measured.estimates})
            self.marks |= marks(self._averages(point))

    def view(self) -> View:
        """Sizes side by side where the grid has some, directions otherwise."""
        by_direction = len(self.points) <= 1
        rows = self._rows_of_systems() if by_direction else self._rows_of_directions()
        columns = [*self.table.directions, AVERAGE] if by_direction else [_named(point) for point in self.points]
        measure = f"{self.table.measure} in percent, {self.measured.retrieval(self.table)}"
        counts = (self.statuses.count(DONE), self.statuses.count(FAILED), len(self.statuses))
        heads = ("system",) if by_direction else ("direction", "system")
        above = "directions" if by_direction else ", ".join(self.table.grid).replace("_", " ")
        about = (self.table.name, self.table.title, measure, heads, above)
        return View(*about, tuple(columns), tuple(rows), *counts, self.paper is not None)

    def _rows_of_systems(self) -> Iterator[Row]:
        point: Point = self.points[0] if self.points else {}
        for system in self.table.systems:
            entries = [self._entry(direction, system, point) for direction in self.table.directions]
            yield Row("", system, (*entries, self._average(system, point)))

    def _rows_of_directions(self) -> Iterator[Row]:
        for direction in self.table.directions:
            for system in self.table.systems:
                yield Row(direction, system, tuple(self._entry(direction, system, point) for point in self.points))
        for system in self.table.systems:
            yield Row(AVERAGE, system, tuple(self._average(system, point) for point in self.points))

    def _spot(self, direction: str, system: str, point: Point) -> Spot:
        return Spot(self.table.name, direction, system, point_key(point))

    def _published(self, direction: str, system: str, point: Point) -> float | None:
        return None if self.paper is None else self.paper.value(system, direction, point.get(SIZE))

    def _entry(self, direction: str, system: str, point: Point) -> Entry:
        spot = self._spot(direction, system, point)
        found, seconds = self.measured.scores.get(spot, {}), self.measured.seconds.get(spot, {})
        entry = Entry(tuple(found.values()), self._published(direction, system, point))
        return self._marked(replace(entry, seconds=statistics.mean(seconds.values()) if seconds else None), spot)

    def _marked(self, entry: Entry, spot: Spot) -> Entry:
        mark = self.marks.get(spot)
        return entry if mark is None else replace(entry, mark=mark.rank, p=mark.p)

    def _averaged(self, system: str, point: Point) -> list[str]:
        """The directions of an average: those that are done and that the paper has too, of this system or of any."""
        theirs = [name for name in self.table.directions if self._published(name, system, point) is not None]
        some = [] if self.paper is None else [each for each in self.table.directions if self._in_paper(each)]
        names = theirs or some or self.table.directions
        return [name for name in names if self._spot(name, system, point) in self.measured.scores]

    def _in_paper(self, direction: str) -> bool:
        return self.paper is not None and any(direction in rows for rows in self.paper.systems.values())

    def _averages(self, point: Point) -> dict[Spot, Estimate]:
        """Averages of the systems that have all directions: others are not to be compared."""
        named = {system: self._averaged(system, point) for system in self.table.systems}
        most = max(named.values(), key=len)
        found: dict[Spot, Estimate] = {}
        for system, names in named.items():
            spots = [self._spot(name, system, point) for name in names]
            if names and names == most and all(spot in self.measured.estimates for spot in spots):
                estimates = [self.measured.estimates[spot] for spot in spots]
                found[self._spot(AVERAGE, system, point)] = mean(estimates)
        return found

    def _average(self, system: str, point: Point) -> Entry:
        """Over the directions that are done and, where the paper has the system, that it has too; a figure a seed."""
        of_paper = {name: self._published(name, system, point) for name in self.table.directions}
        theirs = {name: value for name, value in of_paper.items() if value is not None}
        done = {name: self._spot(name, system, point) for name in self._averaged(system, point)}
        scores = [self.measured.scores[spot] for spot in done.values()]
        common = sorted(set.intersection(*(set(seeds) for seeds in scores))) if scores else []
        ours = tuple(statistics.mean(seeds[seed] for seeds in scores) for seed in common)
        times = [second for spot in done.values() for second in self.measured.seconds.get(spot, {}).values()]
        entry = Entry(ours, seconds=statistics.mean(times) if times else None)
        entry = self._marked(entry, self._spot(AVERAGE, system, point))
        if not theirs:
            return entry
        all_of_them = self.paper is not None and set(self.paper.directions(system)) == set(done or theirs)
        printed = self._published(AVERAGE, system, point) if all_of_them else None
        computed = statistics.mean(theirs[name] for name in (done or theirs))
        return replace(entry, published=computed if printed is None else printed)


def _named(point: Point) -> str:
    """A point of the grid in the head of a column: the bare size, or all values."""
    if list(point) == [SIZE]:
        return str(point[SIZE])
    return ", ".join(f"{name} {value}" for name, value in point.items())


def as_json(report: Report) -> dict[str, Any]:
    """The same for programs."""
    return {
        "title": report.title,
        "tables": [_view_as_json(view) for view in report.views],
        "missing": list(report.missing),
        "failures": list(report.failures),
        "citation": report.citation,
        "claims": [asdict(claim) for claim in report.claims],
    }


def _view_as_json(view: View) -> dict[str, Any]:
    return {
        "table": view.name,
        "measured": view.about,
        "cells": {"wanted": view.wanted, "done": view.done, "failed": view.failed},
        "figures": [figure for row in view.rows for figure in _figures(row, view.columns)],
    }


def _figures(row: Row, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    for column, entry in zip(columns, row.entries, strict=True):
        yield {
            "row": row.group or row.label,
            "system": row.label,
            "column": column,
            "mean": entry.mean,
            "spread": entry.spread,
            "seeds": len(entry.ours),
            "published": entry.published,
            "difference": entry.difference,
            "mark": entry.mark,
            "p": entry.p,
            "seconds": entry.seconds,
        }
