"""The two spaces of a fit: from words and vectors to normalised rows, most frequent first."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Device
from qwp.errors import InputError
from qwp.maps.widths import pad
from qwp.results.provenance import InputRecord
from qwp.spaces import frequency, normalization
from qwp.spaces.embeddings import Embeddings, disambiguated
from qwp.spaces.frequency import Ints
from qwp.spaces.normalization import Normalization

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedSpace:
    """One of the spaces of a fit: as it was read, and normalised (n, d), as wide as the widest of them.

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


def in_estimated_order(sides: Sequence[PreparedSpace]) -> list[PreparedSpace]:
    """All sides in their estimated orders, which is said where there are any."""
    if any(side.estimate is not None for side in sides):
        logger.warning(
            "the words of %s do not all seem to be in order of frequency; an order is estimated from the vectors "
            "(order='given' takes them as they are)",
            " and ".join(disambiguated([side.space for side in sides])),
        )
    return [side.in_estimated_order() for side in sides]


def prepare(
    spaces: Sequence[Embeddings], place: Device, *, normalize: str, order: str, dtype: str, seed: int
) -> list[PreparedSpace]:
    """Spaces, normalised in `place`, as they are, with an estimated order where they do not seem to be in one."""
    names = disambiguated(spaces)
    for space, name in zip(spaces, names, strict=True):
        _check_lengths(space, name, dtype, normalize)
    placed = [place.put(space.vectors, dtype) for space in spaces]
    orders: list[Ints | None] = [None] * len(spaces)
    if order != "given":
        find = frequency.orders if order == "auto" else frequency.orders_of_items
        orders = find(placed, seed=seed)
    prepared, width = [], max(space.dim for space in spaces)
    for space, rows in zip(spaces, orders, strict=True):
        fitted, vectors = normalization.fit(placed.pop(0), normalize)
        side = PreparedSpace(space, pad(vectors, width), fitted, estimate=rows)
        prepared.append(side.in_estimated_order() if order == frequency.NO_ORDER else side)
    return prepared


def _check_lengths(space: Embeddings, name: str, dtype: str, normalize: str) -> None:
    """Refuse vectors so long that sums of their squares overflow, or of fourth powers where none are scaled."""
    largest = float(np.abs(space.vectors).max())
    if largest == 0:
        return
    # In logarithms, which do not overflow themselves.
    square = 2 * math.log(largest) + math.log(space.dim * len(space))
    room = math.log(float(np.finfo(dtype).max))
    if square > room:
        raise InputError(
            f"{name} holds the number {largest:g}, whose square is too large for {dtype}: "
            "scale the vectors down, or compute in float64"
        )
    if "unit" not in normalization.parse_steps(normalize) and 2 * square > room:
        raise InputError(
            f"{name} holds the number {largest:g}, too large for {dtype} where vectors are not scaled: "
            "scale them down, or let normalize have the step unit"
        )
