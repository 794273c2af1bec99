"""Text of strangers made harmless for a terminal.

Words, paths and messages about them come from files that anyone may have made. Printed as they are, some characters
would be obeyed instead of shown: a terminal takes its title, its clipboard or its screen from an escape sequence, and
a bidirectional control turns the text around it. Everything that is printed goes through `visible` or `visible_json`,
but TSV in a pipe, where the next program wants the very words.
"""

from __future__ import annotations

import html
import re

# Control characters (C0, delete, C1), bidirectional controls, separators of lines and paragraphs, characters that
# leave no trace, halves of surrogate pairs. Joiners (U+200C, U+200D) are not among them: words are spelt with them.
_HIDDEN = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_IN_A_LINE = re.compile(rf"[\n{_HIDDEN}]")
_IN_LINES = re.compile(f"[{_HIDDEN}]")
# What XML 1.0 forbids, and lone surrogates, which UTF-8 cannot hold: both occur in damaged vector files.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every character that is obeyed rather than shown in the form \x1b, \u202e or \n.

    lines: keep line feeds. The result is for eyes: a backslash of the text itself stays as it is.
    """
    return (_IN_LINES if lines else _IN_A_LINE).sub(_escape, text)


def visible_json(text: str) -> str:
    r"""JSON with the same characters inside of strings as \uXXXX: it still means exactly the same."""
    # Line feeds in it are those between the values: json.dumps has escaped all others.
    return _IN_LINES.sub(_escape_json, text)


def in_markup(value: object) -> str:
    """A value as text that is safe in an element and in a quoted attribute of HTML or SVG."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", str(value)), quote=True)


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
