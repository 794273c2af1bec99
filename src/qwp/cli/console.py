"""Messages on stderr, figures and JSON on stdout, and exit codes for errors.

Everything printed here passes through `visible`, so that no word or path can control the terminal. Callers of
`print_lines` escape their lines themselves.
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
from qwp.showing import terminal
from qwp.showing.terminal import Console, finite, line, visible, visible_json

P = ParamSpec("P")
TableCell: TypeAlias = "str | tuple[str, ...]"
"""One line of a table cell, or several lines."""

BAD_INPUT, INTERRUPTED, INTERNAL = "bad input", "interrupted", "internal"
EXIT_PIPE, EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERNAL, EXIT_INTERRUPTED = 1, 2, 3, 70, 130
TRACEBACK = "QWP_TRACEBACK"
_WIDTH_WITHOUT_TERMINAL = 120  # wide enough for all tables


def stdout() -> Console:
    """Return a console for stdout."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


@contextmanager
def _on_stdout() -> Iterator[Console]:
    """Yield a console for stdout; raise an OutputError if stdout cannot be written."""
    try:
        yield stdout()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise process.OutputError(error.strerror or str(error)) from error


def say(text: str, style: str = "", *, whole: bool = False) -> None:
    """Print a line on stdout. whole: do not wrap it, so that it can be copied."""
    with _on_stdout() as console:
        line(console, text, style, whole=whole)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    terminal.note(f"warning: {text}", "yellow")


def fail(text: str) -> None:
    """Print an error on stderr."""
    terminal.note(f"error: {text}", "bold red")


def figures(rows: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Print names and values on stdout."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=_title(title), title_justify="left")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(visible(name)), Text(visible(value)))
    with _on_stdout() as console:
        console.print(table)


def table(columns: Sequence[str], rows: Sequence[Sequence[TableCell]], title: str | None = None) -> None:
    """Print a table on stdout. Columns of figures are aligned right, except the first."""
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


_FRAME = 3  # a bar, and a blank on either side of a cell
_LONG_WORD = 20  # a narrower column does not break words


def _fitted(columns: Sequence[Sequence[str]], width: int) -> tuple[Table, list[int | None]]:
    """Return a table and the widths of its columns. It has no frame if the frame would make words break."""
    styles: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "header_style": "bold"}
    room = width - _FRAME * len(columns) - 1
    if sum(_longest_words(columns)) <= room:
        return Table(**styles), _widths(columns, room)
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), **styles), _widths(columns, width - len(columns))


def _longest_words(columns: Sequence[Sequence[str]]) -> list[int]:
    longest = [max(cell_len(word) for text in column for word in text.split() or [""]) for column in columns]
    return [min(length, _LONG_WORD) for length in longest]


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int | None]:
    """Return column widths at which lines break between words; None lets rich decide."""
    widest = [max(cell_len(line) for text in column for line in text.split("\n")) for column in columns]
    least = _longest_words(columns)
    if sum(widest) <= room or sum(least) > room:
        return [None] * len(columns)
    widths = [min(width, room) for width in widest]
    while sum(widths) > room:  # shrink columns of prose before columns of one or two words
        _, widest_now = max((width, n) for n, width in enumerate(widths) if width > least[n])
        widths[widest_now] -= 1
    return list(widths)


def _title(title: str | None) -> Text | None:
    return None if title is None else Text(visible(title))


def _lines(cell: TableCell) -> tuple[str, ...]:
    return (cell,) if isinstance(cell, str) else cell


def _starts_like_a_number(cell: TableCell) -> bool:
    first = _lines(cell)[0]
    return not first or first[0].isdigit() or first[0] == "-"


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of data on stdout unchanged. Each line ends with a line feed."""
    with _on_stdout():
        for line in lines:
            sys.stdout.write(line)


def print_json(values: Mapping[str, Any]) -> None:
    """Print exactly one JSON object on stdout. NaN and infinity become null."""
    with _on_stdout():
        sys.stdout.write(json_text(values, ascii_only=not _is_utf8()))
        sys.stdout.flush()
    _Report.printed = True


def json_text(values: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return a JSON object and a line feed."""
    return visible_json(json.dumps(finite(values), indent=2, ensure_ascii=ascii_only, allow_nan=False)) + "\n"


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


# --------------------------------------------------------------------------- errors and exit codes


class _WarningsOnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def library_warnings() -> Iterator[None]:
    """Print warnings that the library logs."""
    handler = _WarningsOnStderr(logging.WARNING)
    logger = logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


# The parser raises an exit, an interrupt or a usage error. The class of usage errors belongs to typer or to click,
# depending on the version; all versions export BadParameter, which derives from it.
PARSER_ERROR: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
_PARSER_EXITS = (typer.Exit, typer.Abort, PARSER_ERROR)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that reports errors in one line and by its exit code instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with library_warnings():
                command(*args, **kwargs)
        except _PARSER_EXITS:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(explain(error)) from None

    return run


