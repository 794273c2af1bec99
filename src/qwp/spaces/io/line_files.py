"""Text files with one entry per line: vocabularies, sidecar files of words, questions, sentences, pairs with scores.

A sidecar holds the words of a file that has vectors only. Rows without words are called "label:0", "label:1", ... The
label is the side of the alignment or the name of the file, so that such names of two sides never match by accident.
"""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from qwp.errors import InputError
from qwp.spaces.io.arguments import as_path
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.io.numbers import BOM
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sniffing import old_line_ends, refuse_wide_text
from qwp.spaces.io.sources import Readable, Source, explain_failures, open_source, read_up_to
from qwp.spaces.io.writing import Target
from qwp.spaces.limits import MAX_WORD_BYTES

logger = logging.getLogger(__name__)

_MAX_EXPLANATIONS = 20
_READ_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 20
_WORD_COLUMNS = ("word", "words", "token", "text", "label", "name")

# --------------------------------------------------------------------------- lines


@dataclass
class Skipped:
    """Lines of a file that could not be used: their number, and explanations of the first ones."""

    count: int = 0
    explanations: list[str] = field(default_factory=list)

    def add(self, number: int, problem: str) -> None:
        """Count a line and explain its problem."""
        self.count += 1
        if len(self.explanations) < _MAX_EXPLANATIONS:
            self.explanations.append(f"line {number}: {problem}")

    def warn(self, path: Path) -> None:
        """Log the number of skipped lines."""
        if self.count:
            logger.warning("%s: %d lines skipped, the first: %s", path, self.count, self.explanations[0])

    def in_words(self) -> str:
        """Return a summary for the message about a file without usable lines."""
        first = self.explanations[0] if self.explanations else "the file holds no text"
        return f"{self.count} lines skipped; {first}"


