"""Embeddings: words with their vectors."""

from __future__ import annotations

import copy
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from qwp.errors import InputError
from qwp.showing import html
from qwp.spaces.subwords import Subwords

if TYPE_CHECKING:  # the child process starts faster without arrays
    from qwp.arrays import AnyFloats

logger = logging.getLogger(__name__)


UNNAMED = "embeddings"
"""Default name of embeddings."""
_BLOCK_ROWS = 8192
_WORDS_PER_CHECK = 512


@dataclass(frozen=True)
class LoadReport:
    """Report of reading a vector file.

    Attributes:
        path: path as the caller gave it.
        format: format of the file.
        n_words: number of rows loaded.
        dim: numbers in each row.
        duplicates: rows left out because an earlier row had the same word.
        skipped: rows left out because they were damaged (``errors="skip"``).
        skipped_lines: explanations of the first skipped rows, such as "line 7: holds 49 numbers, expected 50".
        header_count: number of words that the header claims; None without a header.
        complete: False if ``max_vocab`` stopped the reading before the end of the file.
        zero_vectors: number of loaded rows that are all zeros.
        warnings: problems that did not stop the reading, such as a header that disagrees with the file.
        errors: treatment of damaged rows, "raise" or "skip".
        encoding: encoding of words that the file stores as bytes.
        vocab_words: number of words in the vocabulary that restricted the reading; None without one.
        vocab_path: file of that vocabulary.
        words_path: word file that the caller named, for vectors without words.
        label: prefix of the names of rows without words; None if all rows have words.
    """

    path: str
    format: str
    n_words: int
    dim: int
    duplicates: int = 0
    skipped: int = 0
    skipped_lines: tuple[str, ...] = ()
    header_count: int | None = None
    complete: bool = True
    zero_vectors: int = 0
    warnings: tuple[str, ...] = ()
    errors: str = "raise"
    encoding: str = "utf-8"
    vocab_words: int | None = None
    vocab_path: str | None = None
    words_path: str | None = None
    label: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        values = asdict(self)
        values["skipped_lines"] = list(self.skipped_lines)
        values["warnings"] = list(self.warnings)
        return values


