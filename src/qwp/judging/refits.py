"""Two refits of the maps of an alignment, each on every other frequent source word: how firm are its translations?

Where the words determine the maps, both refits translate as the maps do; where a translation hangs on this pair or
that, they drift apart. How many translations they have in common tells good alignments from weak ones, and whether they
prefer the translation of a word to its other candidates tells right translations from wrong ones.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.null import Cache
from qwp.maps.procrustes import Maps
from qwp.stages.refinement import WEIGHTED, refine

Ints = npt.NDArray[np.int64]

MOST_WORDS = 5000
"""Frequent words of each side that take part: of the source, each refit has every other one."""
# Rounds that induce pairs anew tell alignments apart; refits to the pairs that the maps had found agree too easily.
_ROUNDS = replace(WEIGHTED, rounds=2, first_words=0, dewhiten=0.75)


def words_of(x: Array, y: Array) -> int:
    """How many words of each side refits of x (n, d) and y (m, d) have."""
    return int(min(x.shape[0], y.shape[0], MOST_WORDS))


def refits(x: Array, y: Array, maps: Maps, *, csls_k: int, most: int = MOST_WORDS) -> tuple[Maps, Maps]:
    """Both refits, of a single word the maps themselves. x: (n, d), y: (m, d) normalised rows, most frequent first.

    most: frequent words of each side that take part.
    """
    n = min(words_of(x, y), most)
    if n < 2:
        return maps, maps
    key = _key(x[:n, :], y[:n, :], maps, csls_k)
    known = None if key is None else _CACHE.get(key)
    if known is not None:
        return known
    settings = replace(_ROUNDS, csls_k=csls_k)
    even, odd = arrays.side_by_side(lambda half: refine(x[half:n:2, :], y[:n, :], maps, settings), (0, 1), x)
    return (even, odd) if key is None else _CACHE.add(key, (even, odd))


# The verdict makes the refits of an alignment whose confidences are asked for next: by a hash of all that decides them.
_CACHE: Cache[tuple[Maps, Maps]] = Cache(4)


def _key(x: Array, y: Array, maps: Maps, csls_k: int) -> str | None:
    """By which refits are found again in the same process; None for those on a GPU, where they take no time."""
    digest = hashlib.sha256(repr(csls_k).encode())
    for array in (x, y, maps.src, maps.tgt):
        if array is not None and not isinstance(array, np.ndarray):
            return None
        digest.update(b"none" if array is None else f"{array.shape} {array.dtype}".encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Refits:
    """The refits of maps of two spaces. x: (n, d), y: (m, d) normalised rows.

    at_once: candidates that are compared at a time.
    """

    x: Array
    y: Array
    maps: tuple[Maps, Maps]
    at_once: int = 20_000

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Which of its candidates each refit has nearest to a word: their places (r, 2), zero for the first.

        rows: (r,) source words; candidates: (r, k) target words. Nearest by cosine: those that are near to all words
        are no candidates by CSLS, and nothing has to be known of the rest of the vocabularies.
        """
        return np.column_stack([self._nearest(maps, rows, candidates) for maps in self.maps])

    def _nearest(self, maps: Maps, rows: Ints, candidates: Ints) -> Ints:
        xp = arrays.namespace(self.x)
        wanted, places = np.unique(candidates, return_inverse=True)
        places = places.reshape(candidates.shape)
        keys = xp.take(self.y, arrays.asarray(wanted, self.y), axis=0)
        tgt = arrays.unit(keys if maps.tgt is None else keys @ maps.tgt)
        width = candidates.shape[1]
        found = [np.zeros(0, dtype=np.int64)]
        step = max(1, self.at_once // max(1, width))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            # Their lengths do not change which candidate is nearest.
            queries = xp.take(self.x, arrays.asarray(rows[block], self.x), axis=0) @ maps.src
            near = xp.take(tgt, arrays.asarray(places[block].reshape(-1), tgt), axis=0)
            cosines = xp.sum(xp.reshape(near, (-1, width, near.shape[1])) * queries[:, None, :], axis=2)
            found.append(arrays.to_numpy(xp.argmax(cosines, axis=1)))
        return np.concatenate(found)
