"""A map between two times that words which moved do not bend.

Procrustes on the words that both times have; then those that lie much farther off than words of their frequency are
left out, the others weighted by how well words of their frequency are placed, and means and map are fitted again, until
the words that are left out stay the same. In the end each word is measured by a map that was fitted without it, so that
words inside and outside of the fit can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.maps.procrustes import polar, procrustes
from qwp.shifts.significance import Bools, Expectation, Floats, fisher
from qwp.spaces.embeddings import FloatArray

_MOST_ROUNDS = 10
LEFT_OUT_BEYOND = 2.5
"""In spreads; of 1,000 words that noise alone moves this leaves out about 6."""
_SETTLED = 0.001
_FOLDS = 10


@dataclass(frozen=True, eq=False)
class StableMap:
    """Two spaces laid upon each other by their stable words.

    map: (d, d), orthogonal. x, y: (n, d) unit rows about the means of the stable words, x not yet mapped. stable: (n,)
    the words that the map was fitted to. cosines: (n,), each word's by a map that was fitted without it.
    """

    map: FloatArray
    x: FloatArray
    y: FloatArray
    stable: Bools
    cosines: Floats


def stable_map(x: FloatArray, y: FloatArray, traits: Floats, *, trimmed: bool = True) -> StableMap:
    """The map of x (n, d) onto y (n, d), vectors of the same words. traits: (n, 2), of noise.

    trimmed: whether words that moved are left out; without that it is Procrustes on all words.
    """
    x, y = (arrays.to_numpy(arrays.unit(side)) for side in (x, y))
    stable = np.ones(len(x), dtype=np.bool_)
    weights = np.ones(len(x))
    one, other = _centred(x, stable), _centred(y, stable)
    for _ in range(_MOST_ROUNDS if trimmed else 0):
        displaced = fisher(_row_products(one @ _fitted(one, other, weights), other))
        expected = Expectation.of(displaced, traits, stable)
        before, stable = stable, expected.z(displaced, traits) < LEFT_OUT_BEYOND
        # A cosine of c is that of noise whose variance is about (1 - c) / (1 + c) of that of the vector.
        weights = np.where(stable, np.exp(-expected.typical(traits)), 0.0)
        weights = weights / weights.max()
        one, other = _centred(x, stable), _centred(y, stable)
        if np.mean(before != stable) <= _SETTLED:
            break
    return StableMap(_fitted(one, other, weights), one, other, stable, _cross_fitted(one, other, weights))


def _fitted(x: FloatArray, y: FloatArray, weights: Floats) -> FloatArray:
    return arrays.to_numpy(procrustes(x, y, weights.astype(x.dtype)))


def _centred(x: FloatArray, stable: Bools) -> FloatArray:
    """Unit rows about the mean of the stable ones, (n, d)."""
    return arrays.to_numpy(arrays.unit(x - x[stable].mean(axis=0, dtype=np.float64).astype(x.dtype)))


def _cross_fitted(x: FloatArray, y: FloatArray, weights: Floats) -> Floats:
    """Cosines (n,) of rows, those of each fold by the map of the others."""
    weighted = x * weights[:, None].astype(x.dtype)
    folds = [slice(fold, None, _FOLDS) for fold in range(min(_FOLDS, len(x)))]
    parts = [(weighted[fold].T @ y[fold]).astype(np.float64) for fold in folds]
    whole = np.sum(parts, axis=0)
    found = np.empty(len(x))
    for fold, part in zip(folds, parts, strict=True):
        turn = arrays.to_numpy(polar(whole - part)).astype(x.dtype)
        found[fold] = _row_products(x[fold] @ turn, y[fold])
    return found


def _row_products(x: FloatArray, y: FloatArray) -> Floats:
    return np.asarray(np.sum(x * y, axis=1), dtype=np.float64)
