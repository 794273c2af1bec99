"""What all methods share: scikit-learn manners, input checks, provenance, checkpoints, and the verdict at the end."""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

import qwp
from qwp import backend, io, normalization
from qwp.alignment import Alignment, InputRecord, Provenance
from qwp.backend import Array
from qwp.checkpoint import Checkpoint, RunState
from qwp.embeddings import Embeddings, FloatArray
from qwp.errors import InputError
from qwp.lexicon import Lexicon
from qwp.quality import judge

logger = logging.getLogger(__name__)

Space: TypeAlias = "Embeddings | FloatArray | str | PathLike[str]"
A = TypeVar("A", bound="Aligner")


@dataclass(frozen=True)
class Progress:
    """One event of a running fit. stage: start, loop, refine or verdict; figures: what that step measured."""

    stage: str
    done: int
    total: int
    figures: dict[str, Any]


ProgressCallback: TypeAlias = Callable[[Progress], None]


class Run:
    """One fit in progress: the prepared arrays, the records so far, and the way to report and to checkpoint."""

    CHECKPOINT_SECONDS = 5.0

    def __init__(
        self,
        x: Array,
        y: Array,
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None,
        fingerprint: dict[str, Any],
    ) -> None:
        self.x, self.y = x, y
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

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds of the block to the stage."""
        begin, before = time.perf_counter(), self.seconds.get(stage, 0.0)
        try:
            yield
        finally:
            self.seconds[stage] = before + time.perf_counter() - begin


class Aligner:
    """Base of all methods. A subclass stores its parameters in `__init__` and fits a map in `_fit`.

    After `fit`: `alignment_` (the full result), `map_` (d, d), `quality_`, `n_features_in_`.
    """

    method: ClassVar[str]
    seed: int
    normalize: str
    dtype: str
    csls_k: int
    threads: int | None

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
        spaces = as_embeddings(src, "src"), as_embeddings(tgt, "tgt")
        check_dimensions(*spaces)
        self._validate(lexicon, start_matrix)
        seed = check_seed(self.seed)
        config = self.config()
        with backend.use_threads(self.threads):
            fitted = [normalization.fit(self._as_array(s), self.normalize) for s in spaces]
            inputs = [input_record(s) for s in spaces]
            fingerprint = {
                "version": qwp.__version__,
                "method": self.method,
                "config": config,
                "seed": seed,
                "src": inputs[0].sha256,
                "tgt": inputs[1].sha256,
                "lexicon": None if lexicon is None else _digest(repr(lexicon.pairs).encode()),
                "start_matrix": None if start_matrix is None else _digest(np.asarray(start_matrix, "f8").tobytes()),
            }
            run = Run(fitted[0][1], fitted[1][1], progress, checkpoint, fingerprint)
            w = self._fit(run, spaces[0], spaces[1], lexicon, start_matrix)
            with run.timed("verdict"):
                quality = judge(run.x, run.y, w, seed=seed, csls_k=self.csls_k)
            run.report("verdict", 1, 1, {"ratio": quality.ratio, "verdict": quality.verdict})
        self.alignment_ = Alignment(
            src=spaces[0],
            tgt=spaces[1],
            src_map=np.asarray(backend.to_numpy(w)),
            tgt_map=None,
            src_normalization=fitted[0][0],
            tgt_normalization=fitted[1][0],
            quality=quality,
            provenance=Provenance(
                qwp.__version__, self.method, config, seed, "numpy", inputs[0], inputs[1], dict(run.seconds)
            ),
            history=run.history,
        )
        self.map_ = self.alignment_.src_map
        self.quality_ = quality
        self.n_features_in_ = spaces[0].dim
        return self

    def transform(self, items: Any) -> FloatArray:
        """Source words or vectors in the target space. See `Alignment.transform`."""
        if not hasattr(self, "alignment_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit(src, tgt) first")
        return self.alignment_.transform(items)

    def config(self) -> dict[str, Any]:
        """The parameters that decide the result: all but the seed and the threads."""
        return {k: v for k, v in self.get_params().items() if k not in ("seed", "threads")}

    def _as_array(self, space: Embeddings) -> Array:
        return np.asarray(space.vectors, dtype=backend.check_dtype(self.dtype))

    def _validate(self, lexicon: Lexicon | None, start_matrix: FloatArray | None) -> None:
        """Raise InputError for parameters that cannot work, before any work is done."""
        raise NotImplementedError

    def _fit(
        self,
        run: Run,
        src: Embeddings,
        tgt: Embeddings,
        lexicon: Lexicon | None,
        start_matrix: FloatArray | None,
    ) -> Array:
        """Find the map (d, d) for the normalised arrays `run.x` and `run.y`."""
        raise NotImplementedError


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
