"""The formats of a report: Markdown, LaTeX, HTML, and a JSON file from which all of them can be written later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.claims import ClaimOutcome
from qwp.experiments.data import languages
from qwp.experiments.html_page import page
from qwp.experiments.measured import BEST, LEVEL_WITH_BEST
from qwp.experiments.paper import AVERAGE
from qwp.experiments.report import (
    CLAIMS_TITLE,
    TIME_HEAD,
    TIMES_TITLE,
    Entry,
    ExperimentReport,
    PlanPicture,
    Row,
    TableView,
    about_claims,
    about_table,
    about_times,
    cites,
    score_text,
    time_rows,
)

_DIGITS = 4


def as_file(report: ExperimentReport) -> str:
    """Return the report as JSON with a line for each row of a table."""
    content = _rounded(asdict(replace(report, missing=())))
    for view in content["views"]:
        for row in view["rows"]:
            row["entries"] = [_without_defaults(entry) for entry in row["entries"]]
    return _lines(content) + "\n"


def read_report(path: Path) -> ExperimentReport:
    """Read the JSON file of a report."""
    try:
        content = json.loads(path.read_bytes())
        if "places" in content:  # the key in older files
            content["devices"] = content.pop("places")
        views = tuple(_view(view) for view in content["views"])
        several = {
            "views": views,
            "claims": tuple(ClaimOutcome(**each) for each in content["claims"]),
            "plans": tuple(PlanPicture(**_tuples(each)) for each in content["plans"]),
        }
        return ExperimentReport(**{**_tuples(content), **several})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a report ({error}); expected one that `qwp experiment report --format json` wrote"
        ) from error


def _view(content: Mapping[str, Any]) -> TableView:
    rows = tuple(
        Row(row["group"], row["label"], tuple(Entry(**_tuples(entry)) for entry in row["entries"]))
        for row in content["rows"]
    )
    return TableView(**{**_tuples(content), "rows": rows})


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
    """Return JSON with a line for each row, claim and plan, so that versions can be compared by line."""
    if isinstance(value, dict) and value.keys() & {"views", "rows"}:
        inner = ",\n".join(f"{json.dumps(name)}: {_lines(each)}" for name, each in value.items())
        return "{\n" + inner + "\n}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(_lines(each) for each in value) + "\n]"
    return json.dumps(value, ensure_ascii=False)


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


def latex(report: ExperimentReport) -> str:
    """Return all tables, laid out as in the paper. They need the packages booktabs and multirow."""
    head = f"% {report.title}\n% \\usepackage{{booktabs}} \\usepackage{{multirow}}"
    parts = [head, *(_latex_table(view) for view in report.views)]
    if any(view.compared for view in report.views):
        parts.append(f"% Published figures: {report.citation}")
    return "\n\n".join(parts) + "\n"


def _latex_table(view: TableView) -> str:
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


def _latex_head(view: TableView) -> Iterator[str]:
    """Yield the head: sizes below one heading, or pairs of languages with an arrow for each direction."""
    left = len(view.heads)
    if left == 2:
        yield rf"    & & \multicolumn{{{len(view.columns)}}}{{c}}{{{_tex(view.above.capitalize())}}} \\"
        yield rf"    \cmidrule(l){{3-{2 + len(view.columns)}}}"
        yield rf"    Trans. pairs & Sampling & {' & '.join(_tex(name) for name in view.columns)} \\"
        return
    names, arrows = [], []
    for _, columns in groupby(view.columns, key=_pair):
        several = list(columns)
        first = _shown_direction(several[0])
        names.append(rf"\multicolumn{{{len(several)}}}{{c}}{{{first}}}")
        arrows += [""] if several == [AVERAGE] else [r"$\rightarrow$", r"$\leftarrow$"][: len(several)]
    yield rf"    Method & {' & '.join(names)} \\"
    yield r"    \midrule"
    yield rf"    & {' & '.join(arrows)} \\"


def _pair(direction: str) -> tuple[str, ...]:
    """Return a key that the two directions of a pair share."""
    name, *both = languages(direction)
    return (name, *sorted(both))


def _latex_rows(view: TableView, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each system, and two more if it has published figures: the figures and the difference."""
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
    yield _tex(row.label), [_ours(entry) for entry in row.entries]
    if compared:
        yield r"\quad published", [_number(entry.published) for entry in row.entries]
        yield r"\quad difference", [_number(entry.difference, "+") for entry in row.entries]


def _ours(entry: Entry) -> str:
    """Format an entry: the best in bold, those not significantly worse underlined."""
    text = score_text(entry, r"$\pm$")
    command = {BEST: r"\textbf", LEVEL_WITH_BEST: r"\underline"}.get(entry.mark)
    return text if command is None else f"{command}{{{text}}}"


def _number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"${value:{sign}.2f}$" if sign else f"{value:.2f}"


def _shown_direction(name: str) -> str:
    return "Avg" if name == AVERAGE else _tex(name.upper())


def _tex(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def markdown(report: ExperimentReport) -> str:
    """Return the report as Markdown."""
    parts = [f"# {report.title}", *sections(report)]
    return "\n\n".join(parts) + "\n"


def sections(report: ExperimentReport) -> list[str]:
    """Return the report as Markdown without its title: tables, claims, times and remarks."""
    parts: list[str] = []
    for view in report.views:
        parts += [f"## {view.title}", about_table(view, best="bold", level="italic"), _figures(view)]
    if report.claims:
        rows = [(each.name, each.where, each.verdict, each.numbers()) for each in report.claims]
        parts += [f"## {CLAIMS_TITLE}", about_claims(report), _table(("claim", "where", "here", "numbers"), rows)]
    times = time_rows(report)
    if times:
        parts += [f"## {TIMES_TITLE}", about_times(report), _table(TIME_HEAD, times)]
    if report.failures:
        parts += ["## Failed", "\n".join(f"- {text}" for text in report.failures)]
    if report.missing:
        parts += ["## Missing", "\n".join(f"- {text}" for text in report.missing)]
    if cites(report):
        parts.append(f"Published figures: {report.citation}")
    return parts


def _figures(view: TableView) -> str:
    rows = []
    for row in view.rows:
        names = [row.label] if len(view.heads) == 1 else [row.group, row.label]
        rows.append([*names, *(_entry(entry) for entry in row.entries)])
    return _table([*view.heads, *view.columns], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _entry(entry: Entry) -> str:
    sign = {BEST: "**", LEVEL_WITH_BEST: "*"}.get(entry.mark, "")
    ours = f"{sign}{score_text(entry)}{sign}"
    if entry.published is None:
        return ours
    difference = "" if entry.difference is None else f", {entry.difference:+.2f}"
    return f"{ours} ({entry.published:.2f}{difference})"


MARKDOWN, LATEX, HTML, JSON = "markdown", "latex", "html", "json"
FORMATS: dict[str, Callable[[ExperimentReport], str]] = {MARKDOWN: markdown, LATEX: latex, HTML: page, JSON: as_file}
_SUFFIXES = {".tex": LATEX, ".html": HTML, ".htm": HTML, ".json": JSON}


def format_of(out: Path | None) -> str:
    """Return the format for a file name; Markdown is the default."""
    return MARKDOWN if out is None else _SUFFIXES.get(out.suffix.lower(), MARKDOWN)
