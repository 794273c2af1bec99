"""Recorded results as Markdown: tables of the benchmarks, and reports of experiments."""

from __future__ import annotations

from pathlib import Path

from benchmarks import ablation, encoders, items, judgement, kernels, planted, spelling, systems
from benchmarks.records import FOLDER, read_records
from qwp.experiments.formats import read_report, sections

_TABLES = {
    "ablation": ablation.tables,
    "encoders": encoders.tables,
    "items": items.tables,
    "judgement": judgement.tables,
    "kernels": kernels.tables,
    "planted": planted.tables,
    "spelling": spelling.tables,
    "systems": systems.tables,
}


def benchmark(name: str) -> str:
    """Return the tables of a benchmark."""
    return _TABLES[name](read_records(FOLDER / f"{name}.jsonl"))


def experiment(name: str, folder: Path = FOLDER) -> str:
    """Return the tables of an experiment, saved by `qwp experiment report NAME --out FILE`."""
    path = folder / f"experiment-{name}.json"
    if not path.is_file():
        return f"No results of `{name}` are recorded."
    return "\n\n".join(sections(read_report(path)))
