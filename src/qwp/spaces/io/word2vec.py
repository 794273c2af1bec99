"""word2vec's binary format: a line "count dimension", then each word, a blank and float32 numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import is_gzip, open_plain, read_up_to
from qwp.spaces.io.reading import Batch, Reading, batch_rows, sound_rows
from qwp.spaces.io.text import HEADER, header_line
from qwp.spaces.io.writing import RowWriter, Target, row_writer

_READ_BYTES = 1 << 22
_MAX_WORD_BYTES = 1 << 16
_MAX_DIM = 1 << 20  # more would be a damaged header, and ask for memory that is not there
_FLOAT = np.dtype("<f4")


def read(reading: Reading) -> Iterator[Batch]:
    """Batches of the sound records of a binary file, in order."""
    with open_plain(reading.path) as handle:
        records = _Records(handle, reading)
        while rows := batch_rows(reading, records.dim * _FLOAT.itemsize):
            first, words, offsets, vectors = records.take(rows)
            if not words:
                reading.at_end = True
                return

            def where(row: int, first: int = first, offsets: list[int] = offsets) -> str:
                return f"record {first + row} (byte {offsets[row]})"

            yield sound_rows(words, vectors, reading, where)
        reading.at_end = not records.more()


class _Records:
    """Takes records from a binary file in order, holding a few megabytes of it at a time."""

    def __init__(self, handle: IO[bytes], reading: Reading) -> None:
        self._handle = handle
        self._reading = reading
        self._buffer = b""
        self._position = 0
        self._passed = 0  # bytes of the file before the buffer
        self._number = 1
        self._exhausted = False
        self._fill()
        header = HEADER.match(self._buffer)
        if header is None or int(header[2]) < 1:
            raise InputError(
                f"{reading.path} starts with {self._buffer[:40]!r}, expected a line "
                'of two positive numbers, "count dimension": this is not a word2vec binary file'
            )
        reading.header_count, self.dim = int(header[1]), int(header[2])
        if self.dim > _MAX_DIM:
            raise InputError(
                f"the header of {reading.path} says {self.dim} numbers for each word, expected at most "
                f"{_MAX_DIM}: the file is damaged"
            )
        self._position = header.end()
        self._check_size(reading)

    def _check_size(self, reading: Reading) -> None:
        size = reading.path.stat().st_size * (8 if is_gzip(reading.path) else 1)
        assert reading.header_count is not None
        reading.expected_rows = min(reading.header_count, size // (_FLOAT.itemsize * self.dim) + 1)

    def take(self, rows: int) -> tuple[int, list[str | None], list[int], FloatArray]:
        """Up to ``rows`` records: number of the first one, words, byte offsets, vectors (b, d)."""
        first = self._number
        words: list[str | None] = []
        offsets: list[int] = []
        numbers: list[bytes] = []
        width = _FLOAT.itemsize * self.dim
        while len(words) < rows and self.more():
            blank = self._find_blank()
            if blank < 0 or not self._have(blank + 1 + width):
                self._truncated(words)
                break
            begin = self._position
            words.append(_decoded(self._buffer[begin : begin + blank]))
            offsets.append(self._passed + begin)
            numbers.append(self._buffer[begin + blank + 1 : begin + blank + 1 + width])
            self._position += blank + 1 + width
            self._number += 1
        vectors = np.frombuffer(b"".join(numbers), dtype=_FLOAT).reshape(len(words), self.dim)
        return first, words, offsets, vectors

    def more(self) -> bool:
        """Pass over line breaks between records; False when nothing but those is left."""
        while self._have(1):
            if self._buffer[self._position] != 10:
                return True
            self._position += 1
        return False

    def _find_blank(self) -> int:
        """Length of the word that begins here, or -1 if no blank ends it."""
        end = self._buffer.find(b" ", self._position, self._position + _MAX_WORD_BYTES)
        if end < 0:
            self._have(_MAX_WORD_BYTES)
            end = self._buffer.find(b" ", self._position, self._position + _MAX_WORD_BYTES)
        return end - self._position if end >= 0 else -1

    def _truncated(self, words: list[str | None]) -> None:
        """Complain about a record that the file does not hold to its end, and stop there."""
        left = len(self._buffer) - self._position
        where = f"record {self._number} (byte {self._passed + self._position})"
        self._reading.bad(
            where,
            f"has {left} bytes left, expected a word, a blank and {_FLOAT.itemsize * self.dim} bytes of numbers",
        )
        self._exhausted = True
        self._position = len(self._buffer)

    def _have(self, size: int) -> bool:
        """Read on until ``size`` bytes are there; False if the file ends before."""
        while len(self._buffer) - self._position < size:
            if self._exhausted:
                return False
            self._fill()
        return True

    def _fill(self) -> None:
        data = read_up_to(self._handle, _READ_BYTES)
        self._exhausted = len(data) < _READ_BYTES
        self._passed += self._position
        self._buffer = self._buffer[self._position :] + data
        self._position = 0


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def open_rows(target: Target) -> AbstractContextManager[RowWriter]:
    """A writer for this format."""
    return row_writer(target, _encode, header_line)


def _encode(words: list[str], vectors: FloatArray) -> bytes:
    """vectors: (b, d) float32."""
    parts: list[bytes] = []
    for word, vector in zip(words, vectors.astype(_FLOAT, copy=False), strict=True):
        if not word or " " in word or "\n" in word:
            raise InputError(
                f"the word {word!r} is empty or holds a blank or a line break, which this format cannot "
                "hold: write .npz instead, or remove the word"
            )
        parts += (word.encode(), b" ", vector.tobytes(), b"\n")
    return b"".join(parts)
