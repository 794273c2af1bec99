"""Records of benchmark runs and Markdown tables of them.

A benchmark lists its runs. `measure_missing` measures those without a record and appends each record to a file of one
JSON object a line, so an interrupted benchmark continues where it stopped. `make generated` writes the tables of the
records into the documents (tools/results.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"

Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run of a benchmark. key: fields that identify its record; measure: returns the other fields."""

    key: Record
    measure: Callable[[], Record]


Suites = Mapping[str, Callable[[str], Iterable[Run]]]
"""The runs of each suite on a device."""


def read_records(path: Path) -> list[Record]:
    """Return the records of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def append_record(record: Record, path: Path) -> None:
    """Append a record to a file and print its plain figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    print({key: value for key, value in record.items() if not isinstance(value, dict | list)}, flush=True)


def is_recorded(key: Record, records: Iterable[Record]) -> bool:
    """Return whether one of the records has all fields of a key."""
    return any(key.items() <= record.items() for record in records)


def measure_missing(runs: Iterable[Run], path: Path, part: tuple[int, int] = (0, 1)) -> None:
    """Measure the runs without a record in a file, and append their records to it.

    part: (I, N) measures every N-th run from number I on only, so that N processes share the work.
    """
    known = read_records(path)
    for run in islice(runs, part[0], None, part[1]):
        if not is_recorded(run.key, known):
            append_record({**run.key, **run.measure()}, path)


def main(module: str, description: str | None, suites: Suites, results: Path) -> None:
    """Run the command line of a benchmark: measure the missing runs of some suites."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {', '.join(suites)} (default: all)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--output", type=Path, default=results, help="file that gets the records")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="measure every N-th run from number I on")
    options = parser.parse_args()
    first, every = map(int, options.part.split("/"))
    unknown = [suite for suite in options.suites if suite not in suites]
    if unknown:
        parser.error(f"unknown suites {', '.join(unknown)}; expected some of {', '.join(suites)}")
    for suite in options.suites or suites:
        measure_missing(suites[suite](options.device), options.output, (first, every))


# --------------------------------------------------------------------------- tables


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def cell(value: float | None, digits: int = 1) -> str:
    """Format a figure for a table; None becomes "-"."""
    return "-" if value is None else f"{value:.{digits}f}"


def select(records: Iterable[Record], **wanted: object) -> list[Record]:
    """Return the records with these values."""
    return [record for record in records if is_recorded(wanted, [record])]


def values(records: Iterable[Record], key: str) -> list[Any]:
    """Return the distinct values of a field in the order of their first appearance."""
    return list(dict.fromkeys(record[key] for record in records))


def mean(records: Sequence[Record], key: str) -> float | None:
    """Return the mean of a figure; None without records."""
    return statistics.mean(record[key] for record in records) if records else None


def share(records: Sequence[Record], verdict: str) -> str:
    """Return how many of the records have a verdict, as "2 of 3"."""
    return f"{sum(record['verdict'] == verdict for record in records)} of {len(records)}"
