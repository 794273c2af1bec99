"""word2vec's binary format: a line "count dimension", then records of a word, a blank and float32 numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces.io.numbers import HEADER, header_line
from qwp.spaces.io.reading import Reading, Rows, batch_rows, decode, valid_rows
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target, row_writer
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

_READ_BYTES = 1 << 22
_FLOAT = np.dtype("<f4")


def read(reading: Reading, source: Source, read_bytes: int = _READ_BYTES) -> Iterator[Rows]:
    """Yield the records of a binary file in order. read_bytes: bytes to read at a time."""
    with source.plain() as handle:
        records = _Records(handle, reading, read_bytes)
        possible = source.likely_bytes // (_FLOAT.itemsize * records.dim) + 1
        reading.expected_rows = min(records.count, possible)
        while True:
            first, words, offsets, vectors = records.take(batch_rows(reading, records.dim * _FLOAT.itemsize))

            def where(row: int, first: int = first, offsets: list[int] = offsets) -> str:
                return f"record {first + row} (byte {offsets[row]})"

            found = valid_rows(words, vectors, reading, where)
            if records.incomplete is not None:
                found = replace(found, damaged=[*found.damaged, (len(words), *records.incomplete)])
            elif not words:
                _check_count(records, reading)
                return
            yield found
            if records.incomplete is not None:
                return


def _check_count(records: _Records, reading: Reading) -> None:
    """Refuse a file with fewer records than its header says; `check_header` warns if damaged rows are skipped."""
    if records.number - 1 < records.count and reading.errors == "raise":
        raise InputError(
            f"{reading.path} holds {records.number - 1} of the {records.count} words of its header: it is truncated; "
            'copy it again, or pass errors="skip" (--errors skip) to read the words it holds'
        )


class _Records:
    """Records of a binary file, read in order through a buffer of a few megabytes.

    Attributes:
        count: number of records that the header claims.
        dim: numbers in each record.
        number: number of the next record, from 1.
        incomplete: name and problem of a record that the file does not hold in full.
    """

    def __init__(self, handle: Readable, reading: Reading, read_bytes: int) -> None:
        self._handle = handle
        self._read_bytes = read_bytes
        self._encoding = reading.encoding
        self.incomplete: tuple[str, str] | None = None
        self._buffer = b""
        self._position = 0
        self._passed = 0  # bytes of the file before the buffer
        self.number = 1
        self._exhausted = False
        self._fill()
        header = HEADER.match(self._buffer)
        if header is None or int(header[2]) < 1:
            raise InputError(
                f"{reading.path} does not start with a line of two positive numbers, expected "
                '"count dimension": this is not a word2vec binary file'
            )
        self.count = reading.header_count = int(header[1])
        self.dim = int(header[2])
        if self.dim > MAX_DIM:
            raise InputError(
                f"the header of {reading.path} says {self.dim} numbers for each word, expected at most "
                f"{MAX_DIM}: the file is damaged"
            )
        self._position = header.end()

    def take(self, rows: int) -> tuple[int, list[str | None], list[int], AnyFloats]:
        """Return up to ``rows`` records: number of the first one, words, byte offsets, vectors (b, d)."""
        first = self.number
        words: list[str | None] = []
        offsets: list[int] = []
        numbers: list[bytes] = []
        width = _FLOAT.itemsize * self.dim
        while len(words) < rows and self._skip_newlines():
            blank = self._find_blank()
            if blank < 0 or not self._buffered(blank + 1 + width):
                self._stop()
                break
            begin = self._position
            words.append(decode(self._buffer[begin : begin + blank], self._encoding))
            offsets.append(self._passed + begin)
            numbers.append(self._buffer[begin + blank + 1 : begin + blank + 1 + width])
            self._position += blank + 1 + width
            self.number += 1
        vectors = np.frombuffer(b"".join(numbers), dtype=_FLOAT).reshape(len(words), self.dim)
        return first, words, offsets, vectors

    def _skip_newlines(self) -> bool:
        """Skip newlines between records. Return whether a record follows."""
        while self._buffered(1):
            if self._buffer[self._position] != 10:
                return True
            self._position += 1
        return False

    def _find_blank(self) -> int:
        """Return the length of the word at the current position, or -1 if no blank ends it."""
        most = MAX_WORD_BYTES + 1
        end = self._buffer.find(b" ", self._position, self._position + most)
        if end < 0:
            self._buffered(most)
            end = self._buffer.find(b" ", self._position, self._position + most)
        return end - self._position if end >= 0 else -1

    def _stop(self) -> None:
        """Record that the current record is incomplete, and stop reading."""
        left = len(self._buffer) - self._position
        expected = f"a word, a blank and {_FLOAT.itemsize * self.dim} bytes of numbers"
        self.incomplete = (
            f"record {self.number} (byte {self._passed + self._position})",
            f"has {left} bytes left, expected {expected}"
            if self._exhausted
            else f"has no word of at most {MAX_WORD_BYTES} bytes, expected {expected}",
        )
        self._exhausted = True
        self._position = len(self._buffer)

    def _buffered(self, size: int) -> bool:
        """Read until the buffer holds ``size`` bytes. Return False if the file ends before."""
        while len(self._buffer) - self._position < size:
            if self._exhausted:
                return False
            self._fill()
        return True

    def _fill(self) -> None:
        data = read_up_to(self._handle, self._read_bytes)
        self._exhausted = len(data) < self._read_bytes
        self._passed += self._position
        self._buffer = self._buffer[self._position :] + data
        self._position = 0


def open_rows(target: Target) -> AbstractContextManager[RowWriter]:
    """Return a writer of this format."""
    return row_writer(target, _encode, header_line)


def _encode(words: list[str], vectors: AnyFloats) -> bytes:
    """Encode rows as records. vectors: (b, d) float32."""
    parts: list[bytes] = []
    for word, vector in zip(words, vectors.astype(_FLOAT, copy=False), strict=True):
        if " " in word or "\n" in word:
            raise InputError(
                f"the word {word!r} holds a blank or a line break, which this format cannot hold: "
                "write .npz instead, or remove the word"
            )
        parts += (word.encode(), b" ", vector.tobytes(), b"\n")
    return b"".join(parts)
