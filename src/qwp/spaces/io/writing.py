"""Writing rows of words and vectors: checks that all formats share, and files written row by row."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces.embeddings import invalid_words
from qwp.spaces.io.files import atomic_write
from qwp.spaces.io.numbers import BOM
from qwp.spaces.io.sniffing import sniff
from qwp.spaces.io.sources import Source
from qwp.spaces.limits import MAX_WORD_BYTES, UNPACK, UnpackLimits

_COUNT_DIGITS = 20  # room for any count in a header that is completed at the end
_GZIP_LEVEL = 5
_HEADER_BYTES = 64  # upper bound of a header line

WRITABLE_DTYPES = ("float32", "float16")
"""Number types that can be written; the first is the default."""


@dataclass(frozen=True)
class Target:
    """A file to write.

    Attributes:
        path: the file.
        format: name of the format.
        dim: numbers in each vector.
        count: number of rows, if known in advance.
        digits: digits after the decimal point in text; None for as many as needed.
        compress: whether to gzip-compress the file.
        dtype: number type, one of WRITABLE_DTYPES.
        words: False to leave words out, in a format that can hold vectors without words.
        detect: returns the format that a reader would detect.
        limits: limits that a reader sets for a compressed file.
    """

    path: Path
    format: str
    dim: int
    count: int | None = None
    digits: int | None = None
    compress: bool = False
    dtype: str = WRITABLE_DTYPES[0]
    words: bool = True
    detect: Callable[[Source], str] = sniff
    limits: UnpackLimits = UNPACK


class RowWriter:
    """Writes words with their vectors, in any number of calls.

    put: writes checked rows to the file.
    """

    def __init__(self, target: Target, put: Callable[[list[str], AnyFloats], object]) -> None:
        self._target = target
        self._put = put
        self.n_written = 0

    def write(self, words: Sequence[str], vectors: AnyFloats) -> None:
        """Append rows.

        Args:
            words: b words.
            vectors: (b, d) finite numbers; converted to the number type of the file, float32 by default.
        """
        words = _checked_words(words, self.n_written)
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or vectors.shape[1] != self._target.dim or len(words) != len(vectors):
            raise InputError(
                f"received {len(words)} words and vectors of shape {vectors.shape}, "
                f"expected shape ({len(words)}, {self._target.dim})"
            )
        if vectors.dtype.kind not in "fiub":
            raise InputError(f"received vectors of type {vectors.dtype}, expected real numbers")
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(vectors, dtype=self._target.dtype)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InputError(
                f"the vector of {words[row]!r} (row {self.n_written + row}) is not finite as {self._target.dtype}, "
                "expected finite numbers: remove the word"
            )
        if words:
            self._put(words, rows)
        self.n_written += len(words)

    def finish(self) -> int:
        """Check the number of rows once all are written, and return it."""
        if self._target.count is not None and self.n_written != self._target.count:
            raise InputError(
                f"{self.n_written} words were written to {self._target.path}, expected "
                f"count={self._target.count}: pass the right count, or none"
            )
        if self.n_written == 0:
            raise InputError(f"no word was written to {self._target.path}, expected at least one")
        return self.n_written


def _checked_words(words: Sequence[str], first: int) -> list[str]:
    """Return words that a file can hold. first: row number of the first word, for messages."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InputError(f"received words of {type(words).__name__}, expected a list of strings")
    for row, word in enumerate(words):
        if not word:
            raise InputError(f"received the empty word (row {first + row}), expected text: remove the word")
        if len(word) > MAX_WORD_BYTES // 4 and len(word.encode("utf-8", "surrogatepass")) > MAX_WORD_BYTES:
            raise InputError(
                f"the word of row {first + row} has more than {MAX_WORD_BYTES} bytes, expected at most that many: "
                "shorten or remove the word"
            )
    for row in invalid_words(words):
        raise InputError(
            f"the word {words[row]!r} (row {first + row}) holds half of a surrogate pair, expected text that UTF-8 can "
            "encode: repair or remove the word"
        )
    return list(words)


@contextmanager
def row_writer(
    target: Target,
    encode: Callable[[list[str], AnyFloats], bytes],
    header: Callable[[int, int], bytes] | None,
) -> Iterator[RowWriter]:
    """Write a file of rows after an optional header line.

    A header whose count is not known yet is padded with blanks and overwritten at the end. In a compressed file the
    header is a gzip member of its own, uncompressed, so that its size does not depend on the count.

    Args:
        target: the file to write.
        encode: returns rows (words, vectors (b, d) float32) as bytes.
        header: returns the header line for a count and a dimension.
    """

    def head(count: int) -> bytes:
        if header is None:
            return b""
        line = header(count, target.dim)
        if target.count is None:
            size = len(header(10 ** (_COUNT_DIGITS - 1), target.dim))
            line = line.removesuffix(b"\n").ljust(size - 1) + b"\n"
        return gzip.compress(line, compresslevel=0, mtime=0) if target.compress else line

    with atomic_write(target.path) as file:
        file.write(head(target.count or 0))
        with ExitStack() as stack:
            body: IO[bytes] | gzip.GzipFile = file
            if target.compress:
                # No file name and no time: the same vectors give the same bytes.
                body = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0))
            writer = RowWriter(target, lambda words, vectors: body.write(encode(words, vectors)))
            yield writer
            n_bytes = body.tell()
        count = writer.finish()
        if target.count is None:
            file.seek(0)
            file.write(head(count))
        file.flush()
        _check_readable(target, file, count, n_bytes)


def _check_readable(target: Target, file: IO[bytes], count: int, n_bytes: int) -> None:
    """Refuse a file that its reader would refuse or take for another format."""
    source = Source(target.path, file, owned=False, limits=target.limits)
    if target.compress:
        limits, size = target.limits, source.size
        if n_bytes + _HEADER_BYTES > limits.max_bytes(size) or count > limits.max_rows(size):
            raise limits.too_compressible(target.path, size)
    try:
        detected = target.detect(source)
    except InputError:
        detected = "something else"
    if target.format == "glove" and source.head.startswith(BOM):
        detected = "text with a byte-order mark, which is not part of the first word"
    if detected != target.format:
        raise InputError(
            f"{target.path} would be taken for {detected} when it is read, expected {target.format}: its first words "
            "or numbers look like that; write .npz instead, or begin with another word"
        )
