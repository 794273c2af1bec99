"""Problems for the tests of stages: planted spaces without normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qwp import arrays
from qwp.maps.pairs import KnownPairs
from qwp.maps.procrustes import Maps
from qwp.ot.coreset_source import Banks
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.normalization import Normalization
from qwp.stages.problem import PreparedSpace, Problem, View
from qwp.stages.refinement import CslsRefinement, RoundFigures
from qwp.stages.stage import State
from qwp.stages.wasserstein_procrustes import (
    Schedule,
    StepFigures,
    WassersteinProcrustes,
)
from tests.problems import Array, Planted

NOTHING = Normalization((), ())


def prepared(vectors: Any, words: Sequence[str], *, estimate: Array | None = None) -> PreparedSpace:
    """Return a space whose rows (n, d) need no normalisation. estimate: an order that competes with the given one."""
    return PreparedSpace(Embeddings(list(words), np.asarray(vectors)), vectors, NOTHING, estimate=estimate)


def problem_of(
    planted: Planted,
    *,
    estimates: tuple[Array, Array] | None = None,
    identical: bool = False,
    known: KnownPairs | None = None,
    **options: Any,
) -> Problem:
    """Return a planted problem.

    estimates: an estimated order of each side, in a second view. identical: whether translations are spelt alike.
    options: other fields of the problem.
    """
    names = np.full(len(planted.tgt), -1)
    names[planted.gold[:, 1]] = planted.gold[:, 0]
    src_words = [f"s{i}" for i in range(len(planted.src))]
    tgt_words = [f"{'s' if identical else 't'}{i}" if i >= 0 else f"extra{j}" for j, i in enumerate(names)]
    src_order, tgt_order = (None, None) if estimates is None else estimates
    src = prepared(planted.src, src_words, estimate=src_order)
    tgt = prepared(planted.tgt, tgt_words, estimate=tgt_order)
    views: tuple[View, ...] = (View(src, tgt),)
    if estimates is not None:
        views = (*views, View(src.in_estimated_order(), tgt.in_estimated_order()))
    return Problem(views, known=known, **options)


def run_loop(
    x: Any,
    y: Any,
    w: Any,
    schedule: Schedule,
    settings: WassersteinProcrustes,
    *,
    seed: int = 0,
    first_step: int = 0,
    callback: Callable[[list[StepFigures], Any], None] | None = None,
) -> Any:
    """Run the loop of one pair of spaces and return the map (d, d). x: (n, d), y: (m, d); w: (d, d)."""
    xp = arrays.namespace(x, y, w)

    def report(figures: list[list[StepFigures]], maps: Any) -> None:
        if callback is not None:
            callback(figures[0], xp.asarray(maps[0, ...], copy=True))

    maps = xp.expand_dims(w, axis=0)
    return settings.solve_many(
        [x],
        [y],
        maps,
        schedule,
        seeds=[seed],
        first_step=first_step,
        callback=report,
    )[0, ...]


def refine_rounds(
    x: Any,
    y: Any,
    maps: Maps,
    settings: CslsRefinement,
    *,
    callback: Callable[[RoundFigures, Maps], None] | None = None,
    **options: Any,
) -> Maps:
    """Run the rounds and return the last maps. callback: after every round; options: of `iterate`."""
    for figures, refined, _ in settings.iterate(x, y, maps, **options):
        maps = refined
        if callback is not None:
            callback(figures, maps)
    return maps


class StateMemory:
    """A cache of states, without coreset banks."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[State, dict[str, float]]] = {}

    def banks(self, key: str, draw: Callable[[], Banks]) -> Banks:
        """Return new banks."""
        return draw()

    def load(self, keys: Mapping[str, str]) -> tuple[State, Mapping[str, float]] | None:
        """Return the latest cached state."""
        return next((self.states[key] for key in keys.values() if key in self.states), None)

    def save(self, key: str, state: State, seconds: Mapping[str, float]) -> None:
        """Cache a state."""
        self.states[key] = state, dict(seconds)
