"""Readers that run in the child process: Parquet and Arrow tables, FAISS indexes, SQLite and DuckDB tables.

Each function is named after its format and takes a `ReadingJob`; see `qwp.spaces.child.Reader`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.spaces.child import Items, Numbers, ReadingJob, Words
from qwp.spaces.stores import DuckdbStore, SqliteStore, Store

WORD_NAMES = ("word", "words", "token", "text", "key", "name", "label", "id")
"""Names of a word column, in order of preference, if a table has several text columns."""
VECTOR_NAMES = ("vector", "vectors", "embedding", "embeddings", "emb", "values")
_LISTED = 8  # columns that a message lists

# --------------------------------------------------------------------------- Parquet and Arrow


@dataclass(frozen=True)
class _Columns:
    """Selected columns. word: None for rows without words. vectors: one list column, or several numeric columns."""

    word: str | None
    vectors: list[str]

    @property
    def all(self) -> list[str]:
        """Names of all selected columns."""
        return ([] if self.word is None else [self.word]) + self.vectors


def parquet(job: ReadingJob) -> tuple[int, Iterator[Items]]:
    """Read the rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.PythonFile(os.fdopen(job.descriptor, "rb"), mode="r"), page_checksum_verification=True)
    columns = _select_columns(file.schema_arrow, job)
    batches = file.iter_batches(batch_size=job.rows, columns=columns.all, use_threads=False)
    return int(file.metadata.num_rows), _table_items(batches, columns, job)


def arrow(job: ReadingJob) -> tuple[int, Iterator[Items]]:
    """Read the rows of an Arrow IPC file, also called Feather."""
    import pyarrow as pa

    content = pa.memory_map(job.file) if job.file else pa.PythonFile(os.fdopen(job.descriptor, "rb"), mode="r")
    file = pa.ipc.open_file(content)
    columns = _select_columns(file.schema, job)

    def batches() -> Iterator[Any]:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number).select(columns.all)
            batch.validate(full=True)  # pyarrow does not check offsets when it opens a file
            for begin in range(0, batch.num_rows, job.rows):
                yield batch.slice(begin, job.rows)

    return 0, _table_items(batches(), columns, job)


def _table_items(batches: Iterator[Any], columns: _Columns, job: ReadingJob) -> Iterator[Items]:
    dim: int | None = None
    done = 0
    for batch in batches:
        vectors = _vectors(batch, columns, dim, job, done)
        dim = vectors.shape[1]
        yield None if columns.word is None else _texts(batch.column(columns.word)), vectors
        done += len(vectors)


