"""What the commands write with: messages on stderr, figures on stdout, errors as exit codes.

All that is printed passes through `visible` here, so that no word and no path can give orders to a terminal.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from qwp.cli import streams
from qwp.cli.escapes import visible, visible_json
from qwp.cli.signals import Terminated
from qwp.errors import QwpError

P = ParamSpec("P")
Cell: TypeAlias = "str | tuple[str, ...]"
"""One line of a table, or several below each other."""

EXIT_PIPE, EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERNAL, EXIT_INTERRUPTED = 1, 2, 3, 70, 130
TRACEBACK = "QWP_TRACEBACK"
# Wide enough for the tables; a file or a pipe has no width of its own.
_WIDTH_WITHOUT_TERMINAL = 120


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to whoever wrote: rich would end the process here, whichever stream it was."""
        raise  # called while the BrokenPipeError is handled


def stdout() -> Console:
    """Where figures go."""
    return _Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def stderr() -> Console:
    """Where progress, warnings and errors go. Writing there never fails."""
    return _Console(file=streams.stderr(), highlight=False)


@contextmanager
def _on_stdout() -> Iterator[Console]:
    """Write on stdout, or say that it is stdout that could not be written."""
    try:
        yield stdout()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise streams.OutputError(error.strerror or str(error)) from error


def say(text: str, style: str = "") -> None:
    """One line of human output on stdout, never wrapped or read as markup."""
    with _on_stdout() as console:
        console.print(Text(visible(text), style=style), soft_wrap=True)


def note(text: str, style: str = "", *, on: Console | None = None) -> None:
    """One line on stderr. on: the console of a bar that is shown there."""
    (on or stderr()).print(Text(visible(text), style=style), soft_wrap=True)


def warn(text: str) -> None:
    """A warning on stderr."""
    note(f"warning: {text}", "yellow")


def fail(text: str) -> None:
    """An error on stderr."""
    note(f"error: {text}", "bold red")


def figures(rows: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values on stdout."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=_title(title), title_justify="left")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(visible(name)), Text(visible(value)))
    with _on_stdout() as console:
        console.print(table)


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], title: str | None = None) -> None:
    """A table on stdout, all but the first column flush right where they hold figures."""
    shown = Table(title=_title(title), title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        is_figure = number > 0 and all(_starts_like_a_number(row[number]) for row in rows)
        shown.add_column(Text(visible(column)), justify="right" if is_figure else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text("\n".join(visible(line) for line in _lines(cell))) for cell in row))
    with _on_stdout() as console:
        console.print(shown)


def _title(title: str | None) -> Text | None:
    return None if title is None else Text(visible(title))


def _lines(cell: Cell) -> tuple[str, ...]:
    return (cell,) if isinstance(cell, str) else cell


def _starts_like_a_number(cell: Cell) -> bool:
    first = _lines(cell)[0]
    return not first or first[0].isdigit() or first[0] == "-"


def print_json(values: Mapping[str, Any]) -> None:
    """Exactly one JSON object on stdout. Numbers that JSON lacks (NaN, infinity) become null."""
    text = json.dumps(_finite(values), indent=2, ensure_ascii=not _speaks_unicode(), allow_nan=False)
    with _on_stdout():
        sys.stdout.write(visible_json(text) + "\n")
        sys.stdout.flush()


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


# What the parser of the command line raises: an exit, an interrupt, a mistake in the options. The class of the last is
# typer's own or click's, depending on the version; this one is exported by all and derived from it.
_PARSER_ERROR: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
_OF_THE_PARSER = (typer.Exit, typer.Abort, _PARSER_ERROR)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose errors become one line and an exit code instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with library_warnings():
                command(*args, **kwargs)
        except _OF_THE_PARSER:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(explain(error)) from None

    return run


def interrupted_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that was stopped by Ctrl-C or by a signal."""
    return error.code if isinstance(error, Terminated) else EXIT_INTERRUPTED


def explain(error: BaseException) -> int:
    """Say on stderr what ended a command, in one line, and return its exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader (head, less) has gone, and wants no explanation.
        streams.silence(sys.stdout)
        return EXIT_PIPE
    if isinstance(error, KeyboardInterrupt):
        how = f"terminated by {error}" if isinstance(error, Terminated) else "interrupted"
        note(f"{how}: nothing unfinished was left behind")
        return interrupted_code(error)
    if isinstance(error, streams.OutputError):
        streams.silence(sys.stdout)
    if os.environ.get(TRACEBACK):
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    if isinstance(error, _PARSER_ERROR):
        return _explain_usage(error)
    words = _in_words(error)
    if words is not None:
        fail(words)
        return EXIT_BAD_INPUT
    fail(
        f"internal error: {type(error).__name__}: {error}. This is a mistake in qwp: please report it "
        f"(with {TRACEBACK}=1 in the environment the same command shows where it is)"
    )
    return EXIT_INTERNAL


def _explain_usage(error: Any) -> int:
    """A command line that cannot be parsed."""
    ctx = getattr(error, "ctx", None)
    hint = ""
    # No arguments at all: the help was shown and says it all.
    if type(error).__name__ != "NoArgsIsHelpError":
        if ctx is not None:
            for line in ctx.get_usage().splitlines():
                note(line)
            hint = f" (`{ctx.command_path} --help` shows what it takes)"
        fail(f"{error.format_message()}{hint}")
    return int(error.exit_code)


def _in_words(error: BaseException) -> str | None:
    """An error that the input or the machine caused, for people; None for one that nobody has thought of."""
    if isinstance(error, QwpError):
        return str(error)
    for kinds, words in _EXPECTED:
        if isinstance(error, kinds):
            return words(error)
    # Without importing NumPy and torch, which takes up to seconds: their errors are known by their names.
    if type(error).__name__ in _BY_NAME:
        return _BY_NAME[type(error).__name__](error)
    return _out_of_memory(error) if "can't allocate memory" in str(error) else None


def _of_the_system(error: OSError) -> str:
    what = "a file or a stream cannot be read or written" if error.filename is None else str(error.filename)
    return f"{what}: {error.strerror or error}"


def _out_of_memory(error: BaseException) -> str:
    return f"out of memory ({error}): take fewer words with --max-vocab, or a machine with more memory"


def _not_computable(error: BaseException) -> str:
    return (
        f"the vectors cannot be computed with ({error}): expected different words to have different vectors, with "
        "numbers of ordinary size; `qwp info FILE` shows their lengths"
    )


_EXPECTED: tuple[tuple[tuple[type[BaseException], ...], Callable[[Any], str]], ...] = (
    ((OSError,), _of_the_system),
    ((MemoryError,), _out_of_memory),
    ((RecursionError,), lambda error: "the input is nested too deeply; expected a file written by qwp or by hand"),
    ((UnicodeError,), lambda error: f"a text is not UTF-8 ({error}): convert the file, or rename it"),
    ((OverflowError, FloatingPointError), _not_computable),
)
_BY_NAME = {"OutOfMemoryError": _out_of_memory, "_LinAlgError": _not_computable, "LinAlgError": _not_computable}
