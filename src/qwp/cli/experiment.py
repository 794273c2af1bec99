"""`qwp experiment`: tables of many runs, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import completion, console, options
from qwp.cli.outputs import known
from qwp.cli.shown import Shown, Standing
from qwp.downloads.folders import data_folder
from qwp.errors import InputError
from qwp.experiments.config import CONFIGS, RETRIEVALS, SHIPPED, read_experiment
from qwp.experiments.data import Data
from qwp.experiments.engines.choice import ENGINES, LOCAL, Asked
from qwp.experiments.forms import FORMS, HTML, form_of
from qwp.experiments.plan import Plan, last_plan, make_plan
from qwp.experiments.report import as_json, make_report
from qwp.experiments.run import Progress, Store, Summary, plan_file, run
from qwp.parameters import RUN, Declaration, Parameter
from qwp.spaces.io.files import check_folder, replacing

ACTIONS = {
    "run": "compute the cells that are not done yet",
    "report": "the tables, with the published figures, and a page with charts",
    "list": "the experiments that are shipped",
}
_MOST_SHOWN = 10

Action = Annotated[
    str,
    typer.Argument(
        metavar="run|report|list",
        help="run: compute what is not done yet; report: write the tables; list: what is shipped.",
        show_default=False,
        autocompletion=completion.among(ACTIONS),
    ),
]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help=f"One of {', '.join(SHIPPED)}, or a TOML file.",
        show_default=False,
        autocompletion=completion.among(SHIPPED),
    ),
]
Results = Annotated[Path, typer.Option("--results", "-r", metavar="DIR", help="Where the results of all cells are.")]
DataFolders = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="[NAME=]DIR",
        help="run: folder of vectors such as en.vec; several with several --data. (default: that of `qwp data`)",
        show_default=False,
    ),
]
Lexicons = Annotated[
    Path | None,
    typer.Option(
        "--lexicons",
        metavar="DIR",
        help="run: folder of dictionaries such as en-es.txt. (default: that of --data)",
        show_default=False,
    ),
]
Directions = Annotated[
    str | None,
    typer.Option("--directions", metavar="LIST", help="run: only these, as in en-es,es-en.", show_default=False),
]
Seeds = Annotated[
    int | None, typer.Option("--seeds", metavar="N", help="run: only the first N seeds.", show_default=False)
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="How many at a time. (default: one for each core, or for each GPU)",
        show_default=False,
    ),
]
Engine = Annotated[
    str, completion.choice("--engine", ENGINES, "run: processes of this machine (local), or a Ray cluster (ray).")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster to join. (default: one of this machine, for the time of the run)",
        show_default=False,
    ),
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="run: try cells again that failed before.")]
Form = Annotated[
    str | None,
    completion.choice(
        "--format",
        FORMS,
        "report: how to write it. (default: by the name of --out, else markdown and a page)",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="report: write to this file.", show_default=False),
]
Retrieval = Annotated[
    str | None,
    completion.choice(
        "--retrieval", RETRIEVALS, "report: scores of this instead of what the tables say.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.")]


@console.guarded
def command(
    action: Action,
    name: Name = None,
    *,
    results: Results = Path("qwp-experiments"),
    data: DataFolders = None,
    lexicons: Lexicons = None,
    directions: Directions = None,
    seeds: Seeds = None,
    workers: Workers = None,
    engine: Engine = LOCAL,
    address: Address = None,
    device: options.Device = "auto",
    retry_failed: RetryFailed = False,
    form: Form = None,
    out: Out = None,
    retrieval: Retrieval = None,
    json: options.Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the tables of the paper, or tables of your own, and lay them beside the published figures.

    Every cell is computed once: the same command continues after an interrupt, and runs what has changed.

    Exit code 0: done; 2: bad input; 3: some cells failed, the others are there; 130: interrupted.
    """
    known("--engine", engine, ENGINES)
    known("ACTION", action, tuple(ACTIONS))
    of_run = {"--data": data or None, "--lexicons": lexicons, "--directions": directions, "--seeds": seeds}
    of_run |= {"--workers": workers, "--retry-failed": retry_failed or None, "--address": address}
    of_run |= {"--engine": None if engine == LOCAL else engine}
    of_report = {"--format": form, "--out": out, "--retrieval": retrieval}
    _check_options(action, {"run": of_run, "report": of_report})
    if action == "list":
        _list(json=json)
        return
    if action == "report":
        _report(name, results, form, out, retrieval, json=json)
        return
    if name is None:
        raise InputError(f"no experiment was named; expected `qwp experiment run NAME`, as in {', '.join(SHIPPED)}")
    check_numbers(seeds=seeds, workers=workers)
    asked = Asked(engine, address, device, workers)
    asked.check()
    found = _data(data, lexicons)
    only = [text.strip() for text in directions.split(",")] if directions else []
    plan = make_plan(read_experiment(name), found, directions=only, seeds=seeds)
    _run(plan, results, asked, retry_failed=retry_failed, json=json, quiet=quiet)


