"""Spaces of different width, and wide spaces: padding, and projection onto principal axes.

The narrower of two spaces is padded with zeros to a common width, and the final maps are cut to the dimensions of each
space. A map from 300 to 768 dimensions that preserves lengths and angles is a matrix (300, 768) with orthonormal rows;
in the other direction it is (768, 300) with orthonormal columns. Both are parts of a rotation of 768 dimensions. So all
methods work on rows of equal width.

The cost of an initialization and of the loop is cubic in the width. If the spaces are wide or of different width, both
are projected onto their principal axes for these stages. The refinement uses all dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps

MOST_AXES = 300
"""Most principal axes of a projection. Set by hand: the usual width of word vectors, which are not projected."""


def pad(x: Array, width: int) -> Array:
    """Return x (n, d) padded with columns of zeros, (n, width)."""
    missing = width - x.shape[1]
    if missing == 0:
        return x
    xp = arrays.namespace(x)
    return xp.concat([x, xp.zeros((x.shape[0], missing), dtype=x.dtype, device=arrays.device(x))], axis=1)


def within_target(maps: Maps, tgt_dim: int) -> Maps:
    """Return maps (width, width) of padded spaces, restricted to the target space if only the source is mapped."""
    if maps.tgt is not None or maps.src.shape[1] == tgt_dim:
        return maps
    return Maps(pad(maps.src[:, :tgt_dim], maps.src.shape[1]))


def unpad(maps: Maps, src_dim: int, tgt_dim: int) -> Maps:
    """Return maps of padded spaces as maps of the spaces: (src_dim, common) and, if there are two, (tgt_dim, common).

    A map of the source alone has the width of the target. Two maps have the dimensions in which both have variance.
    """
    width = maps.src.shape[0]
    if src_dim == tgt_dim == width:
        return maps
    if maps.tgt is None:
        return Maps(maps.src[:src_dim, :tgt_dim])
    xp = arrays.namespace(maps.src)
    src, tgt = maps.src[:src_dim, :], maps.tgt[:tgt_dim, :]
    # Directions in which one of the sides has no variance are zero in both.
    nonzero = arrays.to_numpy(xp.max(xp.abs(src), axis=0) * xp.max(xp.abs(tgt), axis=0)).nonzero()[0]
    columns = arrays.asarray(nonzero, src)
    return Maps(xp.take(src, columns, axis=1), xp.take(tgt, columns, axis=1))


def pad_maps(maps: Maps, width: int) -> Maps:
    """Return maps of spaces as maps of the padded spaces, (width, width), padded with zeros."""

    def square(matrix: Array) -> Array:
        return pad(pad(matrix, width).T, width).T

    return Maps(square(maps.src), None if maps.tgt is None else square(maps.tgt))


@dataclass(frozen=True)
class Projection:
    """Two padded spaces on their principal axes. x: (n, r), y: (m, r); axes: (width, r), None without projection."""

    x: Array
    y: Array
    src_axes: Array | None = None
    tgt_axes: Array | None = None

    def unproject(self, w: Array) -> Array:
        """Return a map (r, r) between the principal axes as a map of the padded spaces, (width, width)."""
        return w if self.src_axes is None or self.tgt_axes is None else self.src_axes @ w @ self.tgt_axes.T

    def project(self, maps: Maps) -> Maps:
        """Return maps of the padded spaces as maps of projected rows: (r, r), or (r, width) if there are two."""
        if self.src_axes is None or self.tgt_axes is None:
            return maps
        src = self.src_axes.T @ maps.src
        return Maps(src @ self.tgt_axes) if maps.tgt is None else Maps(src, self.tgt_axes.T @ maps.tgt)

    def of(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return other rows of the same spaces, (n, width) and (m, width), on the principal axes."""
        if self.src_axes is None or self.tgt_axes is None:
            return x, y
        return arrays.unit(x @ self.src_axes), arrays.unit(y @ self.tgt_axes)


def project_spaces(x: Array, y: Array, src_dim: int, tgt_dim: int, most: int = MOST_AXES) -> Projection:
    """Return the projection of padded spaces x (n, width) and y (m, width) onto their principal axes.

    src_dim, tgt_dim: dimensions before the padding. most: the largest number of axes.
    """
    rank = min(src_dim, tgt_dim, most)
    if rank == x.shape[1]:
        return Projection(x, y)
    axes = _principal_axes(x, rank), _principal_axes(y, rank)
    return Projection(*Projection(x, y, *axes).of(x, y), *axes)


def _principal_axes(x: Array, rank: int) -> Array:
    """Return the directions of largest variance of x (n, width), (width, rank)."""
    wide = arrays.namespace(x).astype(x, arrays.namespace(x).float64)
    _, axes = arrays.eigh_to_host(wide.T @ wide)
    return arrays.asarray(np.ascontiguousarray(axes[:, ::-1][:, :rank]), x)
