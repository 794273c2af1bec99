"""Vectors in a database: a small protocol to read them in batches and to write them back, and what needs only it.

An adapter for another database is a class with the two methods of `Store`. Two are here: for tables of DuckDB, whose
vectors are arrays, and for tables of SQLite, whose vectors are blobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

import numpy as np

from qwp.errors import InputError, whole
from qwp.spaces.embeddings import Embeddings, FloatArray
from qwp.spaces.stores.duckdb import DuckdbStore
from qwp.spaces.stores.sqlite import SqliteStore

__all__ = ["DuckdbStore", "Items", "SqliteStore", "Store", "load", "rewrite"]

Items: TypeAlias = tuple[list[str], FloatArray]
"""Ids and their vectors (b, d)."""
_BATCH = 4096


class Store(Protocol):
    """A place that keeps vectors by id."""

    def batches(self, size: int) -> Iterator[Items]:
        """All items in batches of at most ``size``, always in the same order: ids, each once, and vectors (b, d)."""
        ...

    def write(self, batches: Iterable[Items]) -> int:
        """Put vectors in: all batches or, on any error, none. Known ids get new vectors. Returns how many came."""
        ...


def load(store: Store, *, max_items: int | None = None, name: str = "store") -> Embeddings:
    """The items of a store, or the first of them, as Embeddings whose words are the ids."""
    if max_items is not None:
        whole(1, max_items=max_items)
    words: list[str] = []
    parts: list[FloatArray] = []
    for ids, vectors in store.batches(_BATCH):
        room = len(ids) if max_items is None else max_items - len(words)
        words += ids[:room]
        parts.append(np.asarray(vectors)[:room])
        if max_items is not None and len(words) >= max_items:
            break
    if not words:
        raise InputError(f"{name} holds no vector, expected at least one")
    return Embeddings(words, np.concatenate(parts), name=name)


def rewrite(source: Store, target: Store, treat: Callable[[FloatArray], FloatArray], *, batch: int = _BATCH) -> int:
    """Write all vectors of one store, treated, into another or into the same. Returns how many there were.

    treat: (b, d) -> (b, e), such as ``lambda rows: alignment.transform(rows, "src")``.
    """
    whole(1, batch=batch)
    return target.write((ids, treat(vectors)) for ids, vectors in source.batches(batch))
