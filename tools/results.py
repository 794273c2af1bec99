"""Kept results as Markdown: reports of experiments (docs/results.md), scores under other BLAS kernels."""

from __future__ import annotations

from pathlib import Path

from benchmarks import kernels
from qwp.experiments.forms import read_report, sections
from tools import project

FOLDER = project.ROOT / "benchmarks" / "results"


def results(name: str, folder: Path = FOLDER) -> str:
    """The tables of an experiment that was kept with `qwp experiment report NAME --out FILE`."""
    path = folder / f"experiment-{name}.json"
    if not path.is_file():
        return f"No results of `{name}` are kept yet."
    return "\n\n".join(sections(read_report(path)))


def kernel_scores(_: str = "") -> str:
    """The table of `benchmarks.kernels`, and how it was made."""
    records = kernels.read()
    processors = ", ".join(sorted({record["processor"] for record in records})) or "no machine yet"
    threads = " or ".join(sorted({record["threads"] or "the default number of" for record in records})) or "no"
    return (
        "`python -m benchmarks.kernels` aligns each pair with the default method in a process whose OpenBLAS has the\n"
        f"kernels of one family of CPUs; P@1 by CSLS over covered words, in percent. Computed on {processors}\n"
        f"with {threads} BLAS thread(s).\n\n"
        f"{kernels.table(records)}"
    )
