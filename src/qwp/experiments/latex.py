"""The report on an experiment as LaTeX, laid out as in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from qwp.experiments import wording
from qwp.experiments.data import languages
from qwp.experiments.figures import AVERAGE
from qwp.experiments.report import Entry, Report, Row, View
from qwp.experiments.significance import BEST, LEVEL_WITH_BEST

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
    for _, columns in groupby(view.columns, key=_pair):
        several = list(columns)
        first = _shown_direction(several[0])
        names.append(rf"\multicolumn{{{len(several)}}}{{c}}{{{first}}}")
        arrows += [""] if several == [AVERAGE] else [r"$\rightarrow$", r"$\leftarrow$"][: len(several)]
    yield rf"    Method & {' & '.join(names)} \\"
    yield r"    \midrule"
    yield rf"    & {' & '.join(arrows)} \\"


def _pair(direction: str) -> tuple[str, ...]:
    """What the two directions of a pair share."""
    name, *both = languages(direction)
    return (name, *sorted(both))


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
    yield _tex(row.label), [_ours(entry) for entry in row.entries]
    if compared:
        yield r"\quad published", [_number(entry.published) for entry in row.entries]
        yield r"\quad difference", [_number(entry.difference, "+") for entry in row.entries]


def _ours(entry: Entry) -> str:
    """The best in bold, those not significantly worse underlined."""
    text = wording.measured(entry, r"$\pm$")
    command = {BEST: r"\textbf", LEVEL_WITH_BEST: r"\underline"}.get(entry.mark)
    return text if command is None else f"{command}{{{text}}}"


def _number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"${value:{sign}.2f}$" if sign else f"{value:.2f}"


def _shown_direction(name: str) -> str:
    return "Avg" if name == AVERAGE else _tex(name.upper())


def _tex(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)
