"""The refits of the maps of a saved alignment, kept beside it: they take longer than what is asked of them."""

from __future__ import annotations

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.refits import refits
from qwp.maps.procrustes import Maps
from qwp.results import kept
from qwp.results.kept import Origin
from qwp.results.saved import LOOKUPS

_SIDES = ("src", "tgt")


def kept_or_made(origin: Origin | None, x: Array, y: Array, maps: Maps, csls_k: int) -> tuple[Maps, Maps]:
    """The refits of maps of x (n, d) and y (m, d): those kept beside the alignment, or made now and then kept."""
    # They are kept in half precision, which changes no cosine that matters; so they are always used as they are kept.
    known = kept.read(origin, LOOKUPS, _name(csls_k), _shapes(x.shape[1]))
    if known is None:
        known = _tensors(refits(x, y, maps, csls_k=csls_k))
        kept.write(origin, LOOKUPS, _name(csls_k), known)
    even, odd = (Maps(*(arrays.asarray(known[f"{side}_{number}"], x) for side in _SIDES)) for number in range(2))
    return even, odd


def _name(csls_k: int) -> str:
    return f"refits-{csls_k}"


def _shapes(width: int) -> dict[str, tuple[int, ...]]:
    return {f"{side}_{number}": (width, width) for side in _SIDES for number in range(2)}


def _tensors(made: tuple[Maps, Maps]) -> dict[str, np.ndarray]:
    found = {}
    for number, maps in enumerate(made):
        for side, matrix in zip(_SIDES, (maps.src, maps.tgt), strict=True):
            given = np.eye(len(maps.src)) if matrix is None else arrays.to_numpy(matrix)
            # The scale of a map changes no cosine either.
            found[f"{side}_{number}"] = (given / (np.abs(given).max() or 1.0)).astype(np.float16)
    return found
