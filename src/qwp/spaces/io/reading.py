"""Reading rows of words and vectors: the state that all formats share, and combining batches into Embeddings.

The reader of a format yields `Rows`. `filter_vocabulary`, `limit_rows` and `drop_duplicates` then select rows, in this
order, and `collect` combines them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qwp.arrays import AnyFloats, Bools
from qwp.errors import InputError, QwpError
from qwp.spaces.embeddings import Embeddings, LoadReport, invalid_words
from qwp.spaces.io.arguments import UTF8, text_in
from qwp.spaces.limits import MAX_WORD_BYTES, UNPACK
from qwp.spaces.subwords import Subwords

logger = logging.getLogger(__name__)

MAX_EXPLANATIONS = 20
_BATCH_BYTES = 1 << 22
_LEAST_ROWS = 256  # per batch, even if fewer rows are needed: some may be repeated or damaged


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive words with their vectors, (b, d)."""

    words: list[str]
    vectors: AnyFloats

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class Rows:
    """Consecutive rows of a file.

    Attributes:
        words: words of the valid rows.
        vectors: vectors of the valid rows, (len(words), d).
        positions: position of each valid row among all rows; None if all are valid.
        damaged: position, name ("line 7") and explanation of each damaged row.
    """

    words: list[str]
    vectors: AnyFloats
    positions: Sequence[int] | None = None
    damaged: Sequence[tuple[int, str, str]] = ()


@dataclass
class Reading:
    """Options and running state of reading one file.

    Attributes:
        path: path as the user gave it.
        format: name of the format.
        dtype: number type of the vectors.
        errors: "raise" or "skip", for damaged rows.
        max_vocab: maximum number of words; None for all.
        size: bytes of the file as stored.
        max_rows: maximum number of rows of a compressed file; None for no limit.
        encoding: encoding of words that the file stores as bytes.
        vocab: the words to load; None for all.
        vocab_path: file that `vocab` was read from.
        words_path: word file that the user named, for vectors without words.
        label: prefix of the names of rows without words.
        expected_rows: estimated number of rows, for allocation.
        header_count: number of words that the header claims.
        unnamed: whether the rows have no words and were numbered.
        at_end: whether the file has been read to its end.
        n_words: number of words loaded.
        duplicates, skipped, out_of_vocabulary: number of rows left out, by reason.
        skipped_lines: explanations of the first skipped rows.
        warnings: problems that do not stop the reading.
        subwords: vectors for words outside of the file.
    """

    path: Path
    format: str
    dtype: np.dtype[Any]
    errors: str = "raise"
    max_vocab: int | None = None
    size: int = 0
    max_rows: int | None = None
    encoding: str = "utf-8"
    vocab: frozenset[str] | None = None
    vocab_path: str | None = None
    words_path: Path | None = None
    label: str = ""
    expected_rows: int | None = None
    header_count: int | None = None
    unnamed: bool = False
    at_end: bool = False
    n_words: int = 0
    duplicates: int = 0
    skipped: int = 0
    out_of_vocabulary: int = 0
    skipped_lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    subwords: Subwords | None = None

    @property
    def remaining(self) -> int | None:
        """Number of words still to load; None for all."""
        return None if self.max_vocab is None else self.max_vocab - self.n_words

    @property
    def rows_needed(self) -> int | None:
        """Number of rows to read next; None for all, or if a vocabulary makes it unknown."""
        return self.remaining if self.vocab is None else None

    def damaged_row(self, name: str, problem: str) -> None:
        """Raise an InputError for a damaged row, or count it if damaged rows are skipped."""
        if self.errors == "raise":
            raise InputError(
                f'{name} of {self.path} {problem}: repair the file, or pass errors="skip" '
                "(--errors skip) to leave such rows out and count them"
            )
        self.skipped += 1
        if len(self.skipped_lines) < MAX_EXPLANATIONS:
            self.skipped_lines.append(f"{name}: {problem}")

    def warn(self, message: str) -> None:
        """Record and log a problem that does not stop the reading."""
        self.warnings.append(message)
        logger.warning("%s: %s", self.path, message)

    def check_header(self) -> None:
        """Compare the count of the header with the number of rows, once the whole file has been read."""
        rows = self.n_words + self.duplicates + self.skipped + self.out_of_vocabulary
        if self.at_end and self.header_count is not None and self.header_count != rows:
            self.warn(f"header says {self.header_count} words, the file holds {rows}")


