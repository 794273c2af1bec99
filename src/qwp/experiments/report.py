"""The tables of an experiment for people: what was measured, the published figures, and the difference.

`views` makes plain tables of a plan and its records; each form in FORMS is one function that writes them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from qwp.experiments.cells import DONE, FAILED, Record
from qwp.experiments.figures import AVERAGE, PublishedTable, published
from qwp.experiments.plan import Plan, PlannedTable

Point = Mapping[str, Any]
_SIZE = "coreset_size"


@dataclass(frozen=True)
class Entry:
    """One cell in percent. ours: a figure for each seed; published: that of the paper."""

    ours: tuple[float, ...] = ()
    published: float | None = None

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
class Report:
    """All tables of an experiment. failures: direction, method and error of each failed cell."""

    title: str
    views: tuple[View, ...]
    missing: tuple[str, ...]
    failures: tuple[str, ...]
    citation: str


def make_report(plan: Plan, records: Mapping[str, Record], *, retrieval: str | None = None) -> Report:
    """What is known of a plan. retrieval: for all tables instead of their own."""
    wanted = list(dict.fromkeys(slot.address for table in plan.tables for slot in table.slots if slot.address))
    failures = [
        f"{record['direction']}, {record.get('method', '')}: {record['error']}"
        for record in (records[address] for address in wanted if address in records)
        if record["status"] == FAILED
    ]
    shown = tuple(_Lookup(table, records, retrieval or table.retrieval).view() for table in plan.tables)
    return Report(plan.title, shown, plan.missing, tuple(dict.fromkeys(failures)), published().citation)


class _Lookup:
    """The figures of one table by place."""

    def __init__(self, table: PlannedTable, records: Mapping[str, Record], retrieval: str) -> None:
        self.table, self.retrieval = table, retrieval
        self.paper: PublishedTable | None = None if table.published is None else published().tables[table.published]
        self.points: list[Point] = [dict(key) for key in dict.fromkeys(_key(slot.point) for slot in table.slots)]
        self.statuses = [records.get(slot.address or "", {}).get("status") for slot in table.slots]
        self.values: dict[tuple[str, str, Any], dict[int, float]] = {}
        for slot, status in zip(table.slots, self.statuses, strict=True):
            if status == DONE and slot.address is not None:
                score = 100 * records[slot.address]["scores"][retrieval][table.measure]
                self.values.setdefault((slot.direction, slot.system, _key(slot.point)), {})[slot.seed] = score

    def view(self) -> View:
        """Sizes side by side where the grid has some, directions otherwise."""
        by_direction = len(self.points) <= 1
        rows = self._rows_of_systems() if by_direction else self._rows_of_directions()
        columns = [*self.table.directions, AVERAGE] if by_direction else [_named(point) for point in self.points]
        measure = f"{self.table.measure} in percent, {self.retrieval}"
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

    def _published(self, direction: str, system: str, point: Point) -> float | None:
        return None if self.paper is None else self.paper.value(system, direction, point.get(_SIZE))

    def _entry(self, direction: str, system: str, point: Point) -> Entry:
        found = self.values.get((direction, system, _key(point)), {})
        return Entry(tuple(found.values()), self._published(direction, system, point))

    def _average(self, system: str, point: Point) -> Entry:
        """Over the directions that are done and, where the paper has the system, that it has too; a figure a seed."""
        of_paper = {name: self._published(name, system, point) for name in self.table.directions}
        theirs = {name: value for name, value in of_paper.items() if value is not None}
        found = {name: self.values.get((name, system, _key(point)), {}) for name in theirs or self.table.directions}
        done = {name: seeds for name, seeds in found.items() if seeds}
        common = sorted(set.intersection(*(set(seeds) for seeds in done.values()))) if done else []
        ours = tuple(statistics.mean(seeds[seed] for seeds in done.values()) for seed in common)
        if not theirs:
            return Entry(ours)
        all_of_them = self.paper is not None and set(self.paper.directions(system)) == set(done or theirs)
        printed = self._published(AVERAGE, system, point) if all_of_them else None
        computed = statistics.mean(theirs[name] for name in (done or theirs))
        return Entry(ours, computed if printed is None else printed)


def _key(point: Point) -> tuple[tuple[str, Any], ...]:
    return tuple(point.items())


def _named(point: Point) -> str:
    """A point of the grid in the head of a column: the bare size, or all values."""
    if list(point) == [_SIZE]:
        return str(point[_SIZE])
    return ", ".join(f"{name} {value}" for name, value in point.items())


# --------------------------------------------------------------------------- Markdown


def markdown(report: Report) -> str:
    """All tables, remarks after them."""
    parts = [f"# {report.title}"]
    for view in report.views:
        parts += [f"## {view.title}", _about(view), _markdown_table(view)]
    if report.failures:
        parts += ["## Failed", "\n".join(f"- {text}" for text in report.failures)]
    if report.missing:
        parts += ["## Missing", "\n".join(f"- {text}" for text in report.missing)]
    if any(view.compared for view in report.views):
        parts.append(f"Published figures: {report.citation}")
    return "\n\n".join(parts) + "\n"


def _about(view: View) -> str:
    text = f"{view.about}. {view.done} of {view.wanted} cells are done"
    text += f", {view.failed} failed." if view.failed else "."
    text += " A cell is the mean over the seeds ± their standard deviation"
    if view.compared:
        text += "; in brackets the published figure and the difference. Averages are over the directions that both have"
    return text + "."


def _markdown_table(view: View) -> str:
    head = [*view.heads, *view.columns]
    lines = [head, ["---"] * len(head)]
    for row in view.rows:
        names = [row.label] if len(view.heads) == 1 else [row.group, row.label]
        lines.append([*names, *(_markdown_entry(entry) for entry in row.entries)])
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _markdown_entry(entry: Entry) -> str:
    ours = _measured(entry, "±")
    if entry.published is None:
        return ours
    difference = "" if entry.difference is None else f", {entry.difference:+.2f}"
    return f"{ours} ({entry.published:.2f}{difference})"


def _measured(entry: Entry, sign: str) -> str:
    if entry.mean is None:
        return "-"
    return f"{entry.mean:.2f}" + ("" if entry.spread is None else f" {sign} {entry.spread:.2f}")


# --------------------------------------------------------------------------- LaTeX

_SPECIAL = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "\\": r"\textbackslash{}",
}


def latex(report: Report) -> str:
    """All tables, laid out as in the paper; they need the packages booktabs and multirow."""
    head = f"% {report.title}\n% \\usepackage{{booktabs}} \\usepackage{{multirow}}"
    parts = [head, *(_latex_table(view) for view in report.views)]
    if any(view.compared for view in report.views):
        parts.append(f"% Published figures: {report.citation}")
    return "\n\n".join(parts) + "\n"


def _latex_table(view: View) -> str:
    left, width = len(view.heads), len(view.columns)
    lines = [
        r"\begin{table}[ht]",
        rf"  \caption{{{_tex(view.title)} ({_tex(view.about)})}}",
        rf"  \label{{tab:{view.name}}}",
        r"  \centering",
        rf"  \begin{{tabular}}{{{'l' * left}{'c' * width}}}",
        r"    \toprule",
        *_latex_head(view),
        r"    \midrule",
    ]
    groups = [list(rows) for _, rows in groupby(view.rows, key=lambda row: row.group)]
    for number, rows in enumerate(groups):
        lines += [r"    \midrule"] * (number > 0) + [r"    \midrule"] * (rows[0].group == AVERAGE)
        lines += [f"    {line}" for line in _latex_rows(view, rows)]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}"])


def _latex_head(view: View) -> Iterator[str]:
    """Sizes below one heading; directions as pairs of languages with an arrow for each."""
    left = len(view.heads)
    if left == 2:
        yield rf"    & & \multicolumn{{{len(view.columns)}}}{{c}}{{{_tex(view.above.capitalize())}}} \\"
        yield rf"    \cmidrule(l){{3-{2 + len(view.columns)}}}"
        yield rf"    Trans. pairs & Sampling & {' & '.join(_tex(name) for name in view.columns)} \\"
        return
    names, arrows = [], []
    for pair, columns in groupby(view.columns, key=lambda name: "-".join(sorted(name.split("-")))):
        several = list(columns)
        first = _shown_direction(several[0])
        names.append(rf"\multicolumn{{{len(several)}}}{{c}}{{{first}}}")
        arrows += [""] if pair == AVERAGE else [r"$\rightarrow$", r"$\leftarrow$"][: len(several)]
    yield rf"    Method & {' & '.join(names)} \\"
    yield r"    \midrule"
    yield rf"    & {' & '.join(arrows)} \\"


def _latex_rows(view: View, rows: Sequence[Row]) -> Iterator[str]:
    """Each system in one line; where there are published figures, these and the difference in two more."""
    lines_each = 3 if view.compared else 1
    first = True
    for row in rows:
        for label, cells in _latex_lines(row, compared=view.compared):
            group = ""
            if len(view.heads) == 2:
                lines = lines_each * len(rows)
                group = (rf"\multirow{{{lines}}}*{{{_shown_direction(row.group)}}}" if first else "") + " & "
            first = False
            yield rf"{group}{label} & {' & '.join(cells)} \\".lstrip()


def _latex_lines(row: Row, *, compared: bool) -> Iterator[tuple[str, list[str]]]:
    yield _tex(row.label), [_measured(entry, r"$\pm$") for entry in row.entries]
    if compared:
        yield r"\quad published", [_number(entry.published) for entry in row.entries]
        yield r"\quad difference", [_number(entry.difference, "+") for entry in row.entries]


def _number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"${value:{sign}.2f}$" if sign else f"{value:.2f}"


def _shown_direction(name: str) -> str:
    return "Avg" if name == AVERAGE else _tex(name.upper())


def _tex(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


# HTML with plots will be one more form.
FORMS: dict[str, Callable[[Report], str]] = {"markdown": markdown, "latex": latex}


def as_json(report: Report) -> dict[str, Any]:
    """The same for programs."""
    return {
        "title": report.title,
        "tables": [_view_as_json(view) for view in report.views],
        "missing": list(report.missing),
        "failures": list(report.failures),
        "citation": report.citation,
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
        }
