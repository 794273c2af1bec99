"""A report as a file: all that any form needs, without the records it was made of.

What was missing is left out: it names folders of the machine that ran it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.claims import Outcome
from qwp.experiments.report import Entry, PlanPicture, Report, Row, View

_DIGITS = 4


def as_file(report: Report) -> str:
    """JSON, a line for each row of a table."""
    content = _rounded(asdict(replace(report, missing=())))
    for view in content["views"]:
        for row in view["rows"]:
            row["entries"] = [_without_defaults(entry) for entry in row["entries"]]
    return _lines(content) + "\n"


def read_report(path: Path) -> Report:
    """What was kept."""
    try:
        content = json.loads(path.read_bytes())
        views = tuple(_view(view) for view in content["views"])
        several = {
            "views": views,
            "claims": tuple(Outcome(**each) for each in content["claims"]),
            "plans": tuple(PlanPicture(**_tuples(each)) for each in content["plans"]),
        }
        return Report(**{**_tuples(content), **several})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a report ({error}); expected one that `qwp experiment report --format json` wrote"
        ) from error


def _view(content: Mapping[str, Any]) -> View:
    rows = tuple(
        Row(row["group"], row["label"], tuple(Entry(**_tuples(entry)) for entry in row["entries"]))
        for row in content["rows"]
    )
    return View(**{**_tuples(content), "rows": rows})


def _tuples(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}


def _without_defaults(entry: Mapping[str, Any]) -> dict[str, Any]:
    usual = {field.name: field.default for field in fields(Entry)}
    return {name: value for name, value in entry.items() if value != usual[name] and value != []}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _lines(value: Any) -> str:
    """JSON with a line for each row, claim and plan, so that two versions can be compared."""
    if isinstance(value, dict) and value.keys() & {"views", "rows"}:
        inner = ",\n".join(f"{json.dumps(name)}: {_lines(each)}" for name, each in value.items())
        return "{\n" + inner + "\n}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(_lines(each) for each in value) + "\n]"
    return json.dumps(value, ensure_ascii=False)
