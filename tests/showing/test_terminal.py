"""Terminal text and standard error."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from types import SimpleNamespace

import pytest
import rich.console
from hypothesis import given
from hypothesis import strategies as st

from qwp.showing import terminal
from qwp.showing.terminal import finite, seconds, visible, visible_json


def test_lines_are_escaped_and_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[red]a\x1b[2J" + " word" * 100
    terminal.note(text, "yellow")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == text.replace("\x1b", r"\x1b") + "\n"


def test_a_notebook_gets_plain_lines_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    assert rich.console.Console().is_jupyter, "rich would take it for a notebook"
    assert not terminal.stderr().is_terminal
    terminal.note("here")
    assert capsys.readouterr().err == "here\n"


def test_a_broken_pipe_is_raised_to_the_caller() -> None:
    class Broken:
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        terminal.Console(file=Broken()).print("x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "shown"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (61.0, "1 min 1 s")])
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Any character, including lone surrogates, with a preference for dangerous ones.
texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b\x07\x9b\x9d\x7f\n\r\t\u2028" + BIDI))


def is_obeyed(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in BIDI


@given(texts)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not any(is_obeyed(character) for character in visible(text))
    assert not any(is_obeyed(character) for character in visible(text, lines=True) if character != "\n")
    visible(text).encode()  # no half of a surrogate pair either


@given(texts)
def test_lines_keep_their_breaks_and_nothing_else_changes(text: str) -> None:
    assert visible(text, lines=True).split("\n") == [visible(line) for line in text.split("\n")]


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_ordinary_text_stays(text: str) -> None:
    assert visible(text) == text


def test_examples() -> None:
    cases: list[tuple[str, str]] = [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b]52;c;bWluZQ==\x1b\\", r"\x1b]52;c;bWluZQ==\x1b" + "\\"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J\x9d0;x\x9c", r"\x9b2J\x9d0;x\x9c"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\udcff", r"\udcff"),
        ("\u2028\ufeff\U000e0041", r"\u2028\ufeff\U000e0041"),
        ("می‌خواهم क्‍ष", "می‌خواهم क्‍ष"),
        ("niño 日本語 👩‍👩‍👧 C:\\x1b", "niño 日本語 👩‍👩‍👧 C:\\x1b"),
    ]
    for text, shown in cases:
        assert visible(text) == shown


@given(st.recursive(texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5), st.booleans())
def test_visible_json_is_equivalent_and_harmless(value: object, only_ascii: bool) -> None:
    text = visible_json(json.dumps(value, ensure_ascii=only_ascii, indent=1))
    assert json.loads(text) == json.loads(json.dumps(value))
    assert not any(is_obeyed(character) for character in text if character != "\n")


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, _: str) -> int:
        raise OSError("full")

    def flush(self) -> None:
        raise OSError("full")


def test_writing_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    stream = terminal.safe_stderr()
    assert stream.write("abc") == 3
    stream.flush()


def test_working_streams_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    terminal.safe_stderr().write("abc")
    assert file.getvalue() == "abc"
    # rich replaces sys.stderr by a proxy while a bar is shown; the original stream is used.
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(rich_proxied_file=file))
    terminal.safe_stderr().write("def")
    assert file.getvalue() == "abcdef"
    assert not terminal.safe_stderr().isatty()


def test_silence_ignores_objects_that_are_not_files() -> None:
    terminal.silence(object())
    terminal.silence(io.StringIO())


def test_finite_replaces_nan_and_infinity_by_none() -> None:
    assert finite({"a": [float("nan"), 1.5, (float("inf"), "x")], "b": True}) == {
        "a": [None, 1.5, [None, "x"]],
        "b": True,
    }
