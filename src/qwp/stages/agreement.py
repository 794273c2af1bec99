"""The agreement of two spaces under a map, measured without a dictionary.

A map always agrees with the translations it was refitted to. So a map is scored on held-out words: two plain refinement
rounds on every other word of a side, then the mutual pairs of the remaining words, in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import CrossNeighbours
from qwp.stages.refinement import CslsRefinement, induce_pairs, neighbours

SAME = 0.3
"""Two maps with this share of equal translations count as the same. Source: null maps share at most 0.19."""
REFIT_ROUNDS = 2
"""Plain refinement rounds on the words that are not held out. Set by hand."""


@dataclass(frozen=True)
class Agreement:
    """Mutual CSLS pairs: their number, their share of the words, and their mean CSLS."""

    pairs: int
    share: float
    mean_csls: float

    @property
    def csls_per_word(self) -> float:
        """The sum of the CSLS of all pairs divided by the number of words."""
        return self.share * self.mean_csls


def agreement(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Return the agreement of x (n, d) and y (m, d) under the maps."""
    return agreement_of(neighbours(x, y, maps, csls_k))


def agreement_of(found: CrossNeighbours) -> Agreement:
    """Return the agreement of nearest neighbours in both directions."""
    pairs = found.mutual()
    mean = float(arrays.namespace(pairs.scores).mean(pairs.scores)) if len(pairs) else 0.0
    return Agreement(len(pairs), len(pairs) / min(found.forward.shape[0], found.backward.shape[0]), mean)


def held_out(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Return the agreement of every other word of x (n, d) with y (m, d) after a refit on the rest; n >= 2."""
    rounds = CslsRefinement(rounds=REFIT_ROUNDS, csls_k=csls_k, words=0)
    return agreement(x[1::2, :], y, rounds.refine(x[::2, :], y, maps), csls_k)


def from_both_sides(x: Array, y: Array, maps: Maps, csls_k: int) -> tuple[Agreement, Agreement]:
    """Return `held_out` of the source and, with the sides exchanged, of the target."""
    identity = arrays.namespace(x).eye(x.shape[1], dtype=x.dtype, device=arrays.device(x))
    exchanged = Maps(identity if maps.tgt is None else maps.tgt, maps.src)
    ways = (x, y, maps), (y, x, exchanged)
    there, back = arrays.parallel_map(lambda way: held_out(*way, csls_k), ways, x)
    return there, back


def both_ways(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Return `from_both_sides` as one agreement: the sum of the pairs and the means of the other figures."""
    return mean_agreement(from_both_sides(x, y, maps, csls_k), pairs=sum)


def mean_agreement(found: Sequence[Agreement], pairs: Callable[[list[int]], float] = np.mean) -> Agreement:
    """Return the mean of several agreements; `pairs` combines the numbers of pairs."""
    shares, means = [one.share for one in found], [one.mean_csls for one in found]
    return Agreement(round(pairs([one.pairs for one in found])), float(np.mean(shares)), float(np.mean(means)))


def mean_csls_ratio(found: Agreement, baseline: Agreement) -> float:
    """Return the ratio of the mean CSLS to that of a baseline; zero if it is undefined."""
    return _ratio(found.mean_csls, baseline.mean_csls)


def per_word_ratio(found: Agreement, baseline: Agreement) -> float:
    """Return the ratio of the CSLS per word to that of a baseline; zero if it is undefined."""
    return _ratio(found.csls_per_word, baseline.csls_per_word)


def _ratio(found: float, baseline: float) -> float:
    ratio = found / baseline if baseline > 0 else 0.0
    return ratio if math.isfinite(ratio) else 0.0


def translations(x: Array, y: Array, maps: Maps, *, csls_k: int) -> Array:
    """Return the rows of y (m, d) that are the CSLS translations of the words x (n, d) under the maps, (n,)."""
    return induce_pairs(x, y, maps, csls_k=csls_k, directions="forward").tgt


def share_alike(one: Array, other: Array) -> float:
    """Return the share of words that two maps translate alike. one, other: their translations, (n,)."""
    xp = arrays.namespace(one)
    return float(xp.mean(xp.astype(one == other, xp.float32)))


def random_rotation(dim: int, seed: int, like: Array, number: int = 0) -> Array:
    """Return a uniformly random orthogonal matrix (dim, dim), the `number`-th of a seed."""
    # Number 0 has an empty key, so that results of earlier versions repeat.
    key = (number,) if number else ()
    gaussian = arrays.rng(seed, Stream.ROTATION, *key).standard_normal((dim, dim))
    if arrays.is_cuda(like):  # ten times as fast on the device
        xp = arrays.namespace(like)
        on_device = xp.asarray(gaussian, device=arrays.device(like))
        q, r = xp.linalg.qr(on_device)
        return xp.astype(q * xp.sign(xp.linalg.diagonal(r)), like.dtype)
    q, r = np.linalg.qr(gaussian)
    return arrays.asarray(np.asarray(q * np.sign(np.diag(r))), like)
