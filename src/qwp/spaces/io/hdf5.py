"""HDF5 with two datasets: words (strings) and vectors (words, numbers).

Others are found where they are the only ones of their kind, or named behind the file: ``items.h5#text,group/vectors``.
The library is imported when a file is read or written; it is the extra ``hdf5``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

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

_WORDS, _VECTORS = "words", "vectors"
_DEPTH, _MOST = 4, 200  # groups in groups, and datasets, that are looked at
_SHOWN = 8
_CHUNK_BYTES = 1 << 20


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of the vectors, in order."""
    installed("hdf5", f"reading {source.path} (HDF5)")
    import h5py

    with damage_explained(source.path, "HDF5 file"):
        file = h5py.File(source.raw, "r")
    with file:
        with damage_explained(source.path, "HDF5 file"):
            words, vectors = _chosen(file, source)
            _check(words, vectors, source)
        yield from _rows(words, vectors, reading, source)


def _rows(words: Any, vectors: Any, reading: Reading, source: Source) -> Iterator[Rows]:
    n_rows, row_bytes = int(vectors.shape[0]), int(vectors.dtype.itemsize * vectors.shape[1])
    reading.expected_rows = n_rows
    done = 0
    with Names(reading, source, words_file(source.path)) if words is None else nullcontext() as names:
        while (rows := min(batch_rows(reading, row_bytes), n_rows - done)) > 0:
            with damage_explained(source.path, "HDF5 file"):
                numbers = np.asarray(vectors[done : done + rows])
                texts = None if words is None else [_decoded(word) for word in words[done : done + rows]]
            yield sound_rows(
                (texts if names is None else names.take(rows)) or [],
                numbers,
                reading,
                lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
            )
            done += rows
        if names is not None:
            names.check_end()


def _decoded(word: object) -> str | None:
    try:
        return word.decode("utf-8") if isinstance(word, bytes) else str(word)
    except UnicodeDecodeError:
        return None


def _chosen(file: Any, source: Source) -> tuple[Any, Any]:
    """The datasets of words, None where there is none, and of vectors."""
    found = dict(_datasets(file))
    if source.part is not None:
        names = [name.strip("/") for name in source.part.split(",")]
        missing = [name for name in names if name not in found]
        if missing or len(names) > 2:
            raise InputError(f"{source.path}: expected #WORDS,VECTORS or #VECTORS of the datasets {_listed(found)}")
        return None if len(names) == 1 else found[names[0]], found[names[-1]]
    texts = {name: one for name, one in found.items() if len(one.shape or ()) == 1 and one.dtype.kind in "OSU"}
    tables = {name: one for name, one in found.items() if len(one.shape or ()) == 2 and one.dtype.kind in "fiu"}
    vectors = tables.get(_VECTORS) or (next(iter(tables.values())) if len(tables) == 1 else None)
    if vectors is None:
        raise InputError(
            f"{source.path} holds {_listed(found)}, expected one matrix of numbers: name the datasets behind the "
            f"file, as in {source.path.name}#{_WORDS},{_VECTORS}"
        )
    return texts.get(_WORDS) or (next(iter(texts.values())) if len(texts) == 1 else None), vectors


def _datasets(group: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Datasets by name. Links to elsewhere are not followed, and only the first groups are looked into."""
    import h5py

    for number, name in enumerate(group):
        if number >= _MOST:
            return
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Dataset):
            yield prefix + name, item
        elif isinstance(item, h5py.Group) and depth < _DEPTH:
            yield from _datasets(item, f"{prefix}{name}/", depth + 1)


def _listed(found: dict[str, Any]) -> str:
    shown = [f"{ascii(name[:40])[1:-1]} {one.shape}" for name, one in list(found.items())[:_SHOWN]]
    return ", ".join(shown) or "no datasets"


def _check(words: Any, vectors: Any, source: Source) -> None:
    """Refuse what is not words and vectors, lies in other files, or unpacks to more than it should."""
    shape: tuple[int, ...] = vectors.shape or ()
    if len(shape) != 2 or 0 in shape or shape[1] > MAX_DIM or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"the vectors in {source.path} are {vectors.dtype} of shape {shape}, expected real numbers of shape "
            f"(words, dimension), at most {MAX_DIM} in a row"
        )
    if words is not None and (words.shape != shape[:1] or words.dtype.kind not in "OSU"):
        raise InputError(
            f"{source.path} holds words of shape {words.shape} and {shape[0]} vectors, expected a string for each"
        )
    for one in (words, vectors):
        if one is not None and (one.is_virtual or one.external):
            raise InputError(f"{source.path} refers to other files, which are not opened: copy the numbers into it")
    # Chunks that were never written take no room, and are read as zeros.
    if vectors.size * vectors.dtype.itemsize > unpacked_bytes(source.size):
        raise bomb(source.path, source.size)


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format: both datasets grow as rows come."""
    installed("hdf5", f"writing {target.path}")
    import h5py

    with replacing(target.path) as file, h5py.File(file, "w", libver="latest") as made:
        number = np.dtype(target.dtype).newbyteorder("<")
        rows = max(1, _CHUNK_BYTES // (number.itemsize * target.dim))
        vectors = made.create_dataset(
            _VECTORS, (0, target.dim), number, maxshape=(None, target.dim), chunks=(rows, target.dim)
        )
        texts = made.create_dataset(_WORDS, (0,), h5py.string_dtype(), maxshape=(None,), chunks=(4096,))

        def put(words: list[str], block: FloatArray) -> None:
            for word in words:
                if "\0" in word:
                    raise InputError(f"the word {word!r} holds a NUL, which ends a word in HDF5: remove the word")
            done = len(texts)
            for dataset, values in ((texts, words), (vectors, block)):
                dataset.resize(done + len(words), axis=0)
                dataset[done:] = values

        writer = RowWriter(target, put)
        yield writer
        writer.finish()
