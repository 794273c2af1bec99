"""P@1 measured on known pairs, with an exact interval and a test against chance.

Null hypothesis of the test: the map has nothing to do with the known pairs. Then their source words could be exchanged
without changing the distribution of the number of hits. So the hits are compared with those after random permutations
of the known translations among the source words. The p-value is (1 + permutations with as many hits) / (1 +
permutations), which is exact for every number of permutations (Phipson and Smyth 2010). The interval is that of Clopper
and Pearson (1934).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from qwp import arrays
from qwp.arrays import Array, Ints, Stream
from qwp.judging.estimate import best_translations
from qwp.maps.pairs import RowPairs
from qwp.maps.procrustes import Maps

_PERMUTATIONS = 1999
_PERMUTATIONS_AT_A_TIME = 100
_TAIL = 0.05
"""Share of the error on each side of the 90 % interval."""


@dataclass(frozen=True)
class Measured:
    """P@1 over known source words.

    Attributes:
        hits: words whose best translation is a known one.
        words: number of words.
        low: lower end of the exact 90 % interval of P@1.
        high: upper end of it.
        chance: mean P@1 after permutations of the known translations.
        p_value: of the permutation test.
        held_out: whether the fit did not see the pairs. Pairs that it saw can refute a map, but not confirm it.
    """

    hits: int
    words: int
    low: float
    high: float
    chance: float
    p_value: float
    held_out: bool = True

    @property
    def p1(self) -> float:
        """The share of correct words, 0 to 1."""
        return self.hits / self.words

    def __str__(self) -> str:
        return f"{100 * self.p1:.0f} % ({100 * self.low:.0f}-{100 * self.high:.0f})"


def measure(
    x: Array, y: Array, maps: Maps, pairs: RowPairs, *, csls_k: int, seed: int, held_out: bool = True
) -> Measured:
    """Measure P@1 by CSLS on known pairs, rows of x (n, d) and y (m, d), (p,) each."""
    words = np.unique(pairs[0])
    best = best_translations(x, y, maps, words, csls_k)
    return measured(best, np.searchsorted(words, pairs[0]), pairs[1], seed=seed, held_out=held_out)


def measured(best: Ints, words: Ints, targets: Ints, *, seed: int, held_out: bool = True) -> Measured:
    """Return the measurement for translations best (w,) of words whose known translations are pairs.

    words, targets: (p,) the position of the word in `best` and the target row of each pair.
    """
    n = len(best)
    known_of = defaultdict(set)
    for word, target in zip(words.tolist(), targets.tolist(), strict=True):
        known_of[target].add(word)
    # Word i is a hit after a permutation that gives it the translations of word j.
    possible = [(i, j) for i, target in enumerate(best.tolist()) for j in sorted(known_of.get(target, ()))]
    i, j = np.asarray(possible, dtype=np.int64).reshape(-1, 2).T
    hits = int(np.sum(i == j))
    permuted = _hits_after_permutations(n, i, j, seed)
    low, high = interval(hits, n)
    p_value = float(1 + np.sum(permuted >= hits)) / (1 + len(permuted))
    return Measured(hits, n, low, high, len(i) / n**2, p_value, held_out)


def _hits_after_permutations(n: int, i: Ints, j: Ints, seed: int) -> Ints:
    """Return the number of possible hits (i, j) among n words that each random permutation has."""
    draws = arrays.rng(seed, Stream.PERMUTATION)
    found = []
    for first in range(0, _PERMUTATIONS, _PERMUTATIONS_AT_A_TIME):
        count = min(_PERMUTATIONS_AT_A_TIME, _PERMUTATIONS - first)
        permutations = draws.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
        found.append(np.sum(permutations[:, i] == j, axis=1))
    return np.concatenate(found)


def interval(hits: int, n: int) -> tuple[float, float]:
    """Return the exact 90 % interval of a share of hits in n trials (Clopper and Pearson 1934)."""
    low = float(betaincinv(hits, n - hits + 1, _TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1.0 - _TAIL)) if hits < n else 1.0
    return low, high
