"""The report on an experiment as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qwp.experiments import wording
from qwp.experiments.report import Entry, Report, View
from qwp.experiments.significance import BEST, LEVEL_WITH_BEST


def markdown(report: Report) -> str:
    """All tables, what the paper says of its own, times and remarks after them."""
    parts = [f"# {report.title}", *sections(report)]
    return "\n\n".join(parts) + "\n"


def sections(report: Report) -> list[str]:
    """All but the title."""
    parts: list[str] = []
    for view in report.views:
        parts += [f"## {view.title}", wording.about(view, best="bold", level="italic"), _figures(view)]
    if report.claims:
        rows = [(each.name, each.where, each.verdict, each.numbers()) for each in report.claims]
        parts += [f"## {wording.CLAIMS}", wording.claims(report), _table(("claim", "where", "here", "numbers"), rows)]
    times = wording.times(report)
    if times:
        parts += [f"## {wording.TIMES}", wording.places(report), _table(wording.TIME_HEAD, times)]
    if report.failures:
        parts += ["## Failed", "\n".join(f"- {text}" for text in report.failures)]
    if report.missing:
        parts += ["## Missing", "\n".join(f"- {text}" for text in report.missing)]
    if wording.cites(report):
        parts.append(f"Published figures: {report.citation}")
    return parts


def _figures(view: View) -> str:
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
    ours = f"{sign}{wording.measured(entry)}{sign}"
    if entry.published is None:
        return ours
    difference = "" if entry.difference is None else f", {entry.difference:+.2f}"
    return f"{ours} ({entry.published:.2f}{difference})"