def _check_options(action: str, groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse an option of another action."""
    for owner, group in groups.items():
        strange = [flag for flag, value in group.items() if value is not None]
        if strange and owner != action:
            raise InputError(f"{', '.join(strange)}: of `qwp experiment {owner}`, not of {action}; leave it out")


def check_numbers(**values: int | None) -> None:
    """Refuse numbers of things that cannot be."""
    for name, value in values.items():
        Parameter(name, int, True, None, Declaration("", RUN, least=1, most=10_000)).check(value)


# --------------------------------------------------------------------------- list


def _list(*, json: bool) -> None:
    found = [read_experiment(name) for name in SHIPPED]
    if json:
        names = [{"name": each.name, "title": each.title, "needs_data": each.needs_files} for each in found]
        console.print_json({"command": "experiment", "action": "list", "experiments": names, "folder": str(CONFIGS)})
        return
    rows = [(each.name, each.title, "--data DIR" if each.needs_files else "nothing") for each in found]
    console.table(("name", "what", "needs"), rows)


# --------------------------------------------------------------------------- run


def _run(plan: Plan, results: Path, asked: Asked, *, retry_failed: bool, json: bool, quiet: bool) -> None:
    for text in plan.missing[:_MOST_SHOWN]:
        console.warn(text)
    if len(plan.missing) > _MOST_SHOWN:
        console.warn(f"{len(plan.missing) - _MOST_SHOWN} more are missing")
    if not plan.cells:
        raise InputError(f"nothing of the experiment {plan.name!r} can run; expected the data named above")
    try:
        engine = asked.engine(len(plan.cells))
        with Shown("cells", quiet=quiet) as shown:
            summary = run(plan, Store(results), engine, partial(_show_progress, shown), retry_failed=retry_failed)
    except KeyboardInterrupt as error:
        message = "interrupted: finished cells are kept, the same command continues"
        raise typer.Exit(console.stop(console.INTERRUPTED, message, console.interrupted_code(error))) from None
    if json:
        console.print_json(_summary_as_json(plan, results, summary))
    elif not quiet:
        _show(plan, results, summary)
    if summary.failed:
        raise typer.Exit(console.EXIT_FAILED)


def _summary_as_json(plan: Plan, results: Path, summary: Summary) -> dict[str, Any]:
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


def _show(plan: Plan, results: Path, summary: Summary) -> None:
    before = summary.total - summary.computed
    console.say(
        f"{summary.done} of {summary.total} cells are done, {summary.computed} computed now and {before} before", "bold"
    )
    for record in summary.failed[:_MOST_SHOWN]:
        console.warn(f"{record['direction']} failed: {record['error']}")
    if summary.failed:
        console.note("cells that failed are tried again with --retry-failed")
    console.say(f"qwp experiment report {plan.name} --results {results}", whole=True)


def _show_progress(shown: Shown, progress: Progress) -> None:
    last = None if progress.last is None else _named(progress.last)
    shown(Standing(progress.total, progress.done, progress.failed, progress.running, last))


def _named(record: Mapping[str, Any]) -> str:
    config = record.get("config", {})
    what = " ".join(str(config[name]) for name in ("coreset", "coreset_size") if config.get(name) is not None)
    about = f"{record['direction']} {record.get('method', '')} {what} seed {record.get('seed', '')}".replace("  ", " ")
    return (
        f"{about} failed: {record['error']}" if "error" in record else f"{about} {console.seconds(record['seconds'])}"
    )


# --------------------------------------------------------------------------- report


def _report(
    name: str | None, results: Path, form: str | None, out: Path | None, retrieval: str | None, *, json: bool
) -> None:
    known("--format", form, tuple(FORMS))
    known("--retrieval", retrieval, RETRIEVALS)
    if json and (form is not None or out is not None):
        raise InputError("--json and --format or --out ask for two forms: leave one of them out")
    if out is not None:
        check_folder(out)
    plan = Plan.load(last_plan(results) if name is None else plan_file(results, Path(name).stem))
    report = make_report(plan, Store(results).refresh(), retrieval=retrieval)
    if json:
        about = {"command": "experiment", "action": "report", "experiment": plan.name, "results": str(results)}
        console.print_json({**about, **as_json(report)})
        return
    text = FORMS[form or form_of(out)](report)
    if out is None:
        console.print_lines(line + "\n" for line in text.splitlines())
    else:
        _write(text, out)
    if out is None and form is None:
        _write(FORMS[HTML](report), results / f"{plan.name}.html")


def _write(text: str, out: Path) -> None:
    with replacing(out) as file:
        file.write(text.encode())
    console.note(f"written to {out}")


def _data(folders: list[str] | None, lexicons: Path | None) -> Data | None:
    """The folders that are named, or that of `qwp data` where it is there."""
    if folders:
        return Data.below(*folders, lexicons=lexicons)
    downloaded = data_folder()
    return Data.below(downloaded, lexicons=lexicons) if downloaded.is_dir() else None
