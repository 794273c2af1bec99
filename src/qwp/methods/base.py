"""The walk that all methods share: check, prepare the spaces, find the maps, judge them, wrap them up."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from qwp import arrays
from qwp.arrays import BACKENDS, DTYPES, Device
from qwp.checks import installed
from qwp.errors import InputError
from qwp.judging.partners import partners
from qwp.judging.verdict import DEPTHS, EFFORTS, FULL, UNJUDGED, judge
from qwp.judging.verdict import NONE as UNSEEN
from qwp.maps import widths
from qwp.maps.procrustes import Maps
from qwp.maps.widths import Projection
from qwp.methods.estimator import Estimator
from qwp.methods.inputs import PreparedSpace, prepare
from qwp.methods.run import STAGES, ProgressCallback, Run, timed
from qwp.methods.supervision import NONE, Supervision
from qwp.parameters import RUN, Settings, param
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.identity import Identity
from qwp.results.provenance import Provenance
from qwp.results.sides import AlignedSide
from qwp.search.retrieval import NeighbourhoodSettings
from qwp.showing.events import PairCallback
from qwp.showing.progress import listening, listening_to_pairs
from qwp.spaces import frequency, normalization
from qwp.spaces.embeddings import Embeddings, FloatArray
from qwp.spaces.lexicon import Lexicon, PairsOfWords
from qwp.spaces.normalization import parse_steps
from qwp.spaces.objects import Space, as_embeddings
from qwp.version import __version__, code_version

logger = logging.getLogger(__name__)

A = TypeVar("A", bound="Aligner")

# Numbers in a space for which two threads save about a fifth of the time of one, and cost nearly twice as much.
_SMALL = 500_000


@dataclass(kw_only=True)
class RunSettings(Settings):
    """How the spaces are prepared, and where and how to compute."""

    shared: ClassVar[bool] = True

    normalize: str = param(
        normalization.DEFAULT,
        "Steps of normalisation: a comma-separated list of unit and center, or none.",
        RUN,
        text=parse_steps,
        range="comma-separated unit and center, or none",
    )
    order: str = param(
        "auto",
        "Order of the words: auto (estimated where they are not sorted by frequency), given, or none (items that have "
        "no frequency, and maybe no counterpart).",
        RUN,
        choices=frequency.ORDERS,
    )
    dtype: str = param("float32", "Precision of the computation: float32 or float64.", RUN, choices=DTYPES)
    device: str = param(
        "auto",
        "Where to compute: auto (a GPU if torch sees one), cpu, cuda or cuda:N.",
        RUN,
        range="auto, cpu, cuda, cuda:N",
        execution_only=True,
    )
    backend: str = param(
        "auto",
        "Array library: auto (torch on a GPU, numpy on the CPU), numpy or torch.",
        RUN,
        choices=BACKENDS,
        execution_only=True,
    )
    threads: int | None = param(
        None, "Threads to use.", RUN, least=1, most=4096, decided="all, one for small spaces", execution_only=True
    )
    max_memory: float | None = param(
        None,
        "Bound the blocks of large computations to this many GiB.",
        RUN,
        above=0,
        most=1e6,
        decided="32 MiB for each thread, 1 GiB on a GPU",
        execution_only=True,
    )
    verdict: str = param(
        FULL,
        "How the result is judged: full, quick (tells clear successes only, no estimate) or none.",
        RUN,
        choices=DEPTHS,
    )
    seed: int = param(0, "Seed of all random choices.", RUN, least=0, most=2**63 - 1, execution_only=True)


@dataclass(kw_only=True, eq=False, repr=False)
class Aligner(Estimator, NeighbourhoodSettings, RunSettings):
    """Base of all methods. A subclass is a dataclass whose fields are its parameters, and has `find_maps`.

    After `fit`: `alignment_` (the full result), `map_` (d, common), `quality_`, `n_features_in_`.
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    """What it is, in one line."""
    paper: ClassVar[str]
    supervision: ClassVar[str] = NONE
    """What it needs besides the vectors: NONE, OPTIONAL, REQUIRED or IDENTICAL."""
    takes_matrix: ClassVar[bool] = False
    """Whether a fit can begin from a matrix of the user."""
    needs_torch: ClassVar[bool] = False
    needs_pot: ClassVar[bool] = False

    @property
    def ordered(self) -> bool:
        """Whether the words have an order of frequency, if an unknown one."""
        return self.order != frequency.NO_ORDER

    @property
    def tries_orders(self) -> bool:
        """Whether it finds out by itself if an estimated order of the words is better than the given one."""
        return False

    def fit(
        self: A,
        src: Space,
        tgt: Space,
        *,
        lexicon: PairsOfWords | None = None,
        start_matrix: FloatArray | None = None,
        progress: bool | ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> A:
        """Align `src` onto `tgt`: Embeddings, arrays (n, d), paths, or what else `qwp.spaces.objects` reads.

        lexicon, start_matrix: for the methods and starts that ask for them; a lexicon may be a path, pairs of words or
        a dict. progress: True for a bar on stderr, or a function that is called after every step. checkpoint keeps the
        state of a long run and continues an interrupted one.
        """
        supervision = Supervision(None if lexicon is None else Lexicon.of(lexicon), start_matrix)
        self.validate(supervision)
        with listening(progress) as listener:
            return self.fit_validated(src, tgt, supervision, progress=listener, checkpoint=checkpoint)

    def fit_validated(
        self: A,
        src: Space,
        tgt: Space,
        supervision: Supervision,
        *,
        progress: ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> A:
        """`fit` for parameters and supervision that `validate` has seen."""
        with self.resources():
            run = self._begin(src, tgt, supervision, progress, checkpoint)
            with arrays.use_threads(self.threads_for([run])):
                maps = self.find_maps(run)
                self.alignment_ = self.finish(run, maps)
        self.map_ = self.alignment_.src_map
        self.quality_ = self.alignment_.quality
        self.n_features_in_ = self.alignment_.src.dim
        return self

    def fit_many(
        self, pairs: Sequence[tuple[Space, Space]], *, progress: bool | PairCallback | None = None
    ) -> list[Alignment]:
        """Align many pairs with the same settings, on a GPU several in lock-step.

        progress: True for a bar on stderr, or a function that gets the number of the pair before the event.

        The results are those of `fit` on each pair, up to rounding and the tolerance of the transport.
        """
        known = Supervision()
        self.validate(known)
        alignments: list[Alignment] = []
        with self.resources(), listening_to_pairs(progress, len(pairs)) as listener:
            for first in range(0, len(pairs), self.pairs_at_a_time()):
                group = [
                    (as_embeddings(src, "src"), as_embeddings(tgt, "tgt"))
                    for src, tgt in pairs[first : first + self.pairs_at_a_time()]
                ]
                arrays.in_threads(Embeddings.sha256, [space for pair in group for space in pair])
                runs = [
                    self._begin(*pair, known, None if listener is None else partial(listener, number), None)
                    for number, pair in enumerate(group, start=first)
                ]
                with arrays.use_threads(self.threads_for(runs)):
                    maps = self.find_maps_of_many(runs)
                    alignments += [self.finish(run, found) for run, found in zip(runs, maps, strict=True)]
        return alignments

    # ----------------------------------------------------------------- the steps of a fit, in their order

    def validate(self, supervision: Supervision | None = None) -> None:
        """Raise an InputError for parameters or supervision that cannot work, before any work is done."""
        known = Supervision() if supervision is None else supervision
        self.check()
        self.place()
        if self.needs_pot:
            installed("pot", f"method {self.method!r}")
        known.check(self.method, self.supervision, takes_matrix=self.takes_matrix)
        self.check_supervision(known)

    def check_supervision(self, supervision: Supervision) -> None:
        """Raise an InputError for supervision that does not go with the parameters. Subclasses say when."""

    @contextmanager
    def resources(self) -> Iterator[None]:
        """The threads and the memory this aligner may use."""
        if self.place().library == "torch":
            import torch  # noqa: F401  (before the threads are counted out, so that they are counted for it, too)
        with arrays.use_threads(self.threads), arrays.use_memory(self.max_memory):
            yield

    def threads_for(self, runs: Sequence[Run]) -> int | None:
        """One for small spaces unless the user says: a second is as busy as the first and hardly saves any time."""
        largest = max(max(len(run.src.space), len(run.tgt.space)) * int(run.x.shape[1]) for run in runs)
        return 1 if self.threads is None and largest <= _SMALL else self.threads

    def place(self) -> Device:
        """Where it computes."""
        if not self.needs_torch:
            return arrays.choose_device(self.device, self.backend)
        if self.backend == "numpy":
            raise InputError(f"method {self.method!r} needs torch, but backend 'numpy' was asked for: leave it out")
        arrays.require_torch(f"method {self.method!r}")
        return arrays.choose_device(self.device, "torch")

    def prepare(self, spaces: Sequence[Embeddings]) -> list[PreparedSpace]:
        """Spaces as they are, normalised where the computation takes place; estimates of their order where in doubt."""
        return prepare(
            spaces, self.place(), normalize=self.normalize, order=self.order, dtype=self.dtype, seed=self.seed
        )

    def _begin(
        self,
        src: Space,
        tgt: Space,
        supervision: Supervision,
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None,
    ) -> Run:
        logger.info("prepare begins")
        begin = time.perf_counter()
        prepared = self.prepare([as_embeddings(src, "src"), as_embeddings(tgt, "tgt")])
        inputs = {name: side.space.sha256() for name, side in zip(("src", "tgt"), prepared, strict=True)}
        identity = self.identity(inputs, supervision)
        run = Run(prepared[0], prepared[1], supervision, identity, progress=progress, checkpoint=checkpoint)
        if not self.tries_orders and not run.given_order_agrees():
            run.use_estimated_order()
        taken = time.perf_counter() - begin
        run.seconds.setdefault("prepare", taken)
        logger.info("prepare ends after %.1f s: %s onto %s", taken, *(side.record() for side in prepared))
        return run

    def find_maps(self, run: Run) -> Maps:
        """Find the maps for the normalised arrays `run.x` and `run.y`."""
        raise NotImplementedError

    def find_maps_of_many(self, runs: Sequence[Run]) -> list[Maps]:
        """The maps of several runs. A method that can do them in lock-step says how."""
        return [self.find_maps(run) for run in runs]

    def pairs_at_a_time(self) -> int:
        """How many runs `find_maps_of_many` should get."""
        return 1

    def finish(self, run: Run, maps: Maps) -> Alignment:
        """Judge the maps and wrap them up with all that belongs to them."""
        last = 1
        src_dim, tgt_dim = run.src.space.dim, run.tgt.space.dim
        maps = widths.within_target(maps, tgt_dim)

        def tell(done: int, total: int) -> None:
            nonlocal last
            last = total
            run.report("verdict", done, total, {}, keep=False)

        with timed([run], "verdict"):
            # Nobody looks for main directions where nothing is judged.
            narrow = Projection(run.x, run.y) if self.verdict == UNSEEN else run.narrow
            seen = narrow.x, narrow.y, narrow.project(maps)
            quality = judge(
                *seen,
                seed=self.seed,
                csls_k=self.csls_k,
                effort=EFFORTS[self.verdict],
                ordered=self.ordered,
                known=run.kept_back,
                callback=tell,
            )
            if not self.ordered and quality.verdict != UNJUDGED:
                found = partners(run.x, run.y, maps, seed=self.seed)
                text = f"{quality.explanation} A partner was found for {found}."
                quality = replace(quality, explanation=text, partners=found)
            if run.remark:
                quality = replace(quality, explanation=f"{quality.explanation} {run.remark}")
        logger.info("%s: %s", quality.verdict, quality.explanation)
        run.report("verdict", last, last, {"ratio": quality.ratio, "verdict": quality.verdict})
        sides = [
            AlignedSide(
                side.space,
                None if matrix is None else arrays.to_numpy(matrix),
                side.normalization.at(arrays.HOST),
                side.order,
            )
            for side, matrix in zip((run.src, run.tgt), widths.cut(maps, src_dim, tgt_dim), strict=True)
        ]
        provenance = Provenance.of(
            run.identity,
            backend=str(self.place()),
            src=run.src.record(),
            tgt=run.tgt.record(),
            seconds={stage: run.seconds[stage] for stage in STAGES if stage in run.seconds},
            order=run.order,
            starts=run.starts,
            start_used=run.start_used,
        )
        return Alignment(sides[0], sides[1], quality, provenance, run.history)

    # ----------------------------------------------------------------- what tells one run from another

    def config(self) -> dict[str, Any]:
        """The parameters that decide the result: all but the seed and those that only say where and how to compute."""
        found = {name: getattr(self, name) for name, p in self.parameters().items() if not p.declared.execution_only}
        # Numbers of NumPy are welcome as parameters; what is saved is JSON.
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in found.items()}

    def decided_later(self) -> dict[tuple[str, int], frozenset[str]]:
        """States of a fit, by stage and finished steps, that runs with other parameters have in common, latest first.

        To each the parameters, the seed perhaps among them, that have no part in it. What a method does not name here
        is taken to depend on all of them.
        """
        return {}

    def identity(
        self, inputs: dict[str, str], supervision: Supervision | None = None, *, hub: str | None = None
    ) -> Identity:
        """What tells a run of this aligner on these inputs (hashes by name) from others."""
        known = Supervision() if supervision is None else supervision
        what = (self.method, self.config(), int(self.seed), inputs, known.fingerprint())
        return Identity(__version__, *what, hub=hub, code=code_version())

    def transform(self, items: Any) -> FloatArray:
        """Source words or vectors in the common space. See `Alignment.transform`."""
        if not hasattr(self, "alignment_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit(src, tgt) first")
        return self.alignment_.transform(items)
