"""CSLS refinement: induce a dictionary by CSLS, fit the maps to it, repeat.

Two variants are in use. Conneau et al. (2018) use mutual pairs with equal weights and fit an orthogonal map; these are
the defaults of `CslsRefinement`. qWP (`WEIGHTED`) induces its dictionaries in the re-weighted space, uses the nearest
neighbour of every word of both sides, weights the pairs by their CSLS, and begins with the frequent words.
docs/accuracy.md measures the effect of each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Ints
from qwp.errors import InputError
from qwp.maps import procrustes
from qwp.maps.procrustes import Maps
from qwp.parameters import MOST_STEPS, MOST_WORDS, REFINE, param
from qwp.search import retrieval
from qwp.search.retrieval import CrossNeighbours, Pairs, csls_k_param
from qwp.stages.problem import Problem
from qwp.stages.stage import Monitor, Stage, State, unprojected

logger = logging.getLogger(__name__)

DIRECTIONS = ("mutual", "forward", "backward", "union")
WEIGHTS = ("equal", "csls")


@dataclass(frozen=True, kw_only=True)
class CslsRefinement(Stage):
    """Refine maps by CSLS dictionaries."""

    name = "refine"
    uses_seed = False

    rounds: int = param(
        5, "Refinement rounds at the end; 0 for none.", REFINE, least=0, most=MOST_STEPS, option="refine"
    )
    words: int = param(
        15_000,
        "Most frequent words that take part in the refinement; 0 for all.",
        REFINE,
        least=0,
        most=MOST_WORDS,
        option="refine_words",
    )
    first_words: int = param(
        0,
        "Words in the first round, from which they grow by a constant factor to all in the last; 0 for all.",
        REFINE,
        least=0,
        most=MOST_WORDS,
        option="refine_first_words",
    )
    directions: str = param(
        "mutual",
        "Pairs in the dictionaries of the refinement: mutual, forward, backward or union.",
        REFINE,
        choices=DIRECTIONS,
        option="refine_directions",
    )
    weights: str = param(
        "equal",
        "Weights of the pairs in the refinement: csls or equal.",
        REFINE,
        choices=WEIGHTS,
        option="refine_weights",
    )
    search_map: str = param(
        "orthogonal",
        "The maps under which the rounds look for pairs: reweighted or orthogonal.",
        REFINE,
        choices=procrustes.KINDS,
        option="refine_map",
    )
    map: str = procrustes.map_param()
    reweight: float = procrustes.reweight_param()
    dewhiten: float | None = param(
        None,
        "How far the variance of each direction is restored in re-weighted maps: 0 not, 1 fully.",
        REFINE,
        least=0,
        most=1,
        decided="0.75, or 0.5 if held-out pairs rank better with less",
    )
    csls_k: int = csls_k_param()
    map_is_default: bool = False
    """Whether `map` is the default of the method, so that without rounds the map stays orthogonal without an error."""
    further_rounds: int = 0
    """Most additional rounds for unordered items if no initial map was accepted."""
    least_gain: float = 1.002
    """An additional round whose `csls_per_word` grows by a smaller factor is the last. Set by hand."""

    def check_together(self) -> None:
        """Raise an InputError for a re-weighted map without a round whose pairs it could be fitted to."""
        if self.rounds == 0 and self.map == "reweighted" and not self.map_is_default:
            raise InputError(
                "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
            )

    def words_of_round(self, number: int, available: int) -> int:
        """Return the number of words of each side in round `number` (from 1). available: words of the larger side."""
        most = min(available, self.words) if self.words else available
        first = self.first_words
        if not 0 < first < most or number >= self.rounds:
            return most
        factor: float = (most / first) ** ((number - 1) / (self.rounds - 1))
        return round(first * factor)

    @property
    def choosing_round(self) -> int:
        """The round (from 1) whose dictionary chooses `dewhiten` if it is not given; 0 for none."""
        reweighted = "reweighted" in (self.map, self.search_map)
        return 3 * self.rounds // 4 + 1 if reweighted and self.dewhiten is None else 0

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the refined maps."""
        return self.refined(problem, state, monitor)

    def refined(
        self, problem: Problem, state: State, monitor: Monitor, anchors: Anchors | None = None, *, save: bool = True
    ) -> State:
        """Return the state after the remaining rounds.

        anchors: pairs that every dictionary contains. save: whether to save the state after every round.
        """
        state = unprojected(problem, state)
        # Few unordered items of each side share few counterparts, so all take part from the first round on.
        settings = self if problem.ordered else replace(self, first_words=0)
        if 0 < settings.choosing_round <= state.done:
            settings = replace(settings, dewhiten=state.values.get("dewhiten"))
        if state.values.get("last", False):
            return state
        weak = state.accepted is False and not problem.ordered and self.rounds > 0
        view = problem.view_of(state.order)
        assert state.maps is not None
        for figures, maps, _ in settings.iterate(
            view.x,
            view.y,
            state.maps,
            first_round=state.done,
            anchors=anchors,
            more=self.further_rounds if weak else 0,
            reached=state.values.get("csls_per_word", 0.0),
        ):
            values = asdict(figures)
            done, total, last = (values.pop(name) for name in ("round", "n_rounds", "last"))
            carried = {name: values[name] for name in ("dewhiten", "csls_per_word")}
            state = state.after_step(self.name, done, maps, values, values={**carried, "last": last})
            monitor.step(state, total, now=True, save=save)
        return state

    def iterate(
        self,
        x: Array,
        y: Array,
        maps: Maps,
        *,
        first_round: int = 0,
        anchors: Anchors | None = None,
        more: int = 0,
        reached: float = 0.0,
    ) -> Iterator[tuple[RoundFigures, Maps, Pairs]]:
        """Yield the figures, the maps and the dictionary of each round.

        Args:
            x: (n, d) normalised rows, most frequent first.
            y: (m, d) normalised rows, most frequent first.
            maps: the maps before the first round.
            first_round: the number of rounds that a resumed run has already made. `dewhiten` is what they chose.
            anchors: pairs that every dictionary contains.
            more: most additional rounds with all words, as long as `csls_per_word` grows.
            reached: the `csls_per_word` of the last round so far.
        """
        xp = arrays.namespace(x, y, maps.src)
        dewhiten = procrustes.MOST_RESTORED if self.dewhiten is None else self.dewhiten
        last = self.rounds + more
        for number in range(first_round + 1, last + 1):
            words = self.words_of_round(number, max(x.shape[0], y.shape[0]))
            frequent = x[:words, :], y[:words, :]
            nearest = neighbours(*frequent, maps, self.csls_k)
            pairs = _pairs_of(nearest, self.directions)
            if anchors is not None:
                pairs = anchors.among(pairs, (frequent[0].shape[0], frequent[1].shape[0]))
            if len(pairs) == 0:
                logger.warning("refinement round %d found no pair; the map is not changed", number)
                return
            per_word = float(xp.sum(xp.clip(pairs.scores, 0.0, None))) / (frequent[0].shape[0] + frequent[1].shape[0])
            over = number == last or (number > self.rounds and per_word < self.least_gain * reached)
            reached = per_word
            if number == self.choosing_round:
                mutual = nearest.mutual()
                dewhiten = procrustes.choose_dewhiten(*frequent, mutual, reweight=self.reweight, csls_k=self.csls_k)
            maps = self._fitted(frequent, pairs, self.map if over else self.search_map, dewhiten)
            distinct = xp.unique_values(pairs.src * y.shape[0] + pairs.tgt).shape[0]
            mean = float(xp.mean(pairs.scores))
            # The number of additional rounds is unknown.
            total = max(number, self.rounds)
            yield RoundFigures(number, total, words, distinct, mean, dewhiten, per_word, over), maps, pairs
            if over:
                return

    def _fitted(self, frequent: tuple[Array, Array], pairs: Pairs, kind: str, dewhiten: float) -> Maps:
        """Return the maps that fit a dictionary of the frequent words (n, d) and (m, d). kind: of the maps."""
        fewest, dim = min(side.shape[0] for side in frequent), frequent[0].shape[1]
        if fewest <= dim and kind == "reweighted":
            logger.info("%d words are too few to re-weight %d dimensions: the map is orthogonal", fewest, dim)
            kind = "orthogonal"
        xp = arrays.namespace(*frequent)
        return procrustes.fitted(
            kind,
            *(xp.take(side, rows, axis=0) for side, rows in zip(frequent, (pairs.src, pairs.tgt), strict=True)),
            weights=pair_weights(pairs, self.weights),
            reweight=self.reweight,
            dewhiten=dewhiten,
        )

    def refine(self, x: Array, y: Array, maps: Maps) -> Maps:
        """Return the maps after all rounds. Arguments as in `iterate`."""
        for _, refined, _ in self.iterate(x, y, maps):
            maps = refined
        return maps


