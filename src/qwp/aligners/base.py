"""What all methods share: scikit-learn manners, input checks, provenance, checkpoints, and the verdict at the end."""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

import qwp
from qwp import backend, io, normalization
from qwp.alignment import Alignment, InputRecord, Provenance
from qwp.backend import Array, Place
from qwp.checkpoint import Checkpoint, RunState
from qwp.embeddings import Embeddings, FloatArray
from qwp.errors import InputError
from qwp.lexicon import Lexicon
from qwp.normalization import Normalization
from qwp.quality import judge

logger = logging.getLogger(__name__)

Space: TypeAlias = "Embeddings | FloatArray | str | PathLike[str]"
A = TypeVar("A", bound="Aligner")


@dataclass(frozen=True)
class Progress:
    """One event of a running fit. stage: start, bank, loop, refine or verdict; figures: what that step measured."""

    stage: str
    done: int
    total: int
    figures: dict[str, Any]


STAGES = ("prepare", "start", "bank", "loop", "refine", "verdict")
ProgressCallback: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True)
class Supervision:
    """What the user knows about the two languages; most methods need none of it."""

    lexicon: Lexicon | None = None
    start_matrix: FloatArray | None = None

    def fingerprint(self) -> dict[str, str | None]:
        """Hashes that tell one supervision from another."""
        matrix = self.start_matrix
        return {
            "lexicon": None if self.lexicon is None else _digest(repr(self.lexicon.pairs).encode()),
            "start_matrix": None if matrix is None else _digest(np.asarray(matrix, "f8").tobytes()),
        }


@dataclass(frozen=True)
class Side:
    """One of the two spaces of a fit: as it was read, normalised (n, d), and where it came from."""

    space: Embeddings
    vectors: Array
    normalization: Normalization
    record: InputRecord


class Run:
    """One fit in progress: the prepared arrays, the records so far, and the way to report and to checkpoint."""

    CHECKPOINT_SECONDS = 5.0

    def __init__(
        self,
        src: Side,
        tgt: Side,
        supervision: Supervision,
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None,
        fingerprint: dict[str, Any],
    ) -> None:
        self.src, self.tgt, self.supervision = src, tgt, supervision
        self.x, self.y = src.vectors, tgt.vectors
        self._progress, self._checkpoint, self._fingerprint = progress, checkpoint, fingerprint
        self.state = checkpoint.load(fingerprint) if checkpoint else None
        self.history: list[dict[str, Any]] = list(self.state.history) if self.state else []
        self.seconds: dict[str, float] = dict(self.state.seconds) if self.state else {}
        self._last_save = time.monotonic()

    def report(self, stage: str, done: int, total: int, figures: dict[str, Any], *, keep: bool = True) -> None:
        """Record what a step found and tell whoever listens."""
        if keep:
            self.history.append({"stage": stage, "step": done, **figures})
        if self._progress is not None:
            self._progress(Progress(stage, done, total, figures))

    def checkpoint(self, stage: str, done: int, w: Array, *, now: bool = False) -> None:
        """Save the state, at most every few seconds unless `now`."""
        if self._checkpoint is None or (not now and time.monotonic() - self._last_save < self.CHECKPOINT_SECONDS):
            return
        state = RunState(stage, done, backend.to_numpy(w), self.history, self.seconds)
        self._checkpoint.save(state, self._fingerprint)
        self._last_save = time.monotonic()

    def move_seconds(self, stage: str, part: str, seconds: float) -> None:
        """Count seconds of a stage as those of a part of it."""
        self.seconds[stage] -= seconds
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds


@contextmanager
def timed(runs: Sequence[Run], stage: str) -> Iterator[None]:
    """Share the seconds of the block out among the runs, as time of this stage."""
    begin = time.perf_counter()
    before = [run.seconds.get(stage, 0.0) for run in runs]
    try:
        yield
    finally:
        backend.wait_for(runs[0].x)
        each = (time.perf_counter() - begin) / len(runs)
        for run, seconds in zip(runs, before, strict=True):
            run.seconds[stage] = seconds + each


