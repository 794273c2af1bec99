"""`qwp experiment`: tables of many runs, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.cli.jobs import EngineOptions, JobProgress, JobStatus
from qwp.cli.options import action, among, count, option
from qwp.downloads.folders import data_folder
from qwp.errors import InputError
from qwp.experiments.cells import DONE
from qwp.experiments.config import CONFIGS, RETRIEVALS, SHIPPED, Experiment, read_experiment
from qwp.experiments.data import Data
from qwp.experiments.engines import LOCAL, EngineChoice
from qwp.experiments.formats import FORMATS, HTML, format_of
from qwp.experiments.report import as_json, make_report
from qwp.experiments.run import (
    ExperimentPlan,
    PlannedTable,
    RecordStore,
    RunProgress,
    Summary,
    last_plan,
    make_plan,
    plan_file,
    run,
)
from qwp.showing import terminal
from qwp.spaces.io.files import atomic_write, check_folder

RUN, REPORT, LIST = ACTIONS = ("run", "report", "list")
_MOST_SHOWN = 10


@dataclass(frozen=True)
class RunOptions(EngineOptions):
    """Options of `qwp experiment run`."""

    data: list[str] | None = option(
        "run: folder of vectors such as en.vec; may be given several times. (default: that of `qwp data`)", "[NAME=]DIR"
    )
    lexicons: Path | None = option("run: folder of dictionaries such as en-es.txt. (default: that of --data)", "DIR")
    directions: str | None = option("run: only these, for example en-es,es-en.", "LIST")
    seeds: int | None = count("run: only the first N seeds.", most=10_000)
    device: options.Device = "auto"
    retry_failed: bool = option("run: compute failed cells again.", default=False)
    dry_run: bool = option("run: compute nothing; print the cells and the missing files.", default=False)

    def given(self) -> dict[str, Any]:
        """Return the options by flag, None for those that were not given."""
        return {
            "--data": self.data or None,
            "--lexicons": self.lexicons,
            "--directions": self.directions,
            "--seeds": self.seeds,
            "--workers": self.workers,
            "--retry-failed": self.retry_failed or None,
            "--dry-run": self.dry_run or None,
            "--address": self.address,
            "--engine": None if self.engine == LOCAL else self.engine,
        }

    def plan(self, name: str) -> ExperimentPlan:
        """Return the cells of an experiment that these options select."""
        only = [text.strip() for text in self.directions.split(",")] if self.directions else []
        return make_plan(read_experiment(name), self.folders(), directions=only, seeds=self.seeds)

    def folders(self) -> Data | None:
        """Return the folders of the data; by default that of `qwp data`, if it exists."""
        if self.data:
            return Data.below(*self.data, lexicons=self.lexicons)
        downloaded = data_folder()
        return Data.below(downloaded, lexicons=self.lexicons) if downloaded.is_dir() else None


@dataclass(frozen=True)
class ReportOptions:
    """Options of `qwp experiment report`."""

    form: str | None = option(
        "report: output format. (default: by the name of --out, else markdown and a page)",
        flags=["--format"],
        choices=FORMATS,
    )
    out: Path | None = option("report: write to this file.", flags=("--out", "-o"))
    retrieval: str | None = option(
        "report: scores of this retrieval instead of that of the tables.", choices=RETRIEVALS
    )

    def given(self) -> dict[str, Any]:
        """Return the options by flag, None for those that were not given."""
        return {"--format": self.form, "--out": self.out, "--retrieval": self.retrieval}


@dataclass(frozen=True)
class ExperimentMode:
    """Options of all actions."""

    results: Path = option(
        "Folder of the results of all cells.", "DIR", Path("qwp-experiments"), flags=("--results", "-r")
    )
    json: options.Json = False
    quiet: options.Quiet = False


@options.with_options
def command(
    action: Annotated[
        str, action(ACTIONS, "run: compute missing results; report: write the tables; list: show shipped experiments.")
    ],
    run_options: RunOptions,
    report_options: ReportOptions,
    mode: ExperimentMode,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help=f"One of {', '.join(SHIPPED)}, or a TOML file.",
            autocompletion=among(SHIPPED),
        ),
    ] = None,
) -> None:
    """Run the tables of the paper, or tables of your own, and lay them beside the published figures.

    Every cell is computed once: the same command continues after an interrupt, and computes cells that have changed.

    Exit code 0: done; 2: bad input; 3: some cells failed, the others are done; 130: interrupted.
    """
    _check_options(action, {RUN: run_options.given(), REPORT: report_options.given()})
    if action == LIST:
        _list(json=mode.json)
    elif action == REPORT:
        _report(name, mode.results, report_options, json=mode.json)
    elif name is None:
        raise InputError(f"no experiment was named; expected `qwp experiment run NAME`, as in {', '.join(SHIPPED)}")
    else:
        engine = run_options.checked(run_options.device)
        plan = run_options.plan(name)
        if run_options.dry_run:
            _dry_run(plan, mode)
            return
        _run(plan, engine, mode, retry_failed=run_options.retry_failed)


def _check_options(action: str, groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse options of another action."""
    for owner, group in groups.items():
        strange = [flag for flag, value in group.items() if value is not None]
        if strange and owner != action:
            raise InputError(f"{', '.join(strange)}: of `qwp experiment {owner}`, not of {action}; leave it out")


