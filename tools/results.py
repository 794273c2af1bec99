"""docs/results.md: the reports that are kept, as Markdown."""

from __future__ import annotations

from qwp.experiments.kept import read_report
from qwp.experiments.markdown import sections
from tools import project

FOLDER = project.ROOT / "benchmarks" / "results"


def results(name: str) -> str:
    """The tables of an experiment that was kept with `qwp experiment report NAME --out FILE`."""
    path = FOLDER / f"experiment-{name}.json"
    if not path.is_file():
        return f"No results of `{name}` are kept yet."
    return "\n\n".join(sections(read_report(path)))
