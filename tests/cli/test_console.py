from __future__ import annotations

import errno
import json
import logging
import math
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.cli import console
from qwp.errors import InputError, QwpError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=3), json_values, max_size=3))
def test_json_never_holds_what_json_lacks(values: dict[str, Any]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(json.dumps(console._finite(values)), parse_constant=refuse)


def test_json_is_one_object_with_null_for_nan(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": math.nan, "b": [1.5, math.inf], "c": ("ñ", {"d": -math.inf})})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": None, "b": [1.5, None], "c": ["ñ", {"d": None}]}
    assert err == ""


@pytest.mark.parametrize(("value", "shown"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (61.0, "1 min 1 s")])
def test_seconds(value: float, shown: str) -> None:
    assert console.seconds(value) == shown


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("7 words, expected 8"), 2, "error: 7 words, expected 8"),
        (QwpError("odd"), 2, "error: odd"),
        (OSError(errno.ENOSPC, "No space left on device", "x.vec"), 2, "x.vec: No space left on device"),
        (OSError("plain"), 2, "error: plain"),
        (MemoryError("4 GiB"), 2, "--max-vocab"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_expected_errors_become_one_line_and_a_code(
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


def test_a_bug_is_not_hidden() -> None:
    @console.guarded
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        command()


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


def test_words_that_look_like_markup_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(["word", "n"], [["[red]", "1"], ["[/]", "-2"]])
    console.figures([("[b]", "[/b]")])
    out = capsys.readouterr().out
    assert all(word in out for word in ("[red]", "[/]", "[b]", "[/b]"))
