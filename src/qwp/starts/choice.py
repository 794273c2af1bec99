"""The choice between the starts that need nothing but the two spaces.

Each fails on some pairs of spaces, so they are tried in turn: a short loop from each, judged without a dictionary,
until one is clearly real.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.judging.verdict import QUICK_YARDSTICK, judge
from qwp.maps.loop import LoopSettings, StepFigures, make_schedule, wasserstein_procrustes_many
from qwp.maps.procrustes import Maps
from qwp.starts import frank_wolfe, profiles
from qwp.starts.frank_wolfe import FrankWolfeSettings

logger = logging.getLogger(__name__)

CANDIDATES: tuple[tuple[str, Callable[[Array, Array, FrankWolfeSettings], Array]], ...] = (
    ("profiles", lambda x, y, settings: profiles.first_map(x, y, settings.start_words)),
    ("profiles of more words", lambda x, y, settings: profiles.first_map(x, y, 2 * settings.start_words)),
    ("frank-wolfe", lambda x, y, settings: frank_wolfe.first_map(x, y, settings)),
)
"""The starts that are tried, in this order: name, and what makes the map of x (n, d) and y (m, d)."""

# The trial run of a start: random batches of the most frequent words find the basin of attraction fast.
_TRIAL_WORDS = 5000
_TRIAL_STEPS = 100
_TRIAL_CORESET = 500
_TRIAL_SETTINGS = LoopSettings(coreset="random", learning_rate=2.0, final_rate=0.5, pairs_per_step=2)
_JUDGED_WORDS = 2000
# Well above what a failed run was ever seen to reach; below it the next start gets its chance.
_CLEARLY_REAL = 1.5


StartCallback: TypeAlias = Callable[[int, str, int, int, float], None]
"""Called with the number of the pair, the name of the start, step, number of steps and objective of its trial."""


def best_starts(
    xs: Sequence[Array],
    ys: Sequence[Array],
    settings: FrankWolfeSettings,
    *,
    seeds: Sequence[int],
    csls_k: int = 10,
    callback: StartCallback | None = None,
) -> Array:
    """Try the unsupervised starts in turn for each of P pairs; return the best maps after their trials, (P, d, d).

    xs, ys: P times (n, d) normalised rows, most frequent first. Each start is followed by a short loop and judged by
    `verdict.judge`; the first that is clearly real wins, otherwise the one with the highest ratio.
    """
    best: list[tuple[float, Array | None]] = [(-math.inf, None)] * len(xs)
    for name, first_map in CANDIDATES:
        open_pairs = [p for p, (ratio, _) in enumerate(best) if ratio < _CLEARLY_REAL]
        for group in _groups_by_size(open_pairs, xs, ys):
            maps = [first_map(xs[p], ys[p], settings) for p in group]
            report = None if callback is None else partial(_report_trial, callback, group, name)
            tried = _trial([xs[p] for p in group], [ys[p] for p in group], maps, [seeds[p] for p in group], report)
            for p, w in zip(group, tried, strict=True):
                x, y = (side[p][:_JUDGED_WORDS, :] for side in (xs, ys))
                ratio = judge(x, y, Maps(w), seed=seeds[p], csls_k=csls_k, yardstick=QUICK_YARDSTICK).ratio
                logger.info("start %s: %.2f times the agreement of a random rotation on held-out words", name, ratio)
                if ratio > best[p][0]:
                    best[p] = ratio, w
    return arrays.namespace(xs[0]).stack([w for _, w in best if w is not None])


def _report_trial(
    callback: StartCallback, numbers: Sequence[int], name: str, figures: list[list[StepFigures]], _: Array
) -> None:
    for number, steps in zip(numbers, figures, strict=True):
        for step in steps:
            callback(number, name, step.step, step.n_steps, step.objective)


def _trial_coreset(x: Array, y: Array) -> int:
    """Points in the random batches of a trial."""
    return int(min(_TRIAL_CORESET, x.shape[0], y.shape[0]))


def _groups_by_size(pairs: Sequence[int], xs: Sequence[Array], ys: Sequence[Array]) -> list[list[int]]:
    """Pairs whose trials have the same shape, and so can run in lock-step."""
    groups: dict[int, list[int]] = {}
    for p in pairs:
        groups.setdefault(_trial_coreset(xs[p], ys[p]), []).append(p)
    return list(groups.values())


def _trial(
    xs: Sequence[Array],
    ys: Sequence[Array],
    maps: Sequence[Array],
    seeds: Sequence[int],
    callback: Callable[[list[list[StepFigures]], Array], None] | None,
) -> list[Array]:
    """A short loop on the most frequent words from each map."""
    k = _trial_coreset(xs[0], ys[0])
    tried = wasserstein_procrustes_many(
        [x[:_TRIAL_WORDS, :] for x in xs],
        [y[:_TRIAL_WORDS, :] for y in ys],
        arrays.namespace(xs[0]).stack(list(maps)),
        make_schedule("fixed", steps=_TRIAL_STEPS, k=k, epochs=1, n_max=k),
        _TRIAL_SETTINGS,
        seeds=[int(arrays.rng(seed, Stream.TRIAL).integers(2**31)) for seed in seeds],
        callback=callback,
    )
    return [tried[i, ...] for i in range(len(maps))]
