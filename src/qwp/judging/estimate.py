"""Estimating the accuracy of an alignment without any dictionary.

A sample of the words is translated, more frequent words more often, as in dictionaries. The mean confidence of the
translations (`qwp.search.confidence`), slightly raised because words of dictionaries are easier than others, is the
estimate.

The confidences need two refits of the maps, each on every other frequent source word. If the words determine the maps,
both refits translate as the maps do; if a translation depends on single pairs, they disagree. The share of mutual
translations that the refits agree on distinguishes good alignments from weak ones. Whether the refits prefer the
translation of a word to its other candidates distinguishes right translations from wrong ones.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array, Floats, Ints, LRUCache
from qwp.maps.procrustes import Maps
from qwp.search import confidence, retrieval
from qwp.search.calibration import CALIBRATION, Correction
from qwp.search.confidence import CONFIDENCE_MODEL, Scale, SearchFigures, log_odds
from qwp.search.retrieval import Retriever
from qwp.stages.refinement import WEIGHTED


@dataclass(frozen=True)
class EstimateSettings:
    """How the estimate samples words and how it turns confidences into an accuracy."""

    sample: int = 1200
    """Words that are translated."""
    first_rank: int = 100
    """The density of the sample falls with the root of the rank plus this."""
    hub_keys: tuple[int, int] = (2000, 4000)
    """Neighbourhood means use an even sample of this many keys at least, if there are more keys than the second."""
    gpu_hub_keys: tuple[int, int] = (20_000, 25_000)
    """The same on a GPU."""
    bands: tuple[int, ...] = (1000, 5000)
    """The estimate is also given for the words up to these ranks, and beyond."""


SETTINGS = EstimateSettings()


@dataclass(frozen=True)
class Share:
    """An estimated accuracy (P@1) and its 90 % interval, all from 0 to 1."""

    p1: float
    low: float
    high: float

    @classmethod
    def of(cls, probabilities: Floats, correction: Correction = CALIBRATION.words) -> Share:
        """Return the accuracy for dictionary words, or for items, from the confidences (n,) of some of them."""
        odds, width = log_odds(float(np.mean(probabilities))) + correction.shift, correction.half_width
        return cls(*(float(confidence.logistic(np.asarray(odds + way * width))) for way in (0, -1, 1)))

    def __str__(self) -> str:
        return f"{100 * self.p1:.0f} % ({100 * self.low:.0f}-{100 * self.high:.0f})"


@dataclass(frozen=True)
class Band:
    """The accuracy for source words from one rank to another, counted from 1."""

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
        """Return the estimate of what `dataclasses.asdict` returned."""
        bands = [Band(b["first"], b["last"], Share(**b["share"])) for b in values["bands"]]
        return cls(Share(**values["overall"]), bands, Scale(**values["scale"]), values["n_words"])


def estimate(
    x: Array,
    y: Array,
    maps: Maps,
    *,
    csls_k: int,
    succeeded: bool = True,
    ordered: bool = True,
) -> Estimate:
    """Return the estimated accuracy of maps.

    x: (n, d), y: (m, d) normalised rows, most frequent first, n and m at least 2. succeeded: whether the alignment is
    better than the null distribution. ordered: whether the rows are words in order of frequency.
    """
    correction = CALIBRATION.words if ordered else CALIBRATION.items
    rows = sample(x.shape[0])
    refitted = Refits(x, y, refits(x, y, maps, csls_k=csls_k))
    found = _search(refitted, maps, rows, csls_k)
    mutual = rows[np.asarray(found.back_ranks) == 0]
    agreement = _agreement(refitted, mutual, csls_k) if len(mutual) else 0.0
    leads = [confidence.quartiles(values) for values in found.leads()]
    width, words = int(x.shape[1]), refit_words(x, y)
    scale = Scale(agreement, width, *leads[0], *leads[1], succeeded=succeeded, words=words)
    probabilities = CONFIDENCE_MODEL.confidence(found, scale)
    edges = [0, *(edge for edge in SETTINGS.bands if edge < x.shape[0]), x.shape[0]]
    by_band = [(first, last, probabilities[(rows >= first) & (rows < last)]) for first, last in pairwise(edges)]
    parts = [each for each in by_band if ordered and len(edges) > 2 and len(each[2])]
    bands = [Band(first + 1, last, Share.of(some, correction)) for first, last, some in parts]
    return Estimate(Share.of(probabilities, correction), bands, scale, len(rows))


def outside_calibration(x: Array, y: Array, *, ordered: bool) -> list[str]:
    """Return why the estimate of x (n, d) and y (m, d) cannot be trusted; empty within the calibration range."""
    rows, dimensions = min(x.shape[0], y.shape[0]), x.shape[1]
    correction, noun = (CALIBRATION.words, "words") if ordered else (CALIBRATION.items, "items")
    low, high = correction.dimensions
    reasons = {
        f"fewer than {correction.fewest:,} {noun}": rows < correction.fewest,
        f"{dimensions} dimensions instead of {low} to {high}": not low <= dimensions <= high,
    }
    return [reason for reason, applies in reasons.items() if applies]


def empty_estimate(dimensions: int) -> Estimate:
    """Return the estimate for spaces of a single word, which says nothing."""
    return Estimate(Share(0.0, 0.0, 1.0), [], Scale(0.0, dimensions, 0.0, 0.0, 0.0, 0.0, succeeded=False), 0)


def sample(n: int) -> Ints:
    """Return a sample of n rows, ascending, whose density falls with the root of the rank."""
    count = min(SETTINGS.sample, -(-n // 2))
    first, last = math.sqrt(SETTINGS.first_rank), math.sqrt(n + SETTINGS.first_rank)
    roots = first + (last - first) * (np.arange(count) + 0.5) / count
    return np.unique(np.minimum((roots**2 - SETTINGS.first_rank).astype(np.int64), n - 1))


# --------------------------------------------------------------------------- searching the sample


def _mapped(x: Array, y: Array, maps: Maps) -> tuple[Array, Array]:
    return arrays.unit(x @ maps.src), arrays.unit(y if maps.tgt is None else y @ maps.tgt)


def neighbourhood_means(queries: Array, keys: Array, csls_k: int, settings: EstimateSettings = SETTINGS) -> Array:
    """Return the CSLS neighbourhood means of queries (n, d) among keys (m, d) or an even sample of them, (n,)."""
    m = keys.shape[0]
    least, most = settings.gpu_hub_keys if arrays.is_cuda(queries) else settings.hub_keys
    if m <= most:
        return retrieval.neighbourhood_means(queries, keys, csls_k)
    step = m // least
    return retrieval.neighbourhood_means(queries, keys[::step, :], max(1, round(csls_k / step)))


def _best(queries: Array, keys: Array, hubs: Array, k: int) -> tuple[Array, Array]:
    """Return the k best keys (m, d) of queries (n, d) by CSLS without the query's own term: rows and scores, (n, k)."""
    return Retriever(keys, hubs, scale=2.0, method="nn", csls_k=1).top_k(queries, k)


