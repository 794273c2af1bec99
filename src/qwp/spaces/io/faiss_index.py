"""Index files of FAISS: flat ones, and others that can give back the vectors they hold, as far as these keep them.

An index has no words: they are in a file beside it, or those of a map of ids (IndexIDMap) are its ids. The library is
imported when an index is read or written; it is the extra ``faiss``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from qwp.checks import installed
from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.beside import Names, words_written
from qwp.spaces.io.damage import damage_explained
from qwp.spaces.io.files import replacing
from qwp.spaces.io.limits import MAX_DIM
from qwp.spaces.io.reading import Reading, Rows, batch_rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target

_WHAT = "index of FAISS"
_FLAT = (b"IxFI", b"IxF2", b"IxFl")
# Of every index: its kind, dimensions, number of vectors, two fields without meaning, trained or not, metric; then, of
# a flat one, how many numbers follow.
_HEAD = struct.Struct("<4siqqq?iQ")


def _words_file(path: Path) -> Path:
    """Where the words are: x.faiss.words.txt, which is not that of an array of the same name."""
    return path.with_name(f"{path.name}.words.txt")


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The vectors of an index, in the order in which they were added."""
    installed("faiss", f"reading {source.path} (an {_WHAT})")
    import faiss

    _check_head(source)
    with damage_explained(source.path, _WHAT):
        owner = faiss.deserialize_index(np.frombuffer(source.read_at(0, source.size), np.uint8))
        index: Any = faiss.downcast_index(owner)  # a view, which does not keep what it shows
        ids = faiss.vector_to_array(index.id_map) if isinstance(index, (faiss.IndexIDMap, faiss.IndexIDMap2)) else None
        held = faiss.downcast_index(index.index) if ids is not None else index
    n, dim = int(held.ntotal), int(held.d)
    if n < 1 or not 1 <= dim <= MAX_DIM:
        raise InputError(f"{source.path} is an index of {n} vectors of {dim} numbers, expected at least one of each")
    reading.expected_rows = n
    done = 0
    with Names(reading, source, _words_file(source.path)) as names:
        numbered = ids if names.path is None else None
        reading.unnamed = reading.unnamed and numbered is None
        while (rows := min(batch_rows(reading, 4 * dim), n - done)) > 0:
            words = names.take(rows)
            yield sound_rows(
                words if numbered is None else [str(number) for number in numbered[done : done + rows].tolist()],
                _reconstructed(faiss, held, done, rows, source),
                reading,
                lambda row, done=done: f"vector {done + row}",  # type: ignore[misc]
            )
            done += rows
        names.check_end()


def _check_head(source: Source) -> None:
    """Refuse an index that says it is larger than its file: the library would make room for it."""
    head = source.read_at(0, _HEAD.size)
    if len(head) < _HEAD.size:
        raise InputError(f"{source.path} is a cut {_WHAT}, expected a complete one: copy it again")
    kind, dim, count, _, _, _, _, numbers = _HEAD.unpack(head)
    flat = kind in _FLAT and (dim * count * 4 > source.size or numbers > source.size)
    if flat or not 0 < dim <= MAX_DIM or not 0 <= count <= 8 * source.size:
        raise InputError(
            f"{source.path} says it is an {_WHAT} of {count} vectors of {dim} numbers, which its {source.size:,} bytes "
            "cannot hold: it is damaged; copy it again"
        )


def _reconstructed(faiss: Any, index: Any, first: int, count: int, source: Source) -> FloatArray:
    try:
        with damage_explained(source.path, _WHAT):
            if isinstance(index, faiss.IndexIVF):
                index.make_direct_map()
            found: FloatArray = index.reconstruct_n(first, count)
            return found
    except InputError as error:
        raise InputError(
            f"{source.path} is an index ({type(index).__name__}) that cannot give back its vectors, expected one that "
            "can (flat, IVF, PQ, HNSW over those): export the vectors themselves"
        ) from error


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer of a flat index for inner products, with the words beside it; it is in memory until it is complete."""
    installed("faiss", f"writing {target.path}")
    import faiss

    index = faiss.IndexFlatIP(target.dim)
    with replacing(target.path) as file, words_written(target, _words_file(target.path)) as put_words:

        def put(words: list[str], vectors: FloatArray) -> None:
            put_words(words)
            index.add(vectors)

        writer = RowWriter(target, put)
        yield writer
        writer.finish()
        file.write(faiss.serialize_index(index).tobytes())
