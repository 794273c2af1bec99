"""The report on an experiment: tables of measured and published figures, claims, and the sentences about them.

`make_report` turns a plan and its records into plain tables. `formats.py` and `html_page.py` write them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from qwp.experiments.cells import DONE, FAILED
from qwp.experiments.claims import DOES_NOT, HOLDS, UNDECIDED, ClaimOutcome, outcomes
from qwp.experiments.jobs import JobRecord
from qwp.experiments.measured import SIZE, Bootstrap, Condition, GridPoint, Mark, MeasuredTables, marks, mean, point_key
from qwp.experiments.paper import AVERAGE, PublishedTable, published
from qwp.experiments.run import ExperimentPlan, PlannedTable


@dataclass(frozen=True)
class Entry:
    """An entry of a table, in percent.

    Attributes:
        ours: a score for each seed.
        published: the figure of the paper.
        mark: best, level (not significantly worse than the best at 5 %) or worse; "" if the systems are not compared.
        p: p-value of the difference from the best.
        seconds: time per fit, averaged over the seeds.
    """

    ours: tuple[float, ...] = ()
    published: float | None = None
    mark: str = ""
    p: float | None = None
    seconds: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean over the seeds."""
        return statistics.mean(self.ours) if self.ours else None

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds, if there are several."""
        return statistics.stdev(self.ours) if len(self.ours) > 1 else None

    @property
    def difference(self) -> float | None:
        """Our mean minus the published figure."""
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class Row:
    """A row of a table. group: the direction that neighbouring rows share, or ""."""

    group: str
    label: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class TableView:
    """A table. heads: titles of the first columns; above: title of the other columns together."""

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
    """A small transport plan of one direction. src, tgt: words of its rows and columns; plan: packed, row by row."""

    direction: str
    about: str
    src: tuple[str, ...]
    tgt: tuple[str, ...]
    plan: str


@dataclass(frozen=True)
class ExperimentReport:
    """All tables of an experiment. failures: direction, method and error of failed cells. devices: their names."""

    title: str
    views: tuple[TableView, ...]
    missing: tuple[str, ...]
    failures: tuple[str, ...]
    citation: str
    claims: tuple[ClaimOutcome, ...] = ()
    plans: tuple[PlanPicture, ...] = ()
    devices: tuple[str, ...] = ()


def make_report(
    plan: ExperimentPlan, records: Mapping[str, JobRecord], *, retrieval: str | None = None
) -> ExperimentReport:
    """Make the report on a plan. retrieval: a retrieval method for all tables instead of their own."""
    wanted = list(dict.fromkeys(slot.address for table in plan.tables for slot in table.slots if slot.address))
    found = [records[address] for address in wanted if address in records]
    failures = [
        f"{record['direction']}, {record.get('method', '')}: {record['error']}"
        for record in found
        if record["status"] == FAILED
    ]
    measured = MeasuredTables(plan.tables, records, retrieval)
    # Older records have the key "place".
    used = [record.get("device", record.get("place")) for record in found]
    devices = sorted({_device_name(each) for each in used if each is not None})
    return ExperimentReport(
        plan.title,
        tuple(_TableMaker(table, records, measured).view() for table in plan.tables),
        plan.missing,
        tuple(dict.fromkeys(failures)),
        published().citation,
        outcomes(measured),
        tuple(_plans(measured)),
        tuple(devices),
    )


def _device_name(device: Any) -> str:
    return ", ".join(str(value) for value in device.values()) if isinstance(device, Mapping) else str(device)


def _plans(measured: MeasuredTables) -> Iterator[PlanPicture]:
    """Yield the plan of each direction from the cell with the best score among those that saved one."""
    best: dict[str, tuple[float, Condition, JobRecord]] = {}
    for condition, records in measured.records.items():
        for seed, record in records.items():
            score = measured.scores[condition][seed]
            if "plan" in record and score > best.get(condition.direction, (-1.0,))[0]:
                best[condition.direction] = (score, condition, record)
    for direction, (score, condition, record) in sorted(best.items()):
        measure = measured.tables[condition.table].measure
        size = "" if condition.size is None else f", coresets of {condition.size} points"
        plan = record["plan"]
        about = f"{condition.system}{size}, {measure} {score:.1f}"
        yield PlanPicture(direction, about, tuple(plan["src"]), tuple(plan["tgt"]), plan["plan"])


class _TableMaker:
    """Makes the view of one table."""

    def __init__(self, table: PlannedTable, records: Mapping[str, JobRecord], measured: MeasuredTables) -> None:
        self.table, self.measured = table, measured
        self.paper: PublishedTable | None = None if table.published is None else published().tables[table.published]
        keys = dict.fromkeys(point_key(slot.point) for slot in table.slots)
        self.points: list[GridPoint] = [dict(key) for key in keys]
        self.statuses = [records.get(slot.address or "", {}).get("status") for slot in table.slots]
        self.marks: dict[Condition, Mark] = {}
        for point in self.points:
            for direction in table.directions:
                here = [self._condition(direction, system, point) for system in table.systems]
                self.marks |= marks(
                    {condition: measured.estimates[condition] for condition in here if condition in measured.estimates}
                )
            self.marks |= marks(self._averages(point))

    def view(self) -> TableView:
        """Return the table: with grid points as columns if there are several, otherwise with directions."""
        by_direction = len(self.points) <= 1
        return TableView(
            name=self.table.name,
            title=self.table.title,
            about=f"{self.table.measure} in percent, {self.measured.retrieval(self.table)}",
            heads=("system",) if by_direction else ("direction", "system"),
            above="directions" if by_direction else ", ".join(self.table.grid).replace("_", " "),
            columns=(*self.table.directions, AVERAGE) if by_direction else tuple(map(_title, self.points)),
            rows=tuple(self._rows_of_systems() if by_direction else self._rows_of_directions()),
            done=self.statuses.count(DONE),
            failed=self.statuses.count(FAILED),
            wanted=len(self.statuses),
            compared=self.paper is not None,
        )

    def _rows_of_systems(self) -> Iterator[Row]:
        point: GridPoint = self.points[0] if self.points else {}
        for system in self.table.systems:
            entries = [self._entry(direction, system, point) for direction in self.table.directions]
            yield Row("", system, (*entries, self._average(system, point)))

    def _rows_of_directions(self) -> Iterator[Row]:
        for direction in self.table.directions:
            for system in self.table.systems:
                yield Row(direction, system, tuple(self._entry(direction, system, point) for point in self.points))
        for system in self.table.systems:
            yield Row(AVERAGE, system, tuple(self._average(system, point) for point in self.points))

    def _condition(self, direction: str, system: str, point: GridPoint) -> Condition:
        return Condition(self.table.name, direction, system, point_key(point))

    def _published(self, direction: str, system: str, point: GridPoint) -> float | None:
        return None if self.paper is None else self.paper.value(system, direction, point.get(SIZE))

    def _entry(self, direction: str, system: str, point: GridPoint) -> Entry:
        condition = self._condition(direction, system, point)
        found, seconds = self.measured.scores.get(condition, {}), self.measured.seconds.get(condition, {})
        entry = Entry(tuple(found.values()), self._published(direction, system, point))
        return self._marked(replace(entry, seconds=statistics.mean(seconds.values()) if seconds else None), condition)

    def _marked(self, entry: Entry, condition: Condition) -> Entry:
        mark = self.marks.get(condition)
        return entry if mark is None else replace(entry, mark=mark.rank, p=mark.p)

    def _averaged(self, system: str, point: GridPoint) -> list[str]:
        """Return the computed directions of an average, restricted to those that the paper has if it has any."""
        of_system = [name for name in self.table.directions if self._published(name, system, point) is not None]
        of_any = [name for name in self.table.directions if self._in_paper(name)]
        names = of_system or of_any or self.table.directions
        return [name for name in names if self._condition(name, system, point) in self.measured.scores]

    def _in_paper(self, direction: str) -> bool:
        return self.paper is not None and any(direction in rows for rows in self.paper.systems.values())

    def _averages(self, point: GridPoint) -> dict[Condition, Bootstrap]:
        """Return the averages of the systems that have all directions; others cannot be compared."""
        named = {system: self._averaged(system, point) for system in self.table.systems}
        most = max(named.values(), key=len)
        found: dict[Condition, Bootstrap] = {}
        for system, names in named.items():
            conditions = [self._condition(name, system, point) for name in names]
            if names and names == most and all(condition in self.measured.estimates for condition in conditions):
                estimates = [self.measured.estimates[condition] for condition in conditions]
                found[self._condition(AVERAGE, system, point)] = mean(estimates)
        return found

    def _average(self, system: str, point: GridPoint) -> Entry:
        """Return the average over the directions of `_averaged`, with a figure for each seed."""
        figures = {name: self._published(name, system, point) for name in self.table.directions}
        known = {name: value for name, value in figures.items() if value is not None}
        done = {name: self._condition(name, system, point) for name in self._averaged(system, point)}
        scores = [self.measured.scores[condition] for condition in done.values()]
        common = sorted(set.intersection(*(set(seeds) for seeds in scores))) if scores else []
        ours = tuple(statistics.mean(seeds[seed] for seeds in scores) for seed in common)
        times = [second for condition in done.values() for second in self.measured.seconds.get(condition, {}).values()]
        entry = Entry(ours, seconds=statistics.mean(times) if times else None)
        entry = self._marked(entry, self._condition(AVERAGE, system, point))
        if self.paper is None or not known:
            return entry
        # The average of the paper is comparable only if it is over the same directions.
        complete = set(self.paper.directions(system)) == set(done or known)
        printed = self._published(AVERAGE, system, point) if complete else None
        computed = statistics.mean(known[name] for name in (done or known))
        return replace(entry, published=computed if printed is None else printed)


def _title(point: GridPoint) -> str:
    """Return the title of a grid point: the size alone, or all values."""
    if list(point) == [SIZE]:
        return str(point[SIZE])
    return ", ".join(f"{name} {value}" for name, value in point.items())


# --------------------------------------------------------------------------- sentences that all formats share

CLAIMS_TITLE = "Claims of the paper, and results here"
TIMES_TITLE = "Time"
TIME_HEAD = ("table", "system", "seconds per fit", "least", "most")


def score_text(entry: Entry, sign: str = "±") -> str:
    """Format the mean over the seeds and their standard deviation."""
    if entry.mean is None:
        return "-"
    return f"{entry.mean:.2f}" + ("" if entry.spread is None else f" {sign} {entry.spread:.2f}")


def about_table(view: TableView, *, best: str, level: str) -> str:
    """Describe the entries of a table. best, level: how entries with these marks are printed."""
    text = f"{view.about}. {view.done} of {view.wanted} cells are computed"
    text += f", {view.failed} failed." if view.failed else "."
    text += " An entry is the mean over the seeds ± their standard deviation"
    if view.compared:
        text += "; in brackets the published figure and the difference. Averages are over the directions of both"
    text += "."
    if any(entry.mark for row in view.rows for entry in row.entries):
        text += f" The best of the compared systems is in {best}, those not significantly worse in {level}"
        text += " (paired bootstrap over queries, two-sided, 5 %; seeds are averaged for each query)."
        if any(entry.mean is None for row in view.rows for entry in row.entries):
            text += " Averages are over the computed directions; averages that lack a direction are not compared."
    return text


def about_claims(report: ExperimentReport) -> str:
    """Count the outcomes of the claims, and explain the rule."""
    counts = {kind: sum(each.verdict == kind for each in report.claims) for kind in (HOLDS, DOES_NOT, UNDECIDED)}
    found = ", ".join(f"{kind}: {count}" for kind, count in counts.items())
    return (
        f"{len(report.claims)} claims; {found}. A claim is about the mean difference over directions and sizes. It "
        "holds if the 95 % interval of the difference over resampled queries lies on its side of the margin. It does "
        "not hold if the interval lies on the other side. It is undecided if the interval contains the margin, or if "
        "nothing was computed. Intervals do not cover other vectors, and hardly cover other seeds."
    )


def about_times(report: ExperimentReport) -> str:
    """Explain the seconds."""
    where = f", computed with {'; '.join(report.devices)}" if report.devices else ""
    return f"Seconds per fit without loading and scoring, over directions, sizes and seeds{where}."


def time_rows(report: ExperimentReport) -> list[tuple[str, ...]]:
    """Return a row for each system of each table: mean, least and most seconds of its conditions."""
    found: list[tuple[str, ...]] = []
    for view in report.views:
        for system in dict.fromkeys(row.label for row in view.rows):
            rows = [row for row in view.rows if row.label == system and row.group != AVERAGE]
            several = [
                entry.seconds
                for row in rows
                for column, entry in zip(view.columns, row.entries, strict=True)
                if entry.seconds is not None and column != AVERAGE
            ]
            if several:
                figures = (statistics.mean(several), min(several), max(several))
                found.append((view.title, system, *(f"{figure:.1f}" for figure in figures)))
    return found


def cites(report: ExperimentReport) -> bool:
    """Return whether the report shows figures or claims of the paper."""
    return bool(report.claims) or any(view.compared for view in report.views)


# --------------------------------------------------------------------------- for programs


def as_json(report: ExperimentReport) -> dict[str, Any]:
    """Return the report in plain JSON types."""
    return {
        "title": report.title,
        "tables": [_view_as_json(view) for view in report.views],
        "missing": list(report.missing),
        "failures": list(report.failures),
        "citation": report.citation,
        "claims": [asdict(claim) for claim in report.claims],
    }


def _view_as_json(view: TableView) -> dict[str, Any]:
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
