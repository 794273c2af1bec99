"""What all methods share: scikit-learn manners, input checks, provenance, checkpoints, and the verdict at the end."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from os import PathLike
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

import qwp
from qwp import backend, frequency, io, normalization, start
from qwp.alignment import Alignment, InputRecord, Provenance
from qwp.backend import Array, Place
from qwp.checkpoint import Checkpoint, RunState
from qwp.checks import at_least, one_of
from qwp.embeddings import Embeddings, FloatArray
from qwp.errors import InputError
from qwp.lexicon import Lexicon
from qwp.normalization import Normalization, parse_steps
from qwp.procrustes import Maps
from qwp.quality import judge
from qwp.refine import RefineSettings, RoundFigures, refine

logger = logging.getLogger(__name__)

Space: TypeAlias = "Embeddings | FloatArray | str | PathLike[str]"
A = TypeVar("A", bound="Aligner")


@dataclass(frozen=True)
class Progress:
    """One event of a running fit. stage: one of STAGES; figures: what that step measured."""

    stage: str
    done: int
    total: int
    figures: dict[str, Any]


# Not every method has every stage. couple: Gromov-Wasserstein; learn: self-learning; train: by gradients.
STAGES = ("prepare", "start", "bank", "loop", "couple", "learn", "train", "refine", "verdict")
ProgressCallback: TypeAlias = Callable[[Progress], None]


NONE, OPTIONAL, REQUIRED, IDENTICAL = "none", "optional lexicon", "lexicon", "identical strings"


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
    """One of the two spaces of a fit: as it was read, normalised (n, d), and where it came from.

    order: the rows of the space that the vectors are, most frequent first; None where they are as they were read.
    """

    space: Embeddings
    vectors: Array
    normalization: Normalization
    record: InputRecord
    order: frequency.Ints | None = None

    def places(self, rows: frequency.Ints) -> frequency.Ints:
        """Where rows (p,) of the space are among the vectors."""
        return rows if self.order is None else np.argsort(self.order)[rows]


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

    def checkpoint(
        self,
        stage: str,
        done: int,
        w: Array,
        *,
        now: bool = False,
        arrays: Mapping[str, Array] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Save the state, at most every few seconds unless `now`.

        w: the map (d, d); arrays, values: whatever else the method needs to continue, the values as plain JSON types.
        """
        if self._checkpoint is None or (not now and time.monotonic() - self._last_save < self.CHECKPOINT_SECONDS):
            return
        host = {name: backend.to_numpy(array) for name, array in (arrays or {}).items()}
        state = RunState(stage, done, backend.to_numpy(w), host, dict(values or {}), self.history, self.seconds)
        self._checkpoint.save(state, self._fingerprint)
        self._last_save = time.monotonic()

    def resumed(self, stage: str) -> RunState | None:
        """The state to continue from, if the run was interrupted in this stage."""
        return self.state if self.state is not None and self.state.stage == stage else None

    def lexicon_rows(self) -> tuple[start.Ints, start.Ints]:
        """Rows of the covered pairs of the seed lexicon, (p,) each."""
        assert self.supervision.lexicon is not None
        return self._places(start.lexicon_rows(self.supervision.lexicon, self.src.space.index, self.tgt.space.index))

    def identical_rows(self) -> tuple[start.Ints, start.Ints]:
        """Rows of the words that both sides spell alike, (p,) each."""
        return self._places(start.identical_rows(self.src.space.words, self.tgt.space.words))

    def _places(self, rows: tuple[start.Ints, start.Ints]) -> tuple[start.Ints, start.Ints]:
        return self.src.places(rows[0]), self.tgt.places(rows[1])

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


