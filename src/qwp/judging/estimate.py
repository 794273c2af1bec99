"""How good is an alignment? An estimate of the share of right translations, without any dictionary.

A sample of the words is translated; the confidence of each (`qwp.search.confidence`) is the chance that a dictionary
has what was found, and their mean, made a little higher as the words of dictionaries are surer than others, is the
estimate. Alignments are told from each other by how firm their translations are: the maps are refitted twice, each time
on every other frequent source word alone, and the share of the mutual translations that the two refits have in common
is the agreement; whether they prefer the translation of a word to its other candidates is a sign of that word. The
sample thins out towards the rare words, as the words of dictionaries do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.refits import Refits, refits, words_of
from qwp.maps.procrustes import Maps
from qwp.search import confidence, retrieval
from qwp.search.confidence import CANDIDATES, Found, Scale, log_odds
from qwp.search.retrieval import Retriever

Ints = npt.NDArray[np.int64]

# Words that are looked at, and those of each side by which hubs are told: a part where there are more than so many.
_SAMPLE = 1200
_POOLS, _GPU_POOLS = (2000, 4000), (20_000, 25_000)
# The most frequent words thin out no further than those at this rank do.
_FIRST_RANK = 100
# Words of dictionaries are surer than others of the same rank, by so much in log odds: names, for one, are not in them.
_IN_A_DICTIONARY = 0.19
BANDS = (1000, 5000)
"""The estimate is also given for the words up to these ranks, and beyond."""
HALF_WIDTH = 0.44
"""Of the interval, in log odds: 1.645 times the deviation from the gold on languages that were left out of the fit."""


@dataclass(frozen=True)
class Share:
    """An estimated share of right translations and the interval it may lie in, all from 0 to 1."""

    p1: float
    low: float
    high: float

    @classmethod
    def of(cls, chances: npt.NDArray[np.float64]) -> Share:
        """From the chances (n,) of some words, for those of them that a dictionary has."""
        odds = log_odds(float(np.mean(chances))) + _IN_A_DICTIONARY
        return cls(*(float(confidence.chances(np.asarray(odds + way * HALF_WIDTH))) for way in (0, -1, 1)))

    def __str__(self) -> str:
        return f"{100 * self.p1:.0f} % ({100 * self.low:.0f} to {100 * self.high:.0f})"


@dataclass(frozen=True)
class Band:
    """The share among the source words from one rank to another, counted from 1."""

    first: int
    last: int
    share: Share


@dataclass(frozen=True)
class Estimate:
    """The estimated share of words whose best translation a dictionary would have, overall and by frequency."""

    overall: Share
    bands: list[Band]
    scale: Scale
    n_words: int

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Estimate:
        """The inverse of `dataclasses.asdict`."""
        bands = [Band(b["first"], b["last"], Share(**b["share"])) for b in values["bands"]]
        return cls(Share(**values["overall"]), bands, Scale(**values["scale"]), values["n_words"])


def estimate(x: Array, y: Array, maps: Maps, *, csls_k: int, real: bool = True) -> Estimate:
    """The estimate for maps. x: (n, d), y: (m, d) normalised rows, most frequent first; two words a side at least.

    real: whether the verdict is not a failure.
    """
    rows = sample(x.shape[0])
    refitted = Refits(x, y, refits(x, y, maps, csls_k=csls_k))
    found = _search(x, y, maps, rows, csls_k, refitted)
    mutual = rows[np.asarray(found.back_ranks) == 0]
    agreement = _agreement(refitted, mutual, csls_k) if len(mutual) else 0.0
    leads = [confidence.quartiles(values) for values in found.leads()]
    scale = Scale(agreement, int(x.shape[1]), *leads[0], *leads[1], real=real, words=words_of(x, y))
    chances = confidence.confidence(found, scale)
    edges = [0, *(edge for edge in BANDS if edge < x.shape[0]), x.shape[0]]
    of_bands = [(first, last, chances[(rows >= first) & (rows < last)]) for first, last in pairwise(edges)]
    bands = [Band(first + 1, last, Share.of(some)) for first, last, some in of_bands if len(edges) > 2 and len(some)]
    return Estimate(Share.of(chances), bands, scale, len(rows))


def _agreement(refitted: Refits, rows: Ints, csls_k: int) -> float:
    """The share of some source words that both refits translate alike."""
    one, other = (_translated(refitted.x, refitted.y, maps, rows, csls_k) for maps in refitted.maps)
    return float(np.mean(one == other))


def nothing_known(dimensions: int) -> Estimate:
    """For spaces of a word or two."""
    return Estimate(Share(0.0, 0.0, 1.0), [], Scale(0.0, dimensions, 0.0, 0.0, 0.0, 0.0, real=False), 0)


def sample(n: int) -> Ints:
    """Some of n rows, ascending, with a density that falls with the root of the rank."""
    count = min(_SAMPLE, -(-n // 2))
    first, last = math.sqrt(_FIRST_RANK), math.sqrt(n + _FIRST_RANK)
    roots = first + (last - first) * (np.arange(count) + 0.5) / count
    return np.unique(np.minimum((roots**2 - _FIRST_RANK).astype(np.int64), n - 1))


def _sides(x: Array, y: Array, maps: Maps) -> tuple[Array, Array]:
    return arrays.unit(x @ maps.src), arrays.unit(y if maps.tgt is None else y @ maps.tgt)


def _hubness(queries: Array, keys: Array, csls_k: int, pools: tuple[int, int] | None = None) -> Array:
    """The CSLS neighbourhood means of queries (n, d) among keys (m, d), or among an even part of many, (n,).

    pools: how many keys that part has at least, and up to how many all are used.
    """
    m = keys.shape[0]
    pool, needed = pools or (_GPU_POOLS if arrays.is_cuda(queries) else _POOLS)
    if m <= needed:
        return retrieval.neighbourhood_means(queries, keys, csls_k)
    step = m // pool
    return retrieval.neighbourhood_means(queries, keys[::step, :], max(1, round(csls_k / step)))


def _best(queries: Array, keys: Array, hubs: Array, k: int) -> tuple[Array, Array]:
    """The k best keys (m, d) of each query (n, d) by CSLS but for the query's own term: rows and scores (n, k)."""
    return Retriever(keys, hubs, scale=2.0, method="nn", csls_k=1).top_k(queries, k)


