"""Bridges: initialize the alignment of two spaces by what both share with a third space.

Each side is aligned with the bridge; these two fits are the legs of the bridge. Words of the two sides with the same
translation in the bridge are a pair, and its confidence is the product of the confidences in both legs. Several bridges
are independent evidence for a pair. The pairs only initialize a fit of the two sides, which is judged on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from qwp.arrays import Array, Floats
from qwp.errors import InputError
from qwp.maps.pairs import RowPairs
from qwp.maps.procrustes import Maps
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import BridgeRecord, Identity, InputRecord, LegRecord
from qwp.spaces.embeddings import SIDES, Embeddings
from qwp.stages.init.given import WeightedPairs
from qwp.stages.pipeline import Pipeline
from qwp.stages.stage import State


@dataclass(frozen=True)
class Leg:
    """One side aligned with a bridge.

    pairs: rows of the side and of the bridge, (p,) each, each row once. confidence: of each pair, (p,).
    """

    record: LegRecord
    pairs: RowPairs
    confidence: Floats

    @classmethod
    def of(cls, alignment: Alignment) -> Leg:
        """Return the leg of an alignment of a side onto a bridge. A failed alignment has no pairs."""
        quality = alignment.quality
        nothing = np.zeros(0, dtype=np.int64)
        pairs, confidence = ((nothing, nothing), np.zeros(0)) if quality.failed else alignment.induced_rows()
        record = LegRecord(
            quality.verdict,
            quality.ratio,
            None if quality.failed or quality.estimate is None else quality.estimate.overall.p1,
            len(confidence),
            sum(alignment.provenance.seconds.values()),
        )
        return cls(record, pairs, confidence)


@dataclass(frozen=True)
class Bridge:
    """A third space and the legs from both sides to it."""

    space: Embeddings
    src: Leg
    tgt: Leg
    least_confidence: float = field(default=0.2, kw_only=True)
    """Pairs below this joint confidence are not used. Source: 0.5 is no better (docs/research/reach.md)."""
    fewest_pairs: int = field(default=50, kw_only=True)
    """A bridge with fewer joined pairs is not used, as an ensemble vote with fewer is not."""

    def joined(self) -> dict[tuple[int, int], float]:
        """Return the confidence of each pair of rows of the two sides with the same translation in the bridge."""
        back = {j: (i, c) for i, j, c in zip(*_listed(self.tgt), strict=True)}
        pairs = {(i, back[j][0]): c * back[j][1] for i, j, c in zip(*_listed(self.src), strict=True) if j in back}
        return {pair: confidence for pair, confidence in pairs.items() if confidence >= self.least_confidence}

    @property
    def problem(self) -> str | None:
        """Why the bridge cannot be used, or None."""
        failed = [side for side in SIDES if getattr(self, side).record.verdict == "failed"]
        if failed:
            return f"the alignment of {' and '.join(failed)} with it failed"
        few = len(self.joined())
        return f"it joins only {few} pairs, {self.fewest_pairs} are needed" if few < self.fewest_pairs else None

    def record(self) -> BridgeRecord:
        """Return the record of the bridge in a result."""
        pairs = 0 if self.problem else len(self.joined())
        return BridgeRecord(InputRecord.of(self.space), self.src.record, self.tgt.record, pairs, self.problem)


def _listed(leg: Leg) -> tuple[list[int], list[int], list[float]]:
    return leg.pairs[0].tolist(), leg.pairs[1].tolist(), leg.confidence.tolist()


def joined_pairs(bridges: Iterable[Bridge]) -> WeightedPairs | None:
    """Return the initializer from the pairs of all usable bridges; None if no bridge can be used.

    A pair over several bridges is wrong only if it is wrong over each.
    """
    doubts: dict[tuple[int, int], float] = {}
    for bridge in bridges:
        for pair, confidence in ({} if bridge.problem else bridge.joined()).items():
            doubts[pair] = doubts.get(pair, 1.0) * (1.0 - confidence)
    if not doubts:
        return None
    rows = np.asarray(list(doubts), dtype=np.int64)
    return WeightedPairs(pairs=(rows[:, 0], rows[:, 1]), weights=1.0 - np.asarray(list(doubts.values())))


def pipeline_from(pipeline: Pipeline, pairs: WeightedPairs) -> Pipeline:
    """Return the pipeline that begins with the pairs and refines the map directly, without the transport loop.

    Source: the training pairs of fi-ru over en, P@1 38.2 without the loop and 32.6 with it (docs/research/reach.md).
    """
    return replace(pipeline, init=pairs, solve=pipeline.solve if pipeline.refine is None else None)


def remark(bridges: Sequence[Bridge]) -> str:
    """Return the sentences about the bridges that follow the verdict."""
    used = [f"{len(each.joined()):,} pairs over {each.space.name}" for each in bridges if not each.problem]
    unused = [f"The bridge {each.space.name} was not used: {each.problem}." for each in bridges if each.problem]
    if not used:
        unused.append("No bridge could be used, so the two spaces were aligned directly.")
    return " ".join([*([f"Initialized by {' and '.join(used)}."] if used else []), *unused])


# --------------------------------------------------------------------------- legs in a checkpoint

_KEY, _FRESH = "bridges", "bridges.fresh"


class LegStore:
    """The finished legs of a run, in its checkpoint beside the state of the fit in progress.

    A finished leg is not computed again. identity: of the run.
    """

    def __init__(self, checkpoint: Checkpoint | None, identity: Identity) -> None:
        self._checkpoint, self._identity = checkpoint, identity
        self.legs: list[Leg] = []
        self._state: tuple[State, dict[str, float]] | None = None
        found = None if checkpoint is None else checkpoint.load(identity)
        if found is not None:
            self._restore(*found)

    def _restore(self, state: State, seconds: dict[str, float]) -> None:
        values, tensors = dict(state.values), dict(state.tensors)
        for number, record in enumerate(values.pop(_KEY)):
            src, tgt, confidence = (np.asarray(tensors.pop(name)) for name in _names(number))
            self.legs.append(Leg(LegRecord(**record), (src, tgt), confidence))
        if not values.pop(_FRESH):
            self._state = replace(state, values=values, tensors=tensors), seconds

    def next(self, fit: Callable[[Checkpoint | None], Alignment], number: int) -> Leg:
        """Return leg `number`, from the checkpoint or by a fit that takes a checkpoint of its own."""
        if number == len(self.legs):
            self.legs.append(Leg.of(fit(self.checkpoint())))
            if self._checkpoint is not None:
                # The state of the finished leg is not needed any more; a checkpoint needs some map.
                self._save(State(maps=Maps(np.zeros((1, 1)))), {}, fresh=True)
        return self.legs[number]

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the next fit."""
        return None if self._checkpoint is None else _FitCheckpoint(self, self._checkpoint)

    def take(self) -> tuple[State, dict[str, float]] | None:
        """Return the saved state of the fit that was interrupted, once."""
        found, self._state = self._state, None
        return found

    def save(self, state: State, seconds: Mapping[str, float]) -> None:
        """Save the state of the fit in progress."""
        self._save(state, seconds, fresh=False)

    def _save(self, state: State, seconds: Mapping[str, float], *, fresh: bool) -> None:
        assert self._checkpoint is not None
        tensors: dict[str, Array] = {}
        for number, leg in enumerate(self.legs):
            tensors.update(zip(_names(number), (*leg.pairs, leg.confidence), strict=True))
        values: dict[str, Any] = {_KEY: [asdict(leg.record) for leg in self.legs], _FRESH: fresh}
        whole = replace(state, tensors={**state.tensors, **tensors}, values={**state.values, **values})
        self._checkpoint.save(whole, seconds, self._identity)


