"""Tables of Apache Arrow and Parquet: a column of words and one of vectors, or many of numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.spaces.foreign.frames import Items, Job, Numbers

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


def parquet(job: Job) -> tuple[int, Iterator[Items]]:
    """The rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.PythonFile(os.fdopen(job.descriptor, "rb"), mode="r"), page_checksum_verification=True)
    columns = _chosen(file.schema_arrow, job)
    batches = file.iter_batches(batch_size=job.rows, columns=columns.all, use_threads=False)
    return int(file.metadata.num_rows), _items(batches, columns, job)


def arrow(job: Job) -> tuple[int, Iterator[Items]]:
    """The rows of an Arrow file, which Feather is as well."""
    import pyarrow as pa

    content = pa.memory_map(job.file) if job.file else pa.PythonFile(os.fdopen(job.descriptor, "rb"), mode="r")
    file = pa.ipc.open_file(content)
    columns = _chosen(file.schema, job)

    def batches() -> Iterator[Any]:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number).select(columns.all)
            batch.validate(full=True)  # what it says of itself is not to be trusted
            for begin in range(0, batch.num_rows, job.rows):
                yield batch.slice(begin, job.rows)

    return 0, _items(batches(), columns, job)


def _items(batches: Iterator[Any], columns: _Columns, job: Job) -> Iterator[Items]:
    dim: int | None = None
    done = 0
    for batch in batches:
        vectors = _vectors(batch, columns, dim, job, done)
        dim = vectors.shape[1]
        yield None if columns.word is None else _texts(batch.column(columns.word)), vectors
        done += len(vectors)


def _texts(column: Any) -> list[str | None]:
    """Words of a column; an empty one in place of nothing."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _vectors(batch: Any, columns: _Columns, dim: int | None, job: Job, done: int) -> Numbers:
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
    if len(strange) or dim < 1:
        row = int(strange[0]) if len(strange) else 0
        raise InputError(
            f"row {done + row} of {job.name} has {int(lengths[row])} numbers, expected {max(dim, 1)} as in the rows "
            "before it: repair the table"
        )
    numbers = lists.drop_null().flatten().to_numpy(zero_copy_only=False)
    found = np.full((len(lists), dim), np.nan, dtype=np.result_type(numbers.dtype, np.float16))
    found[known] = numbers.reshape(-1, dim)
    return found


def _chosen(schema: Any, job: Job) -> _Columns:
    """The columns that are named behind the file, or that can be told."""
    if job.part is not None:
        return _named(schema, job.part.split(","), job)
    words = [field.name for field in schema if _is_text(field.type)]
    lists = [field.name for field in schema if _is_list(field.type)]
    numbers = [field.name for field in schema if _is_number(field.type)]
    word = _one_of(words, WORD_NAMES, "words", schema, job)
    if lists:
        return _Columns(word, [_one_of(lists, VECTOR_NAMES, "vectors", schema, job) or lists[0]])
    if not numbers or len(set(schema.names)) < len(schema.names):
        raise InputError(
            f"{job.name} has the columns {_listed(schema)}, expected one of lists of numbers, or several of "
            "numbers, each with a name of its own"
        )
    return _Columns(word, numbers)


def _one_of(found: Sequence[str], usual: Sequence[str], what: str, schema: Any, job: Job) -> str | None:
    """The column of this kind: the only one, or one with a usual name; None where there is none."""
    if len(found) <= 1:
        return found[0] if found else None
    named = [name for name in usual if name in found]
    if not named:
        raise InputError(
            f"{job.name} has {len(found)} columns that could hold the {what} ({_listed(schema)}), expected one: "
            "name the columns of words and vectors behind the file, as in "
            f"{os.path.basename(job.name).partition('#')[0]}#{WORD_NAMES[0]},{VECTOR_NAMES[0]}"
        )
    return named[0]


def _named(schema: Any, names: list[str], job: Job) -> _Columns:
    missing = [name for name in names if schema.names.count(name) != 1]
    if missing or len(names) < 2:
        what = f"has no column {missing[0]!r}" if missing else "needs the names of two columns"
        raise InputError(
            f"{job.name} {what}; it has {_listed(schema)}: expected #WORDS,VECTORS behind the name of the file"
        )
    word, *vectors = names
    kinds = [schema.field(name).type for name in vectors]
    sound = all(map(_is_number, kinds)) or (len(kinds) == 1 and _is_list(kinds[0]))
    if not (_is_text(schema.field(word).type) or _is_integer(schema.field(word).type)) or not sound:
        raise InputError(
            f"{job.name} has {_listed(schema)}: expected text in the first column and numbers in the others"
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
