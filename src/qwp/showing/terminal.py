"""Lines for people, broken between words, never obeyed by the terminal."""

from __future__ import annotations

import math
import os
import re
import sys
import textwrap
from collections.abc import Mapping
from typing import IO, Any, cast

import rich.console
from rich.text import Text


def silence(stream: Any) -> None:
    """Let a stream that cannot be written lead nowhere: what Python still holds for it must not raise again at exit."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # not a file: nothing is held back for it
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _Unfailing:
    """A stream whose failures stop nothing: where nobody can be told, the work still goes on."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or give up on the stream."""
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        """Flush, or give up on the stream."""
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def safe_stderr() -> IO[str]:
    """Standard error, where writing never fails."""
    # While a bar is shown rich stands in for the stream; asking it to write would come back here.
    return cast("IO[str]", _Unfailing(getattr(sys.stderr, "rich_proxied_file", sys.stderr)))


# Control characters (C0, delete, C1), bidirectional controls, separators of lines and paragraphs, characters that
# leave no trace, halves of surrogate pairs, noncharacters that XML forbids. Joiners (U+200C, U+200D) are not among
# them: words are spelt with them.
_HIDDEN = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_IN_A_LINE = re.compile(rf"[\n{_HIDDEN}]")
_IN_LINES = re.compile(f"[{_HIDDEN}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every character that is obeyed rather than shown in the form \x1b, \u202e or \n.

    lines: keep line feeds. The result is for eyes: a backslash of the text itself stays as it is.
    """
    return (_IN_LINES if lines else _IN_A_LINE).sub(_escape, text)


# Types of values that may be, or hold, numbers that are not finite.
_NOT_FINITE = (float, Mapping, list, tuple)


def finite(value: Any) -> Any:
    """Return a JSON value with None in place of NaN and infinite numbers, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        # Long lists of whole numbers and words need no new list.
        return [finite(inner) for inner in value] if any(isinstance(inner, _NOT_FINITE) for inner in value) else value
    return value


def visible_json(text: str) -> str:
    r"""JSON with the same characters inside of strings as \uXXXX: it still means exactly the same."""
    # Line feeds in it are those between the values: json.dumps has escaped all others.
    return _IN_LINES.sub(_escape_json, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class Console(rich.console.Console):
    """rich's, which leaves a pipe without a reader to whoever wrote."""

    def on_broken_pipe(self) -> None:
        """Not as in rich, which would end the process here, whichever stream it was."""
        raise  # called while the BrokenPipeError is handled


def stderr() -> Console:
    """Where progress, warnings and errors go. Writing there never fails."""
    # In a notebook rich would put every line into a piece of HTML of its own, whatever file it was told.
    return Console(file=safe_stderr(), highlight=False, force_jupyter=False)


def note(text: str, style: str = "", *, on: rich.console.Console | None = None) -> None:
    """One line on stderr. on: the console of a bar that is shown there."""
    line(on or stderr(), text, style)


def line(console: rich.console.Console, text: str, style: str = "", *, whole: bool = False) -> None:
    """One line, which a terminal shows broken between words; a word that is too long for it stays in one piece.

    whole: not broken, so that it can be copied.
    """
    shown = visible(text)
    if not whole and console.is_terminal:
        shown = "\n".join(textwrap.wrap(shown, console.width, break_long_words=False, break_on_hyphens=False))
    console.print(Text(shown, style=style), soft_wrap=True)


def seconds(value: float) -> str:
    """Seconds, or minutes and seconds."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {value % 60:.0f} s"
