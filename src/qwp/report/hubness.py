"""Hubs: target words that are among the nearest of far too many source words.

The k-occurrence of a target word is how many source words have it among their k best. Were all alike, each would have
k times the source words for each target word; hubs have a hundred times that, orphans nothing. The skewness of the
k-occurrences says how bad it is (Radovanović et al., JMLR 2010). It is measured before and after the correction of
CSLS, that is, by plain cosine and by CSLS in the common space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.results.alignment import Alignment
from qwp.search import retrieval
from qwp.search.retrieval import Retriever

Ints = npt.NDArray[np.int64]

K = 10
_QUERIES = 5000  # source words that are asked; an even part of more
_LARGEST = 5
# k-occurrences up to each of these are shown together.
_LIMITS = (0, 2, 5, 10, 20, 50, 100)
GROUPS = (
    "0",
    *(f"{low + 1}–{high}" for low, high in pairwise(_LIMITS)),
    f">{_LIMITS[-1]}",
)


@dataclass(frozen=True)
class Occurrences:
    """The k-occurrences of all target words under one retrieval.

    skewness: of their distribution. orphans: the share that is among the k best of no word. shares: of the target
    words, by `GROUPS`. largest: the words with the most, and how many.
    """

    skewness: float
    orphans: float
    shares: list[float]
    largest: list[tuple[str, int]]


@dataclass(frozen=True)
class Hubness:
    """k-occurrences before and after. k: candidates of each word; queries: source words that were asked."""

    k: int
    queries: int
    cosine: Occurrences
    csls: Occurrences


def hubness(alignment: Alignment, csls_k: int) -> Hubness:
    """Hubs by plain cosine and by CSLS."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    xp = arrays.namespace(src)
    n, k = src.shape[0], min(K, tgt.shape[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, _QUERIES)).astype(np.int64))
    queries = xp.take(src, arrays.asarray(rows, src), axis=0)
    found = []
    for method in ("nn", "csls"):
        best = arrays.to_numpy(searcher(alignment, method, csls_k).top_k(queries, k)[0])
        found.append(occurrences(np.bincount(best.reshape(-1), minlength=tgt.shape[0]), alignment.tgt.words))
    return Hubness(k, len(rows), *found)


def searcher(alignment: Alignment, method: str, csls_k: int) -> Retriever:
    """What ranks the target words, by the neighbourhoods that are kept beside the alignment."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    hubs = alignment.place.put(alignment.lookup("tgt", csls_k).hubs, alignment.src_map.dtype.name)
    return retrieval.retriever(tgt, src, method=method, csls_k=csls_k, hubs=hubs)


def occurrences(counts: Ints, words: Sequence[str]) -> Occurrences:
    """What the k-occurrences (m,) of target words show."""
    groups = np.searchsorted(_LIMITS, counts)
    shares = np.bincount(groups, minlength=len(GROUPS)) / len(counts)
    largest = np.lexsort((np.arange(len(counts)), -counts))[:_LARGEST].tolist()
    return Occurrences(
        skewness(counts), float(shares[0]), shares.tolist(), [(words[row], int(counts[row])) for row in largest]
    )


def skewness(counts: Ints) -> float:
    """The third moment of counts (m,), in their deviations; zero where all are alike."""
    centred = counts - counts.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean(centred**3)) / deviation**3 if deviation > 0 else 0.0
