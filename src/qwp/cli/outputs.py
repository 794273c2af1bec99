"""What a command found as a table, as TSV or as one JSON object, on stdout or in a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import completion, console
from qwp.errors import InputError
from qwp.showing.terminal import visible
from qwp.spaces.io.files import check_folder, replacing

TABLE, TSV, JSON = FORMATS = ("table", "tsv", "json")
# What would end a cell or a line.
TSV_FORBIDDEN = "\t\n\r"

Format = Annotated[
    str | None,
    completion.choice(
        "--format", FORMATS, "How to show it. (default: a table on a terminal, tsv elsewhere)", show_default=False
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write to this file instead of stdout.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json: exactly one JSON object.")]


@dataclass(frozen=True)
class Rows:
    """Lines of plain values with the names of their columns."""

    columns: Sequence[str]
    lines: Iterable[Sequence[str]]


@dataclass(frozen=True)
class Output:
    """Where the result of a command goes, and in which form."""

    format: str
    out: Path | None = None

    @classmethod
    def chosen(cls, format: str | None, out: Path | None, *, json: bool) -> Output:
        """What the options ask for. Called before any work, so that a mistake in them costs none."""
        known("--format", format, FORMATS)
        if json and format not in (None, JSON):
            raise InputError(f"--json and --format {format} ask for two formats: leave one of them out")
        if out is not None:
            check_folder(out)
        return cls(JSON if json else format or _usual(out), out)

    def write(
        self, *, json: Callable[[], Mapping[str, Any]], rows: Callable[[], Rows], show: Callable[[], None]
    ) -> None:
        """Write it in the chosen form. show: prints tables for people on stdout."""
        if self.out is None and self.format == JSON:
            console.print_json(json())
        elif self.out is None and self.format == TABLE:
            show()
        elif self.out is None:
            console.print_lines(shown(tsv_lines(rows())))
        else:
            self._write_file(json, rows, show)
            console.note(f"written to {self.out}")

    def _write_file(
        self, json: Callable[[], Mapping[str, Any]], rows: Callable[[], Rows], show: Callable[[], None]
    ) -> None:
        assert self.out is not None
        with replacing(self.out) as file:
            if self.format == JSON:
                file.write(console.json_text(json()).encode())
            elif self.format == TABLE:
                with redirect_stdout(io.StringIO()) as drawn:
                    show()
                file.write(drawn.getvalue().encode("utf-8", "backslashreplace"))
            else:
                for line in tsv_lines(rows()):
                    file.write(line.encode())


def known(option: str, value: str | None, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value is not None and value not in choices:
        raise InputError(f"{option} {value} is not known; expected one of {', '.join(choices)}")


def _usual(out: Path | None) -> str:
    if out is not None:
        return JSON if out.suffix == ".json" else TSV
    return TABLE if sys.stdout.isatty() else TSV


def tsv_lines(rows: Rows) -> Iterator[str]:
    """A header and a line for each row, words exactly as they are; those that do not fit are left out and counted."""
    yield "\t".join(rows.columns) + "\n"
    unfit = 0
    for line in rows.lines:
        if any(set(TSV_FORBIDDEN) & set(cell) for cell in line):
            unfit += 1
        else:
            # Words are text; names of files need not be.
            yield "\t".join(line).encode("utf-8", "backslashreplace").decode() + "\n"
    if unfit:
        console.warn(
            f"{unfit:,} {'line' if unfit == 1 else 'lines'} left out: words with tabs or line breaks do not fit tsv"
        )


def shown(lines: Iterable[str]) -> Iterator[str]:
    """Lines for stdout: exact in a pipe, harmless on a terminal."""
    if not sys.stdout.isatty():
        yield from lines
    else:
        for line in lines:
            yield "\t".join(visible(cell) for cell in line.rstrip("\n").split("\t")) + "\n"
