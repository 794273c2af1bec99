"""Runs of chance that are known: they depend on two spaces and on no map, so all maps of these spaces share them.

Methods that are compared on one pair of spaces, and searches that ask for a verdict on the way, make them once in a
process. `qwp.results.chance` keeps them beside results, for other processes.
"""

from __future__ import annotations

import hashlib
import platform
from collections import OrderedDict

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.chance import Run
from qwp.version import __version__

Runs = dict[tuple[str, int], Run]
"""By the name of the effort and the number: a few kilobytes for each."""

_MOST_SPACES = 8
_known: OrderedDict[str, Runs] = OrderedDict()


def key_of(x: Array, y: Array, seed: int, csls_k: int) -> str:
    """What tells spaces x (n, d) and y (m, d), where they are computed on, and the draws of chance from others."""
    place = type(x).__module__, str(arrays.device(x)), arrays.threads(), platform.machine(), np.__version__
    found = hashlib.sha256(repr((place, seed, csls_k, __version__, x.shape, y.shape)).encode())
    for side in (x, y):
        found.update(np.ascontiguousarray(arrays.to_numpy(side)).data)
    return found.hexdigest()


def known_of(key: str) -> Runs:
    """The runs on some spaces so far; what is put into it is known from then on."""
    runs = _known.setdefault(key, {})
    _known.move_to_end(key)
    while len(_known) > _MOST_SPACES:
        _known.popitem(last=False)
    return runs


def known() -> dict[str, Runs]:
    """All runs that are known, by the keys of their spaces."""
    return {key: dict(runs) for key, runs in _known.items() if runs}


def forget() -> None:
    """Know no run any more."""
    _known.clear()
