"""Trials: short loops of random batches of frequent words, which find the right basin fast if there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array
from qwp.ot.solve import Transport
from qwp.ot.supply import Coresets
from qwp.stages.wasserstein_procrustes import (
    StepFigures,
    WassersteinProcrustes,
    make_schedule,
    wasserstein_procrustes_many,
)


@dataclass(frozen=True)
class Trial:
    """A short loop. words: the most frequent ones that take part; coreset: words in a batch, if there are many.

    frequency_prior: weight of ranks beside that of similarities at its beginning; it fades out.
    """

    words: int
    steps: int
    coreset: int
    epsilon: float
    batches: int
    frequency_prior: float = 0.0

    def settings(self) -> WassersteinProcrustes:
        """Return the settings of its steps."""
        return WassersteinProcrustes(
            coresets=Coresets(kind="random", pairs_per_step=self.batches),
            transport=Transport(epsilon=self.epsilon),
            learning_rate=2.0,
            final_rate=0.5,
        )

    def points(self, x: Array, y: Array) -> int:
        """Words in a batch of x (n, d) and y (m, d): of few words a part, so that batches differ and cost little."""
        n = min(self.words, x.shape[0], y.shape[0])
        return min(n, max(Coresets.fewest_points, min(self.coreset, n // 4)))

    def run(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        maps: Sequence[Array],
        seeds: Sequence[int],
        callback: Callable[[list[list[StepFigures]], Array], None] | None = None,
    ) -> list[Array]:
        """The maps (d, d) after the loop from each of `maps`, in lock-step; all pairs have the same `points`.

        xs: (n, d) each, ys: (m, d) each, normalised rows, most frequent first. callback: as that of the loop.
        """
        k = self.points(xs[0], ys[0])
        found = wasserstein_procrustes_many(
            [x[: min(self.words, x.shape[0]), :] for x in xs],
            [y[: min(self.words, y.shape[0]), :] for y in ys],
            arrays.namespace(xs[0]).stack(list(maps)),
            make_schedule("fixed", steps=self.steps, k=k, epochs=1, n_max=k),
            self.settings(),
            seeds=list(seeds),
            callback=callback,
            frequency_prior=self.frequency_prior,
        )
        return [found[i, ...] for i in range(len(maps))]
