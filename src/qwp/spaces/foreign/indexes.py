"""Index files of FAISS: flat ones, and others that can give back the vectors they hold."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.spaces.foreign.frames import Items, Job, Numbers, Words

_FLAT = (b"IxFI", b"IxF2", b"IxFl")
# Of every index: its kind, dimensions, number of vectors, two fields without meaning, trained or not, metric; then, of
# a flat one, how many numbers follow.
_HEAD = struct.Struct("<4siqqq?iQ")
_BATCH_BYTES = 1 << 22


def faiss(job: Job) -> tuple[int, Iterator[Items]]:
    """The vectors of an index, with its ids if it has any."""
    import faiss as library

    with os.fdopen(job.descriptor, "rb") as file:
        file.seek(0)
        content = np.fromfile(file, np.uint8)
    _check_head(content, job)
    owner = library.deserialize_index(content)
    del content
    index: Any = library.downcast_index(owner)  # a view, which does not keep what it shows
    with_ids = isinstance(index, (library.IndexIDMap, library.IndexIDMap2))
    ids = library.vector_to_array(index.id_map) if with_ids else None
    held = library.downcast_index(index.index) if with_ids else index
    n, dim = int(held.ntotal), int(held.d)
    if n < 1 or dim < 1:
        raise InputError(f"{job.name} is an index of {n} vectors of {dim} numbers, expected at least one of each")
    if isinstance(held, library.IndexIVF):
        with _refusals_explained(held, job):
            held.make_direct_map()
    return n, _items(owner, held, ids, max(1, min(job.rows, _BATCH_BYTES // (4 * dim))), job)


def _items(owner: Any, held: Any, ids: Any, rows: int, job: Job) -> Iterator[Items]:
    """owner: kept, because the index is a part of it."""
    for begin in range(0, held.ntotal, rows):
        count = min(rows, held.ntotal - begin)
        words: Words = None if ids is None else [str(number) for number in ids[begin : begin + count].tolist()]
        with _refusals_explained(held, job):
            vectors = held.reconstruct_n(begin, count)
        yield words, vectors
    del owner


def _check_head(content: Numbers, job: Job) -> None:
    """Refuse an index that says it is larger than its file: the library would make room for it."""
    if len(content) < _HEAD.size:
        raise InputError(f"{job.name} is a cut index of FAISS, expected a complete one: copy it again")
    kind, dim, count, _, _, _, _, numbers = _HEAD.unpack(content[: _HEAD.size].tobytes())
    flat = kind in _FLAT and (dim * count * 4 > job.size or numbers > job.size)
    if flat or dim < 1 or not 0 <= count <= 8 * job.size:
        raise InputError(
            f"{job.name} says it is an index of FAISS of {count} vectors of {dim} numbers, which its {job.size:,} "
            "bytes cannot hold: it is damaged; copy it again"
        )


@contextmanager
def _refusals_explained(index: Any, job: Job) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise InputError(
            f"{job.name} is an index ({type(index).__name__}) that cannot give back its vectors, expected one that "
            "can (flat, IVF, PQ, HNSW over those): export the vectors themselves"
        ) from error
