"""Vectors as text, one word a line: "text" has a first line "count dimension" (fastText, word2vec), "glove" none."""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO

from qwp.errors import InputError
from qwp.io.files import is_gzip, open_plain, read_up_to
from qwp.io.lines import Block, parse_block, trailing_numbers
from qwp.io.reading import Batch, Reading

HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?(?:\n|$)")
_BOM = b"\xef\xbb\xbf"
# Small enough for the working arrays of one block to stay in a core's cache.
_BLOCK_BYTES = 1 << 18
_MAX_LINE_BYTES = 1 << 24
_SAMPLE_LINES = 10
_THREADS = min(4, os.cpu_count() or 1)


def read(reading: Reading) -> Iterator[Batch]:
    """Batches of the sound lines of a "text" or "glove" file, in order."""
    with open_plain(reading.path) as handle:
        blocks = _line_blocks(handle, reading.path)
        start = next(blocks, b"").removeprefix(_BOM)
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
    """Whole lines, each ended by a newline, in pieces of about _BLOCK_BYTES; blank lines at the end are left out."""
    rest = b""
    line = 1
    while data := read_up_to(handle, _BLOCK_BYTES):
        data = rest + data
        # The last line with anything in it waits: what follows may be part of it, or only blank lines.
        cut = data.rfind(b"\n", 0, len(data.rstrip(b" \t\r\n"))) + 1
        if cut:
            yield data[:cut]
            line += data.count(b"\n", 0, cut)
        rest = data[cut:]
        if len(rest) > _MAX_LINE_BYTES:
            raise InputError(
                f"line {line} of {path} is longer than {_MAX_LINE_BYTES} bytes, expected a word and its numbers: "
                "this is not a text vector file, or its line breaks were lost"
            )
    rest = rest.rstrip(b" \t\r\n")
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
            f'line 1 of {path} starts with {start[:40]!r}, expected a header "count dimension" for format "text": '
            'pass format="glove" for a file without a header'
        )
    return start[match.end() :], int(match[1]), int(match[2])


def _dimension(sample: list[bytes], claimed: int | None, reading: Reading) -> int:
    """How many numbers the lines hold; a header that disagrees with all of the first lines is reported."""
    if not any(sample):
        raise InputError(f"{reading.path} holds no line with a word, expected at least one word and its numbers")
    found = Counter(count for line in sample if (count := trailing_numbers(line)) > 0)
    if claimed in found:
        return claimed
    if not found:
        if not claimed:
            raise InputError(
                f"the first line of {reading.path} starts with {sample[0][:40]!r}, expected a word and its numbers: "
                "this is not a text vector file"
            )
        return claimed
    common = found.most_common(1)[0][0]
    if claimed is None:
        return common
    message = f"the header of {reading.path} says {claimed} numbers for each word, the lines hold {common}"
    if reading.errors == "raise":
        raise InputError(f'{message}: correct the header, or pass errors="skip" (--errors skip) to trust the lines')
    reading.warn(f"header says {claimed} numbers for each word, the lines hold {common}")
    return common


def _expected_rows(sample: list[bytes], dim: int, reading: Reading) -> int | None:
    """Rows to make room for: the header's count if the file is large enough for it, or a guess from its size."""
    size = reading.path.stat().st_size
    if is_gzip(reading.path):
        size *= 8  # text of numbers is rarely packed further; a guess too low only costs a larger copy
    if reading.header_count is not None:
        return min(reading.header_count, size // (2 * dim) + 1)
    return int(1.05 * size * len(sample) / sum(len(line) + 1 for line in sample)) + 1


def _parsed_blocks(blocks: Iterator[bytes], dim: int, reading: Reading) -> Iterator[Block]:
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
    end = 0
    for _ in range(count):
        end = block.find(b"\n", end) + 1
        if end == 0:
            return block
    return block[:end]
