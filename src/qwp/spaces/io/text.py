"""Vectors as text, one word a line.

"text" has a first line "count dimension" (fastText, word2vec), "glove" has none.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.lines import Block, parse_block, trailing_numbers
from qwp.spaces.io.numbers import BOM, HEADER, format_rows, header_line, is_number_like
from qwp.spaces.io.reading import Reading, Rows, batch_rows
from qwp.spaces.io.sniffing import refuse_other_text
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target, row_writer
from qwp.spaces.limits import MAX_DIM, MAX_LINE_BYTES

# Large enough for threads to rarely wait for each other, small enough for a cache.
_BLOCK_BYTES = 1 << 19
_BLANK = b" \t\r\n"
_SAMPLE_LINES = 10
_FORMAT_NUMBERS = 1 << 14
_LAST_BYTES = 64  # more than a number has
_DECIMAL = re.compile(rb"[-+]?[0-9]+(?:\.([0-9]*))?")
_DELICATE = re.compile("[ \t\n]")
_THREADS = min(4, os.cpu_count() or 1)


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The lines of a "text" or "glove" file, in order."""
    refuse_other_text(source)
    with source.plain() as plain:
        handle = _Ending(plain)
        blocks = line_blocks(handle, reading.path)
        start = next(blocks, b"").removeprefix(BOM)
        claimed_dim = None
        line = 1
        if reading.format == "text":
            start, reading.header_count, claimed_dim = _cut_header(start, reading.path)
            start = start or next(blocks, b"")
            line = 2
        sample = start.split(b"\n", _SAMPLE_LINES)[:-1][:_SAMPLE_LINES]
        dim = _dimension(sample, claimed_dim, reading)
        reading.expected_rows = _expected_rows(sample, dim, reading, source)
        with closing(_parsed_blocks(_chain(start, blocks), dim, reading)) as parsed:
            for block, is_last in parsed:
                rows = _rows(block, line)
                line += block.n_lines
                cut = is_last and handle.is_cut and line > 2
                yield _without_cut_number(rows, line - 1, handle.last, sample) if cut else rows
                if cut:
                    reading.warn(
                        f"line {line - 1}, the last, has no end: if the file was cut there, digits of its last number "
                        "are missing"
                    )


class _Ending:
    """Content that remembers its last bytes."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self.last = b""

    def read(self, size: int, /) -> bytes:
        data = self._content.read(size)
        self.last = (self.last + data[-_LAST_BYTES:])[-_LAST_BYTES:]
        return data

    @property
    def is_cut(self) -> bool:
        """Whether the last line has no end."""
        return b"\n" not in self.last[len(self.last.rstrip(_BLANK)) :]


def _without_cut_number(rows: Rows, line: int, ending: bytes, sample: list[bytes]) -> Rows:
    """The last rows of a file; the last of them is damaged if its last number was cut.

    A line without an end is what remains of a longer one, or the end of a file whose writer ends no line there. Where
    all numbers have as many digits after the point, the last number decides; elsewhere nothing can.

    Args:
        rows: those of the last block.
        line: the number of the last line.
        ending: the last bytes of the file.
        sample: the first lines.
    """
    token = ending.split()[-1]
    if rows.bad and rows.bad[-1][1] == f"line {line}":
        return rows
    digits = {_digits(number) for each in sample for number in each.split()[1:]}
    if len(digits) == 1 and None not in digits and _digits(token) != digits.copy().pop():
        found = (
            f"has no end and its last number has fewer digits than the others, expected {digits.pop()} after the point"
        )
        position = len(rows.words) - 1 if rows.positions is None else rows.positions[-1]
        positions = None if rows.positions is None else rows.positions[:-1]
        bad = [*rows.bad, (position, f"line {line}", f"{found}: the file was cut there")]
        return Rows(rows.words[:-1], rows.vectors[:-1], positions, bad)
    return rows


def _digits(number: bytes) -> int | None:
    """How many digits a number has after its point; None for one that is written in another way."""
    match = _DECIMAL.fullmatch(number)
    return None if match is None else len(match[1] or b"")


def _rows(block: Block, first: int) -> Rows:
    """Sound and bad lines of a block whose first line has this number."""
    if not block.bad:
        return Rows(block.words, block.vectors)
    damaged = {position for position, _ in block.bad}
    positions = [position for position in range(block.n_lines) if position not in damaged]
    complaints = [(position, f"line {first + position}", found) for position, found in block.bad]
    return Rows(block.words, block.vectors, positions, complaints)


def line_blocks(handle: Readable, path: Path) -> Iterator[bytes]:
    """Whole lines with their newlines, about _BLOCK_BYTES at a time; without blank lines at the end."""
    rest = b""
    line = 1
    while data := read_up_to(handle, _BLOCK_BYTES):
        # The last line with anything in it waits: what follows may be part of it, or only blank lines.
        cut = data.rfind(b"\n", 0, len(data.rstrip(_BLANK))) + 1
        if cut:
            block = b"".join((rest, memoryview(data)[:cut]))
            yield block
            line += block.count(b"\n")
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > MAX_LINE_BYTES:
            raise InputError(
                f"line {line} of {path} is longer than {MAX_LINE_BYTES} bytes, expected a word and its "
                "numbers: this is not a text vector file, or its line breaks were lost"
            )
    rest = rest.rstrip(_BLANK)
    if rest:
        yield rest + b"\n"


def _chain(start: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from blocks


def _cut_header(start: bytes, path: Path) -> tuple[bytes, int, int]:
    """What follows the header, and the count and dimension it claims."""
    match = HEADER.match(start)
    if match is None:
        raise InputError(
            f'line 1 of {path} is no header, expected "count dimension" for format "text": '
            'pass format="glove" for a file without a header'
        )
    return start[match.end() :], int(match[1]), int(match[2])


def _dimension(sample: list[bytes], claimed: int | None, reading: Reading) -> int:
    """How many numbers the lines hold; a header that disagrees with all of the first lines is reported."""
    if not any(sample):
        raise InputError(f"{reading.path} holds no line with a word, expected at least one word and its numbers")
    found = Counter(count for line in sample if (count := trailing_numbers(line)) > 0)
    if claimed is not None and claimed in found and claimed <= MAX_DIM:
        return claimed
    if not found:
        raise InputError(
            f"the first lines of {reading.path} hold no numbers, expected a word and its numbers on each: "
            "this is not a text vector file"
        )
    common = found.most_common(1)[0][0]
    if common > MAX_DIM:
        raise InputError(
            f"the lines of {reading.path} hold more than {MAX_DIM} numbers, expected at most that many: "
            "the file is damaged, or its line breaks were lost"
        )
    if claimed is None:
        return common
    message = f"the header of {reading.path} says {claimed} numbers for each word, the lines hold {common}"
    if reading.errors == "raise":
        raise InputError(f'{message}: correct the header, or pass errors="skip" (--errors skip) to trust the lines')
    reading.warn(f"header says {claimed} numbers for each word, the lines hold {common}")
    return common


def _expected_rows(sample: list[bytes], dim: int, reading: Reading, source: Source) -> int:
    """Rows to make room for: the header's count or a guess from the first lines, if the file can hold as many."""
    possible = source.likely_bytes // (2 * dim) + 1
    if reading.header_count is not None:
        return min(reading.header_count, possible)
    line_bytes = sum(len(line) + 1 for line in sample) / len(sample)
    return min(int(1.05 * source.likely_bytes / line_bytes) + 1, possible)


