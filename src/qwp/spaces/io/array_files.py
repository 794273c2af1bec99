"""One NumPy array (`.npy`) with a vector in each row, and the words in a text file of the same name beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.beside import Names, words_file, words_written
from qwp.spaces.io.files import replacing
from qwp.spaces.io.npy import ArrayHeader, array_header, as_numbers, read_header
from qwp.spaces.io.reading import Reading, Rows, batch_rows, valid_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM

_HEADER_BYTES = 128


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of an array; only those that are wanted are read."""
    if source.packed:
        raise InputError(
            f"{source.path} is gzip-compressed, expected an array as numpy.save writes it: unpack it first"
        )
    source.raw.seek(0)
    header = read_header(source.raw, str(source.path))
    _check(header, source)
    n_rows = reading.expected_rows = header.shape[0]
    done = 0
    with Names(reading, source, words_file(source.path)) as names:
        while (rows := min(batch_rows(reading, header.row_bytes), n_rows - done)) > 0:
            yield valid_rows(
                names.take(rows),
                _rows(source, header, done, rows),
                reading,
                lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
            )
            done += rows
        names.check_end()


def _check(header: ArrayHeader, source: Source) -> None:
    """Refuse what is no matrix of numbers, or not whole."""
    if len(header.shape) != 2 or 0 in header.shape or header.shape[1] > MAX_DIM or not _is_number(header.dtype):
        raise InputError(
            f"{source.path} is an array of {header.dtype} of shape {header.shape}, expected real numbers of shape "
            f"(vectors, dimension), at most {MAX_DIM} in a row"
        )
    if header.n_bytes + header.data_bytes > source.size:
        raise InputError(
            f"{source.path} has {source.size:,} bytes, expected {header.n_bytes + header.data_bytes:,} for "
            f"{header.dtype} of shape {header.shape}: it was cut; copy or save it again"
        )


def _is_number(dtype: np.dtype[Any]) -> bool:
    # NumPy has no bfloat16: libraries that do save it as two bytes of nothing.
    return dtype.kind in "fiu" or dtype.str[1:] == "V2"


def _rows(source: Source, header: ArrayHeader, first: int, count: int) -> FloatArray:
    if header.fortran:
        whole = np.memmap(source.raw, header.dtype, "r", header.n_bytes, header.shape, "F")
        return as_numbers(np.array(whole[first : first + count]))
    data = source.read_at(header.n_bytes + first * header.row_bytes, count * header.row_bytes)
    if len(data) < count * header.row_bytes:
        raise InputError(f"{source.path} became shorter while it was read: copy it again")
    return as_numbers(np.frombuffer(data, dtype=header.dtype).reshape(count, header.shape[1]))


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format; both files appear when all is written."""
    number = np.dtype(target.dtype).newbyteorder("<")
    # The words are renamed first: an array is never there without them.
    with replacing(target.path) as file, words_written(target, words_file(target.path)) as put_words:
        file.write(bytes(_HEADER_BYTES))

        def put(words: list[str], vectors: FloatArray) -> None:
            put_words(words)
            file.write(vectors.astype(number, copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        file.seek(0)
        file.write(array_header(number, (count, target.dim), _HEADER_BYTES))
