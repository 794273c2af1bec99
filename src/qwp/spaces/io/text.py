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
from typing import IO

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import is_gzip, open_plain, read_up_to
from qwp.spaces.io.formatting import format_rows
from qwp.spaces.io.lines import Block, parse_block, trailing_numbers
from qwp.spaces.io.numbers import NUMBER_LIKE
from qwp.spaces.io.reading import Batch, Reading
from qwp.spaces.io.writing import RowWriter, Target, row_writer

HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?(?:\n|$)")
BOM = b"\xef\xbb\xbf"
# Large enough for threads to rarely wait for each other, small enough for a cache.
_BLOCK_BYTES = 1 << 19
_MAX_LINE_BYTES = 1 << 24
_BLANK = b" \t\r\n"
_SAMPLE_LINES = 10
_FORMAT_NUMBERS = 1 << 14
_DELICATE = re.compile("[ \t\n]")
_THREADS = min(4, os.cpu_count() or 1)


def read(reading: Reading) -> Iterator[Batch]:
    """Batches of the sound lines of a "text" or "glove" file, in order."""
    with open_plain(reading.path) as handle:
        blocks = _line_blocks(handle, reading.path)
        start = next(blocks, b"")
        claimed_dim = None
        n_header_lines = 0
        if reading.format == "text":
            start, reading.header_count, claimed_dim = _cut_header(start, reading.path)
            start = start or next(blocks, b"")
            n_header_lines = 1
        sample = start.split(b"\n", _SAMPLE_LINES)[:-1][:_SAMPLE_LINES]
        dim = _dimension(sample, claimed_dim, reading)
        reading.expected_rows = _expected_rows(sample, dim, reading)
        line = n_header_lines + 1
        with closing(_parsed_blocks(_chain(start, blocks), dim, reading)) as parsed:
            for block in parsed:
                for offset, found in block.bad:
                    reading.bad(f"line {line + offset}", found)
                line += block.n_lines
                yield Batch(block.words, block.vectors)


def _line_blocks(handle: IO[bytes], path: Path) -> Iterator[bytes]:
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
        if len(rest) > _MAX_LINE_BYTES:
            raise InputError(
                f"line {line} of {path} is longer than {_MAX_LINE_BYTES} bytes, expected a word and its "
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
    match = HEADER.match(start.removeprefix(BOM))
    if match is None:
        raise InputError(
            f'line 1 of {path} starts with {start[:40]!r}, expected a header "count dimension" for format '
            '"text": pass format="glove" for a file without a header'
        )
    return start.removeprefix(BOM)[match.end() :], int(match[1]), int(match[2])


def _dimension(sample: list[bytes], claimed: int | None, reading: Reading) -> int:
    """How many numbers the lines hold; a header that disagrees with all of the first lines is reported."""
    if not any(sample):
        raise InputError(f"{reading.path} holds no line with a word, expected at least one word and its numbers")
    found = Counter(count for line in sample if (count := trailing_numbers(line)) > 0)
    if claimed is not None and claimed in found:
        return claimed
    if not found:
        raise InputError(
            f"the first lines of {reading.path} hold no numbers ({sample[0][:40]!r}), expected a word and "
            "its numbers on each: this is not a text vector file"
        )
    common = found.most_common(1)[0][0]
    if claimed is None:
        return common
    message = f"the header of {reading.path} says {claimed} numbers for each word, the lines hold {common}"
    if reading.errors == "raise":
        raise InputError(f'{message}: correct the header, or pass errors="skip" (--errors skip) to trust the lines')
    reading.warn(f"header says {claimed} numbers for each word, the lines hold {common}")
    return common


def _expected_rows(sample: list[bytes], dim: int, reading: Reading) -> int | None:
    """Rows to make room for: the header's count if the file can hold it, or a guess from its size."""
    size = reading.path.stat().st_size
    if is_gzip(reading.path):
        size *= 8  # text of numbers is rarely packed further; a guess too low only costs a larger copy
    if reading.header_count is not None:
        return min(reading.header_count, size // (2 * dim) + 1)
    return int(1.05 * size * len(sample) / sum(len(line) + 1 for line in sample)) + 1


def _parsed_blocks(blocks: Iterator[bytes], dim: int, reading: Reading) -> Generator[Block, None, None]:
    """Parse blocks on a few threads (NumPy works outside the interpreter's lock) and give them back in order.

    No more lines are read than words are wanted, so that damage further down does not matter.
    """
    pending: deque[Future[Block]] = deque()
    lines_ahead = 0
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="qwp-text")
    try:
        for block in blocks:
            while block:
                wanted = reading.wanted
                if len(pending) > 2 * _THREADS or (pending and wanted is not None and wanted <= lines_ahead):
                    parsed = pending.popleft().result()
                    lines_ahead -= parsed.n_lines
                    yield parsed
                    continue
                if wanted == 0:
                    return
                piece = block if wanted is None else _first_lines(block, wanted - lines_ahead)
                block = block[len(piece) :]
                lines_ahead += piece.count(b"\n")
                pending.append(pool.submit(parse_block, piece, dim, reading.dtype))
        while pending:
            yield pending.popleft().result()
        reading.at_end = True
    finally:
        pool.shutdown(cancel_futures=True)


def _first_lines(block: bytes, count: int) -> bytes:
    if block.count(b"\n") <= count:
        return block
    end = 0
    for _ in range(count):
        end = block.index(b"\n", end) + 1
    return block[:end]


def header_line(count: int, dim: int) -> bytes:
    """The line that says how many words and numbers follow."""
    return b"%d %d\n" % (count, dim)


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
        if word and not _DELICATE.search(word):
            continue
        last = re.split("[ \t]", word)[-1]
        inner_number = last != word and NUMBER_LIKE.fullmatch(last.encode()) is not None
        if not word or "\n" in word or word.strip(" \t") != word or inner_number:
            raise InputError(
                f"the word {word!r} cannot be written as text: it is empty, holds a line break, has a "
                "blank at an end, or ends in a number after a blank; write .npz instead, or remove the word"
            )
