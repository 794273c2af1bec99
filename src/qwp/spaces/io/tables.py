"""Tables of Apache Arrow (`.arrow`, `.feather`) and Parquet: a column of words and one of vectors, or many of numbers.

The columns are guessed, or named behind the file: ``items.parquet#text,embedding``. The library is the extra ``arrow``;
`qwp.spaces.foreign.tables` reads with it in a child process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from qwp.errors import installed
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.foreign.tables import VECTOR_NAMES, WORD_NAMES
from qwp.spaces.io.beside import words_file
from qwp.spaces.io.files import replacing
from qwp.spaces.io.isolated import Kind, read
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target

_PARQUET, _ARROW = Kind("Parquet file", words_file), Kind("Arrow file", words_file)


def read_parquet(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of a Parquet file, in order."""
    installed("arrow", f"reading {source.path} (Parquet)")
    yield from read(reading, source, _PARQUET)


def read_arrow(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of an Arrow file, which Feather is as well, in order."""
    installed("arrow", f"reading {source.path} (Arrow)")
    yield from read(reading, source, _ARROW)


def open_parquet(target: Target) -> Any:
    """A writer of Parquet files."""
    return _open_rows(target, _parquet_writer)


def open_arrow(target: Target) -> Any:
    """A writer of Arrow files."""
    return _open_rows(target, _arrow_writer)


def _parquet_writer(file: IO[bytes], schema: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema, write_page_checksum=True)


def _arrow_writer(file: IO[bytes], schema: Any) -> Any:
    import pyarrow as pa

    return pa.ipc.new_file(file, schema)


@contextmanager
def _open_rows(target: Target, opened: Callable[[IO[bytes], Any], Any]) -> Iterator[RowWriter]:
    """A column `word` of text and a column `vector` of lists, all of one length."""
    installed("arrow", f"writing {target.path}")
    import pyarrow as pa

    kind = pa.list_(pa.from_numpy_dtype(np.dtype(target.dtype)), target.dim)
    schema = pa.schema([(WORD_NAMES[0], pa.string()), (VECTOR_NAMES[0], kind)])
    with replacing(target.path) as file:
        table = opened(file, schema)

        def put(words: list[str], vectors: FloatArray) -> None:
            numbers = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), target.dim)
            table.write_batch(pa.record_batch([pa.array(words, pa.string()), numbers], schema=schema))

        try:
            writer = RowWriter(target, put)
            yield writer
            writer.finish()
        finally:
            table.close()
