"""The result of a command as a table, as TSV or as one JSON object, on stdout or in a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.cli import console
from qwp.cli.options import option
from qwp.errors import InputError
from qwp.showing import terminal
from qwp.showing.terminal import visible
from qwp.spaces.io.files import atomic_write, check_folder

TABLE, TSV, JSON = FORMATS = ("table", "tsv", "json")
TSV_FORBIDDEN = "\t\n\r"
"""Characters that end a cell or a line."""


@dataclass(frozen=True)
class TextRows:
    """Lines of text cells, and the names of their columns."""

    columns: Sequence[str]
    lines: Iterable[Sequence[str]]


@dataclass(frozen=True)
class Output:
    """Options that say where a command writes its result, and in which format."""

    format: str | None = option("Output format. (default: a table on a terminal, tsv elsewhere)", choices=FORMATS)
    out: Path | None = option("Write to this file instead of stdout.", flags=("--out", "-o"))
    json: bool = option("The same as --format json: exactly one JSON object.", default=False)

    def check(self) -> None:
        """Refuse contradictory options. Commands call it before they begin to work."""
        if self.json and self.format not in (None, JSON):
            raise InputError(f"--json and --format {self.format} ask for two formats: leave one of them out")
        if self.out is not None:
            check_folder(self.out)

    @property
    def kind(self) -> str:
        """The format to write."""
        if self.json or self.format is not None:
            return JSON if self.json else str(self.format)
        if self.out is not None:
            return JSON if self.out.suffix == ".json" else TSV
        return TABLE if sys.stdout.isatty() else TSV

    def write(
        self, *, json: Callable[[], Mapping[str, Any]], rows: Callable[[], TextRows], show: Callable[[], None]
    ) -> None:
        """Write a result. show: prints tables for people on stdout."""
        kind = self.kind
        if self.out is not None:
            self._write_file(self.out, kind, json, rows, show)
            terminal.note(f"written to {self.out}")
        elif kind == JSON:
            console.print_json(json())
        elif kind == TABLE:
            show()
        else:
            console.print_lines(for_stdout(tsv_lines(rows())))

    @staticmethod
    def _write_file(
        out: Path,
        kind: str,
        json: Callable[[], Mapping[str, Any]],
        rows: Callable[[], TextRows],
        show: Callable[[], None],
    ) -> None:
        with atomic_write(out) as target:
            if kind == JSON:
                target.write(console.json_text(json()).encode())
            elif kind == TABLE:
                target.write(drawn(show))
            else:
                for line in tsv_lines(rows()):
                    target.write(line.encode())


def drawn(show: Callable[[], None]) -> bytes:
    """Return what a function prints on stdout."""
    with redirect_stdout(io.StringIO()) as text:
        show()
    return text.getvalue().encode("utf-8", "backslashreplace")


def tsv_lines(rows: TextRows) -> Iterator[str]:
    """Yield a header and a line for each row, with the words exactly as they are.

    Rows that TSV cannot represent are left out and counted in a warning.
    """
    yield "\t".join(rows.columns) + "\n"
    dropped = 0
    for line in rows.lines:
        if any(set(TSV_FORBIDDEN) & set(cell) for cell in line):
            dropped += 1
        else:
            # Words are valid text; file names need not be.
            yield "\t".join(line).encode("utf-8", "backslashreplace").decode() + "\n"
    if dropped:
        console.warn(
            f"{dropped:,} {'line' if dropped == 1 else 'lines'} left out: words with tabs or line breaks do not fit tsv"
        )


def for_stdout(lines: Iterable[str]) -> Iterator[str]:
    """Escape control characters of TSV lines if stdout is a terminal. A pipe gets them unchanged."""
    if not sys.stdout.isatty():
        yield from lines
    else:
        for line in lines:
            yield "\t".join(visible(cell) for cell in line.rstrip("\n").split("\t")) + "\n"
