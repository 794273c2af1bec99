"""Lines of text files; the longer tests of their limits are those of lexicons."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.spaces.io.entries import Skipped, text_lines


def read(path: Path, content: bytes) -> tuple[list[tuple[int, str]], Skipped]:
    path.write_bytes(content)
    skipped = Skipped()
    return list(text_lines(path, "a word", skipped)), skipped


def test_lines_with_their_numbers(tmp_path: Path) -> None:
    expected = [(1, "a b"), (2, ""), (3, "\tc ")]
    for content in (
        b"a b\n\n\tc \n",
        b"\xef\xbb\xbfa b\r\n\r\n\tc \r\n",
        b"a b\n\n\tc ",
        gzip.compress(b"a b\n\n\tc ", mtime=0),
    ):
        assert read(tmp_path / "x", content)[0] == expected


def test_lines_that_are_no_text_are_counted_and_keep_their_place(tmp_path: Path) -> None:
    lines, skipped = read(tmp_path / "x", b"a\n\xff\xfe\xfd\nb\n")
    assert lines == [(1, "a"), (2, ""), (3, "b")]
    assert (skipped.count, skipped.explanations) == (1, ["line 2: is not UTF-8 text"])
    assert skipped.in_words() == "1 lines skipped; line 2: is not UTF-8 text"


def test_explanations_do_not_pile_up() -> None:
    skipped = Skipped()
    for number in range(100):
        skipped.add(number, "is odd")
    assert (skipped.count, len(skipped.explanations)) == (100, 20)
    assert Skipped().in_words() == "0 lines skipped; the file holds no text"


def test_endless_lines_and_other_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1 of .* is longer than 1048576 bytes, expected a word"):
        read(tmp_path / "x", b"x" * 3_000_000)
    with pytest.raises(InputError, match="UTF-16"):
        read(tmp_path / "x", "a\nb\n".encode("utf-16"))
    with pytest.raises(InputError, match="does not exist"):
        list(text_lines(tmp_path / "none", "a word", Skipped()))