class _FitCheckpoint(Checkpoint):
    """The checkpoint of one of the fits of a run, which the run saves with its finished legs."""

    def __init__(self, store: LegStore, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.path.parent, resume=checkpoint.resume, interval=checkpoint.interval)
        self._store = store

    def save(self, state: State, seconds: Mapping[str, float], identity: Identity) -> None:
        """Save the state with the finished legs."""
        self._store.save(state, seconds)

    def load(self, identity: Identity) -> tuple[State, dict[str, float]] | None:
        """Return the state of this fit, if it was interrupted."""
        return self._store.take()


def _names(number: int) -> tuple[str, str, str]:
    """Return the names of the arrays of a leg in a checkpoint."""
    return f"leg{number}.src", f"leg{number}.bridge", f"leg{number}.confidence"


def check_bridges(method: str, initializers: Sequence[str], *, lexicon: bool, matrix: bool) -> None:
    """Raise an InputError if a method cannot be initialized by pairs, or is initialized by something else as well."""
    if "lexicon" not in initializers:
        raise InputError(f"a bridge was given, but method {method!r} does not start from pairs: use --method qwp")
    if lexicon or matrix:
        what = "a lexicon" if lexicon else "a start matrix"
        raise InputError(f"a bridge and {what} were given; expected one of them to start from: leave the other out")
