"""What the commands write with: messages on stderr, figures on stdout, errors as exit codes."""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from qwp.errors import QwpError

P = ParamSpec("P")

EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED = 2, 3, 130
# Wide enough for the tables; a file or a pipe has no width of its own.
_WIDTH_WITHOUT_TERMINAL = 120


def stdout() -> Console:
    """Where figures go."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def stderr() -> Console:
    """Where progress, warnings and errors go."""
    return Console(stderr=True, highlight=False)


def say(text: str, style: str = "") -> None:
    """One line of human output on stdout, never wrapped or read as markup."""
    stdout().print(Text(text, style=style), soft_wrap=True)


def note(text: str, style: str = "") -> None:
    """One line on stderr."""
    stderr().print(Text(text, style=style), soft_wrap=True)


def warn(text: str) -> None:
    """A warning on stderr."""
    note(f"warning: {text}", "yellow")


def fail(text: str) -> None:
    """An error on stderr."""
    note(f"error: {text}", "bold red")


def figures(rows: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values on stdout."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    stdout().print(table)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """A table on stdout, all but the first column flush right where they hold figures."""
    shown = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        is_figure = number > 0 and all(_starts_like_a_number(row[number]) for row in rows)
        shown.add_column(Text(column), justify="right" if is_figure else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    stdout().print(shown)


def _starts_like_a_number(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] == "-"


def print_json(values: Mapping[str, Any]) -> None:
    """Exactly one JSON object on stdout. Numbers that JSON lacks (NaN, infinity) become null."""
    typer.echo(json.dumps(_finite(values), indent=2, ensure_ascii=not _speaks_unicode(), allow_nan=False))


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


def seconds(value: float) -> str:
    """A duration for people."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {value % 60:.0f} s"


# --------------------------------------------------------------------------- errors and exit codes


class _WarningsOnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def library_warnings() -> Iterator[None]:
    """Show what the library logs as a warning."""
    handler = _WarningsOnStderr(logging.WARNING)
    logger = logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose expected errors become one line and an exit code instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with library_warnings():
                command(*args, **kwargs)
        except BrokenPipeError:
            # The reader (head, less) has gone; what Python still holds for it must not raise again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (QwpError, OSError) as error:
            fail(_in_words(error))
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except MemoryError as error:
            fail(f"out of memory ({error}): take fewer words with --max-vocab, or a machine with more memory")
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except KeyboardInterrupt:
            note("interrupted: nothing unfinished was left behind")
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return run


def _in_words(error: QwpError | OSError) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return str(error)
