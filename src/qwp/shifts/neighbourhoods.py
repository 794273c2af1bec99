"""The neighbours of words at two times, and how much they changed, which needs no map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qwp import arrays
from qwp.shifts.significance import Floats
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.frequency import Ints

NEIGHBOURS = 25
"""So many nearest words of each time make the neighbourhood of a word (Hamilton et al. 2016)."""


def nearest(x: FloatArray, rows: Ints, k: int) -> Ints:
    """The k nearest other rows of some rows (r,) of x (n, d), unit rows; nearest first. Returns (r, k)."""
    k = min(k, len(x) - 1)

    def block(part: slice) -> Ints:
        similarity = x[rows[part]] @ x.T
        similarity[np.arange(len(similarity)), rows[part]] = -np.inf
        return arrays.to_numpy(arrays.top_k(similarity, k)[1])

    found = arrays.map_blocks(block, len(rows), arrays.block_rows(len(x), x), x)
    return np.concatenate(found) if found else np.zeros((0, k), dtype=np.int64)


def similarity_of_neighbourhoods(x: FloatArray, y: FloatArray, rows: Ints, k: int = NEIGHBOURS) -> Floats:
    """How alike the neighbourhoods of some rows (r,) are in x and in y, (n, d) unit rows of the same words.

    The neighbours are the k nearest of both times; a word is described by its similarities to them at one time and at
    the other, and the cosine of these two descriptions is returned, (r,).
    """
    then, now = nearest(x, rows, k), nearest(y, rows, k)
    # A word that is a neighbour at both times is one neighbour.
    repeated = (now[:, :, None] == then[:, None, :]).any(axis=2)
    both = np.concatenate([then, now], axis=1)
    weights = np.concatenate([np.ones(then.shape), ~repeated], axis=1)

    def block(part: slice) -> Floats:
        one, other = (np.einsum("rkd,rd->rk", side[both[part]], side[rows[part]]).astype(np.float64) for side in (x, y))
        products = [(weights[part] * a * b).sum(axis=1) for a, b in ((one, other), (one, one), (other, other))]
        return np.asarray(products[0] / np.sqrt(np.maximum(products[1] * products[2], np.finfo(float).tiny)))

    size = max(1, arrays.block_rows(both.shape[1] * x.shape[1], x))
    found = arrays.map_blocks(block, len(rows), size, x)
    return np.concatenate(found) if found else np.zeros(0)


def kept(then: Sequence[int], now: Sequence[int]) -> float:
    """The share of neighbours then that are neighbours now."""
    return len(set(then) & set(now)) / len(then) if len(then) else 0.0
