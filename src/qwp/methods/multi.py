"""More than two languages in one space (Chen and Cardie 2018; Alaux et al. 2019)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.maps.loop import LoopSettings, StepFigures, make_schedule, wasserstein_procrustes_many
from qwp.maps.procrustes import Maps, polar, polar_svd
from qwp.maps.refinement import RefineSettings, pair_weights, rounds
from qwp.methods.inputs import PreparedSpace, in_estimated_order
from qwp.methods.run import Keeper, ProgressCallback, Run, timed
from qwp.methods.supervision import Supervision
from qwp.methods.wp import WP
from qwp.ot import coresets
from qwp.ot.supply import CoresetSource
from qwp.parameters import MOST_STEPS, OTHER, param
from qwp.results.checkpoints import Checkpoint, Expected
from qwp.results.several import MultiAlignment, check_languages
from qwp.showing.progress import listening
from qwp.spaces.objects import Space, as_embeddings

logger = logging.getLogger(__name__)

STRATEGIES = ("joint", "hub")
# Where a fit of several languages can be interrupted.
_STAGES = ("spokes", "joint", "refine")
# Sweeps over the languages that solve for all maps once the dictionaries of a round are known.
_SWEEPS = 10


@dataclass(kw_only=True, eq=False, repr=False)
class Multi(WP):
    """Several languages in the space of a hub, by Wasserstein-Procrustes between all of them.

    Every language is first aligned onto the hub as by `wp` (strategy="hub" refines and stops there). strategy="joint"
    goes on: `joint_epochs` epochs in which each map moves along the mean of the transport plans to all other
    languages, the objective of Alaux, Grave, Cuturi, Joulin (2019), Unsupervised hyperalignment for multilingual word
    embeddings; then the refinement rounds of Chen, Cardie (2018), Unsupervised multilingual word embeddings, with
    dictionaries between all pairs of languages. With two languages it is `wp`. Use `fit_all` for more.
    """

    method: ClassVar[str] = "multi"
    summary: ClassVar[str] = "more than two languages in one space: hub and spokes, then joint transport and refinement"
    paper: ClassVar[str] = "Alaux et al. 2019; Chen, Cardie 2018"

    strategy: str = param(
        "joint",
        "Several languages: hub (each onto TGT by itself) or joint (then all to each other).",
        OTHER,
        choices=STRATEGIES,
    )
    joint_epochs: int = param(
        2, "Epochs in which the maps of all languages move together.", OTHER, least=0, most=MOST_STEPS
    )
    joint_rate: float = param(0.5, "Length of a joint step, relative to --learning-rate.", OTHER, above=0, most=1e4)
    map: str = "orthogonal"

    @property
    def tries_orders(self) -> bool:
        """All languages share the order of the hub."""
        return False

    def check_together(self) -> None:
        """Several languages share one space by orthogonal maps only."""
        super().check_together()
        if self.map != "orthogonal":
            raise InputError(
                f"map={self.map!r}: several languages share one space by orthogonal maps only; leave it out"
            )

    def fit_all(
        self,
        spaces: Mapping[str, Space],
        *,
        hub: str | None = None,
        progress: bool | ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> MultiAlignment:
        """Put all spaces (by name, each as `fit` takes it) into that of the hub, by default the last one.

        progress: True for a bar on stderr, or a function that is called after every step.
        """
        self.validate()
        with listening(progress) as listener:
            return self.fit_all_validated(spaces, hub=hub, progress=listener, checkpoint=checkpoint)

    def fit_all_validated(
        self,
        spaces: Mapping[str, Space],
        *,
        hub: str | None = None,
        progress: ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> MultiAlignment:
        """`fit_all` for parameters that `validate` has seen."""
        logger.info("prepare begins")
        begin = time.perf_counter()
        if len(spaces) < 2:
            raise InputError(f"{len(spaces)} languages were given; expected at least two")
        hub = list(spaces)[-1] if hub is None else hub
        if hub not in spaces:
            raise InputError(
                f"hub {hub!r} is not among the languages {', '.join(spaces)}: give the name of one of them"
            )
        # The hub last, wherever it came: its place among the others must not make another run of it.
        names = [name for name in spaces if name != hub] + [hub]
        check_languages(hub, names[:-1])
        loaded = {name: as_embeddings(spaces[name], name).named(name) for name in names}
        with self.resources():
            prepared = in_estimated_order(self.prepare(list(loaded.values())))
            sides = dict(zip(loaded, prepared, strict=True))
            spokes = names[:-1]
            runs = [self._spoke(sides[name], sides[hub], progress) for name in spokes]
            taken = time.perf_counter() - begin
            for run in runs:
                run.seconds["prepare"] = taken / len(runs)
            languages = ", ".join(str(side.record()) for side in prepared)
            logger.info("prepare ends after %.1f s: %s", taken, languages)
            identity = self.identity({name: side.space.sha256() for name, side in sides.items()}, hub=hub)
            expected = Expected(_STAGES, int(runs[0].x.shape[1]), languages=len(runs))
            with arrays.use_threads(self.threads_for(runs)):
                maps = _Joint(self, runs, Keeper(checkpoint, identity, expected)).fit()
                alignments = [self.finish(run, Maps(maps[i, ...])) for i, run in enumerate(runs)]
        return MultiAlignment(hub, dict(zip(spokes, alignments, strict=True)))

    def _spoke(self, src: PreparedSpace, hub: PreparedSpace, progress: ProgressCallback | None) -> Run:
        inputs = {"src": src.space.sha256(), "tgt": hub.space.sha256()}
        return Run(src, hub, Supervision(), self.identity(inputs), progress=progress)


class _Joint:
    """One fit of several languages onto a hub. runs: one for each of the L - 1 others; the hub's own map is I."""

    def __init__(self, aligner: Multi, runs: Sequence[Run], keeper: Keeper) -> None:
        self.aligner, self.runs, self._keeper = aligner, runs, keeper
        for run, saved in zip(runs, keeper.state.values["runs"] if keeper.state else (), strict=False):
            run.history, run.seconds = saved["history"], saved["seconds"]
        self.spaces = [run.x for run in runs] + [runs[0].y]
        self.xp = arrays.namespace(runs[0].x)

    def fit(self) -> Array:
        """The maps (L - 1, d, d)."""
        maps = self._spokes()
        if self.aligner.strategy == "joint":
            with timed(self.runs, "loop"):
                maps = self._transport(maps)
        with timed(self.runs, "refine"):
            return self._refine(maps)

    def _resumed(self, stage: str) -> tuple[Array, int] | None:
        """The maps and the finished steps of a stage that was interrupted."""
        state = self._keeper.resumed(stage)
        return None if state is None else (arrays.asarray(state.map, self.runs[0].x), state.done)

    def _save(self, stage: str, done: int, maps: Array, others: Mapping[str, Array] | None = None) -> None:
        runs = [{"history": run.history, "seconds": run.seconds} for run in self.runs]
        self._keeper.save(stage, done, maps, now=True, tensors=others, values={"runs": runs})

    def _spokes(self) -> Array:
        """Each language onto the hub by itself."""
        for later in ("joint", "refine"):
            if (found := self._resumed(later)) is not None:
                return found[0]
        found = self._resumed("spokes")
        maps = [] if found is None else [found[0][i, ...] for i in range(found[1])]
        for run in self.runs[len(maps) :]:
            first = self.aligner.initial_map(run)
            # What comes next takes steps from a whole rotation.
            maps.append(first if run.narrow.src_axes is None else polar_svd(first))
            self._save("spokes", len(maps), self.xp.stack(maps))
        return self.xp.stack(maps)

    # ----------------------------------------------------------------- joint transport

    def _transport(self, maps: Array) -> Array:
        """Move each map along the mean plan to all other languages, which stand still for an epoch at a time."""
        aligner, done = self.aligner, 0
        if self._resumed("refine") is not None or len(self.runs) < 2:
            return maps
        if (found := self._resumed("joint")) is not None:
            maps, done = found
        words = aligner.train_words
        spaces = [space[:words, :] for space in self.spaces]
        smallest = min(space.shape[0] for space in spaces)
        settings = replace(
            LoopSettings.of(aligner),
            coreset="random",
            pairs_per_step=len(self.runs),
            learning_rate=aligner.learning_rate * aligner.joint_rate,
        )
        k = aligner.schedule_for(smallest).epochs[0].k
        epochs, steps = aligner.joint_epochs, aligner.steps
        for epoch in range(done, epochs):
            common = self._in_common(spaces, maps)
            others = [[c for j, c in enumerate(common) if j != i] for i in range(len(self.runs))]
            seeds = [
                int(arrays.rng(aligner.seed, Stream.JOINT_EPOCH, epoch, i).integers(2**31))
                for i in range(len(self.runs))
            ]
            targets = [self.xp.concat(each, axis=0) for each in others]
            sizes = [[space.shape[0] for space in each] for each in others]
            source = _InTurn((spaces[:-1], targets), settings, seeds, sizes)
            schedule = make_schedule("fixed", steps=steps, k=k, epochs=1, n_max=smallest)

            def after(figures: list[list[StepFigures]], _: Array, first: int = epoch * steps) -> None:
                for run, each in zip(self.runs, figures, strict=True):
                    for step in each:
                        values = {"epoch": "joint", "k": step.k, "objective": step.objective}
                        run.report("loop", first + step.step, epochs * steps, values, keep=step.step == steps)

            maps = wasserstein_procrustes_many(
                spaces[:-1], targets, maps, schedule, settings, seeds=seeds, callback=after, source=source
            )
            self._save("joint", epoch + 1, maps)
        return maps

    def _in_common(self, spaces: Sequence[Array], maps: Array) -> list[Array]:
        """All languages in the common space; the hub, the last one, is there already."""
        return [space @ maps[i, ...] for i, space in enumerate(spaces[:-1])] + [spaces[-1]]

    # ----------------------------------------------------------------- joint refinement

    def _refine(self, maps: Array) -> Array:
        """A dictionary for all pairs of languages (strategy="hub": with the hub), then all maps at once."""
        settings, hub = RefineSettings.of(self.aligner), len(self.runs)
        if settings.refine == 0:
            return maps
        identity = self.xp.eye(maps.shape[1], dtype=maps.dtype, device=arrays.device(maps))
        current = [*(maps[i, ...] for i in range(hub)), identity]
        joint = self.aligner.strategy == "joint"
        wanted = list(combinations(range(hub + 1), 2)) if joint else [(i, hub) for i in range(hub)]
        products = self._products()
        for i, j in wanted[len(products) :]:
            products.append(self._product(i, j, Maps(current[i], current[j]), len(products), len(wanted)))
            self._save("refine", len(products), maps, {"products": self.xp.stack(products)})
        between = dict(zip(wanted, products, strict=True))
        between.update({(j, i): product.T for (i, j), product in between.items()})
        # All dictionaries are known now, and so is the best map of a language while the others stand still.
        for _ in range(_SWEEPS):
            for i in range(hub):
                pulls = [product @ current[j] for (of, j), product in between.items() if of == i]
                current[i] = polar(sum(pulls[1:], start=pulls[0]))
        return self.xp.stack(current[:hub])

    def _products(self) -> list[Array]:
        """Those of the pairs of languages that an interrupted run had finished."""
        state = self._keeper.resumed("refine")
        if state is None:
            return []
        found = arrays.asarray(state.tensors["products"], self.runs[0].x)
        return [found[i, ...] for i in range(found.shape[0])]

    def _product(self, i: int, j: int, maps: Maps, number: int, total: int) -> Array:
        """X^T Y (d, d) of the matched rows of languages i and j after all rounds between them."""
        settings, product = RefineSettings.of(self.aligner), None
        for figures, _, pairs in rounds(self.spaces[i], self.spaces[j], maps, settings):
            for run in self.runs:
                done, of = number * settings.refine + figures.round, total * settings.refine
                run.report("refine", done, of, {"n_pairs": figures.n_pairs, "mean_csls": figures.mean_csls})
            if figures.round == settings.refine:
                x = self.xp.take(self.spaces[i], pairs.src, axis=0)
                y = self.xp.take(self.spaces[j], pairs.tgt, axis=0)
                weights = pair_weights(pairs, settings.refine_weights)
                product = x.T @ (y if weights is None else y * self.xp.expand_dims(weights, axis=1))
        return self.xp.zeros_like(maps.src) if product is None else product


class _InTurn(CoresetSource):
    """Random batches whose target words come from one other language at a time, each in its turn."""

    def __init__(
        self,
        sides: tuple[Sequence[Array], Sequence[Array]],
        settings: LoopSettings,
        seeds: Sequence[int],
        sizes: Sequence[Sequence[int]],
    ) -> None:
        """sizes: for each target space the numbers of words of the languages that follow each other in it."""
        super().__init__(sides, settings, seeds)
        self._sizes = sizes

    def _batch(self, side: int, pair: int, k: int, draw: int) -> np.ndarray:
        if side == 0:
            return super()._batch(side, pair, k, draw)
        sizes = self._sizes[pair]
        language = draw % len(sizes)
        stream = arrays.rng(self._seeds[pair], Stream.JOINT_TURN, draw)
        return coresets.random_rows(sizes[language], k, stream) + sum(sizes[:language])
