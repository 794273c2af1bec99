"""Text files of one entry a line: dictionaries, pairs with scores, questions, sentences."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from qwp.errors import InputError
from qwp.spaces.io.arguments import as_path
from qwp.spaces.io.numbers import BOM
from qwp.spaces.io.sniffing import old_line_ends, refuse_wide_text
from qwp.spaces.io.sources import Readable, Source, failures_explained, opened, read_up_to
from qwp.spaces.limits import MAX_WORD_BYTES, bomb

logger = logging.getLogger(__name__)

_MAX_EXPLANATIONS = 20
_READ_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 20


@dataclass
class Skipped:
    """Lines of a file that could not be used: how many, and why the first of them could not."""

    count: int = 0
    explanations: list[str] = field(default_factory=list)

    def add(self, number: int, found: str) -> None:
        """One more line, and what is wrong with it."""
        self.count += 1
        if len(self.explanations) < _MAX_EXPLANATIONS:
            self.explanations.append(f"line {number}: {found}")

    def warn(self, path: Path) -> None:
        """Log it, if there are any."""
        if self.count:
            logger.warning("%s: %d lines skipped, the first: %s", path, self.count, self.explanations[0])

    def in_words(self) -> str:
        """For messages about files of which nothing could be used."""
        first = self.explanations[0] if self.explanations else "the file holds no text"
        return f"{self.count} lines skipped; {first}"


def text_lines(path: Path, what: str, skipped: Skipped) -> Iterator[tuple[int, str]]:
    """Number and text of every line of a UTF-8 file, gzipped or not.

    what: the entries that are expected, for messages. A line that is no text is counted, and comes as an empty one.
    """
    with opened(path) as source, failures_explained(path, what):
        refuse_other_text(source)
        with source.plain() as handle:
            for number, raw, last in numbered_lines(handle, path, what):
                if source.max_rows is not None and number > source.max_rows:
                    raise bomb(path, source.size)
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError:
                    skipped.add(number, "is not UTF-8 text")
                    line = ""
                if line or not last:
                    yield number, line.removesuffix("\r")


def numbered_lines(handle: Readable, path: Path, what: str) -> Iterator[tuple[int, bytes, bool]]:
    """Number and bytes of each line, without its newline, and whether it is what follows the last newline."""
    rest = read_up_to(handle, _READ_BYTES).removeprefix(BOM)
    number = 0
    more = True
    while more:
        data = read_up_to(handle, _READ_BYTES)
        more = bool(data)
        *lines, rest = (rest + data).split(b"\n")
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - it goes on counting
            yield number, line, False
        if len(rest) > _MAX_LINE_BYTES:
            raise InputError(
                f"line {number + 1} of {path} is longer than {_MAX_LINE_BYTES} bytes, expected {what}: "
                "this is another kind of file, or its line breaks were lost"
            )
    yield number + 1, rest, True


def refuse_other_text(source: Source) -> None:
    """Raise an InputError for text in UTF-16 or UTF-32, and for lines that end as they did on the old Macintosh."""
    refuse_wide_text(source)
    content = source.head.strip(b" \t\r\n")
    if b"\r" in content and b"\n" not in content:
        raise old_line_ends(source.path)


Vocabulary: TypeAlias = "str | PathLike[str] | Iterable[str]"
"""A file with one word a line, or the words themselves."""

_VOCABULARY_BYTES = 1 << 20


def as_vocabulary(vocab: Vocabulary) -> frozenset[str]:
    """The words of a vocabulary, at least one."""
    if isinstance(vocab, (str, PathLike)):
        path = as_path(vocab)
        words = frozenset(_words_of_file(path))
        what = str(path)
    else:
        words, what = frozenset(_checked(vocab)), "the vocabulary"
    if not words:
        raise InputError(f"{what} holds no word, expected one on each line")
    return words


def _checked(vocab: object) -> Iterator[str]:
    if not isinstance(vocab, Iterable):
        raise InputError(
            f"received {reprlib.repr(vocab)} ({type(vocab).__name__}) as vocab, expected a file or a list of words"
        )
    for word in vocab:
        if not isinstance(word, str):
            raise InputError(f"received {reprlib.repr(word)} ({type(word).__name__}) in vocab, expected words")
        yield word


def _words_of_file(path: Path) -> Iterator[str]:
    """The lines of a file that hold something, without blanks at their ends."""
    with opened(path) as source, failures_explained(path, "words"):
        refuse_wide_text(source)
        with source.plain() as handle:
            for number, line in enumerate(_lines(handle, path), start=1):
                word = _decoded(line, number, path)
                if word:
                    yield word
                if source.max_rows is not None and number > source.max_rows:
                    raise bomb(path, source.size)


def _decoded(line: bytes, number: int, path: Path) -> str:
    if number == 1:
        line = line.removeprefix(BOM)
    try:
        return line.decode("utf-8").strip(" \t\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"line {number} of {path} has the byte 0x{line[error.start]:02x}, expected a word in UTF-8: convert it"
        ) from None


def _lines(handle: Readable, path: Path) -> Iterator[bytes]:
    """Lines without their ends, none longer than a word can be."""
    rest = b""
    while data := read_up_to(handle, _VOCABULARY_BYTES):
        *whole, rest = (rest + data).split(b"\n")
        yield from whole
        if len(rest) > MAX_WORD_BYTES:
            raise InputError(
                f"{path} has a line of more than {MAX_WORD_BYTES} bytes, expected one word a line: it is no vocabulary"
            )
    yield rest