# --------------------------------------------------------------------------- list


def _list(*, json: bool) -> None:
    found = [read_experiment(name) for name in SHIPPED]
    if json:
        names = [
            {"name": each.name, "title": each.title, "cells": each.cells, "needs_data": each.needs_files}
            for each in found
        ]
        console.print_json({"command": "experiment", "action": "list", "experiments": names, "folder": str(CONFIGS)})
        return
    rows = [(each.name, each.title, _cells(each), "--data DIR" if each.needs_files else "nothing") for each in found]
    console.table(("name", "what", "cells", "needs"), rows)


def _cells(experiment: Experiment) -> str:
    if experiment.cells is None:
        return f"{sum(table.cells_per_direction for table in experiment.tables):,} for each direction"
    return f"{experiment.cells:,}"


# --------------------------------------------------------------------------- run


def _run(plan: ExperimentPlan, chosen: EngineChoice, mode: ExperimentMode, *, retry_failed: bool) -> None:
    for text in plan.missing[:_MOST_SHOWN]:
        console.warn(text)
    if len(plan.missing) > _MOST_SHOWN:
        console.warn(f"{len(plan.missing) - _MOST_SHOWN} more are missing")
    if not plan.cells:
        raise InputError(f"no cell of the experiment {plan.name!r} can run; expected the data named above")
    try:
        engine = chosen.engine(len(plan.cells))
        with JobProgress("cells", quiet=mode.quiet) as progress:
            summary = run(
                plan,
                RecordStore(mode.results),
                engine,
                partial(_show_progress, progress, _names(plan)),
                retry_failed=retry_failed,
            )
    except KeyboardInterrupt as error:
        message = "interrupted: finished cells are kept, the same command continues"
        raise console.interrupted(error, message) from None
    if mode.json:
        console.print_json(_summary_as_json(plan, mode.results, summary))
    elif not mode.quiet:
        _show(plan, mode.results, summary)
    if summary.failed:
        raise typer.Exit(console.EXIT_FAILED)


def _dry_run(plan: ExperimentPlan, mode: ExperimentMode) -> None:
    """Print the cells of each table, those that are done, and the time that the others are likely to take."""
    records = RecordStore(mode.results).refresh()
    rows = [_planned(table, records) for table in plan.tables]
    seconds = [records[each]["seconds"] for each in plan.cells if _is_done(each, records)]
    missing = len(plan.cells) - len(seconds)
    expected = missing * sum(seconds) / len(seconds) if seconds else None
    if mode.json:
        cells = {"wanted": len(plan.cells), "done": len(seconds), "computed": 0}
        about = {"command": "experiment", "action": "run", "experiment": plan.name, "results": str(mode.results)}
        tables = [dict(zip(("table", "directions", "systems", "wanted", "done"), row, strict=True)) for row in rows]
        more = {"tables": tables, "expected_seconds": expected, "failures": [], "missing": list(plan.missing)}
        console.print_json({**about, "cells": cells, **more})
        return
    console.table(("table", "directions", "systems", "cells", "done"), [tuple(map(str, row)) for row in rows])
    console.say(f"{len(plan.cells):,} different cells, {len(seconds):,} done, {missing:,} to compute", "bold")
    if expected is not None:
        console.say(f"about {terminal.seconds(expected)} of fits, as long as those that are done")
    for text in plan.missing:
        console.warn(text)


