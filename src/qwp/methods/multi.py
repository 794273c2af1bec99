"""More than two languages in one space (Chen and Cardie 2018; Alaux et al. 2019)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, polar, polar_svd
from qwp.methods.aligner import Aligner, Fit
from qwp.methods.compositions import INITIALIZERS, WP
from qwp.methods.settings import OPTIONAL, Composition
from qwp.ot import coresets
from qwp.ot.coreset_source import Coresets, CoresetSource
from qwp.parameters import MOST_STEPS, OTHER, Settings, param
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity
from qwp.results.several import MultiAlignment, check_languages
from qwp.showing.events import ProgressCallback
from qwp.showing.progress import progress_callback
from qwp.spaces.objects import Space, as_embeddings
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import PreparedSpace, log_estimated_order
from qwp.stages.refinement import WEIGHTED, CslsRefinement, pair_weights
from qwp.stages.stage import Monitor, State, timed
from qwp.stages.wasserstein_procrustes import (
    Schedule,
    StepFigures,
    WassersteinProcrustes,
    make_schedule,
)

logger = logging.getLogger(__name__)

STRATEGIES = ("joint", "hub")
SPOKES, JOINT, REFINE = "spokes", "joint", "refine"
"""The stages of a fit of several languages."""


@dataclass(frozen=True, kw_only=True)
class JointAlignment(Settings):
    """The joint stages after each language has been aligned onto the hub."""

    strategy: str = param(
        "joint",
        "Several languages: hub (each onto TGT by itself) or joint (then all to each other).",
        OTHER,
        choices=STRATEGIES,
    )
    joint_epochs: int = param(
        2, "Epochs in which the maps of all languages move together.", OTHER, least=0, most=MOST_STEPS
    )
    joint_rate: float = param(
        0.5, "Learning rate of a joint step, relative to --learning-rate.", OTHER, above=0, most=1e4
    )
    sweeps: int = 10
    """Sweeps over the languages that solve for all maps, given the dictionaries of the last round."""


@dataclass(frozen=True, kw_only=True)
class MultiPipeline(Pipeline):
    """The pipeline of each language onto the hub, and the joint stages."""

    joint: JointAlignment = JointAlignment()

    @property
    def compares_orders(self) -> bool:
        """No: an estimated order would have to be the same for all languages."""
        return False

    @property
    def loop(self) -> WassersteinProcrustes:
        """The loop of each language. The joint epochs share its settings."""
        assert isinstance(self.solve, WassersteinProcrustes)
        return self.solve

    @property
    def refinement(self) -> CslsRefinement:
        """The refinement between two languages."""
        assert isinstance(self.refine, AnchoredRefinement)
        return self.refine.refinement

    def check_together(self) -> None:
        """Raise an InputError for maps that are not orthogonal: several languages cannot share a re-weighted space."""
        if self.refinement.map != "orthogonal":
            raise InputError(
                f"map={self.refinement.map!r}: several languages share one space by orthogonal maps only; leave it out"
            )


class Multi(Aligner):
    """Several languages in the space of a hub, by Wasserstein-Procrustes between all of them.

    Every language is first aligned onto the hub as by `wp` (strategy="hub" refines and stops there). strategy="joint"
    goes on: `joint_epochs` epochs in which each map moves along the mean of the transport plans to all other
    languages, the objective of Alaux, Grave, Cuturi, Joulin (2019), Unsupervised hyperalignment for multilingual word
    embeddings; then the refinement rounds of Chen, Cardie (2018), Unsupervised multilingual word embeddings, with
    dictionaries between all pairs of languages. With two languages it is `wp`. Use `fit_all` for more.
    """

    method = "multi"
    summary = "more than two languages in one space: hub and spokes, then joint transport and refinement"
    paper = "Alaux et al. 2019; Chen, Cardie 2018"
    supervision = OPTIONAL
    pipeline = MultiPipeline(
        init=INITIALIZERS,
        solve=WP.pipeline.solve,
        refine=AnchoredRefinement(refinement=replace(WEIGHTED, map="orthogonal", further_rounds=30)),
    )

    def fit_all(
        self,
        spaces: Mapping[str, Space],
        *,
        hub: str | None = None,
        progress: bool | ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> MultiAlignment:
        """Map all spaces (by name, each as `fit` takes it) into the space of the hub, by default the last one.

        progress: True for a progress bar on stderr, or a function that is called after every step.
        """
        self.validate()
        if len(spaces) < 2:
            raise InputError(f"{len(spaces)} languages were given; expected at least two")
        hub = list(spaces)[-1] if hub is None else hub
        if hub not in spaces:
            raise InputError(
                f"hub {hub!r} is not among the languages {', '.join(spaces)}: give the name of one of them"
            )
        # The hub comes last, because its position must not change the identity of the run.
        names = [name for name in spaces if name != hub] + [hub]
        check_languages(hub, names[:-1])
        composition, begin = self.composition, time.perf_counter()
        with progress_callback(progress) as listener, self._resources(composition):
            prepared = self.prepare(composition, [as_embeddings(spaces[name], name).named(name) for name in names])
            if any(side.estimate is not None for side in prepared):
                log_estimated_order([side.space for side in prepared])
            sides = [side.in_estimated_order() for side in prepared]
            identity = self.identity({side.space.name: side.space.sha256() for side in sides}, hub=hub)
            seconds = (time.perf_counter() - begin) / (len(sides) - 1)
            fits = [
                self._spoke(composition, side, sides[-1], Monitor(listener, seconds={"prepare": seconds}))
                for side in sides[:-1]
            ]
            with arrays.use_threads(composition.execution.threads_for([fit.problem for fit in fits])):
                states = _Joint(composition, fits, checkpoint, identity).fit()
                alignments = [self._finish(fit, state) for fit, state in zip(fits, states, strict=True)]
        return MultiAlignment(hub, dict(zip(names[:-1], alignments, strict=True)))

    def _spoke(self, composition: Composition, src: PreparedSpace, hub: PreparedSpace, monitor: Monitor) -> Fit:
        problem = composition.pipeline.prepare.problem([src, hub], seed=composition.execution.seed)
        identity = self.identity({"src": src.space.sha256(), "tgt": hub.space.sha256()})
        return Fit(composition, problem, composition.pipeline.initial_state(problem), monitor, identity)


class _Joint:
    """One fit of several languages onto a hub. fits: one for each of the L - 1 others. The map of the hub is I."""

    def __init__(
        self, composition: Composition, fits: Sequence[Fit], checkpoint: Checkpoint | None, identity: Identity
    ) -> None:
        assert isinstance(composition.pipeline, MultiPipeline)
        self.pipeline, self.seed, self.fits = composition.pipeline, composition.execution.seed, fits
        self.states = [fit.state for fit in fits]
        self.monitors = [fit.monitor for fit in fits]
        views = [fit.problem.views[0] for fit in fits]
        self.spaces = [view.x for view in views] + [views[0].y]
        self.like, self.xp = views[0].x, arrays.namespace(views[0].x)
        self._checkpoint, self._identity = checkpoint, identity
        self._interrupted: State | None = None
        found = None if checkpoint is None else checkpoint.load(identity)
        if found is not None:
            self._restore(found[0].on_device(self.like))

    def _restore(self, state: State) -> None:
        """Continue from a saved state."""
        self._interrupted = state
        for i, saved in enumerate(state.values["languages"]):
            self.monitors[i].seconds = dict(saved.pop("seconds"))
            history, candidates = (tuple(saved.pop(name)) for name in ("history", "candidates"))
            self.states[i] = replace(self.states[i], history=history, candidates=candidates, **saved)

    def _resumed(self, stage: str) -> State | None:
        """Return the state of an interrupted fit if it was in this stage."""
        state = self._interrupted
        return state if state is not None and state.stage == stage else None

    def _save(self, stage: str, done: int, maps: Array, tensors: Mapping[str, Array] | None = None) -> None:
        if self._checkpoint is None:
            return
        names = ("history", "candidates", "initializer", "accepted", "remark")
        languages = [
            {**{name: getattr(state, name) for name in names}, "seconds": monitor.seconds}
            for state, monitor in zip(self.states, self.monitors, strict=True)
        ]
        state = State().after_step(stage, done, Maps(maps), tensors=tensors, values={"languages": languages})
        self._checkpoint.save(state, {}, self._identity)

    def fit(self) -> list[State]:
        """Return the final state of each language."""
        maps = self._spokes()
        if self.pipeline.joint.strategy == "joint":
            with timed(self.monitors, "loop", self.like):
                maps = self._transport(maps)
        with timed(self.monitors, "refine", self.like):
            maps = self._refine(maps)
        return [replace(state, maps=Maps(maps[i, ...]), projected=False) for i, state in enumerate(self.states)]

    def _spokes(self) -> Array:
        """Align each language onto the hub by itself. Returns the maps (L - 1, d, d)."""
        for later in (JOINT, REFINE):
            if (found := self._resumed(later)) is not None:
                return found.map
        found = self._resumed(SPOKES)
        maps = [] if found is None else [found.map[i, ...] for i in range(found.done)]
        alone = replace(self.pipeline, refine=None)
        for i in range(len(maps), len(self.fits)):
            fit = self.fits[i]
            [self.states[i]] = alone.run([fit.problem], [fit.state], [fit.monitor])
            w, projection = self.states[i].map, fit.problem.views[0].projected.projection
            # The joint stages start from a full rotation.
            maps.append(w if projection is None or projection.src_axes is None else polar_svd(w))
            self._save(SPOKES, len(maps), self.xp.stack(maps))
        return self.xp.stack(maps)

    # ----------------------------------------------------------------- joint transport

    def _transport(self, maps: Array) -> Array:
        """Move each map along the mean plan to all other languages, which are fixed during an epoch."""
        pipeline, done = self.pipeline, 0
        if self._resumed(REFINE) is not None or len(self.fits) < 2:
            return maps
        if (found := self._resumed(JOINT)) is not None:
            maps, done = found.map, found.done
        loop = pipeline.loop
        spaces = [space[: loop.train_words, :] for space in self.spaces]
        smallest = min(space.shape[0] for space in spaces)
        settings = replace(
            loop,
            coresets=replace(loop.coresets, kind="random", pairs_per_step=len(self.fits)),
            learning_rate=loop.learning_rate * pipeline.joint.joint_rate,
        )
        k = loop.schedule_for(smallest).epochs[0].k
        schedule = make_schedule("fixed", steps=loop.steps, k=k, epochs=1, n_max=smallest)
        for epoch in range(done, pipeline.joint.joint_epochs):
            maps = self._joint_epoch(epoch, spaces, maps, settings, schedule)
            self._save(JOINT, epoch + 1, maps)
        return maps

    def _joint_epoch(
        self, epoch: int, spaces: Sequence[Array], maps: Array, settings: WassersteinProcrustes, schedule: Schedule
    ) -> Array:
        """Return the maps after one epoch."""
        count, total = len(self.fits), self.pipeline.joint.joint_epochs * schedule.n_steps
        common = [space @ maps[i, ...] for i, space in enumerate(spaces[:-1])] + [spaces[-1]]
        others = [[c for j, c in enumerate(common) if j != i] for i in range(count)]
        seeds = [int(arrays.rng(self.seed, Stream.JOINT_EPOCH, epoch, i).integers(2**31)) for i in range(count)]
        targets = [self.xp.concat(each, axis=0) for each in others]
        sizes = [[space.shape[0] for space in each] for each in others]
        source = _RoundRobinSource((spaces[:-1], targets), settings.coresets, seeds, sizes)

        def after(figures: list[list[StepFigures]], _: Array) -> None:
            for i, (monitor, each) in enumerate(zip(self.monitors, figures, strict=True)):
                for step in each:
                    values = {"epoch": "joint", "k": step.k, "objective": step.objective}
                    number = epoch * schedule.n_steps + step.step
                    if step.step == schedule.n_steps:
                        self.states[i] = self.states[i].recorded("loop", number, values)
                    monitor.report("loop", number, total, values)

        return settings.solve_many(
            spaces[:-1],
            targets,
            maps,
            schedule,
            seeds=seeds,
            callback=after,
            source=source,
        )

    # ----------------------------------------------------------------- joint refinement

    def _refine(self, maps: Array) -> Array:
        """Fit all maps to dictionaries between all pairs of languages (strategy="hub": with the hub)."""
        hub = len(self.fits)
        if self.pipeline.refinement.rounds == 0:
            return maps
        identity = self.xp.eye(maps.shape[1], dtype=maps.dtype, device=arrays.device(maps))
        current = [*(maps[i, ...] for i in range(hub)), identity]
        joint = self.pipeline.joint.strategy == "joint"
        wanted = list(combinations(range(hub + 1), 2)) if joint else [(i, hub) for i in range(hub)]
        state = self._resumed(REFINE)
        products = [] if state is None else [state.tensors["products"][i, ...] for i in range(state.done)]
        for i, j in wanted[len(products) :]:
            products.append(self._product(i, j, Maps(current[i], current[j]), len(products), len(wanted)))
            self._save(REFINE, len(products), maps, {"products": self.xp.stack(products)})
        between = dict(zip(wanted, products, strict=True))
        between.update({(j, i): product.T for (i, j), product in between.items()})
        # Given all dictionaries, the optimal map of a language with the others fixed has a closed form.
        for _ in range(self.pipeline.joint.sweeps):
            for i in range(hub):
                terms = [product @ current[j] for (of, j), product in between.items() if of == i]
                current[i] = polar(sum(terms[1:], start=terms[0]))
        return self.xp.stack(current[:hub])

    def _product(self, i: int, j: int, maps: Maps, number: int, total: int) -> Array:
        """Return X^T Y (d, d) of the matched rows of languages i and j after all rounds between them."""
        settings, product = self.pipeline.refinement, None
        for figures, _, pairs in settings.iterate(self.spaces[i], self.spaces[j], maps):
            done, of = number * settings.rounds + figures.round, total * settings.rounds
            values = {"n_pairs": figures.n_pairs, "mean_csls": figures.mean_csls}
            self.states = [state.recorded("refine", done, values) for state in self.states]
            for monitor in self.monitors:
                monitor.report("refine", done, of, values)
            if figures.round == settings.rounds:
                x = self.xp.take(self.spaces[i], pairs.src, axis=0)
                y = self.xp.take(self.spaces[j], pairs.tgt, axis=0)
                weights = pair_weights(pairs, settings.weights)
                product = x.T @ (y if weights is None else y * self.xp.expand_dims(weights, axis=1))
        return self.xp.zeros_like(maps.src) if product is None else product


class _RoundRobinSource(CoresetSource):
    """Random batches whose target words come from one other language at a time, in rotation."""

    def __init__(
        self,
        sides: tuple[Sequence[Array], Sequence[Array]],
        settings: Coresets,
        seeds: Sequence[int],
        sizes: Sequence[Sequence[int]],
    ) -> None:
        """sizes: for each target space the numbers of words of the languages that it concatenates."""
        super().__init__(sides, settings, seeds)
        self._sizes = sizes

    def _batch(self, side: int, pair: int, k: int, draw: int) -> np.ndarray:
        if side == 0:
            return super()._batch(side, pair, k, draw)
        sizes = self._sizes[pair]
        language = draw % len(sizes)
        stream = arrays.rng(self._seeds[pair], Stream.JOINT_TURN, draw)
        return coresets.random_rows(sizes[language], k, stream) + sum(sizes[:language])
