"""Vectors of out-of-vocabulary words from their character n-grams, as fastText defines them (Bojanowski et al., 2017).

The n-grams of "<word>" are hashed to a fixed number of rows (buckets) by a variant of FNV-1a. The vector of a word is
the mean of these rows and, for a word of the vocabulary, of a row of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # the child process starts faster without arrays
    from qwp.arrays import AnyFloats


END_OF_SENTENCE = "</s>"
"""The only word without n-grams, as in fastText."""
_FNV_START, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)  # constants of 32-bit FNV-1a
_FINGERPRINT_ROWS = 1024
_BLOCK_BYTES = 1 << 26  # rows summed at a time
_BLOCK_NGRAMS = 1 << 20

Columns = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Shape:
    """Shape of subword vectors: lengths of the n-grams in characters, number of rows (buckets), dimension."""

    min_chars: int
    max_chars: int
    buckets: int
    dim: int

    def max_ngrams(self, word: str) -> int:
        """Return an upper bound for the number of n-grams of a word."""
        return (len(word) + 2) * min(len(word) + 2, self.max_chars)


@dataclass(frozen=True, eq=False)
class Subwords:
    """The rows of n-grams.

    Attributes:
        shape: lengths of the n-grams, number of rows, dimension.
        source: the rows (buckets, d), possibly memory-mapped, or a function that opens them at first use.
    """

    shape: Shape
    source: AnyFloats | Callable[[], AnyFloats]

    @cached_property
    def rows(self) -> AnyFloats:
        """The rows, (buckets, d)."""
        return self.source if isinstance(self.source, np.ndarray) else self.source()

    @property
    def n_bytes(self) -> int:
        """Size of the rows as float32."""
        return 4 * self.shape.buckets * self.shape.dim

    def vectors(self, words: Sequence[str]) -> tuple[list[int], AnyFloats]:
        """Compose vectors of out-of-vocabulary words. Return the indices of words with a vector, and vectors (m, d)."""
        counts, sums = self.sums(words)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / counts[:, None]
        valid = np.flatnonzero((counts > 0) & np.isfinite(means).all(axis=1))
        return valid.tolist(), means[valid]

    def in_vocabulary(self, words: Sequence[str], own: AnyFloats) -> AnyFloats:
        """Compose vectors (n, d) of words in the vocabulary. own: their own rows (n, d)."""
        counts, sums = self.sums(words)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((own + sums) / (counts + 1).astype(np.float32)[:, None])

    def sums(self, words: Sequence[str]) -> tuple[Columns, AnyFloats]:
        """Return the number of n-grams of each word (n,), and the sum of their rows (n, d)."""
        counts = np.zeros(len(words), dtype=np.intp)
        sums = np.zeros((len(words), self.shape.dim), dtype=np.float32)
        for begin, end in self._blocks(words):
            counts[begin:end], rows = hash_ngrams(words[begin:end], self.shape)
            nonempty = np.flatnonzero(counts[begin:end])
            if len(nonempty):
                begins = np.cumsum(counts[begin:end]) - counts[begin:end]
                # reduceat adds row by row within a word, so the sum does not depend on the other words.
                found = np.add.reduceat(np.asarray(self.rows[rows], dtype=np.float32), begins[nonempty], axis=0)
                sums[begin + nonempty] = found
        return counts, sums

    def _blocks(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield ranges of words whose rows take a bounded amount of memory."""
        most = max(1, min(_BLOCK_NGRAMS, _BLOCK_BYTES // (4 * self.shape.dim)))
        ends = np.cumsum([self.shape.max_ngrams(word) for word in words])
        begin = 0
        while begin < len(words):
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield begin, end
            begin = end

    def sha256(self) -> str:
        """Return a fingerprint of the shape and of evenly spaced rows; reading all rows would take too long."""
        shape = self.shape
        digest = hashlib.sha256(f"{shape.min_chars} {shape.max_chars} {shape.buckets} {shape.dim}\n".encode())
        sample = np.linspace(0, shape.buckets - 1, min(_FINGERPRINT_ROWS, shape.buckets)).astype(np.intp)
        digest.update(np.ascontiguousarray(self.rows[sample], dtype="<f4").tobytes())
        return digest.hexdigest()


def hash_ngrams(words: Sequence[str], shape: Shape) -> tuple[Columns, Columns]:
    """Return the number of n-grams of each word (n,), and the rows of all n-grams, word by word.

    The n-grams of all words grow together by one byte at a time, from every character on.
    """
    encoded = [b"<" + word.encode() + b">" for word in words]
    text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    lengths = np.array([len(word) for word in encoded], dtype=np.intp)
    ends = np.cumsum(lengths)
    # The end of the text counts as the beginning of a character, like the end of every other word.
    begins_char = np.append((text & 0xC0) != 0x80, True)
    # fastText hashes signed bytes: those above 127 set all higher bits.
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    at = np.flatnonzero(begins_char[:-1])
    word = np.repeat(np.arange(len(words)), lengths)[at]
    has_ngrams = np.array([each != END_OF_SENTENCE for each in words], dtype=bool)
    at, word = at[has_ngrams[word]], word[has_ngrams[word]]
    end, first = ends[word], at == (ends - lengths)[word]
    hashes, chars = np.full(len(at), _FNV_START), np.zeros(len(at), dtype=np.intp)
    found: list[tuple[Columns, Columns]] = []
    while len(at):
        hashes = (hashes ^ signed[at]) * _FNV_PRIME
        chars = chars + begins_char[at]
        at = at + 1
        complete = begins_char[at]
        # "<" and ">" alone are not n-grams.
        brackets = (chars == 1) & (first | (at == end))
        taken = complete & (chars >= shape.min_chars) & (chars <= shape.max_chars) & ~brackets
        found.append((word[taken], (hashes[taken] % np.uint32(shape.buckets)).astype(np.intp)))
        growing = (at < end) & ~(complete & (chars >= shape.max_chars))
        at, word, end, first = at[growing], word[growing], end[growing], first[growing]
        hashes, chars = hashes[growing], chars[growing]
    owners = np.concatenate([owner for owner, _ in found] or [np.empty(0, np.intp)])
    rows = np.concatenate([row for _, row in found] or [np.empty(0, np.intp)])
    return np.bincount(owners, minlength=len(words)), rows[np.argsort(owners, kind="stable")]
