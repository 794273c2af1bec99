"""One fit in progress: its spaces, its records, and the state that an interrupted one left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.known import ShareFound
from qwp.maps.pairs import RowPairs, identical_rows, lexicon_rows
from qwp.maps.widths import Projection, project_spaces
from qwp.methods.inputs import PreparedSpace, in_estimated_order
from qwp.methods.supervision import Supervision
from qwp.results.checkpoints import Checkpoint, Expected, RunState
from qwp.results.identity import Identity
from qwp.showing.events import Progress as Progress
from qwp.showing.events import ProgressCallback as ProgressCallback
from qwp.spaces.frequency import Ints

logger = logging.getLogger(__name__)


# Not every method has every stage. couple: Gromov-Wasserstein; learn: self-learning; train: by gradients.
STAGES = ("prepare", "start", "bank", "loop", "couple", "learn", "train", "refine", "verdict")
# Within the start: the state of a search that has tried some.
SEARCH = "search"
# The start that is tried where all others failed, and is spoken of then.
LAST_RESORT = "identical, as a last resort"
GIVEN, ESTIMATED = "given", "estimated"
# Pairs of a lexicon that tell one order of the words from another.
_FEWEST_TO_TELL = 30


class Keeper:
    """Keeps the state of a fit in a checkpoint, if there is one, and has what an interrupted fit left in it."""

    SECONDS = 5.0
    """A state is saved at most so often, unless it has to be or the checkpoint has another interval."""

    def __init__(self, checkpoint: Checkpoint | None, identity: Identity, expected: Expected) -> None:
        self._checkpoint, self._identity = checkpoint, identity
        self.state = None if checkpoint is None else checkpoint.load(identity, expected)
        self._last_save = time.monotonic()

    def resumed(self, stage: str) -> RunState | None:
        """The state to continue from, if the fit was interrupted in this stage."""
        return self.state if self.state is not None and self.state.stage == stage else None

    def due(self, *, now: bool = False) -> bool:
        """Whether a state would be saved."""
        if self._checkpoint is None:
            return False
        interval = self.SECONDS if self._checkpoint.interval is None else self._checkpoint.interval
        return now or time.monotonic() - self._last_save >= interval

    def save(
        self,
        stage: str,
        done: int,
        w: Array,
        *,
        now: bool,
        tensors: Mapping[str, Array] | None = None,
        values: Mapping[str, Any] | None = None,
        history: list[dict[str, Any]] | None = None,
        seconds: dict[str, float] | None = None,
    ) -> None:
        """Save the state, at most every few seconds unless `now`. Arguments as those of `RunState`."""
        if self._checkpoint is None or not self.due(now=now):
            return
        host = {name: arrays.to_numpy(array) for name, array in (tensors or {}).items()}
        state = RunState(stage, done, arrays.to_numpy(w), host, dict(values or {}), history or [], seconds or {})
        self._checkpoint.save(state, self._identity)
        self._last_save = time.monotonic()


class Run:
    """One fit of two spaces: `x` (n, d) and `y` (m, d) are their normalised rows, most frequent first, equally wide."""

    def __init__(
        self,
        src: PreparedSpace,
        tgt: PreparedSpace,
        supervision: Supervision,
        identity: Identity,
        *,
        progress: ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.src, self.tgt, self.supervision, self.identity = src, tgt, supervision, identity
        self.x, self.y = src.vectors, tgt.vectors
        self._progress = progress
        self._keeper = Keeper(checkpoint, identity, Expected((*STAGES, SEARCH), int(self.x.shape[1])))
        self.state = self._keeper.state
        self.history: list[dict[str, Any]] = list(self.state.history) if self.state else []
        self.seconds: dict[str, float] = dict(self.state.seconds) if self.state else {}
        self.starts: list[dict[str, Any]] = []
        self.start_used: str | None = None
        # Of known pairs: what the maps find of those that were kept back, and what is said where others had to be kept.
        self.kept_back: ShareFound | None = None
        self.held_on_to = ""
        if self.state is not None:
            self.starts = list(self.state.values.get("starts", []))
            self.start_used = self.state.values.get("start_used")
            if self.state.values.get("order") == ESTIMATED:
                self.use_estimated_order()

    @cached_property
    def narrow(self) -> Projection:
        """The two spaces as the search for a start and the loop see them."""
        return project_spaces(self.x, self.y, self.src.space.dim, self.tgt.space.dim)

    @property
    def order(self) -> str:
        """Whether the words are in their own order or in one that was estimated."""
        return GIVEN if self.src.order is None and self.tgt.order is None else ESTIMATED

    @property
    def remark(self) -> str:
        """What has to be said with the verdict."""
        if self.start_used == LAST_RESORT:
            return "No start without supervision was real: this one comes from words that both sides spell alike."
        return self.held_on_to

    def use_estimated_order(self) -> None:
        """Go on with the words in the order that was estimated."""
        self.src, self.tgt = in_estimated_order([self.src, self.tgt])
        self.x, self.y = self.src.vectors, self.tgt.vectors
        self.__dict__.pop("narrow", None)

    def given_order_agrees(self) -> bool:
        """Whether the ranks of the words of a lexicon speak for the given order rather than for the estimated one.

        Translations have similar frequencies. Without a lexicon of some size nothing is known, and the estimate stands.
        """
        if self.supervision.lexicon is None:
            return False
        rows = lexicon_rows(self.supervision.lexicon, self.src.space.index, self.tgt.space.index)
        if len(rows[0]) < _FEWEST_TO_TELL:
            return False
        src, tgt = (side.in_estimated_order() for side in (self.src, self.tgt))
        return _correlation(*rows) >= _correlation(src.rows_in_order(rows[0]), tgt.rows_in_order(rows[1]))

    def report(self, stage: str, done: int, total: int, figures: dict[str, Any], *, keep: bool = True) -> None:
        """Record what a step found and tell whoever listens."""
        if keep:
            self.history.append({"stage": stage, "step": done, **figures})
        if self._progress is not None:
            self._progress(Progress(stage, done, total, figures))

    def checkpoint(
        self,
        stage: str,
        done: int,
        w: Array,
        *,
        now: bool = False,
        tensors: Mapping[str, Array] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Save the state, at most every few seconds unless `now`.

        w: the map (d, d); tensors, values: whatever else the method needs to continue, the values as plain JSON types.
        """
        values = {**(values or {}), "order": self.order, "starts": self.starts, "start_used": self.start_used}
        self._keeper.save(
            stage, done, w, now=now, tensors=tensors, values=values, history=self.history, seconds=self.seconds
        )

    def checkpoint_due(self, *, now: bool = False) -> bool:
        """Whether `checkpoint` would save a state; for those to whom its map costs something."""
        return self._keeper.due(now=now)

    def resumed(self, stage: str) -> RunState | None:
        """The state to continue from, if the run was interrupted in this stage."""
        return self._keeper.resumed(stage)

    def lexicon_rows(self) -> RowPairs:
        """Rows of `x` and `y` of the covered pairs of the seed lexicon, (p,) each."""
        assert self.supervision.lexicon is not None
        found = lexicon_rows(self.supervision.lexicon, self.src.space.index, self.tgt.space.index)
        return self._in_order(found)

    def identical_rows(self) -> RowPairs:
        """Rows of `x` and `y` of the words that both sides spell alike, (p,) each."""
        return self._in_order(identical_rows(self.src.space.words, self.tgt.space.words))

    def _in_order(self, rows: RowPairs) -> RowPairs:
        return self.src.rows_in_order(rows[0]), self.tgt.rows_in_order(rows[1])

    def move_seconds(self, stage: str, part: str, seconds: float) -> None:
        """Count seconds of a stage as those of a part of it."""
        self.seconds[stage] -= seconds
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds


