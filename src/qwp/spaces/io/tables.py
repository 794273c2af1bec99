"""Tables of Apache Arrow (`.arrow`, `.feather`) and Parquet: a column of words and one of vectors, or many of numbers.

The columns are guessed, or named behind the file: ``items.parquet#text,embedding``. The library is imported when a
table is read or written; it is the extra ``arrow``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from qwp.checks import installed
from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.beside import Names, words_file
from qwp.spaces.io.damage import damage_explained
from qwp.spaces.io.files import replacing
from qwp.spaces.io.limits import MAX_DIM, bomb, unpacked_bytes
from qwp.spaces.io.reading import Reading, Rows, batch_rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target

WORD_NAMES = ("word", "words", "token", "text", "key", "name", "label", "id")
"""What a column of words may be called, where several could be it; the first that is there is taken."""
VECTOR_NAMES = ("vector", "vectors", "embedding", "embeddings", "emb", "values")
_SHOWN = 8


@dataclass(frozen=True)
class _Columns:
    """Which columns are meant. word: None where rows have no words. vectors: one of lists, or several of numbers."""

    word: str | None
    vectors: list[str]

    @property
    def all(self) -> list[str]:
        """The names of all of them."""
        return ([] if self.word is None else [self.word]) + self.vectors


# --------------------------------------------------------------------------- reading


def read_parquet(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of a Parquet file, in order."""
    installed("arrow", f"reading {source.path} (Parquet)")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with damage_explained(source.path, "Parquet file"):
        file = pq.ParquetFile(pa.PythonFile(source.raw, mode="r"))
        columns = _chosen(file.schema_arrow, source)
        if _uncompressed(file.metadata, columns) > unpacked_bytes(source.size):
            raise bomb(source.path, source.size)
        reading.expected_rows = min(int(file.metadata.num_rows), unpacked_bytes(source.size))

    def batches(rows: int) -> Iterator[Any]:
        yield from file.iter_batches(batch_size=rows, columns=columns.all, use_threads=False)

    yield from _rows(batches, columns, reading, source, "Parquet file")


def _uncompressed(metadata: Any, columns: _Columns) -> int:
    """What the columns unpack to, as the file says."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    parts = (group.column(number) for group in groups for number in range(group.num_columns))
    return sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] in columns.all)


def read_arrow(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of an Arrow file, which Feather is as well, in order."""
    installed("arrow", f"reading {source.path} (Arrow)")
    import pyarrow as pa

    with damage_explained(source.path, "Arrow file"):
        content = pa.PythonFile(source.raw, mode="r") if source.spooled else pa.memory_map(str(source.file))
    with content:
        with damage_explained(source.path, "Arrow file"):
            file = pa.ipc.open_file(content)
            columns = _chosen(file.schema, source)

        def batches(rows: int) -> Iterator[Any]:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number).select(columns.all)
                batch.validate(full=True)  # what it says of itself is not to be trusted
                for begin in range(0, batch.num_rows, rows):
                    yield batch.slice(begin, rows)

        yield from _rows(batches, columns, reading, source, "Arrow file")


def _rows(
    batches: Callable[[int], Iterator[Any]], columns: _Columns, reading: Reading, source: Source, what: str
) -> Iterator[Rows]:
    dim: int | None = None
    done = 0
    # The width of the first rows is not known before they are read.
    found = batches(batch_rows(reading, 1024))
    with Names(reading, source, words_file(source.path)) if columns.word is None else nullcontext() as names:
        while True:
            with damage_explained(source.path, what):
                batch = next(found, None)
                if batch is None:
                    break
                vectors = _vectors(batch, columns, dim, source, done)
                words = None if columns.word is None else _texts(batch.column(columns.word))
            dim = vectors.shape[1]
            yield sound_rows(
                (words if names is None else names.take(len(vectors))) or [],
                vectors,
                reading,
                lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
            )
            done += len(vectors)
        if names is not None:
            names.check_end()


