"""Recorded results as Markdown: tables of the benchmarks, and reports of experiments."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import ablation, encoders, items, judgement, kernels, planted, reach, spelling, systems, unpaired
from benchmarks.records import FOLDER, markdown, read_records
from qwp.experiments.config import SHIPPED, Table, read_experiment
from qwp.experiments.formats import read_report, sections
from qwp.experiments.paper import AVERAGE
from qwp.experiments.report import ExperimentReport

_TABLES = {
    "ablation": ablation.tables,
    "encoders": encoders.tables,
    "items": items.tables,
    "judgement": judgement.tables,
    "kernels": kernels.tables,
    "planted": planted.tables,
    "reach": reach.tables,
    "spelling": spelling.tables,
    "systems": systems.tables,
    "unpaired": unpaired.tables,
}


def benchmark(argument: str) -> str:
    """Return the tables of a benchmark.

    argument: the name of the benchmark, or `NAME.START` for the one table whose heading begins with START, a slug.
    """
    name, _, start = argument.partition(".")
    text = _TABLES[name](read_records(FOLDER / f"{name}.jsonl"))
    if not start:
        return text
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        title, _, table = section.partition("\n")
        if re.sub(r"\W+", "-", title.lower()).startswith(start):
            return table.strip()
    raise ValueError(f"no table of {name} has a heading that begins with {start}")


def experiment(argument: str, folder: Path = FOLDER) -> str:
    """Return the tables of an experiment, saved by `qwp experiment report NAME --out FILE`.

    argument: the name of the experiment, for averages over directions and without times, or `NAME.all` for all of it.
    """
    name, _, everything = argument.partition(".")
    path = folder / f"experiment-{name}.json"
    if not path.is_file():
        return f"No results of `{name}` are recorded."
    report = read_report(path)
    return "\n\n".join(sections(report if everything else _in_short(report)))


def _in_short(report: ExperimentReport) -> ExperimentReport:
    """Return a report with averages instead of the rows of all directions, and without times."""
    views = []
    for view in report.views:
        averages = tuple(row for row in view.rows if row.group == AVERAGE) or view.rows
        untimed = (tuple(replace(each, seconds=None) for each in row.entries) for row in averages)
        rows = tuple(replace(row, entries=each) for row, each in zip(averages, untimed, strict=True))
        views.append(replace(view, rows=rows))
    return replace(report, views=tuple(views))


def experiments(_: str) -> str:
    """Return the shipped experiments: directions, systems, sizes of coresets and cells."""
    rows = []
    for name in SHIPPED:
        experiment = read_experiment(name)
        tables = experiment.tables
        sizes = sorted({size for table in tables for size in table.grid.get("coreset_size", ())})
        cells = sum(table.cells_per_direction for table in tables)
        total = f"{cells} for each direction" if experiment.cells is None else f"{experiment.cells:,}"
        systems = ", ".join(dict.fromkeys(str(len(table.systems)) for table in tables))
        points = ", ".join(map(str, sizes)) or "2000"
        rows.append([f"`{name}`", experiment.title, _directions(tables[0]), systems, points, total])
    return markdown(["name", "table", "directions", "systems", "points", "cells"], rows)


def _directions(table: Table) -> str:
    return "all that have files" if table.directions is None else " ".join(table.directions)


_HEADLINE_SYSTEMS = {
    "qwp, defaults": "`qwp`",
    "qWP + Refine, KMeans++, balanced": "`qwp --preset paper`",
    "PROC": "Procrustes, 5,000 pairs",
    "RCSLS": "RCSLS, 5,000 pairs",
}
_HEADLINE_DATA = {
    "zhang:es-en": "Zhang et al. (2017) es-en, 50 dimensions",
    "zhang:it-en": "Zhang et al. (2017) it-en, 50 dimensions",
    "en-es": "novels en-es, 20,000 words, 300 dimensions",
    "en-fr": "novels en-fr",
    "en-de": "novels en-de",
}


def headline(_: str, folder: Path = FOLDER) -> str:
    """Return P@1 of five directions: the default, the preset of the paper, and two methods that learn from pairs."""
    view = next(view for view in read_report(folder / "experiment-bench.json").views if view.name == "table4")
    scores = {
        (row.label, direction): entry.ours
        for row in view.rows
        for direction, entry in zip(view.columns, row.entries, strict=True)
    }
    rows = [
        [name, *(_mean(scores.get((label, direction), ())) for label in _HEADLINE_SYSTEMS)]
        for direction, name in _HEADLINE_DATA.items()
    ]
    return markdown(["data", *_HEADLINE_SYSTEMS.values()], rows)


def _mean(scores: Sequence[float]) -> str:
    return f"{statistics.mean(scores):.1f}" if scores else "-"
