"""What every format shares when writing: checks of the rows, and files written row by row."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import replacing

_COUNT_DIGITS = 20  # room for any count in a header that is filled in at the end
_GZIP_LEVEL = 5


@dataclass(frozen=True)
class Target:
    """What to write: the file, numbers in each vector, rows if known, digits after the point if fixed."""

    path: Path
    dim: int
    count: int | None = None
    digits: int | None = None
    compress: bool = False


class RowWriter:
    """Takes words with their vectors, in as many calls as one likes."""

    def __init__(self, target: Target, put: Callable[[list[str], FloatArray], None]) -> None:
        self._target = target
        self._put = put
        self.n_written = 0

    def write(self, words: Sequence[str], vectors: FloatArray) -> None:
        """Append rows.

        Args:
            words: b words.
            vectors: (b, d) finite numbers; written with the precision of float32.
        """
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or vectors.shape[1] != self._target.dim or len(words) != len(vectors):
            raise InputError(
                f"received {len(words)} words and vectors of shape {vectors.shape}, "
                f"expected shape ({len(words)}, {self._target.dim})"
            )
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(vectors, dtype=np.float32)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InputError(
                f"the vector of {words[row]!r} (row {self.n_written + row}) is not finite as float32, "
                "expected finite numbers: remove the word"
            )
        if len(words):
            try:
                self._put(list(words), rows)
            except UnicodeEncodeError as error:
                raise InputError(
                    f"a word holds {error.object[error.start]!r}, half of a surrogate pair, expected text "
                    "that UTF-8 can hold: repair or remove the word"
                ) from error
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


@contextmanager
def row_writer(
    target: Target,
    encode: Callable[[list[str], FloatArray], bytes],
    header: Callable[[int, int], bytes] | None,
) -> Iterator[RowWriter]:
    """Write a file of rows behind an optional header line.

    A header whose count is not known yet is padded with blanks and written over at the end. In a compressed
    file it is a gzip member of its own without compression, so that its size does not depend on the count.

    Args:
        target: what to write.
        encode: rows (words, vectors (b, d) float32) as bytes.
        header: count and dimension as a line of bytes.
    """

    def head(count: int) -> bytes:
        if header is None:
            return b""
        line = header(count, target.dim)
        if target.count is None:
            size = len(header(10 ** (_COUNT_DIGITS - 1), target.dim))
            line = line.removesuffix(b"\n").ljust(size - 1) + b"\n"
        return gzip.compress(line, compresslevel=0, mtime=0) if target.compress else line

    with replacing(target.path) as file:
        file.write(head(target.count or 0))
        with ExitStack() as stack:
            body: IO[bytes] | gzip.GzipFile = file
            if target.compress:
                # No name and no time inside: the same vectors give the same bytes.
                body = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0))
            writer = RowWriter(target, lambda words, vectors: _write_all(body, encode(words, vectors)))
            yield writer
        count = writer.finish()
        if target.count is None:
            file.seek(0)
            file.write(head(count))


def _write_all(body: IO[bytes] | gzip.GzipFile, data: bytes) -> None:
    body.write(data)