class Aligner:
    """Base of all methods. A subclass stores its parameters in `__init__` and fits a map in `_fit`.

    After `fit`: `alignment_` (the full result), `map_` (d, d), `quality_`, `n_features_in_`.
    """

    method: ClassVar[str]
    seed: int
    normalize: str
    dtype: str
    csls_k: int
    device: str
    backend: str
    threads: int | None
    max_memory: float | None

    # ----------------------------------------------------------------- scikit-learn manners

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [p for p in inspect.signature(cls.__init__).parameters if p != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters. `deep` is accepted for scikit-learn; nothing is nested."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self: A, **params: Any) -> A:
        """Change parameters by name."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise InputError(
                    f"{name!r} is not a parameter of {type(self).__name__}; expected one of {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = type(self)().get_params()
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(changed)})"

    # ----------------------------------------------------------------- fitting

    def fit(
        self: A,
        src: Space,
        tgt: Space,
        *,
        lexicon: Lexicon | None = None,
        start_matrix: FloatArray | None = None,
        progress: ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> A:
        """Align `src` onto `tgt` (Embeddings, arrays (n, d), or paths).

        lexicon, start_matrix: only for the starts that ask for them. progress is called after every step; checkpoint
        keeps the state of a long run and continues an interrupted one.
        """
        supervision = Supervision(lexicon, start_matrix)
        self._validate(supervision)
        with self._resources():
            run = self._prepare(src, tgt, supervision, progress, checkpoint)
            self.alignment_ = self._finish(run, self._fit(run))
        self.map_ = self.alignment_.src_map
        self.quality_ = self.alignment_.quality
        self.n_features_in_ = self.alignment_.src.dim
        return self

    def fit_many(
        self, pairs: Sequence[tuple[Space, Space]], *, progress: Callable[[int, Progress], None] | None = None
    ) -> list[Alignment]:
        """Align many pairs with the same settings, on a GPU several in lock-step. progress also gets the pair's number.

        The results are those of `fit` on each pair, up to rounding and the tolerance of the transport.
        """
        self._validate(Supervision())
        alignments: list[Alignment] = []
        with self._resources():
            for first in range(0, len(pairs), self._pairs_at_a_time()):
                group = [
                    (as_embeddings(src, "src"), as_embeddings(tgt, "tgt"))
                    for src, tgt in pairs[first : first + self._pairs_at_a_time()]
                ]
                backend.in_threads(Embeddings.sha256, [space for pair in group for space in pair])
                runs = [
                    self._prepare(*pair, Supervision(), None if progress is None else partial(progress, i), None)
                    for i, pair in enumerate(group, start=first)
                ]
                maps = self._fit_many(runs)
                alignments += [self._finish(run, w) for run, w in zip(runs, maps, strict=True)]
        return alignments

    @contextmanager
    def _resources(self) -> Iterator[None]:
        """The threads and the memory this aligner may use."""
        if self._place().library == "torch":
            import torch  # noqa: F401  (before the threads are counted out, so that they are counted for it, too)
        with backend.use_threads(self.threads), backend.use_memory(self.max_memory):
            yield

    def _place(self) -> Place:
        return backend.choose_place(self.device, self.backend)

    def _prepare(
        self,
        src: Space,
        tgt: Space,
        supervision: Supervision,
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None,
    ) -> Run:
        begin = time.perf_counter()
        spaces = as_embeddings(src, "src"), as_embeddings(tgt, "tgt")
        check_dimensions(*spaces)
        place = self._place()
        sides = []
        for space in spaces:
            normalised, vectors = normalization.fit(place.put(space.vectors, self.dtype), self.normalize)
            sides.append(Side(space, vectors, normalised, input_record(space)))
        fingerprint = {
            "version": qwp.__version__,
            "method": self.method,
            "config": self.config(),
            "seed": check_seed(self.seed),
            "src": sides[0].record.sha256,
            "tgt": sides[1].record.sha256,
            **supervision.fingerprint(),
        }
        run = Run(sides[0], sides[1], supervision, progress, checkpoint, fingerprint)
        run.seconds.setdefault("prepare", time.perf_counter() - begin)
        return run

    def _finish(self, run: Run, w: Array) -> Alignment:
        """Judge the map and wrap it up with all that belongs to it."""
        with timed([run], "verdict"):
            quality = judge(run.x, run.y, w, seed=self.seed, csls_k=self.csls_k)
        run.report("verdict", 1, 1, {"ratio": quality.ratio, "verdict": quality.verdict})
        return Alignment(
            src=run.src.space,
            tgt=run.tgt.space,
            src_map=np.asarray(backend.to_numpy(w)),
            tgt_map=None,
            src_normalization=run.src.normalization.at(backend.HOST),
            tgt_normalization=run.tgt.normalization.at(backend.HOST),
            quality=quality,
            provenance=Provenance(
                version=qwp.__version__,
                method=self.method,
                config=self.config(),
                seed=self.seed,
                backend=str(self._place()),
                src=run.src.record,
                tgt=run.tgt.record,
                seconds={stage: run.seconds[stage] for stage in STAGES if stage in run.seconds},
            ),
            history=run.history,
        )

    def transform(self, items: Any) -> FloatArray:
        """Source words or vectors in the target space. See `Alignment.transform`."""
        if not hasattr(self, "alignment_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit(src, tgt) first")
        return self.alignment_.transform(items)

    def config(self) -> dict[str, Any]:
        """The parameters that decide the result: all but the seed and those that only say where and how to compute."""
        machine = ("seed", "threads", "device", "backend", "max_memory")
        return {k: v for k, v in self.get_params().items() if k not in machine}

    def _validate(self, supervision: Supervision) -> None:
        """Raise InputError for parameters that cannot work, before any work is done."""
        raise NotImplementedError

    def _fit(self, run: Run) -> Array:
        """Find the map (d, d) for the normalised arrays `run.x` and `run.y`."""
        raise NotImplementedError

    def _fit_many(self, runs: Sequence[Run]) -> list[Array]:
        """The maps of several runs. A method that can do them in lock-step says how."""
        return [self._fit(run) for run in runs]

    def _pairs_at_a_time(self) -> int:
        """How many pairs `_fit_many` should get."""
        return 1


def as_embeddings(space: Space, side: str) -> Embeddings:
    """Embeddings from what a user may hand over: Embeddings, an array whose rows are named by number, or a path."""
    if isinstance(space, Embeddings):
        return space
    if isinstance(space, (str, PathLike)):
        return io.load(space)
    vectors = np.asarray(space)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"{side} is an array of shape {vectors.shape} and type {vectors.dtype}; "
            "expected numbers (n, d), Embeddings or a path"
        )
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float32)
    return Embeddings([str(i) for i in range(vectors.shape[0])], vectors)


def check_dimensions(src: Embeddings, tgt: Embeddings) -> None:
    """Both spaces must have the same number of dimensions."""
    if src.dim != tgt.dim:
        raise InputError(
            f"{src.name} has {src.dim} dimensions, {tgt.name} has {tgt.dim}; an orthogonal map needs the same number: "
            "train or reduce both to one dimension"
        )


def check_seed(seed: Any) -> int:
    """A seed is a non-negative integer."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed={seed!r} should be a non-negative integer")
    return int(seed)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def input_record(space: Embeddings) -> InputRecord:
    """Where a space came from and what it held."""
    report = space.report
    path, complete = (report.path, report.complete) if report is not None else (None, True)
    return InputRecord(path, space.sha256(), len(space), space.dim, complete)
