from __future__ import annotations

import errno
import io
import json
import logging
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.cli import console
from qwp.cli.process import OutputError, Terminated
from qwp.errors import InputError, QwpError
from qwp.showing import terminal
from qwp.showing.terminal import finite

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=3), json_values, max_size=3))
def test_json_text_has_no_nan_or_infinity(values: dict[str, Any]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(json.dumps(finite(values)), parse_constant=refuse)


def test_json_is_one_object_with_null_for_nan(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": math.nan, "b": [1.5, math.inf], "c": ("ñ", {"d": -math.inf})})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": None, "b": [1.5, None], "c": ["ñ", {"d": None}]}
    assert err == ""


def torch_error(name: str) -> Exception:
    """Return an error like those of torch, which may not be installed."""
    made: type[RuntimeError] = type(name, (RuntimeError,), {})
    return made("boom")


def out_of_memory() -> MemoryError:
    """Return the error of NumPy."""
    with pytest.raises(MemoryError) as caught:
        np.empty((10**9, 10**8))
    return caught.value


EXPECTED = [
    (InputError("7 words, expected 8"), 2, "error: 7 words, expected 8"),
    (QwpError("odd"), 2, "error: odd"),
    (OSError(errno.ENOSPC, "No space left on device", "x.vec"), 2, "x.vec: No space left on device"),
    (OSError(errno.EIO, "Input/output error"), 2, "a file or a stream cannot be read or written: Input/output error"),
    (OSError("plain"), 2, "cannot be read or written: plain"),
    (PermissionError(errno.EACCES, "Permission denied", b"x\xff"), 2, "Permission denied"),
    (MemoryError("4 GiB"), 2, "--max-vocab"),
    (out_of_memory(), 2, "out of memory (Unable to allocate"),
    (torch_error("OutOfMemoryError"), 2, "out of memory (boom)"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: 5 bytes"), 2, "out of memory"),
    (RecursionError("too deep"), 2, "nested too deeply"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 2, "text that is not UTF-8"),
    (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), 2, "text that is not UTF-8"),
    (np.linalg.LinAlgError("SVD did not converge"), 2, "the computation failed (SVD did not converge)"),
    (torch_error("_LinAlgError"), 2, "the computation failed (boom)"),
    (OverflowError("too large"), 2, "of ordinary length"),
    (KeyboardInterrupt(), 130, "interrupted: unfinished files were removed"),
    (Terminated(15), 143, "terminated by SIGTERM: unfinished files were removed"),
    (Terminated(1), 129, "terminated by SIGHUP: unfinished files were removed"),
    (ZeroDivisionError("by zero"), 70, "internal error: ZeroDivisionError: by zero"),
    (AssertionError(), 70, "QWP_TRACEBACK=1"),
    (KeyError("x"), 70, "please report it"),
]


@pytest.mark.parametrize(("error", "code", "message"), EXPECTED, ids=[type(case[0]).__name__ for case in EXPECTED])
def test_errors_become_one_line_and_a_code(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @console.guarded
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    out, err = capsys.readouterr()
    assert caught.value.exit_code == code
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", [typer.Exit(7), typer.Abort(), typer.BadParameter("x"), SystemExit(4)])
def test_exits_of_typer_pass_unchanged(error: BaseException) -> None:
    @console.guarded
    def command() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        command()
    assert caught.value is error


def test_the_traceback_of_a_bug_can_be_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(console.TRACEBACK, "1")

    @console.guarded
    def command() -> None:
        raise ZeroDivisionError("\x1b[2J")

    with pytest.raises(typer.Exit):
        command()
    err = capsys.readouterr().err
    assert "Traceback (most recent call last):\n" in err
    assert "test_console.py" in err
    assert "\x1b" not in err


OBEYED = "\x1b\x07\x9b\u202e\u2066\u200f\r\t\x00\x7f\ud800\u2028"
ORDERS = "\x1b]0;title\x07\x9b1m\u202e\u2066\u200f\r\n\t\x00\x7f\ud800\u2028[red]"
SHOWN = r"\x1b]0;title\x07\x9b1m\u202e\u2066\u200f\r\n\t\x00\x7f\ud800\u2028[red]"


@pytest.mark.parametrize(
    "show",
    [
        console.say,
        terminal.note,
        console.warn,
        console.fail,
        lambda text: console.figures([("name", text)]),
        lambda text: console.figures([(text, "value")], title=text),
        lambda text: console.table(["word"], [[text]]),
        lambda text: console.table([text, "b"], [[("a", text), "c"]], title=text),
        lambda text: logging.getLogger("qwp.x").warning("%s", text),
        lambda text: console.explain(InputError(text)),
        lambda text: console.explain(OSError(5, "broken", text)),
        lambda text: console.explain(ZeroDivisionError(text)),
        lambda text: console.explain(typer.BadParameter(text)),
    ],
)
def test_control_characters_are_escaped(
    show: Callable[[str], object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest-xdist sends captured logs as UTF-8, which cannot encode half a surrogate pair.
    monkeypatch.setattr(logging.getLogger("qwp"), "propagate", False)
    with console.library_warnings():
        show(ORDERS)
    out, err = capsys.readouterr()
    assert SHOWN in out + err
    assert not set(OBEYED) & set(out + err)


def test_cells_of_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(["a", "b"], [[("x", "y"), ("1", "2–3")], ["z\nw", "4"]])
    lines = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()[3:-1]]
    assert lines == [["x", "1"], ["y", "2–3"], ["z\\nw", "4"]]


def test_escaped_json_has_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({ORDERS: [ORDERS, "ñ"]})
    out = capsys.readouterr().out
    assert json.loads(out) == {ORDERS: [ORDERS, "ñ"]}
    assert not set(OBEYED) & set(out)
    assert "ñ" in out


def test_errors_of_stderr_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    console.warn("nobody hears this")
    assert console.explain(InputError("nor this")) == 2


@pytest.mark.parametrize("show", [lambda: console.say("x"), lambda: console.print_json({"x": 1})])
def test_errors_of_stdout_are_reported(show: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        error: OSError = OSError(errno.ENOSPC, "No space left on device")

        def write(self, text: str) -> int:
            raise self.error

    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(OutputError, match=r"standard output cannot be written \(No space left on device\)"):
        show()
    monkeypatch.setattr(Broken, "error", BrokenPipeError())
    with pytest.raises(BrokenPipeError):
        show()
    assert console.explain(BrokenPipeError()) == 1


def test_library_warnings_are_shown_and_the_handler_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("qwp.something")
    before = list(logging.getLogger("qwp").handlers)

    @console.guarded
    def command() -> None:
        logger.warning("%d lines of [bold]x[/bold] skipped", 3)
        logger.info("not shown")

    command()
    assert capsys.readouterr().err == "warning: 3 lines of [bold]x[/bold] skipped\n"
    assert logging.getLogger("qwp").handlers == before


# --------------------------------------------------------------------------- errors as JSON


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (InputError("7 words, expected 8"), "bad input", 2),
        (MemoryError("4 GiB"), "bad input", 2),
        (KeyboardInterrupt(), "interrupted", 130),
        (Terminated(15), "interrupted", 143),
        (ZeroDivisionError("by zero"), "internal", 70),
        (typer.BadParameter("odd"), "bad input", 2),
    ],
)
def test_an_error_is_one_json_object_if_json_is_wanted(
    error: BaseException, kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.errors_as_json(True, "align"):
        assert console.explain(error) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert list(told) == ["command", "error"]
    assert told["command"] == "align"
    assert (told["error"]["kind"], told["error"]["exit_code"]) == (kind, code)
    assert err.removeprefix("error: ") == told["error"]["message"] + "\n"
    with console.errors_as_json(False, "align"):
        console.explain(error)
    console.explain(error)
    assert capsys.readouterr().out == ""


def test_stdout_never_has_a_second_object(capsys: pytest.CaptureFixture[str]) -> None:
    with console.errors_as_json(True, "align"):
        console.print_json({"verdict": "failed"})
        assert console.explain(InputError("afterwards")) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"verdict": "failed"}
    assert err == "error: afterwards\n"


def test_an_error_is_reported_on_stderr_if_stdout_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with console.errors_as_json(True, "align"):
        assert console.explain(InputError("odd")) == 2
    assert capsys.readouterr().err == "error: odd\n"


# --------------------------------------------------------------------------- lines that break between words


class Terminal(io.StringIO):
    """A stdout that is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stdout a terminal of 40 columns without colours, inside a test."""
    made = Terminal()
    monkeypatch.setattr(sys, "stdout", made)
    for name, value in (("COLUMNS", "40"), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    return made


TEXT = "These are words of ordinary length that need more than one line, and /a/path/without/any/blank/in/it/at/all.vec"


def test_lines_break_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal_screen(monkeypatch)
    console.say(TEXT)
    lines = screen.getvalue().splitlines()
    assert len(lines) > 2
    assert " ".join(line.strip() for line in lines) == TEXT
    assert all(len(line) <= 40 for line in lines if "/" not in line)


def test_text_to_copy_stays_on_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    screen = terminal_screen(monkeypatch)
    console.say(TEXT, whole=True)
    assert screen.getvalue() == TEXT + "\n"
    terminal.note(TEXT)  # not a terminal
    assert capsys.readouterr().err == TEXT + "\n"


def test_values_and_cells_break_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal_screen(monkeypatch)
    prose = "one two three four five six seven eight nine ten eleven twelve thirteen"
    console.figures([("name", prose)])
    console.table(["option", "meaning"], [["--coreset-size", prose], ["--x", "short"]])
    shown = re.sub(r"\x1b\[\d*m", "", screen.getvalue())  # bold and dim
    assert all(len(line) <= 40 for line in shown.splitlines())
    words = shown.replace("│", " ").split()
    assert words.count("thirteen") == 2
    assert "--coreset-size" in words
    for word in prose.split():
        assert words.count(word) == 2


def test_a_table_that_is_too_wide_loses_its_frame_before_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal_screen(monkeypatch)
    console.table(["a", "b", "c", "d"], [["12345678"] * 4, ["x"] * 4])
    shown = re.sub(r"\x1b\[\d*m", "", screen.getvalue())
    assert "│" not in shown
    assert shown.split().count("12345678") == 4
    assert all(len(line) <= 40 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("columns", "room", "widths"),
    [
        ([["ab", "abc"], ["x"]], 10, [None, None]),
        ([["one two"], ["a b c d e f g h"]], 12, [6, 6]),
        ([["one"], ["a b c d e f g h"]], 10, [3, 7]),
        ([["longword"], ["longword too"]], 10, [None, None]),
        ([["longword"], ["a b c d e"]], 12, [8, 4]),
    ],
)
def test_columns_of_prose_shrink_first(columns: list[list[str]], room: int, widths: list[int | None]) -> None:
    assert console._widths(columns, room) == widths


def test_markup_in_words_is_printed_literally(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(["word", "n"], [["[red]", "1"], ["[/]", "-2"]])
    console.figures([("[b]", "[/b]")])
    out = capsys.readouterr().out
    assert all(word in out for word in ("[red]", "[/]", "[b]", "[/b]"))