def _parsed_blocks(blocks: Iterator[bytes], dim: int, reading: Reading) -> Generator[tuple[Block, bool], None, None]:
    """Parse blocks on a few threads (NumPy works outside the interpreter's lock) and give them back in order.

    With each block comes whether it is the last.

    Not many more lines are read than words are wanted. What cannot be read stops the reading there, not before.
    """
    pending: deque[Future[Block]] = deque()
    lines_ahead = 0
    failure: InputError | None = None
    pieces = _pieces(blocks, reading)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="qwp-text")
    try:
        while True:
            try:
                piece = next(pieces, b"")
            except InputError as error:
                failure, piece = error, b""
            while pending and (not piece or len(pending) > 2 * _THREADS or lines_ahead >= _lines_wanted(reading)):
                parsed = pending.popleft().result()
                lines_ahead -= parsed.n_lines
                yield parsed, not (piece or pending or failure)
            if not piece:
                break
            lines_ahead += piece.count(b"\n")
            pending.append(pool.submit(parse_block, piece, dim, reading.dtype, reading.encoding))
    finally:
        # Without waiting: a reading that was given up is closed by the garbage collector, at any moment, also within
        # the start of another thread, whose lock a join would then wait for without end.
        pool.shutdown(wait=False, cancel_futures=True)
    if failure is not None:
        raise failure


def _lines_wanted(reading: Reading) -> int:
    """How many lines to have ahead: blocks are small enough for all of a few, if all words are wanted."""
    return batch_rows(reading, 1)


def _pieces(blocks: Iterator[bytes], reading: Reading) -> Iterator[bytes]:
    """The blocks, cut to the lines that are wanted."""
    for block in blocks:
        begin = 0
        while begin < len(block):
            end = len(block) if reading.ahead is None else _after_lines(block, begin, _lines_wanted(reading))
            yield block[begin:end]
            begin = end


def _after_lines(block: bytes, begin: int, count: int) -> int:
    """Where the line begins that follows the next ``count`` ones, each ended by a newline."""
    for _ in range(count):
        begin = block.find(b"\n", begin) + 1
        if begin in (0, len(block)):
            return len(block)
    return begin


def open_rows(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer for text with a header."""
    return row_writer(target, _encoder(target), header_line)


def open_glove_rows(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer for text without a header."""
    return row_writer(target, _encoder(target), None)


def _encoder(target: Target) -> Callable[[list[str], FloatArray], bytes]:
    rows = max(1, _FORMAT_NUMBERS // target.dim)

    def encode(words: list[str], vectors: FloatArray) -> bytes:
        """vectors: (b, d) float32."""
        _check_words(words)
        parts: list[bytes] = []
        for begin in range(0, len(words), rows):
            lines = format_rows(vectors[begin : begin + rows].astype(np.float32, copy=False), target.digits)
            for word, line in zip(words[begin : begin + rows], lines, strict=True):
                parts += (word.encode(), b" ", line, b"\n")
        return b"".join(parts)

    return encode


def _check_words(words: list[str]) -> None:
    """Refuse words that would not come back as they are from a line of text."""
    for word in words:
        if not _DELICATE.search(word):
            continue
        last = re.split("[ \t]", word)[-1]
        inner_number = last != word and is_number_like(last.encode())
        if "\n" in word or word.strip(" \t") != word or inner_number:
            raise InputError(
                f"the word {word!r} cannot be written as text: it holds a line break, has a blank at an end, "
                "or ends in a number after a blank; write .npz instead, or remove the word"
            )
