"""Text for terminals: control characters made visible, wrapped lines, and writes that never fail."""

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
    """Redirect a broken stream to the null device, so that flushing its buffer at exit does not raise again."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # not a file, so Python buffers nothing for it
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


class _SafeStream:
    """A stream whose write errors are ignored, so that a run continues without its messages."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; silence the stream on an error."""
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        """Flush; silence the stream on an error."""
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def safe_stderr() -> IO[str]:
    """Return standard error as a stream whose write errors are ignored."""
    # While a progress bar is shown, rich replaces sys.stderr by a proxy that would write to this stream again.
    return cast("IO[str]", _SafeStream(getattr(sys.stderr, "rich_proxied_file", sys.stderr)))


# Control characters (C0, delete, C1), bidirectional controls, line and paragraph separators, invisible characters,
# halves of surrogate pairs, noncharacters that XML forbids. Joiners (U+200C, U+200D) are allowed, because the spelling
# of words needs them.
_HIDDEN = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_IN_A_LINE = re.compile(rf"[\n{_HIDDEN}]")
_IN_LINES = re.compile(f"[{_HIDDEN}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text with control and invisible characters as escapes such as \x1b, \u202e or \n.

    The result is for reading, not for parsing: backslashes of the text itself are not escaped. lines: keep line feeds.
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
    r"""Return equivalent JSON with control and invisible characters in strings as \uXXXX."""
    # Line feeds are between values, because json.dumps escapes those in strings.
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
    """A console that raises BrokenPipeError to its caller."""

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would end the process, whichever stream it was."""
        raise  # called while the BrokenPipeError is handled


def stderr() -> Console:
    """Return the console of standard error, for progress, warnings and errors. Write errors are ignored."""
    # In a notebook rich would write every line as HTML output, whatever file it was given.
    return Console(file=safe_stderr(), highlight=False, force_jupyter=False)


def note(text: str, style: str = "", *, on: rich.console.Console | None = None) -> None:
    """Print a line on standard error. on: console of a progress bar that is shown there."""
    line(on or stderr(), text, style)


def line(console: rich.console.Console, text: str, style: str = "", *, whole: bool = False) -> None:
    """Print a line. On a terminal it wraps between words, never within a word.

    whole: do not wrap, so that the line can be copied.
    """
    shown = visible(text)
    if not whole and console.is_terminal:
        shown = "\n".join(textwrap.wrap(shown, console.width, break_long_words=False, break_on_hyphens=False))
    console.print(Text(shown, style=style), soft_wrap=True)


def seconds(value: float) -> str:
    """Format a duration in seconds, or minutes and seconds."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {value % 60:.0f} s"
