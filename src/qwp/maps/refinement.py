"""Refinement: translate by CSLS, take the dictionary for true, fit the maps to it, and again.

Two ways of it are in use. Conneau et al. (2018) keep the pairs that agree both ways, weigh them alike and fit an
orthogonal map (the defaults of `RefineSettings`). qWP finds its dictionaries in the re-weighted space, lets every word
of both sides bring its best partner, weighs the pairs by their CSLS, and begins with the frequent words
(`WEIGHTED`); docs/accuracy.md has what each of that brings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps import dewhitening, procrustes
from qwp.maps.pairs import Ints
from qwp.maps.procrustes import Maps, MapSettings
from qwp.parameters import MOST_STEPS, MOST_WORDS, REFINE, param
from qwp.search import retrieval
from qwp.search.retrieval import CrossNeighbours, NeighbourhoodSettings, Pairs

logger = logging.getLogger(__name__)

DIRECTIONS = ("mutual", "forward", "backward", "union")
WEIGHTS = ("equal", "csls")


@dataclass(kw_only=True)
class RefineSettings(NeighbourhoodSettings, MapSettings):
    """What a round does."""

    refine: int = param(5, "Refinement rounds at the end; 0 for none.", REFINE, least=0, most=MOST_STEPS)
    refine_words: int = param(
        15_000, "Most frequent words that take part in the refinement; 0 for all.", REFINE, least=0, most=MOST_WORDS
    )
    refine_first_words: int = param(
        0,
        "Words in the first round, from which they grow by a constant factor to all in the last; 0 for all.",
        REFINE,
        least=0,
        most=MOST_WORDS,
    )
    refine_directions: str = param(
        "mutual", "Pairs kept in the refinement: mutual, forward, backward or union.", REFINE, choices=DIRECTIONS
    )
    refine_weights: str = param(
        "equal", "Weights of the pairs in the refinement: csls or equal.", REFINE, choices=WEIGHTS
    )
    refine_map: str = param(
        "orthogonal",
        "Where the rounds look for pairs: under reweighted or orthogonal maps.",
        REFINE,
        choices=procrustes.KINDS,
    )
    dewhiten: float | None = param(
        None,
        "How far the extent of each direction is restored in re-weighted maps: 0 not, 1 fully.",
        REFINE,
        least=0,
        most=1,
        decided="0.75, or 0.5 where held-out pairs are told apart better with less",
    )

    def words_of_round(self, number: int, available: int) -> int:
        """How many words of each side take part in round `number` (from 1) when there are `available`."""
        most = min(available, self.refine_words) if self.refine_words else available
        first = self.refine_first_words
        if not 0 < first < most or number >= self.refine:
            return most
        factor: float = (most / first) ** ((number - 1) / (self.refine - 1))
        return round(first * factor)

    @property
    def choosing_round(self) -> int:
        """The round (from 1) whose dictionary decides on `dewhiten` where that is not given; 0 for none."""
        reweighted = "reweighted" in (self.map, self.refine_map)
        return 3 * self.refine // 4 + 1 if reweighted and self.dewhiten is None else 0


WEIGHTED = RefineSettings(
    refine=10,
    refine_words=20_000,
    refine_first_words=4_000,
    refine_directions="union",
    refine_weights="csls",
    refine_map="reweighted",
    map="reweighted",
)
"""The refinement of qWP."""


LEAST_GAIN = 1.002
"""Where rounds go on as long as they gain, one whose `csls_per_word` grows by a smaller factor is the last."""


@dataclass(frozen=True)
class RoundFigures:
    """One round: how many words of each side it saw, how many different pairs it found and their mean CSLS.

    dewhiten: how far it restored the extent of each direction if its maps are re-weighted. csls_per_word: the CSLS of
    all pairs for each word, by which further rounds are judged. last: whether none follows.
    """

    round: int
    n_rounds: int
    n_words: int
    n_pairs: int
    mean_csls: float
    dewhiten: float
    csls_per_word: float
    last: bool


def induce_pairs(x: Array, y: Array, maps: Maps, *, csls_k: int = 10, directions: str = "mutual") -> Pairs:
    """The dictionary under the maps. x: (n, d), y: (m, d) normalised rows."""
    return _pairs_of(neighbours(x, y, maps, csls_k), directions)


def neighbours(x: Array, y: Array, maps: Maps, csls_k: int) -> CrossNeighbours:
    """The best partner of every word under the maps, both ways. x: (n, d), y: (m, d) normalised rows."""
    tgt = y if maps.tgt is None else y @ maps.tgt
    return retrieval.cross_neighbours(arrays.unit(x @ maps.src), arrays.unit(tgt), csls_k=csls_k)


def _pairs_of(found: CrossNeighbours, directions: str) -> Pairs:
    xp = arrays.namespace(found.forward)
    if directions == "mutual":
        return found.mutual()
    if directions == "union":
        return found.union()
    src, tgt = (xp.arange(side.shape[0], device=arrays.device(side)) for side in (found.forward, found.backward))
    if directions == "forward":
        return Pairs(src, found.forward, found.forward_scores)
    return Pairs(found.backward, tgt, found.backward_scores)


def pair_weights(pairs: Pairs, kind: str) -> Array | None:
    """Weights (p,) of the pairs of a dictionary, None where all are alike. A pair with a negative CSLS weighs none."""
    xp = arrays.namespace(pairs.scores)
    if kind == "equal" or not bool(xp.any(pairs.scores > 0)):
        return None
    return xp.clip(pairs.scores, 0.0, None)


@dataclass(frozen=True)
class Anchors:
    """Pairs of rows that are known to be right, (p,) each: every round has them in its dictionary.

    weight: of each, in mean weights of the pairs that a round finds by itself.
    """

    src: Ints
    tgt: Ints
    weight: float

    def among(self, pairs: Pairs, words: tuple[int, int]) -> Pairs:
        """A dictionary of the first words of each side with the anchors in place of what it says of their words."""
        xp = arrays.namespace(pairs.scores)
        seen = (self.src < words[0]) & (self.tgt < words[1])
        src, tgt = self.src[seen], self.tgt[seen]
        known = np.isin(arrays.to_numpy(pairs.src), src) | np.isin(arrays.to_numpy(pairs.tgt), tgt)
        kept = arrays.asarray(np.flatnonzero(~known), pairs.src)
        # Scores are the weights, where pairs have some.
        score = self.weight * float(xp.mean(xp.clip(pairs.scores, 0.0, None)))
        scores = xp.full((len(src),), score, dtype=pairs.scores.dtype, device=arrays.device(pairs.scores))
        own = (arrays.asarray(src, pairs.src), arrays.asarray(tgt, pairs.tgt), scores)
        found = (pairs.src, pairs.tgt, pairs.scores)
        return Pairs(*(xp.concat([xp.take(a, kept), b]) for a, b in zip(found, own, strict=True)))


def rounds(
    x: Array,
    y: Array,
    maps: Maps,
    settings: RefineSettings,
    *,
    first_round: int = 0,
    anchors: Anchors | None = None,
    more: int = 0,
    reached: float = 0.0,
    least_gain: float = LEAST_GAIN,
) -> Iterator[tuple[RoundFigures, Maps, Pairs]]:
    """The rounds from `maps`, one by one: figures, the maps after it, and its dictionary.

    x: (n, d), y: (m, d) normalised rows, most frequent first. first_round: rounds `maps` has already seen; what they
    chose for `dewhiten` has to be in the settings. anchors: pairs that are in every dictionary. more: rounds with all
    words after those of the settings, as long as `csls_per_word` grows by the factor `least_gain`; reached: that of the
    last round so far.
    """
    xp = arrays.namespace(x, y, maps.src)
    dewhiten = dewhitening.MOST_RESTORED if settings.dewhiten is None else settings.dewhiten
    last = settings.refine + more
    for number in range(first_round + 1, last + 1):
        words = settings.words_of_round(number, max(x.shape[0], y.shape[0]))
        seen = x[:words, :], y[:words, :]
        partners = neighbours(*seen, maps, settings.csls_k)
        pairs = _pairs_of(partners, settings.refine_directions)
        if anchors is not None:
            pairs = anchors.among(pairs, (seen[0].shape[0], seen[1].shape[0]))
        if len(pairs) == 0:
            logger.warning("refinement round %d found no pair; the map stays as it is", number)
            return
        per_word = float(xp.sum(xp.clip(pairs.scores, 0.0, None))) / (seen[0].shape[0] + seen[1].shape[0])
        over = number == last or (number > settings.refine and per_word < least_gain * reached)
        reached = per_word
        kind = settings.map if over else settings.refine_map
        fewest = min(side.shape[0] for side in seen)
        if fewest <= x.shape[1] and kind == "reweighted":
            logger.info("%d words are too few to re-weight %d dimensions: the map is orthogonal", fewest, x.shape[1])
            kind = "orthogonal"
        if number == settings.choosing_round:
            mutual = partners.mutual()
            dewhiten = dewhitening.chosen(*seen, mutual, reweight=settings.reweight, csls_k=settings.csls_k)
        maps = procrustes.fitted(
            kind,
            *(xp.take(side, rows, axis=0) for side, rows in zip(seen, (pairs.src, pairs.tgt), strict=True)),
            weights=pair_weights(pairs, settings.refine_weights),
            reweight=settings.reweight,
            dewhiten=dewhiten,
        )
        different = xp.unique_values(pairs.src * y.shape[0] + pairs.tgt).shape[0]
        mean = float(xp.mean(pairs.scores))
        # How many rounds there will be is not known once they go on.
        total = max(number, settings.refine)
        yield RoundFigures(number, total, words, different, mean, dewhiten, per_word, over), maps, pairs
        if over:
            return


def refine(
    x: Array,
    y: Array,
    maps: Maps,
    settings: RefineSettings,
    *,
    first_round: int = 0,
    anchors: Anchors | None = None,
    more: int = 0,
    reached: float = 0.0,
    least_gain: float = LEAST_GAIN,
    callback: Callable[[RoundFigures, Maps], None] | None = None,
) -> Maps:
    """Run the rounds from `maps` and return the last maps. Arguments as those of `rounds`."""
    limits: dict[str, float] = {"reached": reached, "least_gain": least_gain}
    begun = rounds(x, y, maps, settings, first_round=first_round, anchors=anchors, more=more, **limits)
    for figures, refined, _ in begun:
        maps = refined
        if callback is not None:
            callback(figures, maps)
    return maps