def _search(refitted: Refits, maps: Maps, rows: Ints, csls_k: int) -> SearchFigures:
    """Return the CSLS figures of the best translations of source words (r,)."""
    src, tgt = _mapped(refitted.x, refitted.y, maps)
    xp = arrays.namespace(src)
    src_hubs = neighbourhood_means(src, tgt, csls_k)
    tgt_hubs = neighbourhood_means(tgt, src, csls_k)
    which = arrays.asarray(rows, src)
    queries, own = xp.take(src, which, axis=0), xp.take(src_hubs, which, axis=0)
    candidates, scores = _best(queries, tgt, tgt_hubs, CONFIDENCE_MODEL.candidates)
    best = candidates[:, 0]
    back_rows, back_scores = _best(xp.take(tgt, best, axis=0), src, src_hubs, CONFIDENCE_MODEL.candidates + 1)
    scores = scores - own[:, None]
    back_scores = back_scores - xp.take(tgt_hubs, best, axis=0)[:, None]
    preferred = refitted.preferred(rows, arrays.to_numpy(candidates))
    forward, backward, back = (arrays.to_numpy(values) for values in (scores, back_scores, back_rows))
    return search_figures(forward, backward, back, rows, preferred)


def search_figures(
    scores: npt.NDArray[Any], back_scores: npt.NDArray[Any], back_rows: npt.NDArray[Any], rows: Ints, preferred: Ints
) -> SearchFigures:
    """Return the CSLS figures of translations.

    Args:
        scores: (r, k) of the candidates of each source word, best first.
        back_scores: (r, k + 1) of the source words for the best candidate, best first.
        back_rows: (r, k + 1) rows of these source words.
        rows: (r,) the source words.
        preferred: (r, 2) the candidates that the refits prefer.
    """
    own = back_rows == rows[:, None]
    ranks = np.where(own.any(axis=1), own.argmax(axis=1), CONFIDENCE_MODEL.candidates)
    others = np.where(own, -np.inf, back_scores).max(axis=1)
    return SearchFigures(scores, np.minimum(ranks, CONFIDENCE_MODEL.candidates), others, preferred)


