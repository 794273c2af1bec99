"""The two spaces of a fit: from what a user may hand over to normalised rows, most frequent first."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Place
from qwp.errors import InputError
from qwp.results.provenance import InputRecord
from qwp.spaces import frequency, io, normalization
from qwp.spaces.embeddings import Embeddings, FloatArray
from qwp.spaces.frequency import Ints
from qwp.spaces.normalization import Normalization

logger = logging.getLogger(__name__)

Space: TypeAlias = "Embeddings | FloatArray | str | PathLike[str]"


@dataclass(frozen=True)
class PreparedSpace:
    """One of the spaces of a fit: as it was read, and normalised (n, d).

    order: the rows of the space that the vectors are, most frequent first; None where they are as they were read.
    estimate: such rows that were estimated because the words do not seem to be in order, and are not in use.
    """

    space: Embeddings
    vectors: Array
    normalization: Normalization
    order: Ints | None = None
    estimate: Ints | None = None

    def in_estimated_order(self) -> PreparedSpace:
        """The same with the estimated order in use, if there is one."""
        if self.estimate is None:
            return self
        rows = arrays.asarray(self.estimate, self.vectors)
        vectors = arrays.namespace(self.vectors).take(self.vectors, rows, axis=0)
        return replace(self, vectors=vectors, order=self.estimate, estimate=None)

    def rows_in_order(self, rows: Ints) -> Ints:
        """Where rows (p,) of the space are among the vectors."""
        return rows if self.order is None else np.argsort(self.order)[rows]

    def record(self) -> InputRecord:
        """Where the space came from and what it held."""
        return InputRecord.of(self.space)


def as_embeddings(space: Space, name: str) -> Embeddings:
    """Embeddings from what a user may hand over: Embeddings, a path, or an array.

    The rows of an array are named after it, by number: names of two arrays never match.
    """
    if isinstance(space, Embeddings):
        return space
    if isinstance(space, (str, PathLike)):
        return io.load(space)
    vectors = np.asarray(space)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"{name} is an array of shape {vectors.shape} and type {vectors.dtype}; "
            "expected numbers (n, d), Embeddings or a path"
        )
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float32)
    return Embeddings([f"{name}:{i}" for i in range(vectors.shape[0])], vectors)


def prepare(
    spaces: Sequence[Embeddings], place: Place, *, normalize: str, order: str, dtype: str, seed: int
) -> list[PreparedSpace]:
    """Spaces, normalised in `place`, as they are, with an estimated order where they do not seem to be in one."""
    for space in spaces[1:]:
        _check_dimensions(spaces[0], space)
    for space in spaces:
        _check_lengths(space, dtype, normalize)
    orders: list[Ints | None] = [None] * len(spaces)
    if order == "auto":
        orders = frequency.orders([space.vectors for space in spaces], seed=seed)
    if any(found is not None for found in orders):
        logger.warning(
            "the words of %s do not all seem to be in order of frequency; an order is estimated from the vectors "
            "(order='given' takes them as they are)",
            " and ".join(space.name for space in spaces),
        )
    prepared = []
    for space, rows in zip(spaces, orders, strict=True):
        fitted, vectors = normalization.fit(place.put(space.vectors, dtype), normalize)
        prepared.append(PreparedSpace(space, vectors, fitted, estimate=rows))
    return prepared


def _check_dimensions(first: Embeddings, other: Embeddings) -> None:
    """All spaces must have the same number of dimensions."""
    if first.dim != other.dim:
        raise InputError(
            f"{first.name} has {first.dim} dimensions, {other.name} has {other.dim}; the map needs the same number: "
            "train or reduce both to one dimension"
        )


def _check_lengths(space: Embeddings, dtype: str, normalize: str) -> None:
    """Refuse vectors so long that sums of their squares overflow, or of fourth powers where none are scaled."""
    largest = float(np.abs(space.vectors).max())
    if largest == 0:
        return
    # In logarithms, which do not overflow themselves.
    square = 2 * math.log(largest) + math.log(space.dim * len(space))
    room = math.log(float(np.finfo(dtype).max))
    if square > room:
        raise InputError(
            f"{space.name} holds the number {largest:g}, whose square is too large for {dtype}: "
            "scale the vectors down, or compute in float64"
        )
    if "unit" not in normalization.parse_steps(normalize) and 2 * square > room:
        raise InputError(
            f"{space.name} holds the number {largest:g}, too large for {dtype} where vectors are not scaled: "
            "scale them down, or let normalize have the step unit"
        )