def _planned(table: PlannedTable, records: Mapping[str, Any]) -> tuple[str, str, int, int, int]:
    done = sum(slot.address is not None and _is_done(slot.address, records) for slot in table.slots)
    return table.name, " ".join(table.directions), len(table.systems), len(table.slots), done


def _is_done(address: str, records: Mapping[str, Any]) -> bool:
    return bool(records.get(address, {}).get("status") == DONE)


def _summary_as_json(plan: ExperimentPlan, results: Path, summary: Summary) -> dict[str, Any]:
    return {
        "command": "experiment",
        "action": "run",
        "experiment": plan.name,
        "results": str(results),
        "cells": {"wanted": summary.total, "done": summary.done, "computed": summary.computed},
        "failures": [
            {"address": each["address"], "direction": each["direction"], "error": each["error"]}
            for each in summary.failed
        ],
        "missing": list(plan.missing),
    }


def _show(plan: ExperimentPlan, results: Path, summary: Summary) -> None:
    before = summary.total - summary.computed
    console.say(
        f"{summary.done} of {summary.total} cells are done, {summary.computed} computed now and {before} before", "bold"
    )
    for record in summary.failed[:_MOST_SHOWN]:
        console.warn(f"{record['direction']} failed: {record['error']}")
    if summary.failed:
        terminal.note("--retry-failed computes failed cells again")
    console.say(f"qwp experiment report {plan.name} --results {results}", whole=True)


def _names(plan: ExperimentPlan) -> dict[str, str]:
    """Return the system and the grid values of each cell, by address."""
    slots = (slot for table in plan.tables for slot in table.slots)
    return {slot.address: " ".join([slot.system, *map(str, slot.point.values())]) for slot in slots if slot.address}


def _show_progress(shown: JobProgress, names: Mapping[str, str], now: RunProgress) -> None:
    last = None if now.last is None else _in_words(now.last, names)
    shown(JobStatus(now.total, now.done, now.failed, now.running, last))


def _in_words(record: Mapping[str, Any], names: Mapping[str, str]) -> str:
    about = (
        f"{record['direction']} {names.get(record['address'], record.get('method', ''))} seed {record.get('seed', '')}"
    )
    return (
        f"{about} failed: {record['error']}" if "error" in record else f"{about} {terminal.seconds(record['seconds'])}"
    )


# --------------------------------------------------------------------------- report


def _report(name: str | None, results: Path, asked: ReportOptions, *, json: bool) -> None:
    form, out = asked.form, asked.out
    if json and (form is not None or out is not None):
        raise InputError("--json and --format or --out ask for two formats: leave one of them out")
    if out is not None:
        check_folder(out)
    plan = ExperimentPlan.load(last_plan(results) if name is None else plan_file(results, Path(name).stem))
    report = make_report(plan, RecordStore(results).refresh(), retrieval=asked.retrieval)
    if json:
        about = {"command": "experiment", "action": "report", "experiment": plan.name, "results": str(results)}
        console.print_json({**about, **as_json(report)})
        return
    text = FORMATS[form or format_of(out)](report)
    if out is None:
        console.print_lines(line + "\n" for line in text.splitlines())
    else:
        _write(text, out)
    if out is None and form is None:
        _write(FORMATS[HTML](report), results / f"{plan.name}.html")


def _write(text: str, out: Path) -> None:
    with atomic_write(out) as file:
        file.write(text.encode())
    terminal.note(f"written to {out}")