def interrupted_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a command that Ctrl-C or a signal stopped."""
    return error.code if isinstance(error, Terminated) else EXIT_INTERRUPTED


def interrupted(error: KeyboardInterrupt, message: str) -> typer.Exit:
    """Report an interrupt, and return the exit of the command."""
    return typer.Exit(stop(INTERRUPTED, message, interrupted_code(error)))


class _Report:
    """State of the JSON output.

    wanted: report errors as JSON, too. printed: stdout has its one object. command: the name of the command.
    """

    wanted = False
    printed = False
    command: str | None = None


@contextmanager
def errors_as_json(wanted: bool, command: str | None) -> Iterator[None]:
    """Report errors as a JSON object on stdout, besides the line on stderr, if wanted."""
    _Report.wanted, _Report.printed, _Report.command = wanted, False, command
    try:
        yield
    finally:
        _Report.wanted = False


def stop(kind: str, message: str, code: int) -> int:
    """Report why a command stopped, and return its exit code."""
    if kind == INTERRUPTED:
        terminal.note(message)
    else:
        fail(message)
    _report_as_json(kind, message, code)
    return code


def _report_as_json(kind: str, message: str, code: int) -> None:
    if _Report.wanted and not _Report.printed:
        with suppress(BrokenPipeError, process.OutputError):
            print_json(
                {"command": _Report.command, "error": {"kind": kind, "message": message, "exit_code": code}},
            )


def explain(error: BaseException) -> int:
    """Report an error in one line on stderr, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader (head, less) has closed the pipe on purpose.
        terminal.silence(sys.stdout)
        return EXIT_PIPE
    if isinstance(error, KeyboardInterrupt):
        how = f"terminated by {error}" if isinstance(error, Terminated) else "interrupted"
        return stop(INTERRUPTED, f"{how}: unfinished files were removed", interrupted_code(error))
    if isinstance(error, process.OutputError):
        terminal.silence(sys.stdout)
    if os.environ.get(TRACEBACK):
        for line in "".join(traceback.format_exception(error)).splitlines():
            terminal.note(line)
    if isinstance(error, PARSER_ERROR):
        return _explain_usage(error)
    words = _in_words(error)
    if words is not None:
        return stop(BAD_INPUT, words, EXIT_BAD_INPUT)
    return stop(
        INTERNAL,
        f"internal error: {type(error).__name__}: {error}. This is a bug in qwp: please report it "
        f"({TRACEBACK}=1 in the environment shows the traceback)",
        EXIT_INTERNAL,
    )


def _explain_usage(error: Any) -> int:
    """Report a command line that cannot be parsed."""
    ctx = getattr(error, "ctx", None)
    if ctx is not None and type(error).__name__ == "NoArgsIsHelpError":  # no arguments at all
        print_lines([ctx.get_help()])
        return int(error.exit_code)
    hint = ""
    if ctx is not None:
        for line in ctx.get_usage().splitlines():
            terminal.note(line)
        hint = f" (`{ctx.command_path} --help` shows what it takes)"
    return stop(BAD_INPUT, f"{error.format_message()}{hint}", int(error.exit_code))


def _in_words(error: BaseException) -> str | None:
    """Return the message for an error that the input or the machine caused; None for a bug."""
    if isinstance(error, QwpError):
        return str(error)
    for kinds, words in _EXPECTED:
        if isinstance(error, kinds):
            return words(error)
    # Compare names, because importing NumPy and torch takes up to seconds.
    if type(error).__name__ in _BY_NAME:
        return _BY_NAME[type(error).__name__](error)
    return _out_of_memory(error) if "can't allocate memory" in str(error) else None


def _system_error(error: OSError) -> str:
    what = "a file or a stream cannot be read or written" if error.filename is None else str(error.filename)
    return f"{what}: {error.strerror or error}"


def _out_of_memory(error: BaseException) -> str:
    return f"out of memory ({error}): take fewer words with --max-vocab, or a machine with more memory"


def _numerical_error(error: BaseException) -> str:
    return (
        f"the computation failed ({error}): expected different vectors for different words, of ordinary "
        "length; `qwp info FILE` shows the lengths"
    )


_EXPECTED: tuple[tuple[tuple[type[BaseException], ...], Callable[[Any], str]], ...] = (
    ((OSError,), _system_error),
    ((MemoryError,), _out_of_memory),
    ((RecursionError,), lambda error: "the input is nested too deeply; expected a file written by qwp or by hand"),
    ((UnicodeError,), lambda error: f"text that is not UTF-8 ({error}): convert the file, or rename it"),
    ((OverflowError, FloatingPointError), _numerical_error),
)
_BY_NAME = {"OutOfMemoryError": _out_of_memory, "_LinAlgError": _numerical_error, "LinAlgError": _numerical_error}
