"""Reading and writing vector files: text, GloVe, word2vec binary (these also gzipped), npz, safetensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import formats
from qwp.spaces.io.files import check_file, check_folder
from qwp.spaces.io.formatting import MAX_DIGITS
from qwp.spaces.io.reading import Batch, Reading, collect, first_of_each, rebatched
from qwp.spaces.io.writing import RowWriter, Target

__all__ = ["FORMATS", "Batch", "RowWriter", "load", "open_writer", "save", "sniff", "stream"]

FORMATS = tuple(formats.FORMATS)
_DTYPES = ("float32", "float64")
_SAVE_ROWS = 4096


def load(
    path: str | PathLike[str],
    *,
    max_vocab: int | None = None,
    format: str | None = None,
    errors: str = "raise",
    dtype: str = "float32",
) -> Embeddings:
    """Read a vector file.

    Args:
        path: the file. Its format is told from its content.
        max_vocab: stop after this many words.
        format: one of FORMATS, when the content should not decide.
        errors: "raise" an InputError at the first damaged row, or "skip" and count such rows.
        dtype: "float32" or "float64".

    Returns:
        the words with their vectors; ``report`` says what was found on the way. Of words that occur more
        than once, the first is kept.
    """
    reading = _reading(path, max_vocab, format, errors, dtype)
    return collect(_batches(reading), reading)


def stream(
    path: str | PathLike[str],
    *,
    batch: int = 8192,
    max_vocab: int | None = None,
    format: str | None = None,
    errors: str = "raise",
    dtype: str = "float32",
    on_open: Callable[[Reading], None] | None = None,
) -> Iterator[Batch]:
    """Read a vector file in batches of words, without holding all of its vectors; arguments as for ``load``.

    Args:
        on_open: is handed the notes of this reading, which grow while it runs: repeated and damaged rows,
            warnings, the header's count.

    Yields:
        ``batch`` words at a time with their vectors (batch, d), in the order of the file, repeated words
        left out.
    """
    if batch < 1:
        raise InputError(f"received batch={batch}, expected at least 1 word in a batch")
    reading = _reading(path, max_vocab, format, errors, dtype)
    if on_open is not None:
        on_open(reading)
    return rebatched(_batches(reading), batch)


def sniff(path: str | PathLike[str]) -> str:
    """The name of the format a file is in (one of FORMATS), from its content."""
    return formats.sniff(Path(path))


def save(
    embeddings: Embeddings, path: str | PathLike[str], *, format: str | None = None, digits: int | None = None
) -> None:
    """Write words and vectors with the precision of float32; the file appears when it is complete.

    Args:
        embeddings: what to write.
        path: the suffix chooses the format: .vec and .txt text, .glove, .bin word2vec binary, .npz,
            .safetensors; the first four also with .gz.
        format: one of FORMATS, when the suffix should not decide.
        digits: digits after the point in text; without it, as many as give the same float32 back.
    """
    with open_writer(path, embeddings.dim, count=len(embeddings), format=format, digits=digits) as writer:
        for begin in range(0, len(embeddings), _SAVE_ROWS):
            rows = slice(begin, begin + _SAVE_ROWS)
            writer.write(embeddings.words[rows], embeddings.vectors[rows])


def open_writer(
    path: str | PathLike[str],
    dim: int,
    *,
    count: int | None = None,
    format: str | None = None,
    digits: int | None = None,
) -> AbstractContextManager[RowWriter]:
    """A context manager that writes vectors as they come, for more of them than memory holds.

    ``with open_writer("x.vec", 300) as writer: writer.write(words, vectors)``. The file appears under its
    name when the block ends; on any exception nothing is left behind.

    Args:
        path, format, digits: as for ``save``.
        dim: numbers in each vector.
        count: how many words will come, if known; otherwise a header is padded with blanks and filled in at
            the end.
    """
    path = Path(path)
    chosen, compress = formats.for_writing(path, format)
    check_folder(path)
    if dim < 1:
        raise InputError(f"received dim={dim}, expected at least 1")
    if count is not None and count < 1:
        raise InputError(f"received count={count}, expected at least 1")
    if digits is not None and not chosen.rows_of_text:
        raise InputError(f"received digits={digits} for {chosen.name}, expected it for text only: leave it out")
    if digits is not None and not 0 <= digits <= MAX_DIGITS:
        raise InputError(f"received digits={digits}, expected 0 to {MAX_DIGITS}")
    return chosen.open_rows(Target(path, dim, count, digits, compress))


def _reading(path: str | PathLike[str], max_vocab: int | None, format: str | None, errors: str, dtype: str) -> Reading:
    path = Path(path)
    if max_vocab is not None and max_vocab < 1:
        raise InputError(f"received max_vocab={max_vocab}, expected at least 1, or None for all words")
    if errors not in ("raise", "skip"):
        raise InputError(f"received errors={errors!r}, expected 'raise' or 'skip'")
    if str(np.dtype(dtype)) not in _DTYPES:
        raise InputError(f"received dtype={dtype!r}, expected one of {', '.join(_DTYPES)}")
    check_file(path)
    name = formats.by_name(format).name if format else formats.sniff(path)
    return Reading(path, name, np.dtype(dtype), errors, max_vocab)


def _batches(reading: Reading) -> Iterator[Batch]:
    return first_of_each(formats.by_name(reading.format).read(reading), reading)
