"""The problem that a fit solves: two prepared spaces, the orders of their words, and what is known about them."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qwp import arrays
from qwp.arrays import DTYPES, Array, Device
from qwp.errors import InputError
from qwp.maps.pairs import KnownPairs, RowPairs, identical_rows, lexicon_rows
from qwp.maps.procrustes import Maps, polar
from qwp.maps.projection import Projection, pad, project_spaces
from qwp.parameters import RUN, Settings, param
from qwp.spaces import frequency, normalization
from qwp.spaces.embeddings import Embeddings, FloatArray, disambiguated
from qwp.spaces.frequency import Ints
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.normalization import Normalization, parse_steps

logger = logging.getLogger(__name__)

GIVEN, ESTIMATED = "given", "estimated"
"""The names of the two orders that words can be in: as they were read, or by estimated frequency."""


@dataclass(frozen=True)
class PreparedSpace:
    """One of the spaces of a fit: as it was read, and normalised (n, d), as wide as the widest of them.

    order: the rows of the space in the order of `vectors`, most frequent first; None for the order of the file.
    estimate: an estimated order that is not in use.
    """

    space: Embeddings
    vectors: Array
    normalization: Normalization
    order: Ints | None = None
    estimate: Ints | None = None

    def in_estimated_order(self) -> PreparedSpace:
        """Return the space with the estimated order in use, if there is one."""
        if self.estimate is None:
            return self
        rows = arrays.asarray(self.estimate, self.vectors)
        vectors = arrays.namespace(self.vectors).take(self.vectors, rows, axis=0)
        return replace(self, vectors=vectors, order=self.estimate, estimate=None)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions in `vectors` of rows (p,) of the space."""
        return rows if self.order is None else np.argsort(self.order)[rows]


@dataclass(frozen=True)
class View:
    """Two spaces with their words in one order, in all dimensions or projected to their principal axes.

    x: (n, d) and y: (m, d) normalised rows, most frequent first, of equal width.
    """

    src: PreparedSpace
    tgt: PreparedSpace
    projection: Projection | None = None

    @property
    def x(self) -> Array:
        """The rows of the source."""
        return self.src.vectors if self.projection is None else self.projection.x

    @property
    def y(self) -> Array:
        """The rows of the target."""
        return self.tgt.vectors if self.projection is None else self.projection.y

    @property
    def order(self) -> str:
        """The name of the order."""
        return GIVEN if self.src.order is None and self.tgt.order is None else ESTIMATED

    @cached_property
    def projected(self) -> View:
        """The same words on the principal axes of each side, where the spaces are wide or not equally wide."""
        narrow = project_spaces(self.x, self.y, self.src.space.dim, self.tgt.space.dim)
        return replace(self, projection=narrow)

    def project(self, w: Array) -> Array:
        """Return a map (width, width) of the padded spaces as an orthogonal map between the rows of this view."""
        if self.projection is None or self.projection.src_axes is None:
            return w
        return polar(self.projection.project(Maps(w)).src)

    def positions(self, rows: RowPairs) -> RowPairs:
        """Return the positions of pairs of rows of the spaces, (p,) each."""
        return self.src.positions(rows[0]), self.tgt.positions(rows[1])

    def identical_pairs(self) -> RowPairs:
        """Return the positions of the words that both sides spell alike, (p,) each."""
        return self.positions(identical_rows(self.src.space.words, self.tgt.space.words))


@dataclass(frozen=True)
class Problem:
    """What a fit solves. Nothing of it changes during the fit.

    views: the orders that the words may be in; an initializer that searches compares them, everything else uses the one
    in the state. ordered: whether words have an order of frequency at all, if an estimated one. known: pairs of rows of
    the spaces from a lexicon. matrix: an initial map of the user. seed: the root of all random streams.
    """

    views: tuple[View, ...]
    ordered: bool = True
    known: KnownPairs | None = None
    matrix: FloatArray | None = None
    seed: int = 0

    @property
    def width(self) -> int:
        """The common width of the padded spaces."""
        return int(self.views[0].x.shape[1])

    def view_of(self, order: str) -> View:
        """Return the view with this order, in all dimensions."""
        return next(view for view in self.views if view.order == order)

    def known_pairs(self, view: View) -> RowPairs:
        """Return the positions of the known pairs to learn from, (p,) each."""
        assert self.known is not None, "checked before the fit"
        return view.positions(self.known.used)


