"""Null runs that were made before: they depend on two spaces and on no map, so all maps of these spaces share them.

Methods that are compared on one pair of spaces, and searches that ask for a verdict on the way, make them once in a
process.
"""

from __future__ import annotations

import hashlib
import platform

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.cache import Cache
from qwp.judging.chance import Run
from qwp.version import code_version

Runs = dict[tuple[str, int], Run]
"""By the name of the effort and the number: a few kilobytes for each."""

_MOST_SPACES = 8
_CACHE: Cache[Runs] = Cache(_MOST_SPACES)


def key_of(x: Array, y: Array, seed: int, csls_k: int) -> str:
    """Return a hash of the spaces x (n, d) and y (m, d), of where they are computed on, of the seed and of the code."""
    place = type(x).__module__, str(arrays.device(x)), arrays.threads(), platform.machine(), np.__version__
    found = hashlib.sha256(repr((place, seed, csls_k, code_version(), x.shape, y.shape)).encode())
    for side in (x, y):
        found.update(np.ascontiguousarray(arrays.to_numpy(side)).data)
    return found.hexdigest()


def known_of(key: str) -> Runs:
    """Return the null runs on some spaces so far; a run that is put into it is shared from then on."""
    return _CACHE.add(key, {})


def forget() -> None:
    """Forget all null runs."""
    _CACHE.clear()