def _correlation(src: Ints, tgt: Ints) -> float:
    """Of the logarithms of ranks (p,)."""
    logs = [np.log(rows + 10.0) for rows in (src, tgt)]
    deviations = [log - log.mean() for log in logs]
    norm = float(np.linalg.norm(deviations[0]) * np.linalg.norm(deviations[1]))
    return float(deviations[0] @ deviations[1]) / norm if norm > 0 else 0.0


@contextmanager
def timed(runs: Sequence[Run], stage: str) -> Iterator[Callable[[], float]]:
    """Share the seconds of the block out among the runs, as time of this stage, and log when it begins and ends.

    The block gets a function that counts those so far, for a checkpoint; it returns them.
    """
    of = f" of {len(runs)} pairs" if len(runs) > 1 else ""
    logger.info("%s%s begins", stage, of)
    begin = time.perf_counter()
    before = [run.seconds.get(stage, 0.0) for run in runs]

    def count() -> float:
        arrays.wait_for(runs[0].x)
        so_far = time.perf_counter() - begin
        for run, seconds in zip(runs, before, strict=True):
            run.seconds[stage] = seconds + so_far / len(runs)
        return so_far

    try:
        yield count
    finally:
        taken = count()
    logger.info("%s%s ends after %.1f s", stage, of, taken)


def clamped(name: str, wanted: int, available: int) -> int:
    """The size asked for, or what the data allows, which is logged."""
    if wanted <= available:
        return wanted
    logger.info("%s=%d is more than the data holds: %d is used", name, wanted, available)
    return available