def _search(x: Array, y: Array, maps: Maps, rows: Ints, csls_k: int, refitted: Refits) -> Found:
    """What the search for some source words (r,) shows."""
    src, tgt = _sides(x, y, maps)
    xp = arrays.namespace(src)
    src_hubs, tgt_hubs = _hubness(src, tgt, csls_k), _hubness(tgt, src, csls_k)
    which = arrays.asarray(rows, src)
    queries, own = xp.take(src, which, axis=0), xp.take(src_hubs, which, axis=0)
    candidates, scores = _best(queries, tgt, tgt_hubs, CANDIDATES)
    best = candidates[:, 0]
    back_rows, back_scores = _best(xp.take(tgt, best, axis=0), src, src_hubs, CANDIDATES + 1)
    scores = scores - own[:, None]
    back_scores = back_scores - xp.take(tgt_hubs, best, axis=0)[:, None]
    preferred = refitted.preferred(rows, arrays.to_numpy(candidates))
    forward, backward, back = (arrays.to_numpy(values) for values in (scores, back_scores, back_rows))
    return found_from(forward, backward, back, rows, preferred)


def found_from(
    scores: npt.NDArray[Any], back_scores: npt.NDArray[Any], back_rows: npt.NDArray[Any], rows: Ints, preferred: Ints
) -> Found:
    """From the candidates of some rows (r,), those of their best candidates, and what refits prefer, (r, 2).

    scores: (r, k); back_scores, back_rows: (r, k + 1), each best first.
    """
    own = back_rows == rows[:, None]
    ranks = np.where(own.any(axis=1), own.argmax(axis=1), CANDIDATES)
    others = np.where(own, -np.inf, back_scores).max(axis=1)
    return Found(scores, np.minimum(ranks, CANDIDATES), others, preferred)


def _translated(x: Array, y: Array, maps: Maps, rows: Ints, csls_k: int) -> Ints:
    """The best translations (r,) of some source words under other maps."""
    src, tgt = _sides(x, y, maps)
    xp = arrays.namespace(src)
    queries = xp.take(src, arrays.asarray(rows, src), axis=0)
    best, _ = _best(queries, tgt, _hubness(tgt, src, csls_k), 1)
    return arrays.to_numpy(best)[:, 0]