@dataclass(kw_only=True, eq=False, repr=False)
class Aligner:
    """Base of all methods. A subclass is a dataclass whose fields are its parameters, and finds the maps in `_fit`.

    After `fit`: `alignment_` (the full result), `map_` (d, d), `quality_`, `n_features_in_`.
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    """What it is, in one line."""
    paper: ClassVar[str]
    supervision: ClassVar[str] = NONE
    """What it needs besides the vectors: NONE, OPTIONAL, REQUIRED or IDENTICAL."""
    needs_torch: ClassVar[bool] = False

    csls_k: int = 10
    normalize: str = normalization.DEFAULT
    order: str = "auto"
    dtype: str = "float32"
    device: str = "auto"
    backend: str = "auto"
    threads: int | None = None
    max_memory: float | None = None
    seed: int = 0

    # ----------------------------------------------------------------- scikit-learn manners

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the constructor's parameters: the method's own first, those that all share last."""
        names = [f.name for f in fields(cls)]
        shared = [f.name for base in (RefinedAligner, Aligner) for f in fields(base)]
        return sorted(names, key=lambda name: shared.index(name) if name in shared else -1)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters. `deep` is accepted for scikit-learn; nothing is nested."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self: A, **params: Any) -> A:
        """Change parameters by name."""
        names = self.parameter_names()
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

        lexicon, start_matrix: for the methods and starts that ask for them. progress is called after every step;
        checkpoint keeps the state of a long run and continues an interrupted one.
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
        if not self.needs_torch:
            return backend.choose_place(self.device, self.backend)
        if self.backend == "numpy":
            raise InputError(f"method {self.method!r} needs torch, but backend 'numpy' was asked for: leave it out")
        backend.require_torch(f"method {self.method!r}")
        return backend.choose_place(self.device, "torch")

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
        sides = self._sides(spaces)
        fingerprint = {
            **self._identity(),
            "src": sides[0].record.sha256,
            "tgt": sides[1].record.sha256,
            **supervision.fingerprint(),
        }
        run = Run(sides[0], sides[1], supervision, progress, checkpoint, fingerprint)
        run.seconds.setdefault("prepare", time.perf_counter() - begin)
        return run

    def _identity(self) -> dict[str, Any]:
        """What tells a run of this aligner from others on the same inputs."""
        return {
            "version": qwp.__version__,
            "method": self.method,
            "config": self.config(),
            "seed": int(self.seed),
        }

    def _sides(self, spaces: Sequence[Embeddings]) -> list[Side]:
        """Spaces, normalised where the computation takes place, in order of frequency as far as that can be told."""
        given: list[frequency.Ints | None] = [None] * len(spaces)
        orders = frequency.orders([s.vectors for s in spaces], seed=self.seed) if self.order == "auto" else given
        if any(order is not None for order in orders):
            logger.warning(
                "the words of %s do not all seem to be in order of frequency; an order was estimated from the vectors "
                "(order='given' takes them as they are)",
                " and ".join(space.name for space in spaces),
            )
        return [self._side(space, order) for space, order in zip(spaces, orders, strict=True)]

    def _side(self, space: Embeddings, order: frequency.Ints | None) -> Side:
        rows = space.vectors if order is None else space.vectors[order]
        normalised, vectors = normalization.fit(self._place().put(rows, self.dtype), self.normalize)
        return Side(space, vectors, normalised, input_record(space), order)

    def _finish(self, run: Run, maps: Maps) -> Alignment:
        """Judge the maps and wrap them up with all that belongs to them."""
        with timed([run], "verdict"):
            quality = judge(run.x, run.y, maps, seed=self.seed, csls_k=self.csls_k)
        run.report("verdict", 1, 1, {"ratio": quality.ratio, "verdict": quality.verdict})
        return Alignment(
            src=run.src.space,
            tgt=run.tgt.space,
            src_map=backend.to_numpy(maps.src),
            tgt_map=None if maps.tgt is None else backend.to_numpy(maps.tgt),
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
                supervision=run.supervision.fingerprint(),
                order="given" if run.src.order is None and run.tgt.order is None else "estimated",
            ),
            history=run.history,
        )

    def transform(self, items: Any) -> FloatArray:
        """Source words or vectors in the common space. See `Alignment.transform`."""
        if not hasattr(self, "alignment_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit(src, tgt) first")
        return self.alignment_.transform(items)

    def config(self) -> dict[str, Any]:
        """The parameters that decide the result: all but the seed and those that only say where and how to compute."""
        machine = ("seed", "threads", "device", "backend", "max_memory")
        return {k: v for k, v in self.get_params().items() if k not in machine}

    def _validate(self, supervision: Supervision) -> None:
        """Raise InputError for parameters that cannot work, before any work is done. Subclasses add their own."""
        self._place()
        check_seed(self.seed)
        parse_steps(self.normalize)
        one_of(frequency.ORDERS, order=self.order)
        backend.check_dtype(self.dtype)
        at_least(1, csls_k=self.csls_k)
        if supervision.lexicon is None and self.supervision == REQUIRED:
            raise InputError(
                f"method {self.method!r} is supervised and needs a seed lexicon, none was given: add --lexicon FILE "
                "(in Python lexicon=qwp.Lexicon.load(FILE)), or choose a method that needs none, such as qwp"
            )
        if supervision.lexicon is not None and self.supervision in (NONE, IDENTICAL):
            raise InputError(f"a lexicon was given, but method {self.method!r} does not use one: leave it out")
        if supervision.start_matrix is not None and not self._takes_matrix():
            raise InputError(f"start_matrix was given, but method {self.method!r} does not use one: leave it out")

    def _takes_matrix(self) -> bool:
        """Whether a fit can begin from a matrix of the user."""
        return False

    def _fit(self, run: Run) -> Maps:
        """Find the maps for the normalised arrays `run.x` and `run.y`."""
        raise NotImplementedError

    def _fit_many(self, runs: Sequence[Run]) -> list[Maps]:
        """The maps of several runs. A method that can do them in lock-step says how."""
        return [self._fit(run) for run in runs]

    def _pairs_at_a_time(self) -> int:
        """How many pairs `_fit_many` should get."""
        return 1


