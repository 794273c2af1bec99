"""Filters for the content of a download: the first words of vectors, plain or gzip-compressed, or a whole dictionary.

`feed` takes bytes as they arrive, checks them and writes the result to a sink. It raises a DamagedError for bytes that
cannot be right. `done` tells that no more bytes are needed. `end` ends the stream, and raises a TruncatedError or a
DamagedError if the content is incomplete.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TypeAlias

from qwp.spaces.io.numbers import HEADER, header_line
from qwp.spaces.io.sniffing import describe
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

GZIP = b"\x1f\x8b"
_HEADER_BYTES = 64
_NUMBER_BYTES = 32
_PIECE_BYTES = 1 << 18
_MAX_DICTIONARY_BYTES = 32 << 20
_PLAIN_TEXT = describe(b"the la\n")

Sink = Callable[[bytes], object]


class DamagedError(Exception):
    """The content is not what it should be; the message describes it."""


class TruncatedError(Exception):
    """The content ended too early."""


class VectorFilter:
    """Writes a header and the first `most` words of vectors in text form, with their lines unchanged.

    Attributes:
        entries: number of words so far.
        total: number of words of the result, once known.
        whole: whether the result has all words of the file.
    """

    def __init__(self, sink: Sink, most: int) -> None:
        self.entries = 0
        self.total: int | None = None
        self.whole = False
        self.dim = 0
        self._most = most
        self._sink = sink
        self._rest = b""

    @property
    def done(self) -> bool:
        """Whether all words have been written."""
        return self.total is not None and self.entries >= self.total

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._rest += data
        if self.total is None and not self._begin():
            return
        assert self.total is not None
        *lines, self._rest = self._rest.split(b"\n")
        needed = lines[: self.total - self.entries]
        for number, line in enumerate(needed, self.entries + 1):
            self._check(line, number)
        if needed:
            self._sink(b"\n".join(needed) + b"\n")
            self.entries += len(needed)
        if not self.done and len(self._rest) > self._longest:
            raise DamagedError(f"the line of word {self.entries + 1:,} is longer than {self._longest:,} bytes")

    def end(self, *, complete: bool) -> None:
        """End the stream. A last line without a newline counts as truncated, because it may lack digits."""
        if self.total is None:
            self._refuse_begin()
        if not self.done:
            place = ", inside of a line" if self._rest else ""
            raise TruncatedError(f"it ends after {self.entries:,} of {self.total:,} words{place}")

    def _begin(self) -> bool:
        """Read the header once it is complete, and write the header of the result."""
        if b"\n" not in self._rest[:_HEADER_BYTES] and len(self._rest) < _HEADER_BYTES:
            return False
        found = HEADER.match(self._rest)
        count, self.dim = (0, 0) if found is None else (int(found[1]), int(found[2]))
        if found is None or count < 1 or not 1 <= self.dim <= MAX_DIM:
            self._refuse_begin()
        assert found is not None
        self.total, self.whole = min(count, self._most), count <= self._most
        self._longest = MAX_WORD_BYTES + _NUMBER_BYTES * (self.dim + 1)
        self._rest = self._rest[found.end() :]
        self._sink(header_line(self.total, self.dim))
        return True

    def _refuse_begin(self) -> None:
        if not self._rest:
            raise TruncatedError("it is empty")
        raise DamagedError(f"it begins like {describe(self._rest)[0]}, expected vectors after a line 'count dimension'")

    def _check(self, line: bytes, number: int) -> None:
        # Words may hold blanks, so a line may have more blanks than numbers.
        if line.count(b" ") < self.dim or len(line) > self._longest:
            raise DamagedError(f"the line of word {number:,} does not hold a word and {self.dim} numbers")


class PairFilter:
    """Writes a whole dictionary at its end; dictionaries are small.

    expected: number of pairs it should have, if known.
    """

    def __init__(self, sink: Sink, expected: int | None = None) -> None:
        self._expected = expected
        self.entries = 0
        self.total: int | None = None
        self.whole = True
        self.done = False
        self._sink = sink
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MAX_DICTIONARY_BYTES:
            raise DamagedError(f"it has more than {_MAX_DICTIONARY_BYTES:,} bytes, expected a dictionary")

    def end(self, *, complete: bool) -> None:
        """End the stream. complete: whether the length of the file is known, because a dictionary has no count."""
        text = b"".join(self._pieces)
        if not text:
            raise TruncatedError("it is empty")
        if describe(text[:4096]) != _PLAIN_TEXT:
            raise DamagedError(f"it is {describe(text[:4096])[0]}, expected a dictionary")
        if not complete:
            raise DamagedError("it may be incomplete, because the server does not report its length")
        if not text.endswith(b"\n"):
            raise TruncatedError("it ends inside of a line")
        lines = text.splitlines()
        odd = sum(len(line.split()) < 2 for line in lines)
        if odd * 2 > len(lines):
            raise DamagedError(f"{odd:,} of its {len(lines):,} lines do not hold two words, expected a dictionary")
        if len(lines) < (self._expected or 0):
            raise TruncatedError(f"it ends after {len(lines):,} of {self._expected:,} pairs")
        self._sink(text)
        self.entries = self.total = len(lines)
        self.done = True


class GzipFilter(VectorFilter):
    """Unpacks gzip-compressed vectors, one piece at a time."""

    def __init__(self, sink: Sink, most: int) -> None:
        super().__init__(sink, most)
        self._stream = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> None:
        """Take the next compressed bytes."""
        while not self.done:
            if self._stream.eof:
                data = (self._stream.unused_data + data).lstrip(b"\0")  # files may be padded
                if not data:
                    return
                self._stream = zlib.decompressobj(wbits=31)  # the next member of the file
            try:
                piece = self._stream.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise DamagedError(f"it is not a gzip file, or a damaged one ({error})") from None
            data = self._stream.unconsumed_tail
            super().feed(piece)
            if not data and len(piece) < _PIECE_BYTES and not self._stream.unused_data:
                return

    def end(self, *, complete: bool) -> None:
        """End the stream."""
        if not self.done and not self._stream.eof:
            raise TruncatedError(f"it ends inside of its compressed data, after {self.entries:,} words")
        super().end(complete=complete)


Filter: TypeAlias = VectorFilter | PairFilter
