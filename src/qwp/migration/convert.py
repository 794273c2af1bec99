"""Conversion of all vectors of a store."""

from __future__ import annotations

from qwp.errors import InputError, whole
from qwp.migration.adapter import Adapter
from qwp.spaces.stores import Store


def rewrite(source: Store, target: Store, adapter: Adapter, *, batch: int = 4096) -> int:
    """Write all vectors of a store, converted, to another store. Return the number of items.

    adapter: from the model of the source to that of the target, such as `Adapter.of_alignment(alignment)`. The maps of
    an alignment are refused, because they can lead into a space that neither model shares.
    """
    whole(1, batch=batch)
    if not isinstance(adapter, Adapter):
        raise InputError(
            f"received {type(adapter).__name__} to convert a store with, expected an Adapter: "
            "Adapter.of_alignment(alignment) makes one whose vectors queries of the new model find"
        )
    return target.write((ids, adapter(vectors)) for ids, vectors in source.batches(batch))
