"""Relaxed CSLS (Joulin et al. 2018): the retrieval criterion as the training loss."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.pairs import matched_rows
from qwp.maps.procrustes import Maps, clip_singular_values, least_squares, procrustes
from qwp.methods.aligner import Aligner
from qwp.methods.settings import REQUIRED
from qwp.parameters import LOOP, MOST_STEPS, MOST_WORDS, OTHER, RUN, START, TRAIN_WORDS, param
from qwp.search.retrieval import csls_k_param
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem
from qwp.stages.stage import Monitor, Stage, State, clamped

logger = logging.getLogger(__name__)

CONSTRAINTS = ("none", "spectral")
STARTS: dict[str, Callable[[Array, Array], Array]] = {"least-squares": least_squares, "procrustes": procrustes}


@dataclass(frozen=True, kw_only=True)
class RelaxedCsls(Stage):
    """Minimise the relaxed CSLS loss of known pairs by gradient descent. A step that raises the loss is undone."""

    name = "train"
    uses_seed = False

    start: str = param(
        "least-squares",
        "The initial map, from the same lexicon: least-squares or procrustes.",
        START,
        choices=tuple(STARTS),
    )
    steps: int = param(20, "Most gradient steps.", LOOP, least=0, most=MOST_STEPS)
    learning_rate: float = param(1.0, "Learning rate until the loss rises.", LOOP, above=0, most=1e6)
    constraint: str = param(
        "none", "The map: none (any matrix) or spectral (singular values at most one).", OTHER, choices=CONSTRAINTS
    )
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    csls_k: int = csls_k_param()
    smallest_rate: float = 1e-4
    """The training stops at a smaller learning rate."""

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map of the lowest loss."""
        view = problem.view_of(state.order)
        pairs = matched_rows(view.x, view.y, *problem.known_pairs(view))
        words = clamped("train_words", self.train_words, max(view.x.shape[0], view.y.shape[0]))
        spaces = view.x[:words, :], view.y[:words, :]
        if state.maps is None:
            initial = Maps(self._constrained(STARTS[self.start](*pairs)))
            state = state.after_step(self.name, 0, initial, values={"rate": self.learning_rate})
        w, rate = state.map, float(state.values["rate"])
        loss, gradient = relaxed_csls(w, *pairs, *spaces, self.csls_k)
        limit = largest_map(*spaces)
        for number in range(state.done + 1, self.steps + 1):
            if rate < self.smallest_rate:
                logger.info("no step lowers the loss; stopped after %d of %d", number - 1, self.steps)
                break
            moved, new_loss, new_gradient = w, math.inf, gradient
            if _largest(w) + rate * _largest(gradient) < limit:
                moved = self._constrained(w - rate * gradient)
                new_loss, new_gradient = relaxed_csls(moved, *pairs, *spaces, self.csls_k)
            if new_loss < loss:
                w, loss, gradient = moved, new_loss, new_gradient
            else:
                rate /= 2
            state = state.after_step(self.name, number, Maps(w), {"loss": loss, "rate": rate}, values={"rate": rate})
            monitor.step(state, self.steps)
        return state

    def _constrained(self, w: Array) -> Array:
        """Return the nearest map (d, d) that satisfies the constraint."""
        return clip_singular_values(w) if self.constraint == "spectral" else w


class RCSLS(Aligner):
    """Gradient descent on the relaxed CSLS loss over a seed lexicon.

    Joulin, Bojanowski, Mikolov, Jegou, Grave (2018), Loss in translation. For pairs (x, y) the loss is the mean of
    -2 x W y + (mean of x W z over the k nearest targets z of x W) + (mean of z W y over the k nearest sources z of y);
    every step finds the exact neighbours among the `train_words` most frequent words. A step that raises the loss is
    undone and the rate is halved, so the result is the map with the lowest loss. constraint="spectral" projects the map
    onto matrices with singular values at most one, the convex hull of the orthogonal ones; "none" does not, which
    Joulin et al. found to be better.
    """

    method = "rcsls"
    summary = "relaxed CSLS loss on a seed lexicon by gradient descent"
    paper = "Joulin et al. 2018"
    supervision = REQUIRED
    pipeline = Pipeline(solve=RelaxedCsls())


def largest_map(*spaces: Array) -> float:
    """Return the largest entry of a map whose products with vectors (n, d) do not overflow."""
    most = float(arrays.namespace(*spaces).finfo(spaces[0].dtype).max)
    terms = max(x.shape[0] * x.shape[1] for x in spaces)
    for size in (1e3, terms, *(max(1.0, _largest(x)) for x in spaces)):
        most /= size
    return most


def _largest(x: Array) -> float:
    xp = arrays.namespace(x)
    return float(xp.max(xp.abs(x)))


def relaxed_csls(w: Array, src: Array, tgt: Array, src_space: Array, tgt_space: Array, k: int) -> tuple[float, Array]:
    """Return the loss and its gradient with respect to w (d, d).

    src, tgt: (p, d) matched unit rows; src_space: (n, d), tgt_space: (m, d) the candidates for neighbours.
    """
    xp = arrays.namespace(w, src)
    p = src.shape[0]
    near_tgt = _neighbour_means(src @ w, tgt_space, tgt_space, k)
    near_src = _neighbour_means(tgt, src_space @ w, src_space, k)
    # Both sums are linear in w, so the loss is the inner product of the gradient and w.
    gradient = (src.T @ (near_tgt - 2.0 * tgt) + near_src.T @ tgt) / p
    return float(xp.sum(gradient * w)), gradient


def _neighbour_means(queries: Array, keys: Array, values: Array, k: int) -> Array:
    """Return the mean of `values` over the k nearest keys of each query by inner product, (p, d).

    queries: (p, d), keys: (m, d), values: (m, d).
    """
    xp = arrays.namespace(queries, keys)

    def means(rows: slice) -> Array:
        _, nearest = arrays.top_k(queries[rows, :] @ keys.T, k)
        found = xp.take(values, xp.reshape(nearest, (-1,)), axis=0)
        return xp.mean(xp.reshape(found, (*nearest.shape, values.shape[1])), axis=1)

    blocks = arrays.map_blocks(means, queries.shape[0], arrays.block_rows(keys.shape[0], queries), queries)
    return xp.concat(blocks)