def _texts(column: Any) -> list[str | None]:
    """Words of a column; an empty one in place of nothing."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _vectors(batch: Any, columns: _Columns, dim: int | None, source: Source, done: int) -> FloatArray:
    """The vectors of a batch, (b, d); rows without one are NaN."""
    if len(columns.vectors) > 1 or not _is_list(batch.schema.field(columns.vectors[0]).type):
        parts = [batch.column(name).to_numpy(zero_copy_only=False) for name in columns.vectors]
        return np.stack(parts, axis=1) if parts else np.empty((batch.num_rows, 0))
    lists = batch.column(columns.vectors[0])
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False) if hasattr(lists, "value_lengths") else None
    known = ~np.asarray(lists.is_null().to_numpy(zero_copy_only=False))
    if lengths is None:
        lengths = np.full(len(lists), lists.type.list_size)
    dim = int(lengths[known][0]) if dim is None and known.any() else (dim or 1)
    strange = np.flatnonzero(known & (lengths != dim))
    if len(strange) or not 0 < dim <= MAX_DIM:
        row = int(strange[0]) if len(strange) else 0
        raise InputError(
            f"row {done + row} of {source.path} has {int(lengths[row])} numbers, expected {max(dim, 1)} as in the rows "
            f"before it, and at most {MAX_DIM}: repair the table"
        )
    numbers = lists.drop_null().flatten().to_numpy(zero_copy_only=False)
    found = np.full((len(lists), dim), np.nan, dtype=np.result_type(numbers.dtype, np.float16))
    found[known] = numbers.reshape(-1, dim)
    return found


def _chosen(schema: Any, source: Source) -> _Columns:
    """The columns that are named behind the file, or that can be told."""
    if source.part is not None:
        return _named(schema, source.part.split(","), source)
    words = [field.name for field in schema if _is_text(field.type)]
    lists = [field.name for field in schema if _is_list(field.type)]
    numbers = [field.name for field in schema if _is_number(field.type)]
    word = _one_of(words, WORD_NAMES, "words", schema, source)
    if lists:
        return _Columns(word, [_one_of(lists, VECTOR_NAMES, "vectors", schema, source) or lists[0]])
    if not numbers or len(set(schema.names)) < len(schema.names):
        raise InputError(
            f"{source.path} has the columns {_listed(schema)}, expected one of lists of numbers, or several of "
            "numbers, each with a name of its own"
        )
    return _Columns(word, numbers)


def _one_of(found: Sequence[str], usual: Sequence[str], what: str, schema: Any, source: Source) -> str | None:
    """The column of this kind: the only one, or one with a usual name; None where there is none."""
    if len(found) <= 1:
        return found[0] if found else None
    named = [name for name in usual if name in found]
    if not named:
        raise InputError(
            f"{source.path} has {len(found)} columns that could hold the {what} ({_listed(schema)}), expected one: "
            "name the columns of words and vectors behind the file, as in "
            f"{source.path.name}#{WORD_NAMES[0]},{VECTOR_NAMES[0]}"
        )
    return named[0]


def _named(schema: Any, names: list[str], source: Source) -> _Columns:
    missing = [name for name in names if schema.names.count(name) != 1]
    if missing or len(names) < 2:
        what = f"has no column {missing[0]!r}" if missing else "needs the names of two columns"
        raise InputError(
            f"{source.path} {what}; it has {_listed(schema)}: expected #WORDS,VECTORS behind the name of the file"
        )
    word, *vectors = names
    kinds = [schema.field(name).type for name in vectors]
    sound = all(map(_is_number, kinds)) or (len(kinds) == 1 and _is_list(kinds[0]))
    if not (_is_text(schema.field(word).type) or _is_integer(schema.field(word).type)) or not sound:
        raise InputError(
            f"{source.path} has {_listed(schema)}: expected text in the first column and numbers in the others"
        )
    return _Columns(word, vectors)


def _listed(schema: Any) -> str:
    shown = [f"{ascii(field.name[:40])[1:-1]} ({str(field.type)[:40]})" for field in list(schema)[:_SHOWN]]
    return ", ".join([*shown, "..."] if len(schema.names) > _SHOWN else shown) or "no columns"


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _is_integer(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind))


def _is_list(kind: Any) -> bool:
    import pyarrow.types as kinds

    lists = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return bool(lists and _is_number(kind.value_type))


# --------------------------------------------------------------------------- writing


def open_parquet(target: Target) -> Any:
    """A writer of Parquet files."""
    return _open_rows(target, _parquet_writer)


def open_arrow(target: Target) -> Any:
    """A writer of Arrow files."""
    return _open_rows(target, _arrow_writer)


def _parquet_writer(file: IO[bytes], schema: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema)


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
