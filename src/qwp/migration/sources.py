"""What a migration reads: a file, a store or vectors in memory, all in batches; and samples of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings, Side
from qwp.spaces.io.files import check_file, file_fingerprint
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sources import split_part
from qwp.spaces.objects import Space, as_embeddings
from qwp.spaces.stores import Items, ReadableStore
from qwp.spaces.vector_databases import open_folder

BATCH = 4096


@dataclass(frozen=True)
class FileOptions:
    """How to read and write files. reading: arguments of `qwp.load`; writing: arguments of `open_writer`."""

    reading: Mapping[str, Any] = field(default_factory=dict)
    writing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FileItems:
    """The vectors of a file. reading: arguments of `qwp.load`; label: name of rows without words."""

    path: Path
    label: Side
    reading: Mapping[str, Any] = field(default_factory=dict)
    notes: list[Reading] = field(default_factory=list)

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in file order."""
        for batch in io.stream(self.path, batch=size, label=self.label, on_open=self.notes.append, **self.reading):
            yield batch.words, batch.vectors

    @property
    def identity(self) -> str:
        """A digest of the file that is the same if the file is unchanged."""
        file, part = split_part(self.path)
        return f"{file_fingerprint(file)} {part} {sorted(self.reading.items())}"

    @property
    def format(self) -> str | None:
        """Format of the file, once it has been read."""
        return self.notes[-1].format if self.notes else None

    @property
    def unnamed(self) -> bool:
        """Whether the rows have no ids, once they have been read."""
        return bool(self.notes) and self.notes[-1].unnamed


@dataclass(frozen=True)
class MemoryItems:
    """Vectors in memory."""

    space: Embeddings

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in order."""
        for begin in range(0, len(self.space), size):
            rows = slice(begin, begin + size)
            yield self.space.words[rows], self.space.vectors[rows]

    @property
    def identity(self) -> str:
        """The digest of the vectors."""
        return self.space.sha256()


Source: TypeAlias = "FileItems | MemoryItems | ReadableStore"


def as_source(given: Space | ReadableStore, label: Side, reading: Mapping[str, Any]) -> Source:
    """Return what to read. given: a path, a store, or vectors in memory as `qwp.align` takes them."""
    if isinstance(given, (str, PathLike)):
        store = open_folder(Path(given))
        if store is not None:
            return store
        check_file(Path(given))
        return FileItems(Path(given), label, reading)
    if hasattr(given, "batches"):
        return cast(ReadableStore, given)
    return MemoryItems(as_embeddings(given, label))


def all_ids(source: Source) -> list[str]:
    """Return the ids of all items."""
    ids = [id for batch, _ in source.batches(BATCH) for id in batch]
    if not ids:
        raise InputError(f"{getattr(source, 'path', 'a store')} holds no vector, expected at least one")
    return ids


def vectors_of(source: Source, ids: Iterable[str]) -> tuple[dict[str, int], AnyFloats]:
    """Return the vectors of some ids, (n, d), and the row of each id."""
    wanted = set(ids)
    rows: dict[str, int] = {}
    parts: list[AnyFloats] = []
    dim = 0
    for batch, vectors in source.batches(BATCH):
        chosen = [position for position, id in enumerate(batch) if id in wanted]
        rows |= {batch[position]: row for row, position in enumerate(chosen, len(rows))}
        parts.append(np.asarray(vectors, dtype=np.float32)[chosen])
        dim = int(vectors.shape[1])
    return rows, np.concatenate([*parts, np.empty((0, dim), dtype=np.float32)])


def known_pairs(
    old: Sequence[str], new: Sequence[str], given: Sequence[tuple[str, str]] | None
) -> list[tuple[str, str]]:
    """Return the pairs of ids of both sides: the given ones that exist, or else the ids that both sides have.

    given: pairs of ids, or none at all; rows without ids may be named by their numbers, from 0.
    """
    of_old, of_new = set(old), set(new)
    if given is None:
        return [(id, id) for id in old if id in of_new]
    if not given:
        return []
    named = ((_named(a, of_old, "src"), _named(b, of_new, "tgt")) for a, b in given)
    found = [(a, b) for a, b in named if a in of_old and b in of_new]
    if not found:
        raise InputError("no given pair names an id of the old and an id of the new vectors; expected at least one")
    return found


def _named(id: str, known: set[str], side: Side) -> str:
    return f"{side}:{id}" if id not in known and id.isdecimal() else id
