"""The problem that a fit solves: two prepared spaces, the orders of their words, and what is known about them."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qwp import arrays
from qwp.arrays import DTYPES, AnyFloats, Array, Device, Ints
from qwp.errors import InputError
from qwp.maps.pairs import KnownPairs, RowPairs, identical_rows, lexicon_rows
from qwp.maps.procrustes import Maps, polar
from qwp.maps.projection import Projection, pad, project_spaces
from qwp.parameters import RUN, Settings, param
from qwp.spaces import frequency, normalization
from qwp.spaces.embeddings import Embeddings, disambiguated
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.normalization import Normalization, parse_steps

logger = logging.getLogger(__name__)

GIVEN, ESTIMATED = "given", "estimated"
"""The names of the orders of words: as they were read, or by estimated frequency."""


@dataclass(frozen=True)
class PreparedSpace:
    """A space as it was read, with its vectors normalised and padded to the common width, (n, width).

    order: the rows of the space in the order of `vectors`, most frequent first; None for the order of the file.
    estimate: an estimated order that is not in use.
    """

    space: Embeddings
    vectors: Array
    normalization: Normalization
    order: Ints | None = None
    estimate: Ints | None = None

    def in_estimated_order(self) -> PreparedSpace:
        """Return the space with its vectors in the estimated order, if it has one."""
        if self.estimate is None:
            return self
        rows = arrays.asarray(self.estimate, self.vectors)
        vectors = arrays.namespace(self.vectors).take(self.vectors, rows, axis=0)
        return replace(self, vectors=vectors, order=self.estimate, estimate=None)

    def positions(self, rows: Ints) -> Ints:
        """Return the rows of `vectors` that hold rows (p,) of the space, (p,)."""
        return rows if self.order is None else np.argsort(self.order)[rows]


@dataclass(frozen=True)
class View:
    """Two spaces with their words in one order, in all dimensions or projected onto their principal axes."""

    src: PreparedSpace
    tgt: PreparedSpace
    projection: Projection | None = None

    @property
    def x(self) -> Array:
        """The source: (n, d) normalised rows, most frequent first."""
        return self.src.vectors if self.projection is None else self.projection.x

    @property
    def y(self) -> Array:
        """The target: (m, d) normalised rows, most frequent first."""
        return self.tgt.vectors if self.projection is None else self.projection.y

    @property
    def order(self) -> str:
        """The name of the order."""
        return GIVEN if self.src.order is None and self.tgt.order is None else ESTIMATED

    @cached_property
    def projected(self) -> View:
        """The same words on the principal axes of each side, if the spaces are wide or of different width."""
        projection = project_spaces(self.x, self.y, self.src.space.dim, self.tgt.space.dim)
        return replace(self, projection=projection)

    def project(self, w: Array) -> Array:
        """Return a map (width, width) of the padded spaces as an orthogonal map (d, d) of the rows of this view."""
        if self.projection is None or self.projection.src_axes is None:
            return w
        return polar(self.projection.project(Maps(w)).src)

    def positions(self, rows: RowPairs) -> RowPairs:
        """Return the rows of the view that hold pairs of rows of the spaces, (p,) each."""
        return self.src.positions(rows[0]), self.tgt.positions(rows[1])

    def identical_pairs(self) -> RowPairs:
        """Return the rows of the words that both sides spell alike, (p,) each."""
        return self.positions(identical_rows(self.src.space.words, self.tgt.space.words))


@dataclass(frozen=True)
class Problem:
    """The problem of a fit. It does not change during the fit.

    views: the given order of the words, an estimated one, or both; a search compares them, and all later stages use the
    one that the state names. ordered: whether words have an order of frequency. known: pairs of rows from a lexicon.
    matrix: an initial map of the user. seed: the root of all random streams.
    """

    views: tuple[View, ...]
    ordered: bool = True
    known: KnownPairs | None = None
    matrix: AnyFloats | None = None
    seed: int = 0

    @property
    def width(self) -> int:
        """The common width of the padded spaces."""
        return int(self.views[0].x.shape[1])

    def view_of(self, order: str) -> View:
        """Return the view with this order, in all dimensions."""
        return next(view for view in self.views if view.order == order)

    def known_pairs(self, view: View) -> RowPairs:
        """Return the rows of the known pairs to learn from, (p,) each."""
        assert self.known is not None, "supervision is checked before the fit"
        return view.positions(self.known.used)


@dataclass(frozen=True, kw_only=True)
class Prepare(Settings):
    """Normalise both spaces on the device; estimate the order of their words if it is in doubt."""

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
    """Known pairs that a comparison of the given order with the estimated one needs."""

    @property
    def ordered(self) -> bool:
        """Whether words have an order of frequency."""
        return self.order != frequency.NO_ORDER

    def spaces(self, spaces: Sequence[Embeddings], device: Device, seed: int) -> list[PreparedSpace]:
        """Return the spaces, normalised on a device, with an estimated order if the given one is in doubt."""
        for space, name in zip(spaces, disambiguated(spaces), strict=True):
            _check_lengths(space, name, self.dtype, self.normalize)
        on_device = [device.put(space.vectors, self.dtype) for space in spaces]
        orders: list[Ints | None] = [None] * len(spaces)
        if self.order != "given":
            find = frequency.orders if self.order == "auto" else frequency.orders_of_items
            orders = find(on_device, seed=seed)
        prepared, width = [], max(space.dim for space in spaces)
        for space, rows in zip(spaces, orders, strict=True):
            fitted, vectors = normalization.fit(on_device.pop(0), self.normalize)
            side = PreparedSpace(space, pad(vectors, width), fitted, estimate=rows)
            prepared.append(side if self.ordered else side.in_estimated_order())
        return prepared

    def problem(
        self,
        prepared: Sequence[PreparedSpace],
        *,
        seed: int,
        lexicon: Lexicon | None = None,
        pairs: RowPairs | None = None,
        matrix: AnyFloats | None = None,
        compare_orders: bool = False,
        hold_out: bool = False,
    ) -> Problem:
        """Return the problem of two prepared spaces.

        pairs: rows of probable pairs, which help to choose the order if there is no lexicon. compare_orders: whether
        the initializer compares an estimated order with the given one. hold_out: whether some of the known pairs are
        held out, and others choose between maps.
        """
        src, tgt = prepared
        rows = None if lexicon is None else lexicon_rows(lexicon, src.space.index, tgt.space.index)
        given, estimated = View(src, tgt), View(src.in_estimated_order(), tgt.in_estimated_order())
        views: tuple[View, ...] = (given, estimated)
        if src.estimate is None and tgt.estimate is None:
            views = (given,)
        elif not compare_orders:
            probable = pairs if rows is None else rows
            views = (given if probable is not None and self._given_order_agrees(probable, estimated) else estimated,)
            if views[0] is estimated:
                log_estimated_order([src.space, tgt.space])
        known = None if rows is None else KnownPairs.of(rows) if hold_out else KnownPairs(rows)
        return Problem(views, self.ordered, known, matrix, seed)

    def _given_order_agrees(self, rows: RowPairs, estimated: View) -> bool:
        """Return whether the ranks of known pairs correlate more in the given order than in the estimated one.

        Translations have similar frequencies. Fewer than `fewest_pairs` pairs do not decide.
        """
        if len(rows[0]) < self.fewest_pairs:
            return False
        return _rank_correlation(rows) >= _rank_correlation(estimated.positions(rows))


def log_estimated_order(spaces: Sequence[Embeddings]) -> None:
    """Warn that an estimated order is used instead of the given one."""
    logger.warning(
        "the words of %s do not all seem to be sorted by frequency, so qwp estimates an order from the vectors; "
        "--order given (order='given') trusts the files, --order none (order='none') is for items without a frequency, "
        "such as sentences",
        " and ".join(disambiguated(spaces)),
    )


def _rank_correlation(rows: RowPairs) -> float:
    """Return the correlation of the logarithms of the ranks of pairs, (p,) each."""
    logs = [np.log(side + 10.0) for side in rows]
    deviations = [log - log.mean() for log in logs]
    norm = float(np.linalg.norm(deviations[0]) * np.linalg.norm(deviations[1]))
    return float(deviations[0] @ deviations[1]) / norm if norm > 0 else 0.0


def _check_lengths(space: Embeddings, name: str, dtype: str, normalize: str) -> None:
    """Raise an InputError for vectors whose squares overflow in a sum, or fourth powers if they are not scaled."""
    largest = float(np.abs(space.vectors).max())
    if largest == 0:
        return
    # Logarithms do not overflow.
    square = 2 * math.log(largest) + math.log(space.dim * len(space))
    room = math.log(float(np.finfo(dtype).max))
    if square > room:
        raise InputError(
            f"{name} holds the number {largest:g}, whose square is too large for {dtype}: "
            "scale the vectors down, or compute in float64"
        )
    if "unit" not in normalization.parse_steps(normalize) and 2 * square > room:
        raise InputError(
            f"{name} holds the number {largest:g}, too large for {dtype} without scaling: "
            "scale them down, or let normalize have the step unit"
        )