@dataclass(frozen=True, eq=False)
class Embeddings(html.NotebookCard):
    """A vocabulary and its vectors, most frequent word first.

    Attributes:
        words: n unique words.
        vectors: (n, d) finite float32 or float64; other number types become float32.
        report: report of reading the file, for embeddings from a file.
        name: name in messages; by default the name of the file without its format suffixes, or "embeddings".
        subwords: vectors of out-of-vocabulary words, for embeddings from a fastText model.
    """

    words: list[str]
    vectors: AnyFloats
    report: LoadReport | None = None
    name: str = ""
    subwords: Subwords | None = None

    def __post_init__(self) -> None:
        words = _as_words(self.words)
        vectors = _as_matrix(self.vectors)
        if len(words) != len(vectors):
            raise InputError(
                f"received {len(words)} words and {len(vectors)} vectors, expected one vector for each word: "
                "pass lists of the same length"
            )
        _check_text(words)
        _check_finite(words, vectors)
        _check_unique(words)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "vectors", vectors)
        if not self.name:
            object.__setattr__(self, "name", UNNAMED if self.report is None else name_of(self.report.path))

    @classmethod
    def unchecked(cls, words: list[str], vectors: AnyFloats, report: LoadReport) -> Embeddings:
        """Return embeddings of words and vectors (n, d) that were validated before."""
        embeddings = object.__new__(cls)
        values = {"words": words, "vectors": vectors, "report": report, "name": name_of(report.path), "subwords": None}
        for name, value in values.items():
            object.__setattr__(embeddings, name, value)
        return embeddings

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> AnyFloats:
        """Return the vector of a word, (d,), composed of subwords if it is out of vocabulary."""
        row = self.index.get(word)
        if row is not None:
            vector: AnyFloats = self.vectors[row]
            return vector
        found = self.composed([word])
        if word not in found:
            raise KeyError(f"{word!r} is not one of the {len(self)} words of {self.name}")
        return found[word]

    def composed(self, words: Sequence[str]) -> dict[str, AnyFloats]:
        """Compose vectors (d,) of out-of-vocabulary words from subwords. Words without a vector are left out.

        If the file of the subwords is missing or has changed, a warning is logged and the result is empty.
        """
        outside = [word for word in words if word not in self.index]
        if self.subwords is None or not outside or invalid_words(outside):
            return {}
        try:
            rows, vectors = self.subwords.vectors(outside)
        except (InputError, OSError) as error:
            logger.warning("words outside the vocabulary of %s have no vectors: %s", self.name, error)
            return {}
        return {outside[row]: vector for row, vector in zip(rows, vectors.astype(self.vectors.dtype), strict=True)}

    def _as_html(self) -> str:
        numbers = [
            (word, " ".join(f"{x:.3f}" for x in row[:5]) + " ...")
            for word, row in zip(self.words, self.vectors[:5], strict=False)
        ]
        return html.join(html.element("div", repr(self)), html.table(numbers, ("word", "vector")))

    def __repr__(self) -> str:
        return f"Embeddings({self.name!r}, {len(self):,} words, {self.dim} dimensions, {self.vectors.dtype})"

    @property
    def dim(self) -> int:
        """Numbers in each vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def head(self, n: int) -> Embeddings:
        """Return the first n words, or all if there are fewer, sharing memory with this object."""
        if n < 1:
            raise InputError(f"received n={n}, expected n >= 1: ask for at least one word")
        if n >= len(self):
            return self
        return Embeddings(self.words[:n], self.vectors[:n], self.report, self.name, self.subwords)

    def named(self, name: str) -> Embeddings:
        """Return the same words and vectors under another name, sharing memory with this object."""
        return self._changed(name=name)

    def with_subwords(self, subwords: Subwords | None) -> Embeddings:
        """Return the same words and vectors with other subwords, sharing memory with this object."""
        return self._changed(subwords=subwords)

    def _changed(self, **values: Any) -> Embeddings:
        other = copy.copy(self)  # avoids validating words and vectors again
        for name, value in values.items():
            object.__setattr__(other, name, value)
        return other

    def sha256(self) -> str:
        """Return a fingerprint of words and vectors that does not depend on the file."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        digest = hashlib.sha256()
        little = self.vectors.dtype.newbyteorder("<")
        digest.update(f"{little.str} {len(self)} {self.dim}\n".encode())
        for start in range(0, len(self), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            encoded = [word.encode() for word in self.words[rows]]
            # The lengths are hashed as well, so that ["ab", "c"] and ["a", "bc"] differ.
            digest.update(np.array([len(word) for word in encoded], dtype="<u8").tobytes())
            digest.update(b"".join(encoded))
            digest.update(np.ascontiguousarray(self.vectors[rows], dtype=little).tobytes())
        return digest.hexdigest()


def name_of(path: str) -> str:
    """Return the name of a file without its format suffixes, or "embeddings"."""
    name = PurePath(path)
    if name.suffix == ".gz":
        name = name.with_suffix("")
    return name.stem or UNNAMED


def disambiguated(spaces: Sequence[Embeddings]) -> list[str]:
    """Return names of several spaces for messages: their names, or paths if several have the same name."""
    names = [space.name for space in spaces]
    return [
        name if names.count(name) == 1 or space.report is None else space.report.path
        for name, space in zip(names, spaces, strict=True)
    ]


def _as_words(words: Sequence[str]) -> list[str]:
    if isinstance(words, str):
        raise InputError(f"received the string {words[:30]!r} as words, expected a list of strings")
    if not isinstance(words, list):
        try:
            words = list(words)
        except TypeError:
            raise InputError(f"received {type(words).__name__} as words, expected a list of strings") from None
    for row, word in enumerate(words):
        if type(word) is not str:
            if not isinstance(word, str):
                raise InputError(f"word {row} is {word!r} ({type(word).__name__}), expected a string")
            # np.str_ and other subclasses become plain strings, which hash and serialise predictably.
            return [str(w) for w in words[:row]] + _as_words([str(w) for w in words[row:]])
    return words


def _as_matrix(vectors: AnyFloats) -> AnyFloats:
    try:
        matrix = np.asarray(vectors)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise InputError(f"received vectors that are not an array ({error}), expected real numbers (n, d)") from error
    if matrix.ndim != 2:
        raise InputError(f"received vectors of shape {matrix.shape}, expected two dimensions (words, numbers)")
    if matrix.shape[0] < 1 or matrix.shape[1] < 1:
        raise InputError(f"received vectors of shape {matrix.shape}, expected at least one word and one number")
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"received vectors of type {matrix.dtype}, expected real numbers (float32 or float64)")
    dtype = np.float64 if matrix.dtype.kind == "f" and matrix.dtype.itemsize == 8 else np.float32
    with np.errstate(over="ignore"):  # _check_finite reports overflows with their words
        return np.ascontiguousarray(matrix, dtype=dtype)


def invalid_words(words: Sequence[str]) -> list[int]:
    """Return the indices of words with half of a surrogate pair, which UTF-8 cannot encode."""
    found: list[int] = []
    for start in range(0, len(words), _WORDS_PER_CHECK):
        block = words[start : start + _WORDS_PER_CHECK]
        if not _is_encodable("".join(block)):
            found += [start + row for row, word in enumerate(block) if not _is_encodable(word)]
    return found


def _is_encodable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_text(words: list[str]) -> None:
    if invalid := invalid_words(words):
        row = invalid[0]
        raise InputError(
            f"the word {words[row]!r} (row {row}) holds half of a surrogate pair, expected text that UTF-8 can encode: "
            "repair or remove the word"
        )


def _check_finite(words: list[str], vectors: AnyFloats) -> None:
    # In blocks: a mask of the whole matrix would take a quarter of its memory.
    for start in range(0, len(vectors), _BLOCK_ROWS):
        finite = np.isfinite(vectors[start : start + _BLOCK_ROWS])
        if not finite.all():
            row = start + int(np.argmin(finite.all(axis=1)))
            column = int(np.argmin(finite[row - start]))
            raise InputError(
                f"the vector of {words[row]!r} (row {row}) holds {vectors[row, column]} "
                f"at position {column}, expected finite numbers: remove the word, or load the file with "
                "errors='skip'"
            )


def _check_unique(words: list[str]) -> None:
    if len(set(words)) == len(words):
        return
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        if first.setdefault(word, row) != row:
            raise InputError(
                f"the word {word!r} is in row {first[word]} and again in row {row}, expected different "
                "words: remove the second one"
            )


Side: TypeAlias = Literal["src", "tgt"]
SIDES: tuple[Side, Side] = ("src", "tgt")


def other(side: Side) -> Side:
    """Return the other language."""
    return "tgt" if side == "src" else "src"
