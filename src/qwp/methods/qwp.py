"""Quantized Wasserstein-Procrustes (Aboagye et al., AMTA 2022): start, loop over coresets, CSLS refinement."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.judging.verdict import FULL_EFFORT, judge
from qwp.maps.known import KnownPairs, share_found
from qwp.maps.loop import LoopSettings, Schedule, ScheduleSettings, StepFigures, wasserstein_procrustes_many
from qwp.maps.pairs import from_pairs
from qwp.maps.procrustes import Maps, polar
from qwp.maps.refinement import WEIGHTED, Anchors, RefineSettings
from qwp.maps.widths import pad_maps
from qwp.methods.refined import RefinedAligner
from qwp.methods.run import ESTIMATED, LAST_RESORT, SEARCH, Run, timed
from qwp.methods.supervision import OPTIONAL, Supervision
from qwp.ot.supply import CoresetSource
from qwp.parameters import MOST_WORDS, RUN, START, TRAIN_WORDS, param
from qwp.search.retrieval import NeighbourhoodSettings
from qwp.stages.init import belief_propagation, choice, frank_wolfe, matrix, profiles
from qwp.stages.init.choice import Candidate, Search, SearchSettings, View
from qwp.stages.init.fused import FusedSettings, Variant

logger = logging.getLogger(__name__)

SEARCHES = ("auto", "unsupervised")
STARTS = (
    *SEARCHES,
    "profiles",
    "messages",
    "fused",
    "frank-wolfe",
    "identity",
    "identical",
    "lexicon",
    "matrix",
)

# In a checkpoint: the map between the main directions, where those are not all.
_NARROW = "narrow"
# Long loops keep about this many records; the rest would only fatten the saved result.
_KEPT_STEPS = 500
# Of the trials of starts every so many steps.
_KEPT_EVERY = 10
# Of pairs a refinement holds on to, in mean weights of the others: where it was tried, one changed little and a hundred
# left little to the others.
_WEIGHT_OF_ANCHORS = 10.0
# Where so much of the pairs that were kept back is found, holding on to the others was never seen to bring more.
_SHARE_ENOUGH = 0.5
# At most; where they help, twenty were seen to be enough.
_FURTHER_ROUNDS = 30
# Starts that draw nothing.
_WITHOUT_CHANCE = ("profiles", "messages", "frank-wolfe", "identity", "identical", "lexicon", "matrix")
# Fewer shared strings than this are no start.
_FEWEST_SHARED = 50
# Memory for the banks of pairs that are aligned in lock-step.
_BATCH_BYTES = 8 << 30


@dataclass(kw_only=True, eq=False, repr=False)
class QWP(RefinedAligner, ScheduleSettings, LoopSettings, FusedSettings):
    """Quantized Wasserstein-Procrustes. docs/accuracy.md says what each part of it brings.

    With `start="lexicon"` `fit` takes `lexicon=...`, with `start="matrix"` `start_matrix=...`; `lexicon:FILE` and
    `matrix:FILE.npy` below are for the command line.

    Examples:
        >>> import qwp
        >>> aligner = qwp.QWP(seed=1).fit("en.vec", "es.vec")  # doctest: +SKIP
        >>> aligner.alignment_.translate("house")  # doctest: +SKIP
    """

    method: ClassVar[str] = "qwp"
    summary: ClassVar[str] = "optimal transport between quantized spaces (k-means++ or Lloyd), then refinement"
    paper: ClassVar[str] = "Aboagye et al. 2022"
    supervision: ClassVar[str] = OPTIONAL
    takes_matrix: ClassVar[bool] = True
    search: ClassVar[SearchSettings] = SearchSettings()
    """Effort and thresholds of the search for an initial map; a subclass may have others."""

    start: str = param(
        "auto",
        "auto, unsupervised (auto without shared strings as a last resort), profiles, messages, fused, frank-wolfe, "
        "identity, "
        "identical (shared strings), lexicon:FILE or matrix:FILE.npy.",
        START,
        choices=STARTS,
    )
    train_words: int = param(20_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    refine: int = WEIGHTED.refine
    refine_words: int = WEIGHTED.refine_words
    refine_first_words: int = WEIGHTED.refine_first_words
    refine_directions: str = WEIGHTED.refine_directions
    refine_weights: str = WEIGHTED.refine_weights
    refine_map: str = WEIGHTED.refine_map
    map: str = WEIGHTED.map
    anchor_weight: float | None = param(
        None,
        "With start lexicon: weight of its pairs in every refinement round, in mean weights of the others; 0 for none.",
        START,
        decided="0 or 10, what finds more of a tenth of the pairs",
        least=0,
        most=1e6,
    )

    def anchors(self, run: Run) -> Anchors | None:
        """The pairs of the lexicon, where they have a weight."""
        if not self.anchor_weight or run.supervision.lexicon is None:
            return None
        return Anchors(*run.lexicon_rows(), weight=self.anchor_weight)

    def check_together(self) -> None:
        """Anchors are the pairs of a lexicon."""
        super().check_together()
        if self.anchor_weight and self.start != "lexicon":
            raise InputError(
                f"anchor_weight={self.anchor_weight:g} was given, but start={self.start!r} has no pairs: "
                "set start='lexicon'"
            )
        if self.anchor_weight and self.refine_weights != "csls":
            raise InputError(
                f"anchor_weight={self.anchor_weight:g} was given, but with refine_weights={self.refine_weights!r} "
                "pairs have no weights: set refine_weights='csls'"
            )

    @property
    def tries_orders(self) -> bool:
        """The search for a start does."""
        return self.start in SEARCHES

    def check_supervision(self, supervision: Supervision) -> None:
        """A lexicon and a matrix serve the starts that are named after them."""
        supervision.check_start(self.start)

    def decided_later(self) -> dict[tuple[str, int], frozenset[str]]:
        """The start does not depend on the settings of the loop, and neither does on those of the refinement."""
        refinement = frozenset({*RefineSettings.parameters(), "verdict"}) - NeighbourhoodSettings.parameters().keys()
        loop = refinement.union(ScheduleSettings.parameters(), LoopSettings.parameters(), ["train_words"])
        without_chance = self.start in _WITHOUT_CHANCE and self.order == "given"
        return {("refine", 0): refinement, ("start", 1): loop | {"seed"} if without_chance else loop}

    def further_rounds(self, run: Run) -> int:
        """Where no start was clearly real, the refinement begins far from where it leads to.

        Of words in an order the first ones, which are told apart best, come first: more rounds brought them nothing.
        """
        weak = bool(run.starts) and not choice.any_clearly_real(run.starts, self.search.accept_ratio)
        return _FURTHER_ROUNDS if weak and not self.ordered else 0

    def find_maps(self, run: Run) -> Maps:
        """Start, loop, refinement."""
        return self._with_its_pairs(run, self.refined_from(run, lambda: self.initial_map(run)))

    def _known_pairs(self, run: Run) -> KnownPairs:
        """The pairs of the lexicon; some are kept back where it is to be decided whether to hold on to them."""
        decided = self.anchor_weight is not None or self.refine == 0 or self.refine_weights != "csls"
        return KnownPairs(run.lexicon_rows()) if decided else KnownPairs.of(run.lexicon_rows())

    def _with_its_pairs(self, run: Run, maps: Maps) -> Maps:
        """The maps, or those of a refinement that holds on to the pairs, if it finds more of those kept back."""
        known = self._known_pairs(run) if self.start == "lexicon" else None
        if known is None or known.kept_back is None:
            return maps
        with timed([run], "refine"):
            without = run.kept_back = share_found(run.x, run.y, maps, known.kept_back)
        if without.share >= _SHARE_ENOUGH:
            return maps
        logger.info(
            "%s of the words that were kept back are found: refined once more, holding on to the pairs", without
        )
        anchors = Anchors(*known.used, weight=_WEIGHT_OF_ANCHORS)
        holding_on = self.refined(run, Maps(from_pairs(run.x, run.y, *known.used)), anchors=anchors)
        with timed([run], "refine"):
            found = share_found(run.x, run.y, holding_on, known.kept_back)
        if not found.clearly_above(without):
            return maps
        run.kept_back = found
        run.held_on_to = f"The known pairs were kept in every round of the refinement; otherwise it finds {without}."
        logger.info("%s", run.held_on_to)
        return holding_on

    def find_maps_of_many(self, runs: Sequence[Run]) -> list[Maps]:
        """The same for several runs, those with the same schedule in lock-step."""
        groups: dict[tuple[int, Schedule], list[int]] = {}
        for i, run in enumerate(runs):
            groups.setdefault((run.narrow.x.shape[1], self._schedule_of(run)), []).append(i)
        found: dict[int, Maps] = {}
        for group in groups.values():
            members = [runs[i] for i in group]
            maps = self._loops(members, self._starts(members))
            for number, i in enumerate(group):
                first = Maps(runs[i].narrow.unproject(maps[number, ...]))
                found[i] = self._with_its_pairs(runs[i], self.refined(runs[i], first))
        return [found[i] for i in range(len(runs))]

    def pairs_at_a_time(self) -> int:
        """As many as a GPU has room for."""
        # The bank keeps a few arrays of (B, n) for each side; together they should stay within a few gigabytes.
        if not self.place().device.startswith("cuda"):
            return 1
        k = self.schedule_for(self.train_words).epochs[0].k
        each = 8 * 4 * self.coresets_in_bank(k) * self.train_words + 16 * k * k * self.pairs_per_step
        budget = _BATCH_BYTES if self.max_memory is None else self.max_memory * 2**30
        return max(1, int(budget // each))

    def initial_map(self, run: Run) -> Array:
        """The map (d, d) before refinement: start and loop, from where an interrupted run was."""
        state = run.state
        if state is None or state.stage == SEARCH:
            w = self._starts([run])
            _keep(run, "start", 1, w[0, ...], now=True)
        else:
            w = arrays.asarray(state.tensors.get(_NARROW, state.map), run.x)[None, ...]
        first_step = state.done if state is not None and state.stage == "loop" else 0
        return run.narrow.unproject(self._loops([run], w, first_step=first_step)[0, ...])

    # ----------------------------------------------------------------- start

    def _starts(self, runs: Sequence[Run]) -> Array:
        """First maps of all runs, (P, d, d)."""
        with timed(runs, "start") as count_seconds:
            if self.start not in SEARCHES:
                return arrays.namespace(runs[0].x).stack([self._start(run) for run in runs])

            def after(pair: int, name: str, step: int, total: int, figures: dict[str, Any]) -> None:
                kept = bool(figures) and (step % _KEPT_EVERY == 0 or step == total)
                runs[pair].report("start", step, total, {"start": name, **figures}, keep=kept)

            searches = [self._search(run) for run in runs]

            def keep(pair: int) -> None:
                count_seconds()
                maps, values = searches[pair].state()
                best_so_far, done = searches[pair].best.map, searches[pair].stages_done
                w = runs[pair].narrow.unproject(best_so_far)
                runs[pair].checkpoint(SEARCH, done, w, tensors={"tried": maps}, values={"search": values})

            best = choice.best_starts(searches, self, csls_k=self.csls_k, callback=after, keep=keep)
            if self.start == "auto":
                best = [
                    chosen if search.over else self._last_resort(run, search, chosen)
                    for run, search, chosen in zip(runs, searches, best, strict=True)
                ]
            for run, search, chosen in zip(runs, searches, best, strict=True):
                run.starts = [tried.record() for tried in search.tried]
                run.start_used = chosen.name
                if chosen.order != run.order:
                    run.use_estimated_order()
            return arrays.namespace(runs[0].x).stack([chosen.map for chosen in best])

    def _search(self, run: Run) -> Search:
        """The search for the start of a run, from where it was interrupted."""
        search = Search(views(run), self.seed, ordered=self.ordered, settings=self.search)
        state = run.resumed(SEARCH)
        if state is not None:
            search.restore(state.tensors.get("tried", np.zeros(0)), state.values.get("search", {}))
        return search

    def _last_resort(self, run: Run, search: Search, best: Candidate) -> Candidate:
        """Shared strings as a start, tried where the best unsupervised one is not even real by the verdict."""
        shared = len(set(run.src.space.words) & set(run.tgt.space.words))
        if shared < _FEWEST_SHARED:
            return best
        view = search.view(best)
        effort = replace(FULL_EFFORT, estimated=False)
        if not judge(view.x, view.y, Maps(best.map), seed=self.seed, csls_k=self.csls_k, effort=effort).failed:
            return best
        logger.warning("no unsupervised start is real: %d words that both sides spell alike are tried", shared)
        w = from_pairs(run.narrow.x, run.narrow.y, *run.identical_rows())
        return choice.try_also(search, Candidate(LAST_RESORT, run.order, w), csls_k=self.csls_k)

    def _start(self, run: Run) -> Array:
        """The first map (r, r) of a run by the start that was asked for."""
        x, y = run.narrow.x, run.narrow.y
        if self.start == "profiles":
            return profiles.initial_map(x, y, self.start_words)
        if self.start == "messages":
            x, y = (side[: self.start_words, :] for side in (x, y))
            ranks_count = self.frequency_prior / 2 if self.ordered else 0.0
            return belief_propagation.initial_map(
                x,
                y,
                belief_propagation.BPPrior(),
                ranks_count,
                lambda step, steps: run.report("start", step, steps, {}),
            )
        if self.start == "fused":
            return choice.fused_map(View(run.order, x, y), Variant(sample=1.0), self, self.seed, 0)
        if self.start == "frank-wolfe":
            return frank_wolfe.initial_map(
                x, y, self, lambda step, value: run.report("start", step, self.start_steps, {"objective": value})
            )
        if self.start in ("identity", "matrix"):
            whole = self._given_map(run)
            return whole if x.shape[1] == run.x.shape[1] else polar(run.narrow.project(Maps(whole)).src)
        rows = run.identical_rows() if self.start == "identical" else self._known_pairs(run).used
        return from_pairs(x, y, *rows)

    def _given_map(self, run: Run) -> Array:
        """The identity, or the matrix of the user, (d, d)."""
        width = run.x.shape[1]
        if self.start == "identity":
            return arrays.namespace(run.x).eye(width, dtype=run.x.dtype, device=arrays.device(run.x))
        given = np.asarray(run.supervision.start_matrix, dtype=np.float64)
        first = matrix.initial_map(given, run.src.space.dim, run.tgt.space.dim)
        return pad_maps(Maps(arrays.asarray(first, run.x)), width).src

    # ----------------------------------------------------------------- loop

    def _schedule_of(self, run: Run) -> Schedule:
        return self.schedule_for(min(self.train_words, run.x.shape[0], run.y.shape[0]))

    def _loops(self, runs: Sequence[Run], w: Array, first_step: int = 0) -> Array:
        """The loop of several runs with one schedule from the maps `w` (P, d, d). Returns (P, d, d)."""
        schedule = self._schedule_of(runs[0])
        every = math.ceil(schedule.n_steps / _KEPT_STEPS)

        def after(figures: list[list[StepFigures]], moved: Array) -> None:
            for number, (run, steps) in enumerate(zip(runs, figures, strict=True)):
                for step in steps:
                    values = asdict(step)
                    done, total = values.pop("step"), values.pop("n_steps")
                    run.report("loop", done, total, values, keep=done % every == 0 or done == total)
                _keep(run, "loop", steps[-1].step, moved[number, ...])

        def drawn(done: int, total: int) -> None:
            for run in runs:
                run.report("bank", done, total, {}, keep=False)

        seeds = [self.seed] * len(runs)
        xs = [run.narrow.x[: self.train_words, :] for run in runs]
        ys = [run.narrow.y[: self.train_words, :] for run in runs]
        source = CoresetSource((xs, ys), self, seeds, drawn)
        with timed(runs, "loop"):
            w = wasserstein_procrustes_many(
                xs, ys, w, schedule, self, seeds=seeds, first_step=first_step, callback=after, source=source
            )
        for run in runs:
            run.move_seconds("loop", "bank", source.seconds / len(runs))
        return w


def views(run: Run) -> list[View]:
    """The orders of frequency that the words of a run may be in: their own first."""
    found = [View(run.order, run.narrow.x, run.narrow.y)]
    if run.src.estimate is not None or run.tgt.estimate is not None:
        src, tgt = run.src.in_estimated_order(), run.tgt.in_estimated_order()
        found.append(View(ESTIMATED, *run.narrow.of(src.vectors, tgt.vectors)))
    return found


def _keep(run: Run, stage: str, done: int, w: Array, *, now: bool = False) -> None:
    """Save the state with a map (r, r) of what the start and the loop see."""
    if not run.checkpoint_due(now=now):
        return
    narrow = {} if w.shape[-1] == run.x.shape[1] else {_NARROW: w}
    run.checkpoint(stage, done, run.narrow.unproject(w), tensors=narrow, now=True)
