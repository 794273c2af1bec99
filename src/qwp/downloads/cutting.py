"""What is kept of a stream: the first words of vectors, plain or gzipped, or a whole dictionary.

Bytes are fed as they come. `done` says that no more are needed, `end` that no more will come.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

from qwp.spaces.io.numbers import HEADER, header_line
from qwp.spaces.io.sniffing import describe
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

GZIP = b"\x1f\x8b"
_HEADER_BYTES = 64
_NUMBER_BYTES = 32
_PIECE_BYTES = 1 << 18
_MOST_PAIR_BYTES = 32 << 20
_PLAIN_TEXT = describe(b"the la\n")

Sink = Callable[[bytes], object]


class DamagedError(Exception):
    """What came is not what it should be; the message says what it is."""


class ShortError(Exception):
    """The stream ended before what was wanted of it."""


class Cut(Protocol):
    """What is kept of one stream."""

    @property
    def entries(self) -> int:
        """Words or pairs so far."""
        ...

    @property
    def total(self) -> int | None:
        """How many it will be, once that is known."""
        ...

    @property
    def whole(self) -> bool:
        """Whether that is all that the file has."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing more is needed."""
        ...

    def feed(self, data: bytes) -> None:
        """The next bytes. Raises a DamagedError where they cannot be right."""
        ...

    def end(self, *, complete: bool) -> None:
        """The stream is over. complete: whether its length says so too. Raises a ShortError or a DamagedError."""
        ...


class VectorCut:
    """The first `most` words of vectors as text, in their order. Lines stay as they are, but the first."""

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
        """Whether all words are there."""
        return self.total is not None and self.entries >= self.total

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        self._rest += data
        if self.total is None and not self._begin():
            return
        assert self.total is not None
        *lines, self._rest = self._rest.split(b"\n")
        kept = lines[: self.total - self.entries]
        for number, line in enumerate(kept, self.entries + 1):
            self._check(line, number)
        if kept:
            self._sink(b"\n".join(kept) + b"\n")
            self.entries += len(kept)
        if not self.done and len(self._rest) > self._longest:
            raise DamagedError(f"the line of word {self.entries + 1:,} is longer than {self._longest:,} bytes")

    def end(self, *, complete: bool) -> None:
        """No more bytes come. A last line without a line feed may lack digits of its last number."""
        if self.total is None:
            self._refuse_begin()
        if not self.done:
            place = ", inside of a line" if self._rest else ""
            raise ShortError(f"it ends after {self.entries:,} of {self.total:,} words{place}")

    def _begin(self) -> bool:
        """Read the line "count dimension", if it is there, and write that of the cut."""
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
            raise ShortError("it is empty")
        raise DamagedError(f"it begins like {describe(self._rest)[0]}, expected vectors after a line 'count dimension'")

    def _check(self, line: bytes, number: int) -> None:
        # Words may hold blanks, so there may be more of them than numbers.
        if line.count(b" ") < self.dim or len(line) > self._longest:
            raise DamagedError(f"the line of word {number:,} does not hold a word and {self.dim} numbers")


class PairCut:
    """A whole dictionary, written at its end; they are small. expected: how many pairs it has, None if not known."""

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
        """The next bytes."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MOST_PAIR_BYTES:
            raise DamagedError(f"it has more than {_MOST_PAIR_BYTES:,} bytes, expected a dictionary")

    def end(self, *, complete: bool) -> None:
        """No more bytes come. Nothing inside of a dictionary says how long it is: its length has to be known."""
        text = b"".join(self._pieces)
        if not text:
            raise ShortError("it is empty")
        if describe(text[:4096]) != _PLAIN_TEXT:
            raise DamagedError(f"it is {describe(text[:4096])[0]}, expected a dictionary")
        if not complete:
            raise DamagedError("nothing says that it is complete: the server does not give its length")
        if not text.endswith(b"\n"):
            raise ShortError("it ends inside of a line")
        lines = text.splitlines()
        odd = sum(len(line.split()) < 2 for line in lines)
        if odd * 2 > len(lines):
            raise DamagedError(f"{odd:,} of its {len(lines):,} lines do not hold two words, expected a dictionary")
        if len(lines) < (self._expected or 0):
            raise ShortError(f"it ends after {len(lines):,} of {self._expected:,} pairs")
        self._sink(text)
        self.entries = self.total = len(lines)
        self.done = True


class Unpacked:
    """The cut of a gzipped stream. Never more than a piece of it is unpacked at once."""

    def __init__(self, cut: VectorCut) -> None:
        self._cut = cut
        self._stream = zlib.decompressobj(wbits=31)

    @property
    def entries(self) -> int:
        """Those of the cut."""
        return self._cut.entries

    @property
    def total(self) -> int | None:
        """That of the cut."""
        return self._cut.total

    @property
    def whole(self) -> bool:
        """Whether the cut takes all."""
        return self._cut.whole

    @property
    def done(self) -> bool:
        """Whether all words are there."""
        return self._cut.done

    def feed(self, data: bytes) -> None:
        """The next compressed bytes."""
        while not self.done:
            if self._stream.eof:
                data = (self._stream.unused_data + data).lstrip(b"\0")  # files may be padded
                if not data:
                    return
                self._stream = zlib.decompressobj(wbits=31)  # another member of the same file
            try:
                piece = self._stream.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise DamagedError(f"it is no gzip file, or a damaged one ({error})") from None
            data = self._stream.unconsumed_tail
            self._cut.feed(piece)
            if not data and len(piece) < _PIECE_BYTES and not self._stream.unused_data:
                return

    def end(self, *, complete: bool) -> None:
        """No more bytes come."""
        if not self.done and not self._stream.eof:
            raise ShortError(f"it ends inside of its compressed data, after {self.entries:,} words")
        self._cut.end(complete=True)  # the end of the compressed data, with its checksum, is that of the text
