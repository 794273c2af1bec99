"""The frames in which a child process sends rows to its parent: a head of fixed size, then plain bytes.

The parent checks every size in a head before it makes room for what follows. No frame is ever evaluated or unpickled.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

HEAD = struct.Struct("<c2s3Q")
"""Kind of the frame, kind of number, rows, numbers in each row, bytes of the words (or of a text)."""
START, ROWS, END = b"S", b"R", b"E"
REFUSED, DAMAGED, MEMORY = b"X", b"D", b"M"
"""The file cannot be used, with a message; the library raised an error, with its name; the memory was not enough."""
MAX_TEXT_BYTES = 1 << 12
_KINDS = frozenset((b"f2", b"f4", b"f8", b"i1", b"i2", b"i4", b"i8", b"u1", b"u2", b"u4", b"u8"))
_FRAME_BYTES = 1 << 23  # of vectors in a frame, as far as whole rows go
_LENGTH = np.dtype("<i4")

Words: TypeAlias = "list[str | None] | None"
Numbers: TypeAlias = npt.NDArray[Any]
Items: TypeAlias = tuple[Words, Numbers]
"""Words, where the file has any (None for one without text), and their vectors (b, d)."""


@dataclass(frozen=True)
class Job:
    """What a child process reads, and its limits.

    Attributes:
        kind: the format.
        name: the file as the user named it, for messages.
        file: its path; empty for the content of a pipe.
        descriptor: the opened file.
        size: bytes of the file.
        part: what of the file is meant, where the user said so.
        rows: how many rows to read at a time, at most.
        memory: bytes beyond those of the libraries.
        seconds: of processor time.
    """

    kind: str
    name: str
    file: str
    descriptor: int
    size: int
    part: str | None
    rows: int
    memory: int
    seconds: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Head:
    """The head of a frame, checked."""

    kind: bytes
    dtype: np.dtype[Any] | None
    rows: int
    dim: int
    text_bytes: int

    @property
    def numbers_bytes(self) -> int:
        """Bytes of the vectors that follow the words."""
        return 0 if self.dtype is None else self.rows * self.dim * self.dtype.itemsize


def unpacked_head(data: bytes) -> Head:
    """The head of a frame. Raises a ValueError for one that no child sends."""
    kind, number, rows, dim, text_bytes = HEAD.unpack(data)
    if kind == ROWS and number in _KINDS and rows and dim:
        return Head(kind, np.dtype(f"<{number.decode()}"), rows, dim, text_bytes)
    if kind in (START, END) and not text_bytes:
        return Head(kind, None, rows, 0, 0)
    if kind in (REFUSED, DAMAGED, MEMORY) and text_bytes <= MAX_TEXT_BYTES:
        return Head(kind, None, 0, 0, text_bytes)
    raise ValueError(f"received a frame {data!r}")


def send_start(send: Callable[[bytes], object], rows: int) -> None:
    """Say how many rows to expect; 0 if that is not known."""
    send(HEAD.pack(START, b"", rows, 0, 0))


def send_end(send: Callable[[bytes], object], kind: bytes = END, text: str = "") -> None:
    """Say that the file ends, or why it cannot be read on."""
    data = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES]
    send(HEAD.pack(kind, b"", 0, 0, len(data)) + data)


def send_rows(send: Callable[[bytes], object], words: Words, vectors: Numbers) -> None:
    """Send rows in frames of a few megabytes."""
    kind = np.dtype(vectors.dtype).newbyteorder("<")
    step = max(1, _FRAME_BYTES // max(1, vectors.shape[1] * kind.itemsize))
    for begin in range(0, len(vectors), step):
        some = np.ascontiguousarray(vectors[begin : begin + step], dtype=kind)
        text = b"" if words is None else packed_words(words[begin : begin + step])
        send(HEAD.pack(ROWS, kind.str[1:].encode(), *some.shape, len(text)) + text)
        send(memoryview(some).cast("B"))  # type: ignore[arg-type]


def packed_words(words: Sequence[str | None]) -> bytes:
    """Lengths in characters, -1 for no text, then all texts."""
    lengths = np.array([-1 if word is None else len(word) for word in words], dtype=_LENGTH)
    return lengths.tobytes() + "".join(word or "" for word in words).encode("utf-8", "surrogatepass")


def unpacked_words(data: bytes, count: int) -> list[str | None]:
    """The words of a frame. Raises a ValueError if they are not ``count``."""
    lengths = np.frombuffer(data, _LENGTH, count)
    text = data[count * _LENGTH.itemsize :].decode("utf-8", "surrogatepass")
    ends = np.maximum(lengths, 0).cumsum(dtype=np.int64)
    if count and ends[-1] != len(text):
        raise ValueError("received words of another length")
    found: list[str | None] = []
    begin = 0
    for length, end in zip(lengths.tolist(), ends.tolist(), strict=True):
        found.append(None if length < 0 else text[begin:end])
        begin = end
    return found
