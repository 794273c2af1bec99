"""What every format shares when reading: the running notes, and turning batches into one Embeddings."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError, QwpError
from qwp.spaces.embeddings import Embeddings, FloatArray, LoadReport, broken_rows
from qwp.spaces.io.arguments import text_in
from qwp.spaces.limits import MAX_WORD_BYTES, bomb
from qwp.spaces.subwords import Subwords

logger = logging.getLogger(__name__)

MAX_EXPLANATIONS = 20
_BATCH_BYTES = 1 << 22
_LEAST_ROWS = 256  # read at a time, even if fewer are wanted: some may be repeated or damaged


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive words with their vectors, (b, d)."""

    words: list[str]
    vectors: FloatArray

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class Rows:
    """Consecutive rows of a file, as its reader found them.

    Attributes:
        words: the words of the sound rows.
        vectors: (len(words), d).
        positions: the position of each sound row among all of these; None when all are sound.
        bad: the others: position, name ("line 7") and explanation.
    """

    words: list[str]
    vectors: FloatArray
    positions: Sequence[int] | None = None
    bad: Sequence[tuple[int, str, str]] = ()


@dataclass
class Reading:
    """One reading of one file: what was asked, and what has been found so far.

    A format's reader yields ``Rows``. ``paced`` makes batches of them and passes on complaints about damaged rows, in
    the order of the file and no further than words are wanted; ``first_of_each`` counts what is kept.
    """

    path: Path
    format: str
    dtype: np.dtype[Any]
    errors: str = "raise"
    max_vocab: int | None = None
    size: int = 0  # bytes of the file as it is stored
    max_rows: int | None = None  # how many a compressed file may hold
    encoding: str = "utf-8"  # of the words, where they are bytes
    vocab: frozenset[str] | None = None  # the only words that are wanted
    vocab_path: str | None = None  # the file that they are in
    header_count: int | None = None
    expected_rows: int | None = None  # a guess for allocating, from the header or the size of the file
    at_end: bool = False
    kept: int = 0
    duplicates: int = 0
    skipped: int = 0
    left_out: int = 0  # not in the vocabulary
    subwords: Subwords | None = None  # for words that are not in the file
    words_path: Path | None = None  # the file that holds the words, where the vectors have none
    label: str = ""  # what rows without words are called, before their number
    unnamed: bool = False  # the rows have no words, and were numbered
    skipped_lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> int | None:
        """Rows still wanted; None when all are."""
        return None if self.max_vocab is None else self.max_vocab - self.kept

    @property
    def ahead(self) -> int | None:
        """Rows to look at next; None when nobody knows how many of them are wanted, or all are."""
        return self.wanted if self.vocab is None else None

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
        rows = self.kept + self.duplicates + self.skipped + self.left_out
        if self.at_end and self.header_count is not None and self.header_count != rows:
            self.warn(f"header says {self.header_count} words, the file holds {rows}")


