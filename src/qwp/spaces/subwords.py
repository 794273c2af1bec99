"""Vectors of words that no vocabulary has, from their parts.

The parts are those that fastText defines (Bojanowski et al., 2017): the character n-grams of the word between "<" and
">", each hashed into one of a fixed number of rows by a variant of FNV-1a. The vector of a word is the mean of these
rows; a word of the vocabulary has a row of its own among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

END_OF_SENTENCE = "</s>"
"""The one word that has no parts."""
_FNV_START, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)
_PRINTED_ROWS = 1024
_AT_ONCE_BYTES = 1 << 26
_AT_ONCE_PARTS = 1 << 20

Ints = npt.NDArray[np.intp]
Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Shape:
    """What there is to know of subwords but their vectors: characters of the n-grams, number of rows, dimensions."""

    min_chars: int
    max_chars: int
    buckets: int
    dim: int

    def parts(self, word: str) -> int:
        """How many n-grams are looked at for a word, at most."""
        return (len(word) + 2) * min(len(word) + 2, self.max_chars)


@dataclass(frozen=True, eq=False)
class Subwords:
    """The rows of n-grams.

    shape: what they are. source: the rows (buckets, d), which may lie on the disk, or what opens them when they are
    first asked for.
    """

    shape: Shape
    source: Floats | Callable[[], Floats]

    @cached_property
    def rows(self) -> Floats:
        """The rows, (buckets, d)."""
        return self.source if isinstance(self.source, np.ndarray) else self.source()

    @property
    def n_bytes(self) -> int:
        """What the rows take as float32."""
        return 4 * self.shape.buckets * self.shape.dim

    def vectors(self, words: Sequence[str]) -> tuple[list[int], Floats]:
        """Vectors of words that have no row of their own: which of the words have one, and their vectors (m, d)."""
        counts, sums = self.sums(words)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / counts[:, None]
        sound = np.flatnonzero((counts > 0) & np.isfinite(means).all(axis=1))
        return sound.tolist(), means[sound]

    def with_own(self, words: Sequence[str], own: Floats) -> Floats:
        """Vectors (n, d) of n words that have rows of their own (n, d)."""
        counts, sums = self.sums(words)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((own + sums) / (counts + 1).astype(np.float32)[:, None])

    def sums(self, words: Sequence[str]) -> tuple[Ints, Floats]:
        """How many parts each of n words has, (n,), and the sums of their rows (n, d)."""
        counts = np.zeros(len(words), dtype=np.intp)
        sums = np.zeros((len(words), self.shape.dim), dtype=np.float32)
        for begin, end in self._blocks(words):
            counts[begin:end], rows = hashed(words[begin:end], self.shape)
            some = np.flatnonzero(counts[begin:end])
            if len(some):
                begins = np.cumsum(counts[begin:end]) - counts[begin:end]
                # Row by row within a word: the sum does not depend on what else is asked for.
                found = np.add.reduceat(np.asarray(self.rows[rows], dtype=np.float32), begins[some], axis=0)
                sums[begin + some] = found
        return counts, sums

    def _blocks(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Ranges of words whose rows take a bounded part of the memory; of long words there are few in one."""
        most = max(1, min(_AT_ONCE_PARTS, _AT_ONCE_BYTES // (4 * self.shape.dim)))
        ends = np.cumsum([self.shape.parts(word) for word in words])
        begin = 0
        while begin < len(words):
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield begin, end
            begin = end

    def sha256(self) -> str:
        """Tells these subwords from others by their shape and by rows spread over all of them: not each is read."""
        shape = self.shape
        digest = hashlib.sha256(f"{shape.min_chars} {shape.max_chars} {shape.buckets} {shape.dim}\n".encode())
        some = np.linspace(0, shape.buckets - 1, min(_PRINTED_ROWS, shape.buckets)).astype(np.intp)
        digest.update(np.ascontiguousarray(self.rows[some], dtype="<f4").tobytes())
        return digest.hexdigest()


def hashed(words: Sequence[str], shape: Shape) -> tuple[Ints, Ints]:
    """The parts of n words: how many each has, (n,), and their rows, those of the first word first.

    All n-grams that begin at some character grow by one byte at a time, and all words are treated together.
    """
    encoded = [b"<" + word.encode() + b">" for word in words]
    text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    lengths = np.array([len(word) for word in encoded], dtype=np.intp)
    ends = np.cumsum(lengths)
    # The end of the text counts as the beginning of a character, as the end of every other word is one.
    opens = np.append((text & 0xC0) != 0x80, True)
    # Bytes are signed numbers in fastText's hash: those above 127 set all higher bits.
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    at = np.flatnonzero(opens[:-1])
    word = np.repeat(np.arange(len(words)), lengths)[at]
    has_parts = np.array([each != END_OF_SENTENCE for each in words], dtype=bool)
    at, word = at[has_parts[word]], word[has_parts[word]]
    end, first = ends[word], at == (ends - lengths)[word]
    hashes, chars = np.full(len(at), _FNV_START), np.zeros(len(at), dtype=np.intp)
    found: list[tuple[Ints, Ints]] = []
    while len(at):
        hashes = (hashes ^ signed[at]) * _FNV_PRIME
        chars = chars + opens[at]
        at = at + 1
        whole = opens[at]
        # A mark alone is no part of a word.
        marks = (chars == 1) & (first | (at == end))
        taken = whole & (chars >= shape.min_chars) & (chars <= shape.max_chars) & ~marks
        found.append((word[taken], (hashes[taken] % np.uint32(shape.buckets)).astype(np.intp)))
        going = (at < end) & ~(whole & (chars >= shape.max_chars))
        at, word, end, first = at[going], word[going], end[going], first[going]
        hashes, chars = hashes[going], chars[going]
    owners = np.concatenate([owner for owner, _ in found] or [np.empty(0, np.intp)])
    rows = np.concatenate([row for _, row in found] or [np.empty(0, np.intp)])
    return np.bincount(owners, minlength=len(words)), rows[np.argsort(owners, kind="stable")]
