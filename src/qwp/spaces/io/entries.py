"""Text files of one entry a line: dictionaries, pairs with scores, questions, sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.io.headers import BOM
from qwp.spaces.io.sniffing import old_line_ends, refuse_wide_text
from qwp.spaces.io.sources import Readable, Source, failures_explained, opened, read_up_to
from qwp.spaces.limits import bomb

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