def _texts(column: Any) -> list[str | None]:
    """Return the words of a column, with empty words in place of nulls."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _vectors(batch: Any, columns: _Columns, dim: int | None, job: ReadingJob, done: int) -> Numbers:
    """Return the vectors of a batch, (b, d); null vectors become NaN."""
    if len(columns.vectors) > 1 or not _is_list(batch.schema.field(columns.vectors[0]).type):
        parts = [batch.column(name).to_numpy(zero_copy_only=False) for name in columns.vectors]
        return np.stack(parts, axis=1) if parts else np.empty((batch.num_rows, 0))
    lists = batch.column(columns.vectors[0])
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False) if hasattr(lists, "value_lengths") else None
    known = ~np.asarray(lists.is_null().to_numpy(zero_copy_only=False))
    if lengths is None:
        lengths = np.full(len(lists), lists.type.list_size)
    dim = int(lengths[known][0]) if dim is None and known.any() else (dim or 1)
    uneven = np.flatnonzero(known & (lengths != dim))
    if len(uneven) or dim < 1:
        row = int(uneven[0]) if len(uneven) else 0
        raise InputError(
            f"row {done + row} of {job.name} has {int(lengths[row])} numbers, expected {max(dim, 1)} as in the rows "
            "before it: repair the table"
        )
    numbers = lists.drop_null().flatten().to_numpy(zero_copy_only=False)
    vectors = np.full((len(lists), dim), np.nan, dtype=np.result_type(numbers.dtype, np.float16))
    vectors[known] = numbers.reshape(-1, dim)
    return vectors


def _select_columns(schema: Any, job: ReadingJob) -> _Columns:
    """Return the columns that the user named after the file, or guess them from types and names."""
    if job.part is not None:
        return _named_columns(schema, job.part.split(","), job)
    words = [field.name for field in schema if _is_text(field.type)]
    lists = [field.name for field in schema if _is_list(field.type)]
    numbers = [field.name for field in schema if _is_number(field.type)]
    word = _guess_column(words, WORD_NAMES, "words", schema, job)
    if lists:
        return _Columns(word, [_guess_column(lists, VECTOR_NAMES, "vectors", schema, job) or lists[0]])
    if not numbers or len(set(schema.names)) < len(schema.names):
        raise InputError(
            f"{job.name} has the columns {_describe(schema)}, expected one list column, or several numeric columns "
            "with unique names"
        )
    return _Columns(word, numbers)


def _guess_column(
    candidates: Sequence[str], usual: Sequence[str], what: str, schema: Any, job: ReadingJob
) -> str | None:
    """Return the only candidate, or else the one with a usual name; None without candidates."""
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    named = [name for name in usual if name in candidates]
    if not named:
        raise InputError(
            f"{job.name} has {len(candidates)} columns that could hold the {what} ({_describe(schema)}), expected one: "
            "name the word and vector columns after the file, as in "
            f"{os.path.basename(job.name).partition('#')[0]}#{WORD_NAMES[0]},{VECTOR_NAMES[0]}"
        )
    return named[0]


def _named_columns(schema: Any, names: list[str], job: ReadingJob) -> _Columns:
    missing = [name for name in names if schema.names.count(name) != 1]
    if missing or len(names) < 2:
        problem = f"has no column {missing[0]!r}" if missing else "needs the names of two columns"
        raise InputError(
            f"{job.name} {problem}; it has {_describe(schema)}: expected #WORDS,VECTORS after the name of the file"
        )
    word, *vectors = names
    types = [schema.field(name).type for name in vectors]
    valid = all(map(_is_number, types)) or (len(types) == 1 and _is_list(types[0]))
    if not (_is_text(schema.field(word).type) or _is_integer(schema.field(word).type)) or not valid:
        raise InputError(
            f"{job.name} has {_describe(schema)}: expected text in the first column and numbers in the others"
        )
    return _Columns(word, vectors)


def _describe(schema: Any) -> str:
    listed = [f"{ascii(field.name[:40])[1:-1]} ({str(field.type)[:40]})" for field in list(schema)[:_LISTED]]
    return ", ".join([*listed, "..."] if len(schema.names) > _LISTED else listed) or "no columns"


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_integer(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and _is_number(kind.value_type))


# --------------------------------------------------------------------------- FAISS

_FLAT_INDEXES = (b"IxFI", b"IxF2", b"IxFl")
# Every index: kind, dimensions, number of vectors, two unused fields, whether it is trained, metric. A flat index
# then has its number of values.
_INDEX_HEAD = struct.Struct("<4siqqq?iQ")
_INDEX_BATCH_BYTES = 1 << 22


def faiss(job: ReadingJob) -> tuple[int, Iterator[Items]]:
    """Read the vectors of an index, with its ids if it has any."""
    import faiss as library

    with os.fdopen(job.descriptor, "rb") as file:
        file.seek(0)
        content = np.fromfile(file, np.uint8)
    _check_index_head(content, job)
    owner = library.deserialize_index(content)
    del content
    index: Any = library.downcast_index(owner)  # a view that does not keep `owner` alive
    with_ids = isinstance(index, (library.IndexIDMap, library.IndexIDMap2))
    ids = library.vector_to_array(index.id_map) if with_ids else None
    inner = library.downcast_index(index.index) if with_ids else index
    n, dim = int(inner.ntotal), int(inner.d)
    if n < 1 or dim < 1:
        raise InputError(f"{job.name} is an index of {n} vectors of {dim} numbers, expected at least one of each")
    if isinstance(inner, library.IndexIVF):
        with _explain_refusals(inner, job):
            inner.make_direct_map()
    return n, _index_items(owner, inner, ids, max(1, min(job.rows, _INDEX_BATCH_BYTES // (4 * dim))), job)


def _index_items(owner: Any, inner: Any, ids: Any, rows: int, job: ReadingJob) -> Iterator[Items]:
    """Yield batches of an index. owner: the object that owns `inner`, kept alive here."""
    for begin in range(0, inner.ntotal, rows):
        count = min(rows, inner.ntotal - begin)
        words: Words = None if ids is None else [str(number) for number in ids[begin : begin + count].tolist()]
        with _explain_refusals(inner, job):
            vectors = inner.reconstruct_n(begin, count)
        yield words, vectors
    del owner


def _check_index_head(content: Numbers, job: ReadingJob) -> None:
    """Refuse an index that claims more vectors than its file can hold: FAISS would allocate memory for them."""
    if len(content) < _INDEX_HEAD.size:
        raise InputError(f"{job.name} is a truncated FAISS index, expected a complete one: copy it again")
    kind, dim, count, _, _, _, _, numbers = _INDEX_HEAD.unpack(content[: _INDEX_HEAD.size].tobytes())
    flat = kind in _FLAT_INDEXES and (dim * count * 4 > job.size or numbers > job.size)
    if flat or dim < 1 or not 0 <= count <= 8 * job.size:
        raise InputError(
            f"{job.name} claims to be a FAISS index of {count} vectors of {dim} numbers, which its {job.size:,} "
            "bytes cannot hold: it is damaged; copy it again"
        )


@contextmanager
def _explain_refusals(index: Any, job: ReadingJob) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise InputError(
            f"{job.name} is an index ({type(index).__name__}) that cannot return its vectors, expected one that "
            "can (flat, IVF, PQ, HNSW over those): export the vectors themselves"
        ) from error


# --------------------------------------------------------------------------- SQLite and DuckDB


def sqlite(job: ReadingJob) -> tuple[int, Iterator[Items]]:
    """Read the items of an SQLite table."""
    table, columns = _named_table(job)
    store = SqliteStore(job.file, table, columns=columns)
    return len(store), _store_items(store, job.rows)


def duckdb(job: ReadingJob) -> tuple[int, Iterator[Items]]:
    """Read the items of a DuckDB table."""
    table, columns = _named_table(job)
    store = DuckdbStore(job.file, table, columns=columns)
    # Each batch opens the database again, which takes longer than reading a batch of `job.rows`.
    return len(store), _store_items(store, 4 * job.rows)


def _store_items(store: Store, rows: int) -> Iterator[Items]:
    for ids, vectors in store.batches(rows):
        yield list(ids), vectors


def _named_table(job: ReadingJob) -> tuple[str | None, tuple[str, str] | None]:
    """Return the table and the id and vector columns that the user named."""
    table, *columns = (job.part or "").split(",")
    if len(columns) not in (0, 2):
        raise InputError(f"{job.name} names {len(columns)} columns, expected #TABLE or #TABLE,IDS,VECTORS")
    return table or None, (columns[0], columns[1]) if columns else None
