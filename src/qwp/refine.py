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

from qwp import backend, procrustes, retrieval
from qwp.backend import Array
from qwp.checks import at_least, between, one_of
from qwp.procrustes import Maps
from qwp.retrieval import Pairs

logger = logging.getLogger(__name__)

DIRECTIONS = ("mutual", "forward", "backward", "union")
WEIGHTS = ("equal", "csls")


@dataclass(frozen=True)
class RefineSettings:
    """What a round does.

    rounds: how many; csls_k: neighbourhood; max_rank: only words more frequent than this enter the dictionary (0: all);
    directions: which pairs enter it; weights: of the pairs, equal or their CSLS; first_rank: the words of the first
    round, from which they grow by a constant factor to all of them in the last one (0: all from the beginning);
    learn_map: the kind of the maps between the rounds; map: of those after the last one; reweight, dewhiten: of
    re-weighted maps, see `procrustes.reweighted`.
    """

    rounds: int = 5
    csls_k: int = 10
    max_rank: int = 15_000
    directions: str = "mutual"
    weights: str = "equal"
    first_rank: int = 0
    learn_map: str = "orthogonal"
    map: str = "orthogonal"
    reweight: float = 1.0
    dewhiten: float = 0.75

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        one_of(DIRECTIONS, directions=self.directions)
        one_of(WEIGHTS, refine_weights=self.weights)
        one_of(procrustes.KINDS, refine_map=self.learn_map, map=self.map)
        at_least(0, rounds=self.rounds, max_rank=self.max_rank, refine_first_rank=self.first_rank)
        between(0, 10, reweight=self.reweight)
        between(0, 1, dewhiten=self.dewhiten)
        at_least(1, csls_k=self.csls_k)

    def words(self, number: int, available: int) -> int:
        """How many words of each side take part in round `number` (from 1) when there are `available`."""
        most = min(available, self.max_rank) if self.max_rank else available
        if not 0 < self.first_rank < most or number >= self.rounds:
            return most
        factor: float = (most / self.first_rank) ** ((number - 1) / (self.rounds - 1))
        return round(self.first_rank * factor)


WEIGHTED = RefineSettings(
    rounds=10,
    max_rank=20_000,
    first_rank=4_000,
    directions="union",
    weights="csls",
    learn_map="reweighted",
    map="reweighted",
)
"""The refinement of qWP."""


@dataclass(frozen=True)
class RoundFigures:
    """One round: how many words of each side it saw, how many different pairs it found and their mean CSLS."""

    round: int
    n_rounds: int
    n_words: int
    n_pairs: int
    mean_csls: float


def induce_pairs(x: Array, y: Array, maps: Maps, *, csls_k: int = 10, directions: str = "mutual") -> Pairs:
    """The dictionary under the maps. x: (n, d), y: (m, d) normalised rows."""
    xp = backend.namespace(x, y, maps.src)
    tgt = y if maps.tgt is None else y @ maps.tgt
    found = retrieval.cross_neighbours(retrieval.unit(x @ maps.src), retrieval.unit(tgt), csls_k=csls_k)
    if directions == "mutual":
        return found.mutual()
    if directions == "union":
        return found.union()
    if directions == "forward":
        return Pairs(xp.arange(x.shape[0], device=backend.device(x)), found.forward, found.forward_scores)
    return Pairs(found.backward, xp.arange(y.shape[0], device=backend.device(y)), found.backward_scores)


def pair_weights(pairs: Pairs, kind: str) -> Array | None:
    """Weights (p,) of the pairs of a dictionary, None where all are alike. A pair with a negative CSLS weighs none."""
    xp = backend.namespace(pairs.scores)
    if kind == "equal" or not bool(xp.any(pairs.scores > 0)):
        return None
    return xp.clip(pairs.scores, 0.0, None)


def rounds(
    x: Array, y: Array, maps: Maps, settings: RefineSettings, *, first_round: int = 0
) -> Iterator[tuple[RoundFigures, Maps, Pairs]]:
    """The rounds from `maps`, one by one: figures, the maps after it, and its dictionary.

    x: (n, d), y: (m, d) normalised rows, most frequent first. first_round: rounds `maps` has already seen.
    """
    settings.check()
    xp = backend.namespace(x, y, maps.src)
    for number in range(first_round + 1, settings.rounds + 1):
        words = settings.words(number, max(x.shape[0], y.shape[0]))
        seen = x[:words, :], y[:words, :]
        pairs = induce_pairs(*seen, maps, csls_k=settings.csls_k, directions=settings.directions)
        if len(pairs) == 0:
            logger.warning("refinement round %d found no pair; the map stays as it is", number)
            return
        kind = settings.map if number == settings.rounds else settings.learn_map
        fewest = min(side.shape[0] for side in seen)
        if fewest <= x.shape[1] and kind == "reweighted":
            logger.info("%d words are too few to re-weight %d dimensions: the map is orthogonal", fewest, x.shape[1])
            kind = "orthogonal"
        maps = procrustes.fitted(
            kind,
            *(xp.take(side, rows, axis=0) for side, rows in zip(seen, (pairs.src, pairs.tgt), strict=True)),
            weights=pair_weights(pairs, settings.weights),
            reweight=settings.reweight,
            dewhiten=settings.dewhiten,
        )
        different = xp.unique_values(pairs.src * y.shape[0] + pairs.tgt).shape[0]
        yield RoundFigures(number, settings.rounds, words, different, float(xp.mean(pairs.scores))), maps, pairs


def refine(
    x: Array,
    y: Array,
    maps: Maps,
    settings: RefineSettings,
    *,
    first_round: int = 0,
    callback: Callable[[RoundFigures, Maps], None] | None = None,
) -> Maps:
    """Run the rounds from `maps` and return the last maps. Arguments as those of `rounds`."""
    for figures, refined, _ in rounds(x, y, maps, settings, first_round=first_round):
        maps = refined
        if callback is not None:
            callback(figures, maps)
    return maps
