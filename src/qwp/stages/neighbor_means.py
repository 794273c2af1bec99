"""Refine a map of unordered items by the means of their nearest neighbours.

Two samples of texts need not have a single text in common. Then no item has a counterpart, and a dictionary of mutual
pairs is mostly wrong. But the mean of the nearest neighbours of an item estimates where its counterpart would be. Each
round fits an orthogonal map to items of both sides and these means. Dar (2025, mini-vec2vec) refines encoders in this
way. Here the neighbours are those by CSLS, in both directions, and each step goes further than the fitted map.

A round with few random queries leaves fixed points that a round with all queries would not leave, and costs less.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.maps.procrustes import polar, procrustes
from qwp.parameters import Settings
from qwp.search.retrieval import neighbourhood_means

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class NeighborMeans(Settings):
    """Alternate between the means of nearest neighbours and the orthogonal map of items to these means.

    docs/accuracy.md measures the effect of these values on texts of two encoders.
    """

    items: int = 20_000
    """Most items of each side that take part: a random sample of larger sides."""
    queries: int = 1000
    """Random items of each side whose neighbours a round looks for."""
    neighbours: int = 30
    """Neighbours that are averaged: more of them are robust while the map is wrong."""
    relaxation: float = 2.0
    """Length of a step, relative to the distance to the fitted map: 2 halves the rounds that a weak map needs."""
    rounds: int = 200
    """Most rounds with random queries."""
    interval: int = 20
    """Rounds between two measurements of the similarity of nearest neighbours."""
    least_gain: float = 0.002
    """The rounds end when this similarity has not grown by this amount in `patience` measurements."""
    patience: int = 3
    last_rounds: int = 5
    """Rounds at the end, with many queries and without relaxation."""
    last_queries: int = 5000
    """Most queries of each side in these rounds."""
    last_neighbours: int = 10
    """Neighbours that these rounds average."""
    csls_k: int = 10
    """Neighbourhood size of the CSLS that selects the neighbours."""

    def fit(
        self, x: Array, y: Array, w: Array, seed: int, callback: Callable[[int, float], None] | None = None
    ) -> Array:
        """Return the refined orthogonal map (d, d).

        x: (n, d), y: (m, d) normalised rows; w: (d, d) orthogonal. callback: called with the number of rounds so far
        and the mean similarity of nearest neighbours after each measurement.
        """
        rng = arrays.rng(seed, Stream.NEIGHBOUR_MEANS)
        x, y = (_sample(side, self.items, rng) for side in (x, y))
        asked = tuple(_sample(side, self.queries, rng) for side in (x, y))
        # The random queries add noise, which lowers the similarity, so the initial map is no reference.
        best, reached, reference, failures = w, -math.inf, -math.inf, 0
        for done in range(1, self.rounds + 1):
            queries = tuple(_sample(side, self.queries, rng) for side in (x, y))
            w = polar(w + self.relaxation * (self.fitted(x, y, w, queries, self.neighbours) - w))
            if done % self.interval and done < self.rounds:
                continue
            found = self.similarity(x, y, w, asked)
            if callback is not None:
                callback(done, found)
            if found >= reached:
                best, reached = w, found
            failures += 1
            if found >= reference + self.least_gain:
                reference, failures = found, 0
            if failures == self.patience:
                break
        return self.sharpened(x, y, best)

    def sharpened(self, x: Array, y: Array, w: Array) -> Array:
        """Return the map (d, d) after rounds with nearly all items as queries, fewer neighbours and no relaxation.

        They remove the noise of the random queries.
        """
        # Evenly spaced rows: an order may group items of one kind.
        src, tgt = (side[:: -(-side.shape[0] // self.last_queries), :] for side in (x, y))
        for _ in range(self.last_rounds):
            w = self.fitted(x, y, w, (src, tgt), self.last_neighbours)
        return w

    def fitted(self, x: Array, y: Array, w: Array, queries: tuple[Array, ...], neighbours: int) -> Array:
        """Return the orthogonal map (d, d) of queries of both sides, (q, d) each, to the means of their neighbours."""
        xp = arrays.namespace(x)
        src, tgt = queries
        images = self.means(src @ w, y, neighbours), self.means(tgt @ w.T, x, neighbours)
        return procrustes(xp.concat([src, images[1]]), xp.concat([images[0], tgt]))

    def means(self, queries: Array, keys: Array, neighbours: int) -> Array:
        """Return the mean of the keys (m, d) nearest to each query (q, d), (q, d)."""
        xp = arrays.namespace(queries)
        penalty = neighbourhood_means(keys, queries, min(self.csls_k, queries.shape[0])) / 2.0
        k = min(neighbours, keys.shape[0])

        def block(rows: slice) -> Array:
            nearest = arrays.top_k(queries[rows, :] @ keys.T - penalty, k)[1]
            picked = xp.take(keys, xp.reshape(nearest, (-1,)), axis=0)
            return xp.mean(xp.reshape(picked, (-1, k, keys.shape[1])), axis=1)

        n = queries.shape[0]
        return xp.concat(arrays.map_blocks(block, n, arrays.block_rows(keys.shape[0], queries), queries))

    def similarity(self, x: Array, y: Array, w: Array, queries: tuple[Array, ...]) -> float:
        """Return the mean similarity of queries of both sides, (q, d) each, to their nearest neighbours."""
        xp = arrays.namespace(x)
        src, tgt = queries
        both = neighbourhood_means(src @ w, y, 1), neighbourhood_means(tgt @ w.T, x, 1)
        return float(sum(xp.mean(each) for each in both)) / 2.0


def _sample(side: Array, most: int, rng: np.random.Generator) -> Array:
    """Return at most `most` random rows of a side (n, d)."""
    if side.shape[0] <= most:
        return side
    rows = np.sort(rng.permutation(side.shape[0])[:most])
    return arrays.namespace(side).take(side, arrays.asarray(rows, side), axis=0)