WEIGHTED = CslsRefinement(
    rounds=10,
    words=20_000,
    first_words=4_000,
    directions="union",
    weights="csls",
    search_map="reweighted",
    map="reweighted",
    map_is_default=True,
)
"""The refinement of qWP."""


@dataclass(frozen=True)
class RoundFigures:
    """The figures of one round: words of each side, distinct pairs of its dictionary and their mean CSLS.

    dewhiten: the power of de-whitening if its maps are re-weighted. csls_per_word: sum of the CSLS of all pairs divided
    by the number of words, by which additional rounds are judged. last: whether no round follows.
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
    """Return the CSLS dictionary under the maps. x: (n, d), y: (m, d) normalised rows."""
    return _pairs_of(neighbours(x, y, maps, csls_k), directions)


def neighbours(x: Array, y: Array, maps: Maps, csls_k: int) -> CrossNeighbours:
    """Return the CSLS nearest neighbour of every word under the maps, in both directions. x: (n, d), y: (m, d)."""
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
    """Return the weights of the pairs of a dictionary, (p,); None for equal weights. Negative CSLS has weight zero."""
    xp = arrays.namespace(pairs.scores)
    if kind == "equal" or not bool(xp.any(pairs.scores > 0)):
        return None
    return xp.clip(pairs.scores, 0.0, None)


@dataclass(frozen=True)
class Anchors:
    """Known pairs of rows, (p,) each, that every dictionary contains.

    weight: of each pair, in units of the mean weight of the induced pairs.
    """

    src: Ints
    tgt: Ints
    weight: float

    def among(self, pairs: Pairs, words: tuple[int, int]) -> Pairs:
        """Return a dictionary of the first words of each side, with anchors instead of other pairs of their words."""
        xp = arrays.namespace(pairs.scores)
        inside = (self.src < words[0]) & (self.tgt < words[1])
        src, tgt = self.src[inside], self.tgt[inside]
        known = np.isin(arrays.to_numpy(pairs.src), src) | np.isin(arrays.to_numpy(pairs.tgt), tgt)
        others = arrays.asarray(np.flatnonzero(~known), pairs.src)
        # Scores serve as weights.
        score = self.weight * float(xp.mean(xp.clip(pairs.scores, 0.0, None)))
        scores = xp.full((len(src),), score, dtype=pairs.scores.dtype, device=arrays.device(pairs.scores))
        own = (arrays.asarray(src, pairs.src), arrays.asarray(tgt, pairs.tgt), scores)
        found = (pairs.src, pairs.tgt, pairs.scores)
        return Pairs(*(xp.concat([xp.take(a, others), b]) for a, b in zip(found, own, strict=True)))
