"""Vectors as text, one word per line: "text" has a first line "count dimension" (fastText, word2vec), "glove" has none.

Blocks of lines are parsed in threads. Regular lines, a word and numbers with single blanks between, are parsed in bulk;
other lines one by one.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.arrays import AnyFloats, Bools, Floats, Ints
from qwp.errors import InputError
from qwp.spaces.io.arguments import UTF8, text_in
from qwp.spaces.io.numbers import (
    BLANKS,
    BOM,
    HEADER,
    PAD_FRONT,
    DecimalParser,
    fits,
    format_rows,
    header_line,
    is_number_like,
    last_tokens,
    padded,
    parse_one,
    trailing_numbers,
)
from qwp.spaces.io.reading import Reading, Rows, batch_rows
from qwp.spaces.io.sniffing import refuse_other_text
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target, row_writer
from qwp.spaces.limits import MAX_DIM, MAX_LINE_BYTES, MAX_WORD_BYTES

# --------------------------------------------------------------------------- files

# Large enough that threads rarely wait for each other, small enough for the cache of a processor.
_BLOCK_BYTES = 1 << 19
_BLANK = b" \t\r\n"
_SAMPLE_LINES = 10
_LAST_BYTES = 64  # longer than a number
_DECIMAL = re.compile(rb"[-+]?[0-9]+(?:\.([0-9]*))?")
_THREADS = min(4, os.cpu_count() or 1)

Parse = Callable[[bytes, int, "np.dtype[Any]", str, int], Rows]


def read(reading: Reading, source: Source, parse: Parse | None = None) -> Iterator[Rows]:
    """Yield the lines of a "text" or "glove" file in order. parse: parses a block, `parse_block` by default."""
    refuse_other_text(source)
    with source.plain() as plain:
        handle = _LastBytes(plain)
        blocks = line_blocks(handle, reading.path)
        start = next(blocks, b"").removeprefix(BOM)
        claimed_dim = None
        line = 1
        if reading.format == "text":
            start, reading.header_count, claimed_dim = _split_header(start, reading.path)
            start = start or next(blocks, b"")
            line = 2
        sample = start.split(b"\n", _SAMPLE_LINES)[:-1][:_SAMPLE_LINES]
        dim = _dimension(sample, claimed_dim, reading)
        reading.expected_rows = _expected_rows(sample, dim, reading, source)
        with closing(_parse_blocks(chain((start,), blocks), dim, reading, parse or parse_block, line)) as parsed:
            for rows, last_line, is_last in parsed:
                unfinished = is_last and handle.is_unfinished and last_line > 1
                yield _without_cut_number(rows, last_line, handle.last, sample) if unfinished else rows
                if unfinished:
                    reading.warn(
                        f"line {last_line}, the last, has no line end: if the file was truncated there, digits of its "
                        "last number are missing"
                    )


class _LastBytes:
    """Content that remembers its last bytes."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self.last = b""

    def read(self, size: int, /) -> bytes:
        data = self._content.read(size)
        self.last = (self.last + data[-_LAST_BYTES:])[-_LAST_BYTES:]
        return data

    @property
    def is_unfinished(self) -> bool:
        """Whether the last line has no line end."""
        return b"\n" not in self.last[len(self.last.rstrip(_BLANK)) :]


def _without_cut_number(rows: Rows, line: int, ending: bytes, sample: list[bytes]) -> Rows:
    """Mark the last row of a file as damaged if its last number was truncated.

    A last line without a line end is truncated, or complete if its writer does not end the last line. If all numbers of
    the sample have the same number of digits after the point, the last number decides; otherwise the row is kept.

    Args:
        rows: rows of the last block.
        line: number of the last line.
        ending: last bytes of the file.
        sample: first lines of the file.
    """
    token = ending.split()[-1]
    if rows.damaged and rows.damaged[-1][1] == f"line {line}":
        return rows
    digits = {_digits(number) for each in sample for number in each.split()[1:]}
    if len(digits) == 1 and None not in digits and _digits(token) != digits.copy().pop():
        problem = (
            f"has no line end and its last number has fewer digits than the others, expected {digits.pop()} after the "
            "point: the file was truncated there"
        )
        position = len(rows.words) - 1 if rows.positions is None else rows.positions[-1]
        positions = None if rows.positions is None else rows.positions[:-1]
        return Rows(rows.words[:-1], rows.vectors[:-1], positions, [*rows.damaged, (position, f"line {line}", problem)])
    return rows


def _digits(number: bytes) -> int | None:
    """Return the number of digits after the decimal point; None for a number in another notation."""
    match = _DECIMAL.fullmatch(number)
    return None if match is None else len(match[1] or b"")


