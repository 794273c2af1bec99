"""Words of vectors that have none: in a file beside them, a word a line, or numbers of rows.

Rows that nobody named are called "label:0", "label:1", ... The label is the side that they are aligned as, or the name
of their file: names of two sides never match by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.io.files import check_folder, replacing
from qwp.spaces.io.numbers import BOM
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sniffing import refuse_wide_text
from qwp.spaces.io.sources import Source, failures_explained, opened, read_up_to
from qwp.spaces.io.writing import Target
from qwp.spaces.limits import MAX_WORD_BYTES, bomb

_READ_BYTES = 1 << 20
_WORD_COLUMNS = ("word", "words", "token", "text", "label", "name")


def words_file(path: Path) -> Path:
    """Where the words of ``path`` are, if they are beside it."""
    return path.with_suffix(".words.txt")


class Names:
    """The names of the rows of a file, taken in order."""

    def __init__(self, reading: Reading, source: Source, beside: Path | None = None) -> None:
        """beside: where words are looked for that the user has not named."""
        self._reading = reading
        self._taken = 0
        self.path = reading.words_path
        if self.path is None and beside is not None and not source.spooled and beside.is_file():
            self.path = beside
        reading.unnamed = self.path is None
        self._lines = None if self.path is None else _words(self.path)

    def __enter__(self) -> Names:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file of words, which may not have been read to its end."""
        if self._lines is not None:
            self._lines.close()

    def take(self, count: int) -> list[str | None]:
        """The next names; None for one that is not UTF-8."""
        first, self._taken = self._taken, self._taken + count
        if self._lines is None:
            return [f"{self._reading.label}:{row}" for row in range(first, self._taken)]
        words = list(islice(self._lines, count))
        if len(words) < count:
            raise self._other_number(f"{first + len(words):,}")
        return words

    def check_end(self) -> None:
        """Refuse words that are left over."""
        if self._lines is not None and next(self._lines, "") != "":
            raise self._other_number(f"more than {self._taken:,}")

    def _other_number(self, held: str) -> InputError:
        return InputError(
            f"{self.path} holds {held} words, {self._reading.path} another number of vectors; expected a word a line "
            "for each vector: name the file that belongs to it"
        )


def _words(path: Path) -> Generator[str | None, None, None]:
    """The words of a file: its lines, or where it is a table (.tsv, columns with names) one column of it."""
    with closing(_lines(path)) as lines:
        first = next(lines, "")
        at = _word_column(first) if path.suffix == ".tsv" else None
        if at is None:
            yield first
        for line in lines:
            if at is None or line is None:
                yield line
            else:
                cells = line.split("\t")
                yield cells[at] if at < len(cells) else ""


def _word_column(header: str | None) -> int | None:
    """Which column holds the words, by the names of the columns; None where there is but one, which has no name."""
    columns = [] if header is None else [name.strip().lower() for name in header.split("\t")]
    return None if len(columns) < 2 else next((columns.index(name) for name in _WORD_COLUMNS if name in columns), 0)


def _lines(path: Path) -> Generator[str | None, None, None]:
    """The lines of a file without their ends; None for one that is not UTF-8. The last may lack its end."""
    with opened(path) as source, failures_explained(path, "words"):
        refuse_wide_text(source)
        number = 0
        with source.plain() as handle:
            rest = b""
            while data := read_up_to(handle, _READ_BYTES):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    yield _decoded(line, number)
                    number += 1
                if len(rest) > MAX_WORD_BYTES:
                    raise InputError(
                        f"line {number + 1} of {path} has more than {MAX_WORD_BYTES} bytes, expected one word a line"
                    )
                if source.max_rows is not None and number > source.max_rows:
                    raise bomb(path, source.size)
            if rest:
                yield _decoded(rest, number)


def _decoded(line: bytes, number: int) -> str | None:
    line = line.removesuffix(b"\r")
    try:
        return (line.removeprefix(BOM) if number == 0 else line).decode("utf-8")
    except UnicodeDecodeError:
        return None


@contextmanager
def words_written(target: Target, path: Path) -> Iterator[Callable[[list[str]], None]]:
    """What takes words for a file beside the vectors, and does nothing where they are to be left out."""
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
    with replacing(path) as file:

        def put(words: list[str]) -> None:
            if file.tell() == 0 and words[0].startswith("\ufeff"):
                file.write(BOM)  # which readers take away
            for word in words:
                if "\n" in word or word.endswith("\r"):
                    raise InputError(f"the word {word!r} cannot be on a line of {path.name}: remove it")
                file.write(word.encode() + b"\n")

        yield put
