"""The line "count dimension" that begins text and word2vec's binary files."""

from __future__ import annotations

import re

HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?(?:\n|$)")
BOM = b"\xef\xbb\xbf"


def header_line(count: int, dim: int) -> bytes:
    """The line that says how many words and numbers follow."""
    return b"%d %d\n" % (count, dim)