def batch_rows(reading: Reading, row_bytes: int) -> int:
    """How many rows to read next: a few megabytes, and not many more than are wanted."""
    rows = max(1, _BATCH_BYTES // row_bytes)
    return rows if reading.ahead is None else min(rows, max(reading.ahead, _LEAST_ROWS))


def valid_rows(words: Sequence[str | None], vectors: FloatArray, reading: Reading, where: Callable[[int], str]) -> Rows:
    """Tell sound rows from those without a proper word or with numbers that are not finite.

    Args:
        words: b words; None for one that is not text.
        vectors: (b, d) of any kind of real number.
        reading: says which kind of number to make of them.
        where: names a row of this batch for the complaint.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = vectors.astype(reading.dtype, copy=False)
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    faults = _word_faults(words, reading.encoding)
    for row in np.flatnonzero(~finite).tolist():
        if row not in faults:
            column = int(np.argmin(np.isfinite(vectors[row])))
            faults[row] = (
                f"holds {vectors[row, column]} as number {column + 1}, expected finite {reading.dtype.name} numbers"
            )
    if not faults:
        return Rows([word for word in words if word is not None], vectors)
    positions = [row for row in range(len(words)) if row not in faults]
    kept = [word for row, word in enumerate(words) if word is not None and row not in faults]
    return Rows(kept, vectors[positions], positions, [(row, where(row), faults[row]) for row in sorted(faults)])


def _word_faults(words: Sequence[str | None], encoding: str) -> dict[int, str]:
    """What is wrong with the words of some rows."""
    faults: dict[int, str] = {}
    for row, word in enumerate(words):
        if word is None:
            faults[row] = f"has a word with broken characters, expected {text_in(encoding)}"
        elif not word:
            faults[row] = "has no word, expected one before its numbers"
        elif len(word) > MAX_WORD_BYTES // 4 and _utf8_bytes(word) > MAX_WORD_BYTES:
            faults[row] = f"has a word of {_utf8_bytes(word)} bytes, expected at most {MAX_WORD_BYTES}"
    for row in broken_rows([word or "" for word in words]):
        faults[row] = "has a word with half of a surrogate pair, expected UTF-8 text"
    return faults


def _utf8_bytes(word: str) -> int:
    return len(word.encode("utf-8", "surrogatepass"))


def restricted(parts: Iterator[Rows], reading: Reading) -> Iterator[Rows]:
    """The rows whose words are wanted; complaints about damaged ones stay, for nobody knows their words."""
    vocab = reading.vocab
    if vocab is None:
        yield from parts
        return
    for part in parts:
        chosen = [row for row, word in enumerate(part.words) if word in vocab]
        reading.left_out += len(part.words) - len(chosen)
        positions = chosen if part.positions is None else [part.positions[row] for row in chosen]
        yield Rows([part.words[row] for row in chosen], part.vectors[chosen], positions, part.bad)


def paced(parts: Iterator[Rows], reading: Reading) -> Iterator[Batch]:
    """Sound rows as batches, never more of them than are still wanted, and complaints in their places.

    Rows after the last wanted one may be as damaged as they like.
    """
    for part in parts:
        used_up = yield from _steps(part, reading)
        if reading.wanted == 0:
            reading.at_end = used_up and _is_exhausted(parts)
            return
    reading.at_end = True


def _steps(part: Rows, reading: Reading) -> Generator[Batch, None, bool]:
    """Batches from one part, until no more rows are wanted. Returns whether the part was used up."""
    positions = part.positions if part.positions is not None else range(len(part.words))
    complaints = deque(part.bad)
    begin = 0
    while begin < len(part.words) and reading.wanted != 0:
        end = len(part.words) if reading.wanted is None else min(len(part.words), begin + reading.wanted)
        while complaints and complaints[0][0] < positions[end - 1]:
            reading.bad(*complaints.popleft()[1:])
        yield Batch(part.words[begin:end], part.vectors[begin:end])
        begin = end
    while complaints and reading.wanted != 0:
        reading.bad(*complaints.popleft()[1:])
    return begin == len(part.words) and not complaints


def _is_exhausted(parts: Iterator[Rows]) -> bool:
    try:
        return next(parts, None) is None
    except InputError:  # there is something, and nobody asked for it
        return False


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
        if reading.max_rows is not None and reading.kept > reading.max_rows:
            raise bomb(reading.path, reading.size)
        if len(kept):
            yield kept
    if reading.kept == 0 and reading.vocab is not None and reading.left_out:
        raise InputError(
            f"none of the {len(reading.vocab):,} words of the vocabulary is among the {reading.left_out:,} of "
            f"{reading.path}: expected some; are they of one language, and alike in upper and lower case?"
        )
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
    return Embeddings(words, matrix, _report(reading, matrix), subwords=reading.subwords)


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
    if reading.expected_rows is None:
        return 0
    most = (reading.max_vocab, None if reading.vocab is None else len(reading.vocab))
    return min(reading.expected_rows, *(bound for bound in most if bound is not None), reading.expected_rows)


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
        errors=reading.errors,
        encoding=reading.encoding,
        vocab_words=None if reading.vocab is None else len(reading.vocab),
        vocab_path=reading.vocab_path,
        zero_vectors=int(len(matrix) - np.count_nonzero(matrix.any(axis=1))),
        warnings=tuple(reading.warnings),
        words_path=None if reading.words_path is None else str(reading.words_path),
        label=reading.label if reading.unnamed else None,
    )


@contextmanager
def damage_explained(path: Path, what: str) -> Iterator[None]:
    """Whatever a library raises for a damaged file, and each has a dozen kinds. what: such as "npz archive"."""
    try:
        yield
    except QwpError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is a damaged or cut {what} ({type(error).__module__}.{type(error).__name__}), "
            "expected a complete one: copy or save it again"
        ) from error