def numbered_lines(
    handle: Readable, path: Path, what: str, max_bytes: int = _MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number and bytes of each line without its newline, and whether it follows the last newline.

    what: the expected entry, for the message about a line of more than `max_bytes`.
    """
    rest = read_up_to(handle, _READ_BYTES).removeprefix(BOM)
    number = 0
    more = True
    while more:
        data = read_up_to(handle, _READ_BYTES)
        more = bool(data)
        *lines, rest = (rest + data).split(b"\n")
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - continues counting
            yield number, line, False
        if len(rest) > max_bytes:
            raise InputError(
                f"line {number + 1} of {path} is longer than {max_bytes} bytes, expected {what}: "
                "this is another kind of file, or its line breaks were lost"
            )
    yield number + 1, rest, True


def _lines_of_file(
    path: Path, what: str, entry: str, max_bytes: int, refuse: Callable[[Source], None]
) -> Iterator[tuple[int, bytes, bool]]:
    """Open a file, plain or gzip-compressed, and yield its numbered lines. what: its entries; entry: one of them."""
    with open_source(path) as source, explain_failures(path, what):
        refuse(source)
        with source.plain() as handle:
            for number, line, last in numbered_lines(handle, path, entry, max_bytes):
                if source.max_rows is not None and number > source.max_rows:
                    raise source.bomb()
                yield number, line, last


def text_lines(path: Path, what: str, skipped: Skipped) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line of a UTF-8 file, plain or gzip-compressed.

    A line that is not UTF-8 is added to `skipped` and yielded as an empty line. what: the expected entries.
    """
    for number, raw, last in _lines_of_file(path, what, what, _MAX_LINE_BYTES, refuse_other_text):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            skipped.add(number, "is not UTF-8 text")
            line = ""
        if line or not last:
            yield number, line.removesuffix("\r")


def split_blanks(line: str) -> list[str]:
    """Split a line at blanks and tabs."""
    # Not str.split(), which would also split at U+00A0 and other characters of words.
    return [field for field in line.replace("\t", " ").split(" ") if field]


def refuse_other_text(source: Source) -> None:
    """Raise an InputError for text in UTF-16 or UTF-32, or with line ends of the old Macintosh."""
    refuse_wide_text(source)
    content = source.head.strip(b" \t\r\n")
    if b"\r" in content and b"\n" not in content:
        raise old_line_ends(source.path)


# --------------------------------------------------------------------------- vocabularies

Vocabulary: TypeAlias = "str | PathLike[str] | Iterable[str]"
"""A file with one word per line, or the words themselves."""


def as_vocabulary(vocab: Vocabulary) -> frozenset[str]:
    """Return the words of a vocabulary, at least one."""
    if isinstance(vocab, (str, PathLike)):
        path = as_path(vocab)
        words = frozenset(_vocabulary_words(path))
        what = str(path)
    else:
        words, what = frozenset(_checked_words(vocab)), "the vocabulary"
    if not words:
        raise InputError(f"{what} holds no word, expected one on each line")
    return words


def _checked_words(vocab: object) -> Iterator[str]:
    if not isinstance(vocab, Iterable):
        raise InputError(
            f"received {reprlib.repr(vocab)} ({type(vocab).__name__}) as vocab, expected a file or a list of words"
        )
    for word in vocab:
        if not isinstance(word, str):
            raise InputError(f"received {reprlib.repr(word)} ({type(word).__name__}) in vocab, expected words")
        yield word


def _vocabulary_words(path: Path) -> Iterator[str]:
    """Yield the lines of a file that are not blank, stripped."""
    for number, line, _ in _lines_of_file(path, "words", "one word per line", MAX_WORD_BYTES, refuse_wide_text):
        try:
            word = line.decode("utf-8").strip(" \t\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"line {number} of {path} has the byte 0x{line[error.start]:02x}, expected a word in UTF-8: convert it"
            ) from None
        if word:
            yield word


# --------------------------------------------------------------------------- sidecar files of words


def words_sidecar(path: Path) -> Path:
    """Return the path of the word file that belongs to a file of vectors."""
    return path.with_suffix(".words.txt")


class RowNames:
    """Names of the rows of a file without words, taken in order: from a word file, or numbered.

    sidecar: the word file to use if it exists and the user named none.
    """

    def __init__(self, reading: Reading, source: Source, sidecar: Path | None = None) -> None:
        self._reading = reading
        self._taken = 0
        self.path = reading.words_path
        if self.path is None and sidecar is not None and not source.spooled and sidecar.is_file():
            self.path = sidecar
        reading.unnamed = self.path is None
        self._words = None if self.path is None else _sidecar_words(self.path)

    def __enter__(self) -> RowNames:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the word file, which may not have been read to its end."""
        if self._words is not None:
            self._words.close()

    def take(self, count: int) -> list[str | None]:
        """Return the next names; None for a word that is not UTF-8."""
        first, self._taken = self._taken, self._taken + count
        if self._words is None:
            return [f"{self._reading.label}:{row}" for row in range(first, self._taken)]
        words = list(islice(self._words, count))
        if len(words) < count:
            raise self._wrong_count(f"{first + len(words):,}")
        return words

    def check_end(self) -> None:
        """Raise an InputError if the word file holds further words."""
        if self._words is not None and next(self._words, "") != "":
            raise self._wrong_count(f"more than {self._taken:,}")

    def _wrong_count(self, found: str) -> InputError:
        return InputError(
            f"{self.path} holds {found} words, {self._reading.path} another number of vectors; expected one word per "
            "line for each vector: name the file that belongs to it"
        )


def _sidecar_words(path: Path) -> Generator[str | None, None, None]:
    """Yield the words of a file: its lines, or one column of a `.tsv` file with a header."""
    with closing(_sidecar_lines(path)) as lines:
        first = next(lines, "")
        column = _word_column(first) if path.suffix == ".tsv" else None
        if column is None:
            yield first
        for line in lines:
            if column is None or line is None:
                yield line
            else:
                cells = line.split("\t")
                yield cells[column] if column < len(cells) else ""


def _word_column(header: str | None) -> int | None:
    """Return the column of the words, by the header; None for a file of one column, which has no header."""
    columns = [] if header is None else [name.strip().lower() for name in header.split("\t")]
    return None if len(columns) < 2 else next((columns.index(name) for name in _WORD_COLUMNS if name in columns), 0)


def _sidecar_lines(path: Path) -> Generator[str | None, None, None]:
    """Yield the lines of a file; None for one that is not UTF-8. The last may lack its newline."""
    for _, line, last in _lines_of_file(path, "words", "one word per line", MAX_WORD_BYTES, refuse_wide_text):
        if last and not line:
            return
        try:
            yield line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            yield None


@contextmanager
def sidecar_writer(target: Target, path: Path) -> Iterator[Callable[[list[str]], None]]:
    """Yield a function that writes words to a sidecar; it does nothing if the target leaves words out."""
    if not target.words:
        if path.exists():
            raise InputError(
                f"{path} exists and would be taken for the words of {target.path}, which has none: remove it, or "
                "choose another name"
            )
        yield lambda words: None
        return
    check_folder(path)
    if path.exists() and not target.path.exists():
        raise InputError(f"{path} exists and would be overwritten: choose another name or remove it")
    with atomic_write(path) as file:

        def put(words: list[str]) -> None:
            if file.tell() == 0 and words[0].startswith("\ufeff"):
                file.write(BOM)  # readers remove the first byte-order mark
            for word in words:
                if "\n" in word or word.endswith("\r"):
                    raise InputError(f"the word {word!r} cannot be on a line of {path.name}: remove it")
                file.write(word.encode() + b"\n")

        yield put