def batch_rows(reading: Reading, row_bytes: int) -> int:
    """Return how many rows to read next: a few megabytes, and not many more than needed."""
    rows = max(1, _BATCH_BYTES // row_bytes)
    return rows if reading.rows_needed is None else min(rows, max(reading.rows_needed, _LEAST_ROWS))


def valid_rows(words: Sequence[str | None], vectors: AnyFloats, reading: Reading, name: Callable[[int], str]) -> Rows:
    """Separate valid rows from rows with an invalid word or numbers that are not finite.

    Args:
        words: b words; None for one that could not be decoded.
        vectors: (b, d) real numbers of any type.
        reading: has the number type to convert to.
        name: returns the name of a row of this batch, for messages.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = vectors.astype(reading.dtype, copy=False)
    finite: Bools = np.asarray(np.isfinite(vectors).all(axis=1))
    problems = _word_problems(words, reading.encoding)
    for row in np.flatnonzero(~finite).tolist():
        if row not in problems:
            column = int(np.argmin(np.isfinite(vectors[row])))
            problems[row] = (
                f"holds {vectors[row, column]} as number {column + 1}, expected finite {reading.dtype.name} numbers"
            )
    if not problems:
        return Rows([word for word in words if word is not None], vectors)
    positions = [row for row in range(len(words)) if row not in problems]
    valid = [word for row, word in enumerate(words) if word is not None and row not in problems]
    return Rows(valid, vectors[positions], positions, [(row, name(row), problems[row]) for row in sorted(problems)])


def decode(raw: bytes, encoding: str = UTF8) -> str | None:
    """Decode a word; None if it is not text in this encoding."""
    try:
        return raw.decode(encoding)
    except UnicodeError:
        return None


def _word_problems(words: Sequence[str | None], encoding: str) -> dict[int, str]:
    """Return the problem of each row whose word is invalid."""
    problems: dict[int, str] = {}
    for row, word in enumerate(words):
        if word is None:
            problems[row] = f"has a word with broken characters, expected {text_in(encoding)}"
        elif not word:
            problems[row] = "has no word, expected one before its numbers"
        elif len(word) > MAX_WORD_BYTES // 4 and _utf8_bytes(word) > MAX_WORD_BYTES:
            problems[row] = f"has a word of {_utf8_bytes(word)} bytes, expected at most {MAX_WORD_BYTES}"
    for row in invalid_words([word or "" for word in words]):
        problems[row] = "has a word with half of a surrogate pair, expected UTF-8 text"
    return problems


def _utf8_bytes(word: str) -> int:
    return len(word.encode("utf-8", "surrogatepass"))


def filter_vocabulary(parts: Iterator[Rows], reading: Reading) -> Iterator[Rows]:
    """Keep rows whose words are in the vocabulary, and damaged rows, whose words are unknown."""
    vocab = reading.vocab
    if vocab is None:
        yield from parts
        return
    for part in parts:
        chosen = [row for row, word in enumerate(part.words) if word in vocab]
        reading.out_of_vocabulary += len(part.words) - len(chosen)
        positions = chosen if part.positions is None else [part.positions[row] for row in chosen]
        yield Rows([part.words[row] for row in chosen], part.vectors[chosen], positions, part.damaged)


def limit_rows(parts: Iterator[Rows], reading: Reading) -> Iterator[Batch]:
    """Yield valid rows until enough words are loaded, reporting damaged rows in file order.

    Damaged rows after the last row that is needed are not reported.
    """
    for part in parts:
        used_up = yield from _batches_of(part, reading)
        if reading.remaining == 0:
            reading.at_end = used_up and _is_exhausted(parts)
            return
    reading.at_end = True


def _batches_of(part: Rows, reading: Reading) -> Generator[Batch, None, bool]:
    """Yield batches of one part until enough words are loaded. Return whether the part was used up."""
    positions = part.positions if part.positions is not None else range(len(part.words))
    damaged = deque(part.damaged)
    begin = 0
    while begin < len(part.words) and reading.remaining != 0:
        end = len(part.words) if reading.remaining is None else min(len(part.words), begin + reading.remaining)
        while damaged and damaged[0][0] < positions[end - 1]:
            reading.damaged_row(*damaged.popleft()[1:])
        yield Batch(part.words[begin:end], part.vectors[begin:end])
        begin = end
    while damaged and reading.remaining != 0:
        reading.damaged_row(*damaged.popleft()[1:])
    return begin == len(part.words) and not damaged


def _is_exhausted(parts: Iterator[Rows]) -> bool:
    try:
        return next(parts, None) is None
    except InputError:  # there is more, and it is damaged, but no caller asked for it
        return False


def rebatch(batches: Iterator[Batch], size: int) -> Iterator[Batch]:
    """Yield the same rows in batches of exactly `size` rows, the last one smaller."""
    words: list[str] = []
    parts: list[AnyFloats] = []
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


def drop_duplicates(batches: Iterator[Batch], reading: Reading) -> Iterator[Batch]:
    """Keep the first row of each word, count the rows, and check the result at the end of the file."""
    seen: set[str] = set()
    for batch in batches:
        unique = _unseen(batch, seen)
        reading.duplicates += len(batch) - len(unique)
        reading.n_words += len(unique)
        if reading.max_rows is not None and reading.n_words > reading.max_rows:
            raise UNPACK.bomb(reading.path, reading.size)
        if len(unique):
            yield unique
    if reading.n_words == 0 and reading.vocab is not None and reading.out_of_vocabulary:
        raise InputError(
            f"none of the {len(reading.vocab):,} words of the vocabulary is among the {reading.out_of_vocabulary:,} of "
            f"{reading.path}, expected some: check that both have the same language, and upper and lower case alike"
        )
    if reading.n_words == 0:
        raise InputError(
            f"{reading.path} holds no usable word vector ({reading.skipped} damaged rows were skipped), "
            "expected at least one: check that it is a complete vector file"
        )
    reading.check_header()


def _unseen(batch: Batch, seen: set[str]) -> Batch:
    """Return the rows of words that are not in `seen`, and add them to it."""
    before = len(seen)
    if before == 0 or seen.isdisjoint(batch.words):
        seen.update(batch.words)
        if len(seen) == before + len(batch):
            return batch
        new_words = set(batch.words)
    else:
        new_words = set(batch.words) - seen
        seen.update(new_words)
    rows = []
    for row, word in enumerate(batch.words):
        if word in new_words:
            new_words.discard(word)
            rows.append(row)
    return Batch([batch.words[row] for row in rows], batch.vectors[rows])


def collect(batches: Iterator[Batch], reading: Reading) -> Embeddings:
    """Combine batches into Embeddings with a report."""
    words: list[str] = []
    matrix: AnyFloats | None = None
    for batch in batches:
        if matrix is None:
            rows = max(_rows_to_allocate(reading), len(batch))
            matrix = np.empty((rows, batch.vectors.shape[1]), dtype=reading.dtype)
        if len(words) + len(batch) > len(matrix):
            _resize(matrix, max(len(words) + len(batch), len(matrix) + len(matrix) // 4))
        matrix[len(words) : len(words) + len(batch)] = batch.vectors
        words.extend(batch.words)
    assert matrix is not None, "drop_duplicates yields at least one batch"
    _resize(matrix, len(words))
    return Embeddings(words, matrix, _report(reading, matrix), subwords=reading.subwords)


def _rows_to_allocate(reading: Reading) -> int:
    if reading.expected_rows is None:
        return 0
    most = (reading.max_vocab, None if reading.vocab is None else len(reading.vocab))
    return min(reading.expected_rows, *(bound for bound in most if bound is not None), reading.expected_rows)


def _resize(matrix: AnyFloats, rows: int) -> None:
    # In place: the allocator can often grow or shrink the memory without a second copy. No other object refers to it.
    matrix.resize((rows, matrix.shape[1]), refcheck=False)


def _report(reading: Reading, matrix: AnyFloats) -> LoadReport:
    """Return the report of a finished reading. matrix: the loaded vectors (n, d)."""
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
def explain_damage(path: Path, what: str) -> Iterator[None]:
    """Turn any exception of a library that reads a damaged file into an InputError. what: the kind of file."""
    try:
        yield
    except QwpError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is a damaged or truncated {what} ({type(error).__module__}.{type(error).__name__}), "
            "expected a complete one: copy or save it again"
        ) from error