@dataclass(kw_only=True, eq=False, repr=False)
class RefinedAligner(Aligner):
    """A method that finds a first map of the source side and improves it by CSLS refinement."""

    refine: int = 5
    refine_max_rank: int = 15_000
    refine_first_rank: int = 0
    refine_directions: str = "mutual"
    refine_weights: str = "equal"
    refine_map: str = "orthogonal"
    map: str = "orthogonal"
    reweight: float = 1.0
    dewhiten: float = 0.75

    def _validate(self, supervision: Supervision) -> None:
        super()._validate(supervision)
        self._refine_settings().check()
        if self.refine == 0 and self.map == "reweighted" and type(self)().map != self.map:
            raise InputError(
                "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
            )

    def _refine_settings(self) -> RefineSettings:
        return RefineSettings(
            rounds=self.refine,
            csls_k=self.csls_k,
            max_rank=self.refine_max_rank,
            first_rank=self.refine_first_rank,
            directions=self.refine_directions,
            weights=self.refine_weights,
            learn_map=self.refine_map,
            map=self.map,
            reweight=self.reweight,
            dewhiten=self.dewhiten,
        )

    def _first_map(self, run: Run) -> Array:
        """The map (d, d) before refinement."""
        raise NotImplementedError

    def _fit(self, run: Run) -> Maps:
        state = run.resumed("refine")
        if state is not None:
            tgt = state.arrays.get("tgt_map")
            maps = Maps(backend.asarray(state.map, run.x), None if tgt is None else backend.asarray(tgt, run.x))
            return self._refined(run, maps, state.done)
        maps = Maps(self._first_map(run))
        run.checkpoint("refine", 0, maps.src, now=True)
        return self._refined(run, maps)

    def _refined(self, run: Run, maps: Maps, first_round: int = 0) -> Maps:
        def after(figures: RoundFigures, refined: Maps) -> None:
            values = asdict(figures)
            done, total = values.pop("round"), values.pop("n_rounds")
            run.report("refine", done, total, values)
            arrays = {} if refined.tgt is None else {"tgt_map": refined.tgt}
            run.checkpoint("refine", done, refined.src, arrays=arrays, now=True)

        with timed([run], "refine"):
            return refine(run.x, run.y, maps, self._refine_settings(), first_round=first_round, callback=after)


def clamped(name: str, wanted: int, available: int) -> int:
    """The size asked for, or what the data allows, which is logged."""
    if wanted <= available:
        return wanted
    logger.info("%s=%d is more than the data holds: %d is used", name, wanted, available)
    return available


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
            f"{src.name} has {src.dim} dimensions, {tgt.name} has {tgt.dim}; the map needs the same number: "
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
