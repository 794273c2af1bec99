"""Spaces of different width, and very wide ones.

The narrower of two spaces is pad by zeros, and the maps are cut to what each space has in the end.

A map between spaces of 300 and 768 dimensions that keeps all lengths and angles is a matrix (300, 768) with orthonormal
rows; the other way it is (768, 300) with orthonormal columns, which keeps what the target can show. Either is a part of
a rotation of 768 dimensions in which the narrower space takes up 300 of them. So every method works on rows of the same
width, whose last columns are zero on one side, and knows nothing of it.

The search for a start and the loop take steps whose cost grows with the cube of the width. In spaces that are wide, or
not equally wide, they see the main directions of each side alone: as many as the narrower one has, and not too many.
The refinement then goes on in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps

MOST_DIRECTIONS = 300
"""Main directions of a space that are seen by steps which cost the cube of their number."""


def pad(x: Array, width: int) -> Array:
    """x (n, d) with columns of zeros up to (n, width); itself where it is as wide."""
    missing = width - x.shape[1]
    if missing == 0:
        return x
    xp = arrays.namespace(x)
    return xp.concat([x, xp.zeros((x.shape[0], missing), dtype=x.dtype, device=arrays.device(x))], axis=1)


def within_target(maps: Maps, tgt_dim: int) -> Maps:
    """Maps (width, width) of pad spaces, without what a map of the source alone takes out of the target's space."""
    if maps.tgt is not None or maps.src.shape[1] == tgt_dim:
        return maps
    return Maps(pad(maps.src[:, :tgt_dim], maps.src.shape[1]))


def cut(maps: Maps, src_dim: int, tgt_dim: int) -> Maps:
    """Maps of pad spaces as maps of the spaces: (src_dim, common) and, if there are two, (tgt_dim, common).

    A map of the source alone leads into the target's space. Two maps lead into as many dimensions as both can fill.
    """
    width = maps.src.shape[0]
    if src_dim == tgt_dim == width:
        return maps
    if maps.tgt is None:
        return Maps(maps.src[:src_dim, :tgt_dim])
    xp = arrays.namespace(maps.src)
    src, tgt = maps.src[:src_dim, :], maps.tgt[:tgt_dim, :]
    # The directions in which one of the sides has no extent are zero in both.
    filled = arrays.to_numpy(xp.max(xp.abs(src), axis=0) * xp.max(xp.abs(tgt), axis=0)).nonzero()[0]
    kept = arrays.asarray(filled, src)
    return Maps(xp.take(src, kept, axis=1), xp.take(tgt, kept, axis=1))


def pad_maps(maps: Maps, width: int) -> Maps:
    """Maps of spaces as maps of the same spaces pad: (width, width), with zeros."""

    def square(matrix: Array) -> Array:
        return pad(pad(matrix, width).T, width).T

    return Maps(square(maps.src), None if maps.tgt is None else square(maps.tgt))


@dataclass(frozen=True)
class Projection:
    """Two pad spaces in their main directions. x: (n, r), y: (m, r); axes: (width, r) each, None where all are."""

    x: Array
    y: Array
    src_axes: Array | None = None
    tgt_axes: Array | None = None

    def unproject(self, w: Array) -> Array:
        """A map (r, r) between the main directions as one of the pad spaces, (width, width)."""
        return w if self.src_axes is None or self.tgt_axes is None else self.src_axes @ w @ self.tgt_axes.T

    def project(self, maps: Maps) -> Maps:
        """What maps of the pad spaces do to rows of the main directions, (r, r), or (r, width) if there are two."""
        if self.src_axes is None or self.tgt_axes is None:
            return maps
        src = self.src_axes.T @ maps.src
        return Maps(src @ self.tgt_axes) if maps.tgt is None else Maps(src, self.tgt_axes.T @ maps.tgt)

    def of(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Other rows of the same spaces, (n, width) and (m, width), in the main directions."""
        if self.src_axes is None or self.tgt_axes is None:
            return x, y
        return arrays.unit(x @ self.src_axes), arrays.unit(y @ self.tgt_axes)


def project_spaces(x: Array, y: Array, src_dim: int, tgt_dim: int, most: int = MOST_DIRECTIONS) -> Projection:
    """Widened spaces, x (n, width) and y (m, width), of so many dimensions each, in their main directions.

    most: the largest number of directions.
    """
    rank = min(src_dim, tgt_dim, most)
    if rank == x.shape[1]:
        return Projection(x, y)
    axes = _main_axes(x, rank), _main_axes(y, rank)
    return Projection(*Projection(x, y, *axes).of(x, y), *axes)


def _main_axes(x: Array, rank: int) -> Array:
    """The directions of greatest extent of x (n, width), (width, rank)."""
    wide = arrays.namespace(x).astype(x, arrays.namespace(x).float64)
    _, axes = arrays.eigh_to_host(wide.T @ wide)
    return arrays.asarray(np.ascontiguousarray(axes[:, ::-1][:, :rank]), x)
