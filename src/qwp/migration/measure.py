"""How well a map serves search: recall and overlap of queries on held-out pairs, and the choice between maps by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qwp.arrays import AnyFloats, Ints
from qwp.migration.adapter import Adapter, fit, unit_rows

AT = (1, 10)
_QUERIES_AT_ONCE = 256
_FEWEST_FOR_OVERLAP = 3 * AT[-1]
_TIMED_QUERIES = 200


@dataclass(frozen=True)
class Recall:
    """How many queries of the new model find their own document.

    Attributes:
        queries: number of queries.
        documents: number of documents that they search.
        at_1, at_10: share of queries whose own document is nearest, or among the ten nearest. After full re-embedding
            both are 1, because query and document are then the same vector.
        overlap_at_10: share of the ten nearest documents after full re-embedding that are among the ten nearest now,
            without the own document; None if there are too few held-out pairs.
        reciprocal_rank: mean reciprocal rank of the own document.
    """

    queries: int
    documents: int
    at_1: float
    at_10: float
    overlap_at_10: float | None
    reciprocal_rank: float


def recall(queries: AnyFloats, documents: AnyFloats, own: Ints, truth: AnyFloats | None = None) -> Recall:
    """Search documents (n, e) with queries (q, e) by the cosine. Ties count as wrong.

    own: (q,) row of the document of each query. truth: (q, f) vectors of those documents by the model of the queries.
    """
    queries, documents = unit_rows(queries), unit_rows(documents)
    ranks = []
    for begin in range(0, len(queries), _QUERIES_AT_ONCE):
        rows = slice(begin, begin + _QUERIES_AT_ONCE)
        scores = queries[rows] @ documents.T
        score = np.take_along_axis(scores, own[rows, None], axis=1)
        ranks.append((scores >= score).sum(axis=1))
    rank = np.concatenate(ranks)
    shares = [float(np.mean(rank <= k)) for k in AT]
    same = None
    if truth is not None and len(truth) >= _FEWEST_FOR_OVERLAP:
        truth = unit_rows(truth)
        same = overlap(truth, documents[own], (truth, queries))
    return Recall(len(queries), len(documents), shares[0], shares[1], same, float(np.mean(1.0 / rank)))


def overlap(x: AnyFloats, y: AnyFloats, queries: tuple[AnyFloats, AnyFloats] | None = None) -> float:
    """Return the mean share of the ten nearest other rows of a row that are the same on both sides.

    x, y: (n, d) and (n, e) unit rows of the same items. queries: the rows that search each side; by default its own.
    """
    asked = queries or (x, y)
    shares = []
    for begin in range(0, len(x), _QUERIES_AT_ONCE):
        rows = slice(begin, begin + _QUERIES_AT_ONCE)
        near = [_nearest(own[rows], side, begin) for own, side in zip(asked, (x, y), strict=True)]
        shares.append((near[0][:, :, None] == near[1][:, None, :]).any(axis=2).mean(axis=1))
    return float(np.mean(np.concatenate(shares)))


def _nearest(queries: AnyFloats, documents: AnyFloats, first: int) -> Ints:
    """Return the ten nearest documents (n, d) of each query (q, d) but its own, (q, 10). first: own row of query 0."""
    scores = queries @ documents.T
    rows = np.arange(len(queries))
    scores[rows, first + rows] = -np.inf
    return np.argpartition(-scores, AT[-1] - 1, axis=1)[:, : AT[-1]]


def seconds_per_query(adapter: Adapter) -> float:
    """Return the median time that the adapter takes for one vector."""
    vector = np.ones(adapter.dims[0], dtype=np.float32)
    times = []
    for _ in range(_TIMED_QUERIES):
        begin = time.perf_counter()
        adapter(vector)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


@dataclass(frozen=True)
class Candidate:
    """A map to choose from. pairs: "known", or "aligned" if pairs that an alignment found are used as well."""

    kind: str
    strength: float
    pairs: str = "known"

    def fit(self, x: AnyFloats, y: AnyFloats) -> Adapter:
        """Fit the map to matched rows (p, d) and (p, e)."""
        return fit(self.kind, x, y, self.strength)

    def __str__(self) -> str:
        strength = {"ridge": f" {self.strength:g}", "residual": f" of rank {self.strength:g}"}.get(self.kind, "")
        return f"{self.kind}{strength}, {self.pairs} pairs"


def candidates(pairs: str, dim: int) -> list[Candidate]:
    """Return the maps to try for vectors of `dim` dimensions, the one with the fewest free numbers first."""
    ranks = sorted({max(1, dim // 16), max(1, dim // 4)})
    tried = [("orthogonal", 0.0), *(("residual", float(rank)) for rank in ranks)]
    tried += [("ridge", strength) for strength in (10.0, 1.0, 0.1, 0.01)]
    return [Candidate(kind, strength, pairs) for kind, strength in tried]


def choose(
    tried: Sequence[Candidate], measure: Callable[[Candidate], Recall]
) -> tuple[Candidate, list[tuple[Candidate, float]]]:
    """Return the candidate with the highest mean reciprocal rank, the first of equals, and the scores of all."""
    scored = [(each, measure(each).reciprocal_rank) for each in tried]
    return max(scored, key=lambda each: each[1])[0], scored