@dataclass(frozen=True, kw_only=True)
class Prepare(Settings):
    """Normalise both spaces on the device and estimate the order of their words where it is in doubt."""

    normalize: str = param(
        normalization.DEFAULT,
        "Normalisation steps: a comma-separated list of unit and center, or none.",
        RUN,
        text=parse_steps,
        range="comma-separated unit and center, or none",
        shared=True,
    )
    order: str = param(
        "auto",
        "Order of the words: auto (estimated for files that are not sorted by frequency), given, or none (unordered "
        "items, which may lack a counterpart).",
        RUN,
        choices=frequency.ORDERS,
        shared=True,
    )
    dtype: str = param("float32", "Precision of the computation: float32 or float64.", RUN, choices=DTYPES, shared=True)
    fewest_pairs: int = 30
    """Known pairs that are enough to compare a given order with an estimated one."""

    @property
    def ordered(self) -> bool:
        """Whether words have an order of frequency, if an unknown one."""
        return self.order != frequency.NO_ORDER

    def spaces(self, spaces: Sequence[Embeddings], device: Device, seed: int) -> list[PreparedSpace]:
        """Return the spaces normalised on a device, with an estimated order if the given one is in doubt."""
        for space, name in zip(spaces, disambiguated(spaces), strict=True):
            _check_lengths(space, name, self.dtype, self.normalize)
        placed = [device.put(space.vectors, self.dtype) for space in spaces]
        orders: list[Ints | None] = [None] * len(spaces)
        if self.order != "given":
            find = frequency.orders if self.order == "auto" else frequency.orders_of_items
            orders = find(placed, seed=seed)
        prepared, width = [], max(space.dim for space in spaces)
        for space, rows in zip(spaces, orders, strict=True):
            fitted, vectors = normalization.fit(placed.pop(0), self.normalize)
            side = PreparedSpace(space, pad(vectors, width), fitted, estimate=rows)
            prepared.append(side if self.ordered else side.in_estimated_order())
        return prepared

    def problem(
        self,
        prepared: Sequence[PreparedSpace],
        *,
        seed: int,
        lexicon: Lexicon | None = None,
        matrix: FloatArray | None = None,
        compare_orders: bool = False,
        hold_out: bool = False,
    ) -> Problem:
        """Return the problem of two prepared spaces.

        compare_orders: whether the initializer compares an estimated order with the given one. hold_out: whether some
        of the known pairs are held out.
        """
        src, tgt = prepared
        rows = None if lexicon is None else lexicon_rows(lexicon, src.space.index, tgt.space.index)
        given, estimated = View(src, tgt), View(src.in_estimated_order(), tgt.in_estimated_order())
        views: tuple[View, ...] = (given, estimated)
        if src.estimate is None and tgt.estimate is None:
            views = (given,)
        elif not compare_orders:
            views = (given if rows is not None and self._given_order_agrees(rows, estimated) else estimated,)
            if views[0] is estimated:
                log_estimated_order([src.space, tgt.space])
        known = None if rows is None else KnownPairs.of(rows) if hold_out else KnownPairs(rows)
        return Problem(views, self.ordered, known, matrix, seed)

    def _given_order_agrees(self, rows: RowPairs, estimated: View) -> bool:
        """Whether the ranks of known pairs agree with the given order rather than with the estimated one.

        Translations have similar frequencies. With few pairs nothing is known, and the estimate stands.
        """
        if len(rows[0]) < self.fewest_pairs:
            return False
        return _rank_correlation(rows) >= _rank_correlation(estimated.positions(rows))


def log_estimated_order(spaces: Sequence[Embeddings]) -> None:
    """Log a warning that an estimated order is used in place of the given one."""
    logger.warning(
        "the words of %s do not all seem to be in order of frequency; an order is estimated from the vectors "
        "(order='given' to take them as they are)",
        " and ".join(disambiguated(spaces)),
    )


def _rank_correlation(rows: RowPairs) -> float:
    """Return the correlation of the logarithms of the ranks of pairs, (p,) each."""
    logs = [np.log(side + 10.0) for side in rows]
    deviations = [log - log.mean() for log in logs]
    norm = float(np.linalg.norm(deviations[0]) * np.linalg.norm(deviations[1]))
    return float(deviations[0] @ deviations[1]) / norm if norm > 0 else 0.0


def _check_lengths(space: Embeddings, name: str, dtype: str, normalize: str) -> None:
    """Refuse vectors so long that sums of their squares overflow, or of fourth powers if vectors are not scaled."""
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
