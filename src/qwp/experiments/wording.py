"""What the forms of a report have in common: sentences and figures."""

from __future__ import annotations

import statistics

from qwp.experiments.claims import DOES_NOT, HOLDS, OPEN
from qwp.experiments.figures import AVERAGE
from qwp.experiments.report import Entry, Report, View

CLAIMS = "What the paper says, and what is found here"
TIMES = "Time"
TIME_HEAD = ("table", "system", "seconds a fit", "least", "most")


def measured(entry: Entry, sign: str = "±") -> str:
    """The mean over the seeds and their spread."""
    if entry.mean is None:
        return "-"
    return f"{entry.mean:.2f}" + ("" if entry.spread is None else f" {sign} {entry.spread:.2f}")


def about(view: View, *, best: str, level: str) -> str:
    """What the cells of a table are. best, level: how those of these marks are set."""
    text = f"{view.about}. {view.done} of {view.wanted} cells are done"
    text += f", {view.failed} failed." if view.failed else "."
    text += " A cell is the mean over the seeds ± their standard deviation"
    if view.compared:
        text += "; in brackets the published figure and the difference. Averages are over the directions that both have"
    text += "."
    if any(entry.mark for row in view.rows for entry in row.entries):
        text += f" The best of the systems compared is in {best}, those not significantly worse in {level}"
        text += " (paired bootstrap over queries, two-sided, 5 %; seeds are averaged for each query)."
        if any(entry.mean is None for row in view.rows for entry in row.entries):
            text += " Averages are over what a system has; those that lack a direction are not compared."
    return text


def claims(report: Report) -> str:
    """How the claims came out, and the rule."""
    counts = {kind: sum(each.verdict == kind for each in report.claims) for kind in (HOLDS, DOES_NOT, OPEN)}
    found = ", ".join(f"{kind}: {count}" for kind, count in counts.items())
    return (
        f"{len(report.claims)} claims; {found}. A claim is about a difference on average over directions and sizes. It "
        "holds where the 95 % interval of the difference, over resampled queries, is on its side of the margin, does "
        "not hold where it is on the other side, and cannot be said where it is on both, or nothing was computed. "
        "Intervals say nothing of other vectors, and little of other seeds."
    )


def places(report: Report) -> str:
    """What the seconds are."""
    where = f", computed by {'; '.join(report.places)}" if report.places else ""
    return f"Seconds of one fit, without loading and scoring, over directions, sizes and seeds{where}."


def times(report: Report) -> list[tuple[str, ...]]:
    """A row for each system of each table: the mean, and the extremes of its places."""
    found = []
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


def cites(report: Report) -> bool:
    """Whether something of the paper is in it."""
    return bool(report.claims) or any(view.compared for view in report.views)
