"""What every format shares when reading: the running notes, and turning batches into one Embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, FloatArray, LoadReport

logger = logging.getLogger(__name__)

MAX_EXPLANATIONS = 20
_BATCH_BYTES = 1 << 22


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive words with their vectors, (b, d)."""

    words: list[str]
    vectors: FloatArray

    def __len__(self) -> int:
        return len(self.words)


@dataclass
class Reading:
    """One reading of one file: what was asked, and what has been found so far.

    A format's reader yields batches of sound rows, and tells this object about everything else. The consumer
    counts the rows it keeps; the reader never yields more rows than are still ``wanted``, ends when none
    are, and sets ``at_end`` when it ends because the file does.
    """

    path: Path
    format: str
    dtype: np.dtype[Any]
    errors: str = "raise"
    max_vocab: int | None = None
    header_count: int | None = None
    expected_rows: int | None = None  # a guess for allocating, from the header or the size of the file
    at_end: bool = False
    kept: int = 0
    duplicates: int = 0
    skipped: int = 0
    skipped_lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> int | None:
        """Rows still wanted; None when all are."""
        return None if self.max_vocab is None else self.max_vocab - self.kept

    def bad(self, where: str, found: str) -> None:
        """A damaged row: an InputError, or one more in the count of skipped rows."""
        if self.errors == "raise":
            raise InputError(
                f'{where} of {self.path} {found}: repair the file, or pass errors="skip" '
                "(--errors skip) to leave such rows out and count them"
            )
        self.skipped += 1
        if len(self.skipped_lines) < MAX_EXPLANATIONS:
            self.skipped_lines.append(f"{where}: {found}")

    def warn(self, message: str) -> None:
        """Something the user should know that does not stop the reading."""
        self.warnings.append(message)
        logger.warning("%s: %s", self.path, message)

    def check_header(self) -> None:
        """Compare the header's count with the rows found, once the whole file has been read."""
        rows = self.kept + self.duplicates + self.skipped
        if self.at_end and self.header_count is not None and self.header_count != rows:
            self.warn(f"header says {self.header_count} words, the file holds {rows}")


def batch_rows(reading: Reading, row_bytes: int) -> int:
    """How many rows to read next: a few megabytes, and not more than are wanted."""
    rows = max(1, _BATCH_BYTES // row_bytes)
    return rows if reading.wanted is None else min(rows, reading.wanted)


def sound_rows(
    words: Sequence[str | None], vectors: FloatArray, reading: Reading, where: Callable[[int], str]
) -> Batch:
    """Leave out rows without a word or with numbers that are not finite, and tell the reading about them.

    Args:
        words: b words; None for one that is not UTF-8 text.
        vectors: (b, d) of any kind of real number.
        reading: receives the complaints.
        where: names a row of this batch for the complaint.
    """
    with np.errstate(over="ignore"):
        vectors = vectors.astype(reading.dtype, copy=False)
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    kept: list[str] = []
    rows: list[int] = []
    for row, word in enumerate(words):
        if word is None:
            reading.bad(where(row), "has a word with broken characters, expected UTF-8 text")
        elif not word:
            reading.bad(where(row), f"has no word, expected a word before its {vectors.shape[1]} numbers")
        elif not finite[row]:
            column = int(np.argmin(np.isfinite(vectors[row])))
            found = f"holds {vectors[row, column]} as number {column + 1}"
            reading.bad(where(row), f"{found}, expected finite {reading.dtype.name} numbers")
        else:
            kept.append(word)
            rows.append(row)
    return Batch(kept, vectors if len(rows) == len(words) else vectors[rows])


def rebatched(batches: Iterator[Batch], size: int) -> Iterator[Batch]:
    """The same rows in batches of exactly ``size``, the last one smaller."""
    words: list[str] = []
    parts: list[FloatArray] = []
    for batch in batches:
        begin = 0
        while begin < len(batch):
            end = min(len(batch), begin + size - len(words))
            words.extend(batch.words[begin:end])
            parts.append(batch.vectors[begin:end])
            begin = end
            if len(words) == size:
                yield Batch(words, np.concatenate(parts))
                words, parts = [], []
    if words:
        yield Batch(words, np.concatenate(parts))


def first_of_each(batches: Iterator[Batch], reading: Reading) -> Iterator[Batch]:
    """Drop words seen before and count what happened."""
    seen: set[str] = set()
    for batch in batches:
        kept = _unseen(batch, seen)
        reading.duplicates += len(batch) - len(kept)
        reading.kept += len(kept)
        if len(kept):
            yield kept
    if reading.kept == 0:
        raise InputError(
            f"{reading.path} holds no usable word vector ({reading.skipped} damaged rows were skipped), "
            "expected at least one: check that it is a complete vector file"
        )
    reading.check_header()


def collect(batches: Iterator[Batch], reading: Reading) -> Embeddings:
    """All batches as one Embeddings with its report."""
    words: list[str] = []
    matrix: FloatArray | None = None
    for batch in batches:
        if matrix is None:
            rows = max(_guess_rows(reading), len(batch))
            matrix = np.empty((rows, batch.vectors.shape[1]), dtype=reading.dtype)
        matrix = _with_room(matrix, len(words) + len(batch))
        matrix[len(words) : len(words) + len(batch)] = batch.vectors
        words.extend(batch.words)
    assert matrix is not None, "first_of_each yields at least one batch"
    _resize(matrix, len(words))
    return Embeddings(words, matrix, _report(reading, matrix))


def _unseen(batch: Batch, seen: set[str]) -> Batch:
    before = len(seen)
    if before == 0 or seen.isdisjoint(batch.words):
        seen.update(batch.words)
        if len(seen) == before + len(batch):
            return batch
        fresh_words = set(batch.words)
    else:
        fresh_words = set(batch.words) - seen
        seen.update(fresh_words)
    rows = []
    for row, word in enumerate(batch.words):
        if word in fresh_words:
            fresh_words.discard(word)
            rows.append(row)
    return Batch([batch.words[row] for row in rows], batch.vectors[rows])


def _guess_rows(reading: Reading) -> int:
    guesses = [guess for guess in (reading.expected_rows, reading.max_vocab) if guess is not None]
    return min(guesses, default=0)


def _with_room(matrix: FloatArray, rows: int) -> FloatArray:
    if rows > len(matrix):
        _resize(matrix, max(rows, len(matrix) + len(matrix) // 4))
    return matrix


def _resize(matrix: FloatArray, rows: int) -> None:
    # In place: the allocator can often grow or shrink without a second copy. Nothing else refers to the
    # array.
    matrix.resize((rows, matrix.shape[1]), refcheck=False)


def _report(reading: Reading, matrix: FloatArray) -> LoadReport:
    """matrix: (n, d), as kept."""
    return LoadReport(
        path=str(reading.path),
        format=reading.format,
        n_words=len(matrix),
        dim=matrix.shape[1],
        duplicates=reading.duplicates,
        skipped=reading.skipped,
        skipped_lines=tuple(reading.skipped_lines),
        header_count=reading.header_count,
        complete=reading.at_end,
        zero_vectors=int(len(matrix) - np.count_nonzero(matrix.any(axis=1))),
        warnings=tuple(reading.warnings),
    )
