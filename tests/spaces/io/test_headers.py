"""The line "count dimension"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.spaces.io.headers import HEADER, header_line


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_what_is_written_is_recognised(count: int, dim: int) -> None:
    match = HEADER.fullmatch(header_line(count, dim))
    assert match is not None
    assert (int(match[1]), int(match[2])) == (count, dim)


@pytest.mark.parametrize("line", [b"2 3\n", b"2\t3\r\n", b"  2  3   \n", b"2 3"])
def test_blanks_and_line_ends_do_not_matter(line: bytes) -> None:
    match = HEADER.match(line)
    assert match is not None
    assert match.end() == len(line)


@pytest.mark.parametrize("line", [b"2\n", b"2 3 4\n", b"-2 3\n", b"2 3.0\n", b"a 3\n", b"", b"1" * 19 + b" 3\n"])
def test_other_lines_are_no_headers(line: bytes) -> None:
    assert HEADER.match(line) is None
