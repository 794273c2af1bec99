"""A start from the pairs of words that several weak starts found.

Starts that fail, fail in their own ways: each finds its own wrong pairs, and a few right ones. Two of them seldom make
the same mistake, so the pairs that more than one of them found are right far more often than those of any single one.
On vectors of unrelated origin, seven starts with 0.1 to 2.3 % of right translations gave one that ended at 29 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps, procrustes
from qwp.stages.refinement import induce_pairs

VOTING_WORDS = 5000
"""Most frequent words that starts vote on: their vectors are the best."""
# Fewer pairs than this are no start.
_FEWEST_PAIRS = 50


def initial_map(x: Array, y: Array, maps: Sequence[Array], *, csls_k: int = 10) -> Array | None:
    """The orthogonal map (d, d) of the pairs that more than one of the maps found; None if they are too few.

    x: (n, d), y: (m, d) normalised rows, most frequent first; maps: (d, d) each, orthogonal.
    """
    src, tgt, votes = shared_pairs(x, y, maps, csls_k=csls_k)
    if len(src) < _FEWEST_PAIRS:
        return None
    xp = arrays.namespace(x)
    left, right = (xp.take(side, arrays.asarray(rows, side), axis=0) for side, rows in ((x, src), (y, tgt)))
    return procrustes(left, right, xp.astype(arrays.asarray(votes - 1, x), x.dtype))


def shared_pairs(
    x: Array, y: Array, maps: Sequence[Array], *, csls_k: int = 10, words: int = VOTING_WORDS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that are each other's best partners under more than one of the maps: rows of x and y, and their votes.

    words: how many of the first of each side are looked at.
    """
    x, y = (side[: min(words, side.shape[0]), :] for side in (x, y))
    found = []
    for w in maps:
        pairs = induce_pairs(x, y, Maps(w), csls_k=csls_k)
        found.append(arrays.to_numpy(pairs.src) * y.shape[0] + arrays.to_numpy(pairs.tgt))
    numbers, votes = np.unique(np.concatenate(found), return_counts=True)
    shared = numbers[votes > 1]
    return shared // y.shape[0], shared % y.shape[0], votes[votes > 1]