def line_blocks(handle: Readable, path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines with their newlines, about _BLOCK_BYTES each, without blank lines at the end."""
    rest = b""
    line = 1
    while data := read_up_to(handle, _BLOCK_BYTES):
        # The last line that is not blank waits, because the rest of it may follow, or only blank lines.
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


def _split_header(start: bytes, path: Path) -> tuple[bytes, int, int]:
    """Return the content after the header, and the count and dimension that the header claims."""
    match = HEADER.match(start)
    if match is None:
        raise InputError(
            f'line 1 of {path} is no header, expected "count dimension" for format "text": '
            'pass format="glove" for a file without a header'
        )
    return start[match.end() :], int(match[1]), int(match[2])


def _dimension(sample: list[bytes], claimed: int | None, reading: Reading) -> int:
    """Return the dimension of the vectors, and report a header that disagrees with all sample lines."""
    if not any(sample):
        raise InputError(f"{reading.path} holds no line with a word, expected at least one word and its numbers")
    counts = Counter(count for line in sample if (count := trailing_numbers(line)) > 0)
    if claimed is not None and claimed in counts and claimed <= MAX_DIM:
        return claimed
    if not counts:
        raise InputError(
            f"the first lines of {reading.path} hold no numbers, expected a word and its numbers on each: "
            "this is not a text vector file"
        )
    common = counts.most_common(1)[0][0]
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
    """Return the count of the header, or an estimate from the first lines, limited by the size of the file."""
    possible = source.likely_bytes // (2 * dim) + 1
    if reading.header_count is not None:
        return min(reading.header_count, possible)
    line_bytes = sum(len(line) + 1 for line in sample) / len(sample)
    return min(int(1.05 * source.likely_bytes / line_bytes) + 1, possible)


def _parse_blocks(
    blocks: Iterator[bytes], dim: int, reading: Reading, parse: Parse, line: int
) -> Generator[tuple[Rows, int, bool], None, None]:
    """Parse blocks in threads and yield them in order, each with its last line and whether it is the last block.

    NumPy releases the interpreter lock, so the threads run in parallel. Not many more lines are parsed than needed. An
    error while reading a later block is raised only when that block is reached. line: number of the first line.
    """
    pending: deque[tuple[Future[Rows], int]] = deque()  # with the line after each block
    done = line
    failure: InputError | None = None
    pieces = _pieces(blocks, reading)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="qwp-text")
    try:
        while True:
            try:
                piece = next(pieces, b"")
            except InputError as error:
                failure, piece = error, b""
            while pending and (not piece or len(pending) > 2 * _THREADS or line - done >= _lines_needed(reading)):
                parsed, done = pending.popleft()
                yield parsed.result(), done - 1, not (piece or pending or failure)
            if not piece:
                break
            parsed = pool.submit(parse, piece, dim, reading.dtype, reading.encoding, line)
            line += piece.count(b"\n")
            pending.append((parsed, line))
    finally:
        # Without waiting: the garbage collector may close an abandoned reading while another thread is being started.
        # Joining threads would then wait forever for a lock that this thread holds.
        pool.shutdown(wait=False, cancel_futures=True)
    if failure is not None:
        raise failure


def _lines_needed(reading: Reading) -> int:
    """Return how many lines to parse ahead; many if all words are loaded, because blocks are small."""
    return batch_rows(reading, 1)


def _pieces(blocks: Iterator[bytes], reading: Reading) -> Iterator[bytes]:
    """Split blocks into pieces of the lines that are needed."""
    for block in blocks:
        begin = 0
        while begin < len(block):
            end = len(block) if reading.rows_needed is None else _after_lines(block, begin, _lines_needed(reading))
            yield block[begin:end]
            begin = end


def _after_lines(block: bytes, begin: int, count: int) -> int:
    """Return the position after the next `count` lines."""
    for _ in range(count):
        begin = block.find(b"\n", begin) + 1
        if begin in (0, len(block)):
            return len(block)
    return begin


# --------------------------------------------------------------------------- blocks of lines

_TOKENS = 3 << 15  # numbers parsed at a time: usually those of one block
_local = threading.local()


class LineError(Exception):
    """The problem of a damaged line: what it holds and what was expected."""


def parse_block(data: bytes, dim: int, dtype: np.dtype[Any], encoding: str = UTF8, line: int = 1) -> Rows:
    """Parse whole lines, each ended by a newline, into words and vectors of ``dim`` numbers.

    line: number of the first line, for the names of damaged rows.
    """
    text = padded(data)
    separators, last = _separators(text, data)
    first = np.concatenate([[0], last[:-1] + 1])  # index of each line's first separator
    rows = np.flatnonzero(_regular_lines(separators, first, last, dim))
    bounds = _bounds(separators, first, rows, dim)
    vectors = np.zeros((len(last), dim), dtype=dtype)
    refused = _parse_numbers(data, text, bounds, rows, vectors)

    ends = separators[last] - PAD_FRONT
    begins = np.concatenate([[0], ends[:-1] + 1])
    words = _decode_words(data, begins, rows, bounds[:, 0] - PAD_FRONT, encoding)
    for row in refused:
        words[row] = None
    damaged: list[tuple[int, str, str]] = []
    for row in [row for row, word in enumerate(words) if word is None]:
        try:
            words[row], vectors[row] = parse_line(data[begins[row] : ends[row]], dim, dtype, encoding)
        except LineError as error:
            damaged.append((row, f"line {line + row}", str(error)))
    valid = [word for word in words if word is not None]
    if not damaged:
        return Rows(valid, vectors)
    positions = [row for row, word in enumerate(words) if word is not None]
    return Rows(valid, vectors[positions], positions, damaged)


def parse_line(line: bytes, dim: int, dtype: np.dtype[Any], encoding: str = UTF8) -> tuple[str, list[float]]:
    """Parse one line without its newline into a word, which may hold blanks, and its numbers.

    Raises:
        LineError: the line is not a word and ``dim`` finite numbers.
    """
    line = line.removesuffix(b"\r").rstrip(BLANKS)
    if not line:
        raise LineError(f"is empty, expected a word and {dim} numbers")
    if line[:1] in (b" ", b"\t"):
        raise LineError(f"starts with a blank, expected a word before the {dim} numbers")
    tokens = last_tokens(line, dim + 2)
    if len(tokens) <= dim:
        raise LineError(f"holds {len(tokens) - 1} numbers, expected {dim}")
    if len(tokens) > dim + 1 and is_number_like(tokens[-dim - 1]):
        raise LineError(f"holds {trailing_numbers(line)} numbers, expected {dim}")
    numbers = [_finite(token, number, dtype) for number, token in enumerate(tokens[-dim:], start=1)]
    return _word(line[: _end_of_word(line, tokens[-dim:])], encoding), numbers


def _end_of_word(line: bytes, tokens: list[bytes]) -> int:
    """Return the end of the word before the given tokens, the last ones of the line."""
    end = len(line)
    for token in reversed(tokens):
        end -= len(token)
        while line[end - 1] in BLANKS:
            end -= 1
    return end


def _finite(token: bytes, number: int, dtype: np.dtype[Any]) -> float:
    value = parse_one(token)
    if value is None:
        # The message does not quote the token: the file may be of another kind, with confidential content.
        raise LineError(f"holds something else as number {number}, expected a decimal number")
    if not fits(value, dtype):
        shown = repr(token.decode()) if len(token) <= 40 else f"a number of {len(token)} characters"
        raise LineError(f"holds {shown} as number {number}, expected a finite {dtype.name} number")
    return value


def _word(raw: bytes, encoding: str) -> str:
    if len(raw) > MAX_WORD_BYTES:
        raise LineError(f"has a word of {len(raw)} bytes, expected at most {MAX_WORD_BYTES}")
    try:
        return raw.decode(encoding)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise LineError(
            f"has a word with the byte 0x{raw[start]:02x} at position {start}, expected {text_in(encoding)}"
        ) from None


def _separators(text: npt.NDArray[np.uint8], data: bytes) -> tuple[Ints, Ints]:
    """Return the positions of blanks and newlines in the padded text, and the indices of the newlines among them."""
    body = text[PAD_FRONT : PAD_FRONT + len(data)]
    is_separator = body == ord(" ")
    is_separator |= body == ord("\n")
    if b"\t" in data:
        is_separator |= body == ord("\t")
    if b"\r" in data:
        # Only directly before a newline; elsewhere it is part of the word or makes a number invalid.
        is_separator[:-1] |= (body[:-1] == ord("\r")) & (body[1:] == ord("\n"))
    separators = np.flatnonzero(is_separator)
    last = np.flatnonzero(body.take(separators) == ord("\n"))
    separators += PAD_FRONT
    return separators, last


def _regular_lines(separators: Ints, first: Ints, last: Ints, dim: int) -> Bools:
    """Return a mask of lines of a word and dim tokens, with single blanks between and any number of them at the end.

    Args:
        separators: (s,) positions of blanks and newlines.
        first: (lines,) index into separators of each line's first one.
        last: (lines,) index into separators of each line's newline.
        dim: number of tokens.
    """
    regular = last - first >= dim
    after = np.minimum(first + dim, last)  # the separator after the last number
    regular &= separators[last] - separators[after] == last - after
    begins = np.concatenate([[PAD_FRONT], separators[last[:-1]] + 1])
    regular &= separators[first] > begins  # the word is not empty
    return regular


def _bounds(separators: Ints, first: Ints, rows: Ints, dim: int) -> Ints:
    """Return the separators before, between and after the numbers of the given lines, (len(rows), dim + 1)."""
    n_lines = len(first)
    if len(rows) == n_lines and len(separators) % n_lines == 0:
        table = separators.reshape(n_lines, -1)
        if np.array_equal(first, np.arange(n_lines) * table.shape[1]):
            return table[:, : dim + 1]
    bounds: Ints = separators[first[rows, None] + np.arange(dim + 1)]
    return bounds


def _parse_numbers(data: bytes, text: npt.NDArray[np.uint8], bounds: Ints, rows: Ints, vectors: AnyFloats) -> list[int]:
    """Parse the numbers of regular lines.

    Args:
        data: the lines.
        text: the same lines, padded.
        bounds: (r, d + 1) separators around the numbers of the regular lines.
        rows: (r,) indices of the regular lines.
        vectors: (lines, d) receives the numbers.

    Returns:
        indices of the lines with a token that is not a finite number.
    """
    dim = bounds.shape[1] - 1
    parser, values = _workspace(dim)
    step = parser.capacity // dim
    refused: list[int] = []
    for begin in range(0, len(rows), step):
        block = bounds[begin : begin + step]
        numbers = values[: len(block) * dim]
        starts = (block[:, :-1] + 1).ravel()
        ends = block[:, 1:].ravel()
        for index in parser.parse(text, starts, ends, numbers).tolist():
            token = data[starts[index] - PAD_FRONT : ends[index] - PAD_FRONT]
            value = parse_one(token)
            if value is None or not fits(value, vectors.dtype):
                refused.append(int(rows[begin + index // dim]))
            else:
                numbers[index] = value
        with np.errstate(over="ignore", invalid="ignore"):  # the values of refused tokens are undefined
            if len(rows) == len(vectors):
                vectors[begin : begin + step] = numbers.reshape(-1, dim)
            else:
                vectors[rows[begin : begin + step]] = numbers.reshape(-1, dim)
    return refused


def _workspace(dim: int) -> tuple[DecimalParser, Floats]:
    """Return this thread's parser and its output array, large enough for one line at least."""
    parser: DecimalParser | None = getattr(_local, "parser", None)
    if parser is None or parser.capacity < dim:
        capacity = max(_TOKENS, dim)
        _local.parser = parser = DecimalParser(capacity)
        _local.values = np.empty(capacity, dtype=np.float64)
    return parser, _local.values


def _decode_words(data: bytes, begins: Ints, rows: Ints, word_ends: Ints, encoding: str) -> list[str | None]:
    """Decode the words of the given lines; None for other lines, and for words too long or in another encoding."""
    words: list[str | None] = [None] * len(begins)
    for row, begin, end in zip(rows.tolist(), begins[rows].tolist(), word_ends.tolist(), strict=True):
        if end - begin > MAX_WORD_BYTES:
            continue
        try:
            words[row] = data[begin:end].decode(encoding)
        except UnicodeError:
            continue
    return words


# --------------------------------------------------------------------------- writing

_FORMAT_NUMBERS = 1 << 14  # numbers formatted at a time
_AMBIGUOUS = re.compile("[ \t\n]")


def open_text(target: Target) -> AbstractContextManager[RowWriter]:
    """Return a writer of text with a header."""
    return row_writer(target, _encoder(target), header_line)


def open_glove(target: Target) -> AbstractContextManager[RowWriter]:
    """Return a writer of text without a header."""
    return row_writer(target, _encoder(target), None)


def _encoder(target: Target) -> Callable[[list[str], AnyFloats], bytes]:
    rows = max(1, _FORMAT_NUMBERS // target.dim)

    def encode(words: list[str], vectors: AnyFloats) -> bytes:
        """Format rows as lines. vectors: (b, d) float32."""
        _check_words(words)
        parts: list[bytes] = []
        for begin in range(0, len(words), rows):
            lines = format_rows(vectors[begin : begin + rows].astype(np.float32, copy=False), target.digits)
            for word, line in zip(words[begin : begin + rows], lines, strict=True):
                parts += (word.encode(), b" ", line, b"\n")
        return b"".join(parts)

    return encode


def _check_words(words: list[str]) -> None:
    """Refuse words that a reader would not restore from a line of text."""
    for word in words:
        if not _AMBIGUOUS.search(word):
            continue
        last = re.split("[ \t]", word)[-1]
        inner_number = last != word and is_number_like(last.encode())
        if "\n" in word or word.strip(" \t") != word or inner_number:
            raise InputError(
                f"the word {word!r} cannot be written as text: it holds a line break, has a blank at an end, "
                "or ends in a number after a blank; write .npz instead, or remove the word"
            )