def _agreement(refitted: Refits, rows: Ints, csls_k: int) -> float:
    """Return the share of source words (r,) that both refits translate alike."""
    one, other = (best_translations(refitted.x, refitted.y, maps, rows, csls_k) for maps in refitted.maps)
    return float(np.mean(one == other))


def best_translations(x: Array, y: Array, maps: Maps, rows: Ints, csls_k: int) -> Ints:
    """Return the best translations (r,) of source words (r,) by CSLS. x: (n, d), y: (m, d)."""
    src, tgt = _mapped(x, y, maps)
    xp = arrays.namespace(src)
    queries = xp.take(src, arrays.asarray(rows, src), axis=0)
    best, _ = _best(queries, tgt, neighbourhood_means(tgt, src, csls_k), 1)
    return arrays.to_numpy(best)[:, 0]


# --------------------------------------------------------------------------- refits

MOST_WORDS = 5000
"""Most frequent words of each side that the refits use, at most. Each refit uses every other source word of them."""
# Rounds that induce new pairs distinguish alignments; refits to the pairs that the maps found agree too often.
_ROUNDS = replace(WEIGHTED, rounds=2, first_words=0, dewhiten=0.75)


def refit_words(x: Array, y: Array) -> int:
    """Return how many words of each side refits of x (n, d) and y (m, d) use."""
    return int(min(x.shape[0], y.shape[0], MOST_WORDS))


def refits(x: Array, y: Array, maps: Maps, *, csls_k: int, most: int = MOST_WORDS) -> tuple[Maps, Maps]:
    """Return the two refits of maps, or the maps themselves if there is a single word.

    x: (n, d), y: (m, d) normalised rows, most frequent first. most: frequent words of each side that are used.
    """
    n = min(refit_words(x, y), most)
    if n < 2:
        return maps, maps
    key = cache_key(x[:n, :], y[:n, :], maps, csls_k)
    known = None if key is None else _CACHE.get(key)
    if known is not None:
        return known
    settings = replace(_ROUNDS, csls_k=csls_k)
    even, odd = arrays.parallel_map(lambda half: settings.refine(x[half:n:2, :], y[:n, :], maps), (0, 1), x)
    return (even, odd) if key is None else _CACHE.add(key, (even, odd))


# A verdict makes the refits that the confidences of the same alignment need next.
_CACHE: LRUCache[str, tuple[Maps, Maps]] = LRUCache(4)


def cache_key(x: Array, y: Array, maps: Maps, csls_k: int) -> str | None:
    """Return a hash of everything that determines refits; None for arrays other than NumPy's, which are not cached."""
    digest = hashlib.sha256(repr(csls_k).encode())
    for array in (x, y, maps.src, maps.tgt):
        if array is not None and not isinstance(array, np.ndarray):
            return None
        digest.update(b"none" if array is None else f"{array.shape} {array.dtype}".encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Refits:
    """The two refits of the maps of x (n, d) and y (m, d), normalised rows.

    batch_candidates: number of candidates that are compared at a time.
    """

    x: Array
    y: Array
    maps: tuple[Maps, Maps]
    batch_candidates: int = 20_000

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Return which of its candidates each refit finds nearest to a word, (r, 2), 0 for the first candidate.

        Nearest by cosine: CSLS has already removed the hubs from the candidates, so the neighbourhood means of the
        whole vocabularies are not needed.

        rows: (r,) source words; candidates: (r, k) target words.
        """
        return np.column_stack([self._nearest(maps, rows, candidates) for maps in self.maps])

    def _nearest(self, maps: Maps, rows: Ints, candidates: Ints) -> Ints:
        xp = arrays.namespace(self.x)
        wanted, positions = np.unique(candidates, return_inverse=True)
        positions = positions.reshape(candidates.shape)
        keys = xp.take(self.y, arrays.asarray(wanted, self.y), axis=0)
        tgt = arrays.unit(keys if maps.tgt is None else keys @ maps.tgt)
        width = candidates.shape[1]
        found = [np.zeros(0, dtype=np.int64)]
        step = max(1, self.batch_candidates // max(1, width))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            # The lengths of the queries do not change which candidate is nearest.
            queries = xp.take(self.x, arrays.asarray(rows[block], self.x), axis=0) @ maps.src
            near = xp.take(tgt, arrays.asarray(positions[block].reshape(-1), tgt), axis=0)
            cosines = xp.sum(xp.reshape(near, (-1, width, near.shape[1])) * queries[:, None, :], axis=2)
            found.append(arrays.to_numpy(xp.argmax(cosines, axis=1)))
        return np.concatenate(found)
