"""What the commands write with: messages on stderr, figures on stdout, errors as exit codes.

All that is printed passes through `visible` here, so that no word and no path can give orders to a terminal; lines of
data (`print_lines`) are made harmless by those who print them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeAlias

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from qwp.cli import process
from qwp.cli.process import Terminated
from qwp.errors import QwpError
from qwp.showing.terminal import Console, finite, line, visible, visible_json
from qwp.showing.terminal import note as note
from qwp.showing.terminal import seconds as seconds
from qwp.showing.terminal import stderr as stderr

P = ParamSpec("P")
Cell: TypeAlias = "str | tuple[str, ...]"
"""One line of a table, or several below each other."""

BAD_INPUT, INTERRUPTED, INTERNAL = "bad input", "interrupted", "internal"
EXIT_PIPE, EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERNAL, EXIT_INTERRUPTED = 1, 2, 3, 70, 130
TRACEBACK = "QWP_TRACEBACK"
# Wide enough for the tables; a file or a pipe has no width of its own.
_WIDTH_WITHOUT_TERMINAL = 120


def stdout() -> Console:
    """Where figures go."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


@contextmanager
def _on_stdout() -> Iterator[Console]:
    """Write on stdout, or say that it is stdout that could not be written."""
    try:
        yield stdout()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise process.OutputError(error.strerror or str(error)) from error


def say(text: str, style: str = "", *, whole: bool = False) -> None:
    """One line of human output on stdout, never read as markup. whole: not wrapped, so that it can be copied."""
    with _on_stdout() as console:
        line(console, text, style, whole=whole)


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
    texts = [[visible(column) for column in columns]]
    texts += [["\n".join(visible(line) for line in _lines(cell)) for cell in row] for row in rows]
    with _on_stdout() as console:
        shown, widths = _fitted(list(zip(*texts, strict=True)), console.width)
        shown.title = _title(title)
        for number, (heading, width) in enumerate(zip(texts[0], widths, strict=True)):
            is_figure = number > 0 and all(_starts_like_a_number(row[number]) for row in rows)
            justify: Any = "right" if is_figure else "left"
            shown.add_column(Text(heading), justify=justify, overflow="fold", width=width)
        for row in texts[1:]:
            shown.add_row(*(Text(text) for text in row))
        console.print(shown)


# A bar and a blank on either side of a cell; a column with this width may break a longer word.
_FRAME = 3
_LONG_WORD = 20


def _fitted(columns: Sequence[Sequence[str]], width: int) -> tuple[Table, list[int | None]]:
    """A table and the widths of its columns; without a frame where words would have to be broken in one."""
    styles: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "header_style": "bold"}
    room = width - _FRAME * len(columns) - 1
    if sum(_longest_words(columns)) <= room:
        return Table(**styles), _widths(columns, room)
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), **styles), _widths(columns, width - len(columns))


def _longest_words(columns: Sequence[Sequence[str]]) -> list[int]:
    longest = [max(cell_len(word) for text in column for word in text.split() or [""]) for column in columns]
    return [min(length, _LONG_WORD) for length in longest]


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int | None]:
    """The width of each column such that lines break between words, where `room` allows it; None: as rich likes it."""
    widest = [max(cell_len(line) for text in column for line in text.split("\n")) for column in columns]
    least = _longest_words(columns)
    if sum(widest) <= room or sum(least) > room:
        return [None] * len(columns)
    widths = [min(width, room) for width in widest]
    while sum(widths) > room:  # columns of prose give way, those of a word or two keep their lines
        _, widest_now = max((width, n) for n, width in enumerate(widths) if width > least[n])
        widths[widest_now] -= 1
    return list(widths)


def _title(title: str | None) -> Text | None:
    return None if title is None else Text(visible(title))


def _lines(cell: Cell) -> tuple[str, ...]:
    return (cell,) if isinstance(cell, str) else cell


def _starts_like_a_number(cell: Cell) -> bool:
    first = _lines(cell)[0]
    return not first or first[0].isdigit() or first[0] == "-"


def print_lines(lines: Iterable[str]) -> None:
    """Lines of data on stdout as they are, each with its line feed."""
    with _on_stdout():
        for line in lines:
            sys.stdout.write(line)


def print_json(values: Mapping[str, Any]) -> None:
    """Exactly one JSON object on stdout. Numbers that JSON lacks (NaN, infinity) become null."""
    with _on_stdout():
        sys.stdout.write(json_text(values, ascii_only=not _speaks_unicode()))
        sys.stdout.flush()
    _Report.told = True


def json_text(values: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """One JSON object with a line feed at its end."""
    return visible_json(json.dumps(finite(values), indent=2, ensure_ascii=ascii_only, allow_nan=False)) + "\n"


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


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
PARSER_ERROR: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
_OF_THE_PARSER = (typer.Exit, typer.Abort, PARSER_ERROR)


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


class _Report:
    """Whether errors are told as JSON too, for which command, and whether stdout has its one object already."""

    wanted = False
    told = False
    command: str | None = None


@contextmanager
def errors_as_json(wanted: bool, command: str | None) -> Iterator[None]:
    """While it lasts, an error is one JSON object on stdout besides its line on stderr, if that is wanted."""
    _Report.wanted, _Report.told, _Report.command = wanted, False, command
    try:
        yield
    finally:
        _Report.wanted = False


def stop(kind: str, message: str, code: int) -> int:
    """Say what ended a command: a line on stderr, and an object on stdout where JSON is wanted. Returns the code."""
    if kind == INTERRUPTED:
        note(message)
    else:
        fail(message)
    _tell_as_json(kind, message, code)
    return code


def _tell_as_json(kind: str, message: str, code: int) -> None:
    if _Report.wanted and not _Report.told:
        with suppress(BrokenPipeError, process.OutputError):
            print_json(
                {"command": _Report.command, "error": {"kind": kind, "message": message, "exit_code": code}},
            )


def explain(error: BaseException) -> int:
    """Say on stderr what ended a command, in one line, and return its exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader (head, less) has gone, and wants no explanation.
        process.silence(sys.stdout)
        return EXIT_PIPE
    if isinstance(error, KeyboardInterrupt):
        how = f"terminated by {error}" if isinstance(error, Terminated) else "interrupted"
        return stop(INTERRUPTED, f"{how}: nothing unfinished was left behind", interrupted_code(error))
    if isinstance(error, process.OutputError):
        process.silence(sys.stdout)
    if os.environ.get(TRACEBACK):
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    if isinstance(error, PARSER_ERROR):
        return _explain_usage(error)
    words = _in_words(error)
    if words is not None:
        return stop(BAD_INPUT, words, EXIT_BAD_INPUT)
    return stop(
        INTERNAL,
        f"internal error: {type(error).__name__}: {error}. This is a mistake in qwp: please report it "
        f"(with {TRACEBACK}=1 in the environment the same command shows where it is)",
        EXIT_INTERNAL,
    )


def _explain_usage(error: Any) -> int:
    """A command line that cannot be parsed."""
    ctx = getattr(error, "ctx", None)
    if ctx is not None and type(error).__name__ == "NoArgsIsHelpError":  # no arguments at all: the help says it all
        print_lines([ctx.get_help()])
        return int(error.exit_code)
    hint = ""
    if ctx is not None:
        for line in ctx.get_usage().splitlines():
            note(line)
        hint = f" (`{ctx.command_path} --help` shows what it takes)"
    return stop(BAD_INPUT, f"{error.format_message()}{hint}", int(error.exit_code))


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
