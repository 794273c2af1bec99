"""Self-learning rounds: translate by CSLS, keep the pairs that agree both ways, refit by Procrustes.

This is the refinement of Conneau et al. (2018).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from qwp import backend, retrieval
from qwp.backend import Array
from qwp.checks import at_least, one_of
from qwp.procrustes import procrustes
from qwp.retrieval import Pairs

logger = logging.getLogger(__name__)

DIRECTIONS = ("mutual", "forward", "backward", "union")


@dataclass(frozen=True)
class RefineSettings:
    """What a round does.

    rounds: how many; csls_k: neighbourhood; max_rank: only words more frequent than this enter the
    dictionary (0: all); directions: which pairs enter it.
    """

    rounds: int = 5
    csls_k: int = 10
    max_rank: int = 15_000
    directions: str = "mutual"

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        one_of(DIRECTIONS, directions=self.directions)
        at_least(0, rounds=self.rounds, max_rank=self.max_rank)
        at_least(1, csls_k=self.csls_k)


@dataclass(frozen=True)
class RoundFigures:
    """One round: how many pairs its dictionary held and their mean CSLS."""

    round: int
    n_rounds: int
    n_pairs: int
    mean_csls: float


def induce_pairs(x: Array, y: Array, w: Array, settings: RefineSettings) -> Pairs:
    """The dictionary of one round. x: (n, d), y: (m, d) normalised rows; w: (d, d)."""
    xp = backend.namespace(x, y, w)
    if settings.max_rank:
        x, y = x[: settings.max_rank, :], y[: settings.max_rank, :]
    found = retrieval.cross_neighbours(retrieval.unit(x @ w), retrieval.unit(y), csls_k=settings.csls_k)
    if settings.directions == "mutual":
        return found.mutual()
    if settings.directions == "union":
        return found.union()
    if settings.directions == "forward":
        return Pairs(xp.arange(x.shape[0], device=backend.device(x)), found.forward, found.forward_scores)
    return Pairs(found.backward, xp.arange(y.shape[0], device=backend.device(y)), found.backward_scores)


def refine(
    x: Array,
    y: Array,
    w: Array,
    settings: RefineSettings,
    *,
    first_round: int = 0,
    first_target: Array | None = None,
    callback: Callable[[RoundFigures, Array], None] | None = None,
) -> Array:
    """Run the rounds from `w` and return the refined orthogonal map.

    x: (n, d), y: (m, d) normalised rows, most frequent first; w: (d, d). first_round: rounds `w` has already
    seen. first_target: (m, d) the target side where `w` leads, if that is not `y` itself.
    """
    settings.check()
    xp = backend.namespace(x, y, w)
    for number in range(first_round + 1, settings.rounds + 1):
        pairs = induce_pairs(x, y if first_target is None else first_target, w, settings)
        first_target = None
        if len(pairs) == 0:
            logger.warning("refinement round %d found no pair; the map stays as it is", number)
            return w
        w = procrustes(xp.take(x, pairs.src, axis=0), xp.take(y, pairs.tgt, axis=0))
        if callback is not None:
            callback(RoundFigures(number, settings.rounds, len(pairs), float(xp.mean(pairs.scores))), w)
    return w
