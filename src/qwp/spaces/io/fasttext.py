"""fastText models (`.bin`): words, and vectors for their subwords.

The layout, all little-endian:

- a magic number and a version;
- twelve settings of 32 bits and one of 64;
- the dictionary: counts, then each word, ended by a zero byte, with its frequency and kind;
- the input matrix: a byte that is 1 if it is quantized, the shape, a row for each word and each bucket of n-grams;
- the output matrix in the same form.

The vector of a word is the mean of its own row and the rows of its n-grams (`qwp.spaces.subwords`).
"""

from __future__ import annotations

import mmap
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces.io.arguments import as_path
from qwp.spaces.io.files import atomic_write
from qwp.spaces.io.reading import Reading, Rows, batch_rows, decode, valid_rows
from qwp.spaces.io.sources import Source, open_source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES
from qwp.spaces.subwords import Shape, Subwords

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SETTINGS = struct.Struct("<12id")
_COUNTS = struct.Struct("<3i2q")
_WORD_TAIL = 9  # bytes after each word: a frequency of 64 bits and a kind of 8
_MATRIX = struct.Struct("<?2q")
_FLOAT = np.dtype("<f4")
_SUPERVISED, _NEGATIVE_SAMPLING, _SKIPGRAM = 3, 2, 2
_TYPICAL_NGRAMS = 32  # n-grams of a word
_BLOCK_BYTES = 1 << 24
# A word of 8 characters with n-grams of up to 6 has 60 n-grams, and a row of 4 * dim bytes: less than one n-gram per
# byte from 15 dimensions on. The limits allow four times as many.
_FREE_NGRAMS, _NGRAMS_PER_BYTE, _FREE_DIM = 4_000_000, 4, 16
_MAX_WORD_NUMBERS = 1 << 26  # numbers in the rows of all n-grams of one word: 256 MB


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a model in the order of the file.

    Reading uses dim, buckets, min_chars and max_chars; writing copies the others.
    """

    dim: int
    window: int
    epochs: int
    min_count: int
    negatives: int
    word_ngrams: int
    loss: int
    model: int
    buckets: int
    min_chars: int
    max_chars: int
    update_rate: int
    sampling: float

    def packed(self) -> bytes:
        """Return the settings as the file stores them."""
        return _SETTINGS.pack(*astuple(self))


@dataclass(frozen=True)
class FastTextModel:
    """A model with memory-mapped matrices.

    Attributes:
        path: the file.
        settings: the settings of the model.
        words: n words; None for one that is not UTF-8.
        dictionary: the dictionary as the file stores it.
        inputs: input matrix (n + buckets, d).
        outputs: output matrix (m, d).
    """

    path: Path
    settings: ModelSettings
    words: list[str | None]
    dictionary: bytes
    inputs: AnyFloats
    outputs: AnyFloats

    @property
    def subwords(self) -> Subwords | None:
        """The rows of n-grams, if the model has any."""
        settings = self.settings
        if settings.max_chars < 1 or settings.buckets < 1:
            return None
        shape = Shape(settings.min_chars, settings.max_chars, settings.buckets, settings.dim)
        return Subwords(shape, self.inputs[len(self.words) :])


# --------------------------------------------------------------------------- reading


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """Yield the words of a model, in order, with the vectors that fastText computes for them."""
    model = open_model(source)
    reading.expected_rows = len(model.words)
    reading.subwords = subwords = model.subwords
    done = ngrams = 0
    while done < len(model.words):
        size = batch_rows(reading, _TYPICAL_NGRAMS * _FLOAT.itemsize * model.settings.dim)
        words = model.words[done : done + size]
        if subwords is not None:
            ngrams += _count_ngrams(words, subwords.shape, source, ngrams)
        vectors = np.array(model.inputs[done : done + len(words)])
        if subwords is not None:
            vectors = subwords.in_vocabulary([word or "" for word in words], vectors)
        yield valid_rows(words, vectors, reading, lambda row, done=done: f"word {done + row + 1}")  # type: ignore[misc]
        done += len(words)


def _count_ngrams(words: Sequence[str | None], shape: Shape, source: Source, before: int) -> int:
    """Return the number of n-grams of words. Raise an InputError if it is implausible for a model of this size.

    before: number of n-grams of earlier words.
    """
    ngrams = [shape.max_ngrams(word) for word in words if word is not None]
    most = _FREE_NGRAMS + source.size * _NGRAMS_PER_BYTE // max(1, shape.dim // _FREE_DIM)
    if before + sum(ngrams) > most or max(ngrams, default=0) * shape.dim > _MAX_WORD_NUMBERS:
        raise InputError(
            f"{source.path} ({source.size:,} bytes) is a fastText model whose words have more than {most:,} n-grams of "
            f"up to {shape.max_chars} characters, expected fewer: it is damaged or made to keep its reader busy; use "
            "the .vec file that fastText writes with it"
        )
    return sum(ngrams)


def load_subwords(path: str | PathLike[str]) -> Subwords | None:
    """Return the memory-mapped subwords of a model; None for a model of whole words."""
    with open_source(as_path(path)) as source:
        return open_model(source).subwords


def open_model(source: Source) -> FastTextModel:
    """Return a model with memory-mapped matrices, after checking its parts against the size of the file."""
    if source.packed:
        raise InputError(
            f"{source.path} is a gzip-compressed fastText model, expected an uncompressed one, because its rows are "
            "not read in order: unpack it with `gunzip`"
        )
    content = mmap.mmap(source.raw.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(content, source.path)
    settings = _settings(cursor)
    words, dictionary = _dictionary(cursor)
    inputs = cursor.matrix("input", len(words) + settings.buckets, settings.dim)
    outputs = cursor.matrix("output", None, settings.dim)
    return FastTextModel(source.path, settings, words, dictionary, inputs, outputs)


class _Cursor:
    """A position in a file that advances as parts are read."""

    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self.content = content
        self.path = path
        self.at = 0

    def take(self, kind: struct.Struct, what: str) -> tuple[int, ...]:
        """Read the next numbers. what: the part of the model, for messages."""
        if self.at + kind.size > len(self.content):
            raise self.damaged(f"it ends within {what}")
        found: tuple[int, ...] = kind.unpack_from(self.content, self.at)
        self.at += kind.size
        return found

    def matrix(self, name: str, rows: int | None, dim: int) -> AnyFloats:
        """Map the next matrix (rows, dim). rows: None for any number."""
        quantized, n, d = self.take(_MATRIX, f"the {name} matrix")
        if quantized:
            raise _quantized(self.path)
        if d != dim or n < 0 or (rows is not None and n != rows):
            expected = f"({'n' if rows is None else rows}, {dim})"
            raise self.damaged(f"its {name} matrix has the shape ({n}, {d}), expected {expected}")
        if n * d * _FLOAT.itemsize > len(self.content) - self.at:
            raise self.damaged(f"it ends within the {name} matrix of {n * d * _FLOAT.itemsize:,} bytes")
        found = np.frombuffer(self.content, _FLOAT, n * d, self.at).reshape(n, d)
        self.at += found.nbytes
        return found

    def damaged(self, why: str) -> InputError:
        """Return the error for a damaged file."""
        return InputError(f"{self.path} is a damaged fastText model ({why}), expected a complete one: copy it again")


def _settings(cursor: _Cursor) -> ModelSettings:
    head, version = cursor.take(struct.Struct("<2i"), "its first numbers")
    if struct.pack("<i", head) != MAGIC:
        raise InputError(
            f"{cursor.path} does not begin as a fastText model does, expected a `.bin` file of fastText: leave out "
            "format= (--input-format) to detect the format from the content"
        )
    if version not in _VERSIONS:
        raise InputError(
            f"{cursor.path} is a fastText model of version {version}, expected {' or '.join(map(str, _VERSIONS))}: use "
            "the .vec file that fastText writes with it"
        )
    found = ModelSettings(*cursor.take(_SETTINGS, "its settings"))
    if found.model == _SUPERVISED:
        raise InputError(
            f"{cursor.path} is a supervised fastText model, a text classifier, expected a skipgram or cbow model: its "
            "vectors predict labels, not words"
        )
    if not 1 <= found.dim <= MAX_DIM or found.buckets < 0 or not 0 <= found.min_chars <= MAX_WORD_BYTES:
        raise cursor.damaged(
            f"it claims {found.dim} dimensions, {found.buckets} buckets and n-grams of at least {found.min_chars} "
            "characters"
        )
    return found


def _dictionary(cursor: _Cursor) -> tuple[list[str | None], bytes]:
    """Read the dictionary. Return the words, and the dictionary as bytes."""
    first = cursor.at
    size, n_words, n_labels, _, pruned = cursor.take(_COUNTS, "the counts of its words")
    if n_labels:
        raise InputError(f"{cursor.path} is a fastText model with {n_labels} labels, expected one of words alone")
    if pruned >= 0:
        raise _quantized(cursor.path)
    if size != n_words or size < 1 or size * (_WORD_TAIL + 1) > len(cursor.content) - cursor.at:
        raise cursor.damaged(f"it claims {n_words} words and {size} entries in {len(cursor.content):,} bytes")
    words: list[str | None] = []
    content, at = cursor.content, cursor.at
    for number in range(size):
        end = content.find(b"\0", at, at + MAX_WORD_BYTES + 1)
        if end < 0 or end + 1 + _WORD_TAIL > len(content):
            raise cursor.damaged(f"word {number + 1} of {size} has no end")
        words.append(decode(content[at:end]))
        if content[end + _WORD_TAIL]:
            raise cursor.damaged(f"entry {number + 1} is not a word")
        at = end + 1 + _WORD_TAIL
    cursor.at = at
    return words, content[first:at]


def _quantized(path: Path) -> InputError:
    return InputError(
        f"{path} is a quantized fastText model (.ftz), whose vectors are approximate and whose subwords are pruned; "
        "expected the .bin it was made from, or its .vec file"
    )


# --------------------------------------------------------------------------- writing


def write_mapped(
    model: str | PathLike[str],
    out: str | PathLike[str],
    map: AnyFloats,
    callback: Callable[[int], None] | None = None,
) -> int:
    """Write a model with its input vectors multiplied by a map. Return the number of words.

    The vector of any word is a mean of input vectors. In the new model it is the old vector times the map, neither
    scaled nor centred. The output vectors are multiplied by the inverse of the map: products of input and output
    vectors, the predictions of the model, stay the same.

    Args:
        model: file of the model.
        out: file to write.
        map: (d, e).
        callback: called with the number of input vectors after each block.
    """
    target = as_path(out)
    with open_source(as_path(model)) as source, atomic_write(target) as file:
        found = open_model(source)
        if map.shape[0] != found.settings.dim:
            raise InputError(
                f"{found.path} has {found.settings.dim} dimensions, the map {map.shape[0]}: name a model of its space"
            )
        settings = replace(found.settings, dim=map.shape[1])
        file.write(MAGIC + struct.pack("<i", _VERSIONS[-1]) + settings.packed() + found.dictionary)
        matrix = np.asarray(map, dtype=np.float64)
        _write_matrix(file, found.inputs, matrix, callback)
        _write_matrix(file, found.outputs, np.linalg.pinv(matrix).T, None)
    return len(found.words)


def _write_matrix(file: IO[bytes], rows: AnyFloats, map: AnyFloats, callback: Callable[[int], None] | None) -> None:
    file.write(_MATRIX.pack(False, len(rows), map.shape[1]))
    at_once = max(1, _BLOCK_BYTES // (8 * max(map.shape)))
    for begin in range(0, len(rows), at_once):
        block = np.array(rows[begin : begin + at_once], dtype=np.float64)
        file.write((block @ map).astype(_FLOAT).tobytes())
        if callback is not None:
            callback(len(block))


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """Return a writer of a model of whole words, without subwords and with an empty output matrix.

    The dictionary comes first, so vectors wait in an unnamed temporary file. All words get the frequency 1.
    """
    words: list[bytes] = []
    with atomic_write(target.path) as file, tempfile.TemporaryFile(dir=target.path.parent) as body:

        def put(batch: list[str], vectors: AnyFloats) -> None:
            for word in batch:
                if "\0" in word:
                    raise InputError(f"the word {word!r} holds a NUL, which ends a word in this format: remove it")
            words.extend(word.encode() for word in batch)
            body.write(vectors.astype(_FLOAT, copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        settings = ModelSettings(target.dim, 5, 1, 1, 5, 1, _NEGATIVE_SAMPLING, _SKIPGRAM, 0, 0, 0, 100, 1e-4)
        file.write(MAGIC + struct.pack("<i", _VERSIONS[-1]) + settings.packed())
        file.write(_COUNTS.pack(count, count, 0, count, -1))
        for word in words:
            file.write(word + b"\0" + struct.pack("<qb", 1, 0))
        file.write(_MATRIX.pack(False, count, target.dim))
        body.seek(0)
        shutil.copyfileobj(body, file, _BLOCK_BYTES)
        file.write(_MATRIX.pack(False, 0, target.dim))
