"""The base class of all methods: check the parameters, prepare the spaces, run the pipeline, judge the maps."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from qwp import arrays
from qwp import parameters as declared
from qwp.arrays import AnyFloats, Array, Device
from qwp.errors import InputError, installed
from qwp.judging.counterparts import counterpart_shares
from qwp.judging.evaluation import evaluate
from qwp.judging.measured import Measured, measure
from qwp.judging.null_data import without_correspondence
from qwp.judging.verdict import EFFORTS, FULL, UNJUDGED, Quality, judge
from qwp.judging.verdict import NONE as NO_VERDICT
from qwp.maps.pairs import RowPairs
from qwp.maps.procrustes import Maps
from qwp.maps.projection import Projection, unpad, within_target
from qwp.methods import bridges
from qwp.methods.advice import Advisor
from qwp.methods.bridges import Bridge, Leg, LegStore
from qwp.methods.settings import NONE, Composition, Supervision
from qwp.parameters import Parameter
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity, InputRecord, Provenance, bridge_name
from qwp.results.sides import AlignedSide
from qwp.showing.events import PairCallback, Progress, ProgressCallback
from qwp.showing.progress import pair_callback, progress_callback
from qwp.spaces.embeddings import SIDES, Embeddings
from qwp.spaces.lexicon import Lexicon, PairsOfWords
from qwp.spaces.objects import Space, as_embeddings
from qwp.stages.pipeline import Pipeline, StageCache
from qwp.stages.problem import PreparedSpace, Problem, View
from qwp.stages.stage import STAGES, Monitor, State, timed
from qwp.version import __version__, code_version

logger = logging.getLogger(__name__)

A = TypeVar("A", bound="Aligner")


@dataclass(frozen=True)
class Fit:
    """One fit before its first stage: the components of the method, the problem, the initial state and the monitor."""

    composition: Composition
    problem: Problem
    state: State
    monitor: Monitor
    identity: Identity
    bridges: Sequence[Bridge] = ()


class Aligner:
    """Base class of all methods. The parameters of the constructor are those of the components of `pipeline`.

    After `fit`: `alignment_` (the full result), `map_` (d, common), `quality_`, `n_features_in_`.
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    """The method in one line."""
    paper: ClassVar[str]
    pipeline: ClassVar[Pipeline] = Pipeline()
    supervision: ClassVar[str] = NONE
    """What the method needs besides the vectors: NONE, OPTIONAL, REQUIRED or IDENTICAL."""
    needs_torch: ClassVar[bool] = False
    needs_pot: ClassVar[bool] = False

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls) -> None:
        """Set the signature of the constructor."""
        cls.__signature__ = Signature(  # type: ignore[attr-defined]
            [Argument(name, Argument.KEYWORD_ONLY, default=p.default) for name, p in cls.parameters().items()]
        )

    def __init__(self, **params: Any) -> None:
        self.check_names(params)
        for name, parameter in self.parameters().items():
            setattr(self, name, params.get(name, parameter.default))

    # ----------------------------------------------------------------- parameters, as in scikit-learn

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Return the parameters by name; those that all methods share come last."""
        return dict(_parameters(cls))  # type: ignore[arg-type]  # a class is hashable, whatever its objects are

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters."""
        return list(cls.parameters())

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raise an InputError for names that are not parameters."""
        known = cls.parameter_names()
        unknown = sorted(set(names) - set(known))
        if unknown:
            near = dict.fromkeys(each for name in unknown for each in get_close_matches(name, known, n=1))
            hint = f"did you mean {' and '.join(near)}? " if near else ""
            raise InputError(
                f"method {cls.method!r} has no option {', '.join(unknown)}; {hint}expected some of {', '.join(known)}"
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters. `deep` is accepted for scikit-learn; no parameter is nested."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self: A, **params: Any) -> A:
        """Change parameters by name."""
        self.check_names(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def initializers(cls) -> tuple[str, ...]:
        """Return the values of `start`; none for methods without this parameter."""
        start = cls.parameters().get("start")
        return () if start is None else tuple(start.declared.choices or ())

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in self.parameters().items()}
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def composition(self) -> Composition:
        """The components of the method with the values of its parameters."""
        return declared.with_values(Composition(pipeline=self.pipeline), self.get_params())

    # ----------------------------------------------------------------- fitting

    def fit(
        self: A,
        src: Space,
        tgt: Space,
        *,
        lexicon: PairsOfWords | None = None,
        start_matrix: AnyFloats | None = None,
        via: Sequence[Space] = (),
        progress: bool | ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
        cache: StageCache | None = None,
    ) -> A:
        """Align `src` onto `tgt`.

        Args:
            src: Embeddings, an array (n, d), a path, or any other type that `qwp.spaces.objects` reads.
            tgt: likewise, (m, d').
            lexicon: known pairs for methods and initializers that use them: a Lexicon, a path, pairs or a dict.
            start_matrix: an initial map (d, d') for `start="matrix"`.
            via: third spaces, with which both are aligned first; the joined lexicons initialize the fit.
            progress: True for a progress bar on stderr, or a function that is called after every step.
            checkpoint: saves the state of a long run and continues an interrupted one.
            cache: shares finished stages between fits without bridges.
        """
        known = Supervision(None if lexicon is None else Lexicon.of(lexicon), start_matrix)
        self.validate(known, bridged=len(via) > 0)
        composition = self.composition
        with progress_callback(progress) as listener, self._resources(composition):
            if via:
                fit, cache = self._begin_over(composition, src, tgt, via, listener, checkpoint), None
            else:
                fit = self._begin(composition, src, tgt, known, progress=listener, checkpoint=checkpoint, cache=cache)
            self._run(fit, cache)
        return self

    def fit_over(
        self: A,
        src: Embeddings,
        tgt: Embeddings,
        found: Sequence[Bridge],
        *,
        progress: ProgressCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> A:
        """Align `src` onto `tgt` over bridges whose legs are aligned. Arguments as for `fit`."""
        self.validate(bridged=True)
        identity = self._identity_over([src, tgt], [each.space for each in found])
        store = LegStore(checkpoint, identity)
        with self._resources(self.composition):
            self._run(self._begin_joined(self.composition, (src, tgt), found, identity, store, progress))
        return self

    def _run(self, fit: Fit, cache: StageCache | None = None) -> None:
        """Run all stages of a fit, and set the attributes of a finished one."""
        with arrays.use_threads(fit.composition.execution.threads_for([fit.problem])):
            fit, keys = self._with_cached_state(fit, cache)
            [last] = fit.composition.pipeline.run([fit.problem], [fit.state], [fit.monitor], cache, keys)
            self.alignment_ = self._finish(fit, last)
        self.map_ = self.alignment_.src_map
        self.quality_ = self.alignment_.quality
        self.n_features_in_ = self.alignment_.src.dim

    def fit_many(
        self, pairs: Sequence[tuple[Space, Space]], *, progress: bool | PairCallback | None = None
    ) -> list[Alignment]:
        """Align many pairs with the same parameters, on a GPU several in lock-step.

        The results are those of `fit` on each pair, up to rounding and the tolerance of the transport. progress: True
        for a progress bar on stderr, or a function that gets the number of the pair before the event.
        """
        known = Supervision()
        self.validate(known)
        composition, alignments = self.composition, list[Alignment]()
        size = self.pairs_at_a_time()
        with self._resources(composition), pair_callback(progress, len(pairs)) as listener:
            for first in range(0, len(pairs), size):
                group = [
                    (as_embeddings(src, "src"), as_embeddings(tgt, "tgt")) for src, tgt in pairs[first : first + size]
                ]
                arrays.thread_map(Embeddings.sha256, [space for pair in group for space in pair])
                fits = [
                    self._begin(
                        composition, *pair, known, progress=None if listener is None else partial(listener, number)
                    )
                    for number, pair in enumerate(group, start=first)
                ]
                problems = [fit.problem for fit in fits]
                with arrays.use_threads(composition.execution.threads_for(problems)):
                    states = [fit.state for fit in fits]
                    states = composition.pipeline.run(problems, states, [fit.monitor for fit in fits])
                    alignments += [self._finish(fit, state) for fit, state in zip(fits, states, strict=True)]
        return alignments

    def validate(self, supervision: Supervision | None = None, *, bridged: bool = False) -> None:
        """Raise an InputError for invalid parameters or supervision, before any computation."""
        known = Supervision() if supervision is None else supervision
        self.check()
        self.choose_device()
        if self.needs_pot:
            installed("pot", f"method {self.method!r}")
        if bridged:
            given = known.lexicon is not None, known.start_matrix is not None
            bridges.check_bridges(self.method, self.initializers(), lexicon=given[0], matrix=given[1])
        known.check(self.method, self.supervision, takes_matrix="matrix" in self.initializers())
        self.composition.pipeline.check_supervision(known.lexicon is not None, known.start_matrix is not None)

    def check(self) -> None:
        """Raise an InputError for the first parameter with an invalid value, alone or together with the others."""
        declared.check(self.composition)

    def choose_device(self) -> Device:
        """Return the device of the computation."""
        return self.composition.execution.choose_device(self.method, self.needs_torch)

    def pairs_at_a_time(self) -> int:
        """Return the number of pairs to align in lock-step: on a GPU as many as its memory holds, on a CPU one."""
        on_gpu = self.choose_device().device.startswith("cuda")
        return self.composition.pipeline.pairs_at_a_time(self.max_memory) if on_gpu else 1

    @contextmanager
    def _resources(self, composition: Composition) -> Iterator[None]:
        """Apply the user's limits of threads and memory."""
        if self.choose_device().library == "torch":
            import torch  # noqa: F401  (the limit of threads applies to loaded libraries only)
        with arrays.use_threads(composition.execution.threads), arrays.use_memory(composition.execution.max_memory):
            yield

    def prepare(self, composition: Composition, spaces: Sequence[Embeddings]) -> list[PreparedSpace]:
        """Return the spaces, normalised on the device of the computation."""
        logger.info("prepare begins")
        begin = time.perf_counter()
        prepared = composition.pipeline.prepare.spaces(spaces, self.choose_device(), composition.execution.seed)
        records = ", ".join(str(InputRecord.of(side.space)) for side in prepared)
        logger.info("prepare ends after %.1f s: %s", time.perf_counter() - begin, records)
        return prepared

    def _begin(
        self,
        composition: Composition,
        src: Space,
        tgt: Space,
        known: Supervision,
        *,
        pairs: RowPairs | None = None,
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None = None,
        cache: StageCache | None = None,
    ) -> Fit:
        """Prepare the spaces; return the problem with an initial state or with that of the checkpoint."""
        begin = time.perf_counter()
        prepared = self.prepare(composition, [as_embeddings(src, "src"), as_embeddings(tgt, "tgt")])
        problem = composition.pipeline.prepare.problem(
            prepared,
            seed=composition.execution.seed,
            lexicon=known.lexicon,
            pairs=pairs,
            matrix=known.start_matrix,
            compare_orders=composition.pipeline.compares_orders,
            hold_out=composition.pipeline.holds_out_pairs,
        )
        inputs = {name: side.space.sha256() for name, side in zip(("src", "tgt"), prepared, strict=True)}
        identity = self.identity(inputs, known)
        state, seconds = composition.pipeline.initial_state(problem), {"prepare": time.perf_counter() - begin}
        save, interval = None, None
        if checkpoint is not None:
            found = checkpoint.load(identity)
            if found is not None:
                state, seconds = found[0].on_device(problem.views[0].x), {**seconds, **found[1]}
            save, interval = partial(_save, checkpoint, identity), checkpoint.interval
        banks = None if cache is None else cache.banks
        monitor = Monitor(progress, save, interval=interval, seconds=seconds, bank_cache=banks)
        return Fit(composition, problem, state, monitor, identity)

    def _begin_over(
        self,
        composition: Composition,
        src: Space,
        tgt: Space,
        via: Sequence[Space],
        progress: ProgressCallback | None,
        checkpoint: Checkpoint | None,
    ) -> Fit:
        """Align both sides with each bridge; return the fit that the joined pairs initialize.

        If no bridge can be used, the fit searches for an initial map as without bridges.
        """
        sides = as_embeddings(src, "src"), as_embeddings(tgt, "tgt")
        thirds = [as_embeddings(space, bridge_name(number)) for number, space in enumerate(via)]
        identity = self._identity_over(sides, thirds)
        store, legs = LegStore(checkpoint, identity), list[Leg]()
        # A verdict decides whether a leg is used, whatever verdict the result is to get.
        one = type(self)(**{**self.get_params(), "verdict": FULL})
        for third in thirds:
            for side in sides:
                logger.info("bridge: aligning %s with %s", side.name, third.name)
                fit = partial(_fitted, one, side, third, progress)
                legs.append(store.next(fit, len(legs)))
                if progress is not None:
                    figures = {"leg": f"{side.name} - {third.name}", "result": str(legs[-1].record)}
                    progress(Progress("bridges", len(legs), 2 * len(thirds), figures))
        found = [Bridge(third, *legs[2 * n : 2 * n + 2]) for n, third in enumerate(thirds)]
        begun = self._begin_joined(composition, sides, found, identity, store, progress)
        begun.monitor.seconds["bridges"] = sum(leg.record.seconds for leg in legs)
        return begun

    def _begin_joined(
        self,
        composition: Composition,
        sides: tuple[Embeddings, Embeddings],
        found: Sequence[Bridge],
        identity: Identity,
        store: LegStore,
        progress: ProgressCallback | None,
    ) -> Fit:
        """Return the fit that the joined pairs of bridges initialize. store: has the checkpoint of the run."""
        pairs = bridges.joined_pairs(found)
        if pairs is not None:
            composition = replace(composition, pipeline=bridges.pipeline_from(composition.pipeline, pairs))
        begun = self._begin(
            composition,
            *sides,
            Supervision(),
            pairs=None if pairs is None else pairs.pairs,
            progress=progress,
            checkpoint=store.checkpoint(),
        )
        logger.info("%s", bridges.remark(found))
        return replace(begun, identity=identity, bridges=found)

    def _identity_over(self, sides: Sequence[Embeddings], thirds: Sequence[Embeddings]) -> Identity:
        """Return the identity of a run over bridges."""
        names = (*SIDES, *map(bridge_name, range(len(thirds))))
        return self.identity(dict(zip(names, map(Embeddings.sha256, (*sides, *thirds)), strict=True)))

    def _with_cached_state(self, fit: Fit, cache: StageCache | None) -> tuple[Fit, dict[str, str]]:
        """Return the fit with the latest cached state, and the cache keys of all its states."""
        if cache is None:
            return fit, {}
        about = fit.identity.to_dict()
        context = {name: about[name] for name in ("code", "method", "inputs", "supervision")}
        execution = fit.composition.execution
        threads = execution.threads_for([fit.problem])
        # Later stages decide if known pairs are held out from the initializer.
        known = fit.problem.known
        held_out = known is not None and known.held_out is not None
        context |= {"device": str(self.choose_device()), "threads": threads, "held_out": held_out}
        keys = fit.composition.pipeline.keys(context, execution.seed)
        found = cache.load(keys)
        if found is None:
            return fit, keys
        state, seconds = found
        fit.monitor.seconds.update(seconds)
        return replace(fit, state=state.on_device(fit.problem.views[0].x)), keys

    # ----------------------------------------------------------------- the result

    def _finish(self, fit: Fit, state: State) -> Alignment:
        """Judge the maps and return them as an Alignment."""
        view, monitor = fit.problem.view_of(state.order), fit.monitor
        assert state.maps is not None, "a pipeline has stages"
        dims = view.src.space.dim, view.tgt.space.dim
        maps = within_target(state.maps, dims[1])
        with timed([monitor], "verdict", view.x):
            quality = self._judged(fit, replace(state, maps=maps))
        if quality.failed and fit.problem.known is None:
            text = f"{quality.explanation} {Advisor().advice(fit.problem, options=self._alternatives(fit))}"
            quality = replace(quality, explanation=text)
        if fit.bridges:
            quality = replace(quality, explanation=f"{quality.explanation} {bridges.remark(fit.bridges)}")
        logger.info("%s: %s", quality.verdict, quality.explanation)
        figures = {"ratio": quality.ratio, "verdict": quality.verdict}
        last = monitor.totals.get("verdict", 1)
        state = state.recorded("verdict", last, figures)
        monitor.report("verdict", last, last, figures)
        sides = [
            AlignedSide(
                side.space,
                None if matrix is None else arrays.to_numpy(matrix),
                side.normalization.at(arrays.HOST),
                side.order,
            )
            for side, matrix in zip((view.src, view.tgt), unpad(maps, *dims), strict=True)
        ]
        provenance = Provenance.of(
            fit.identity,
            backend=str(self.choose_device()),
            src=InputRecord.of(view.src.space),
            tgt=InputRecord.of(view.tgt.space),
            seconds={stage: monitor.seconds[stage] for stage in STAGES if stage in monitor.seconds},
            order=state.order,
            candidates=list(state.candidates),
            initializer=state.initializer,
            bridges=[each.record() for each in fit.bridges],
        )
        return Alignment(sides[0], sides[1], quality, provenance, list(state.history))

    def _alternatives(self, fit: Fit) -> list[str]:
        """Return the options that may find an alignment where this fit did not."""
        options = [] if fit.bridges else ["`--via FILE` with a third language"]
        options.append("`--lexicon FILE` with 100 pairs")
        effort = self.get_params().get("effort")
        if "lexicon" not in self.initializers():
            return ["`--method qwp`"]
        return [*options, "`--effort high`"] if effort in ("low", "normal") else options

    def _judged(self, fit: Fit, state: State) -> Quality:
        """Return the verdict on the maps, with the remarks of the stages."""
        problem, judging, maps = fit.problem, fit.composition.judging, state.maps
        view = problem.view_of(state.order)
        assert maps is not None
        # Only a verdict needs the principal axes.
        projection = Projection(view.x, view.y) if judging.verdict == NO_VERDICT else view.projected.projection
        assert projection is not None
        quality = judge(
            projection.x,
            projection.y,
            projection.project(maps),
            seed=problem.seed,
            csls_k=judging.csls_k,
            effort=EFFORTS[judging.verdict],
            ordered=problem.ordered,
            known=_measured(problem, view, maps, judging.csls_k),
            callback=lambda done, total: fit.monitor.report("verdict", done, total, {}),
            null_fit=partial(_null_fit, fit),
        )
        if not problem.ordered and quality.verdict != UNJUDGED:
            found = counterpart_shares(view.x, view.y, maps, seed=problem.seed)
            text = quality.explanation if quality.failed else f"{quality.explanation} {found.sentence}"
            quality = replace(quality, explanation=text, counterparts=found)
        return replace(quality, explanation=f"{quality.explanation} {state.remark}") if state.remark else quality

    # ----------------------------------------------------------------- identity of a run

    def config(self) -> dict[str, Any]:
        """Return the parameters that determine the result: all but the seed and those of the execution."""
        found = {name: getattr(self, name) for name, p in self.parameters().items() if not p.declared.execution_only}
        # NumPy numbers are valid parameters but not JSON.
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in found.items()}

    def identity(
        self, inputs: Mapping[str, str], supervision: Supervision | None = None, *, hub: str | None = None
    ) -> Identity:
        """Return the identity of a run of this aligner. inputs: hashes of the spaces by name."""
        known = Supervision() if supervision is None else supervision
        run = (self.method, self.config(), int(self.seed), dict(inputs), known.fingerprint())
        return Identity(__version__, *run, hub=hub, code=code_version())

    def fit_transform(self, src: Space, tgt: Space, **arguments: Any) -> AnyFloats:
        """Fit, and return all source words mapped to the common space (n, c). The arguments are those of `fit`."""
        fitted = self.fit(src, tgt, **arguments)
        return fitted.transform(fitted.alignment_.src.words)

    def score(self, lexicon: PairsOfWords) -> float:
        """Return P@1 by CSLS on a lexicon, over covered source words, from 0 to 1. See `qwp.evaluate`."""
        return evaluate(self._fitted_alignment(), lexicon, bootstrap=0).p_at_1()

    def _fitted_alignment(self) -> Alignment:
        if not hasattr(self, "alignment_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit(src, tgt) first")
        return self.alignment_

    def transform(self, items: Any) -> AnyFloats:
        """Return source words or vectors mapped to the common space. See `Alignment.transform`."""
        return self._fitted_alignment().transform(items)


def _null_fit(fit: Fit, number: int) -> tuple[Array, Array, Maps]:
    """Return the spaces and the maps of a full fit of null data."""
    problem, pipeline = without_correspondence(fit.problem, number), fit.composition.pipeline
    [state] = pipeline.run([problem], [pipeline.initial_state(problem)], [Monitor()])
    view = problem.view_of(state.order)
    projection, maps = view.projected.projection, state.maps
    assert projection is not None
    assert maps is not None
    return projection.x, projection.y, projection.project(within_target(maps, view.tgt.space.dim))


def _measured(problem: Problem, view: View, maps: Maps, csls_k: int) -> Measured | None:
    """Return the accuracy of maps on held-out known pairs or, if none are held out, on those that the fit used."""
    if problem.known is None:
        return None
    held_out = problem.known.held_out
    pairs = view.positions(problem.known.used if held_out is None else held_out)
    return measure(view.x, view.y, maps, pairs, csls_k=csls_k, seed=problem.seed, held_out=held_out is not None)


def _fitted(
    aligner: Aligner,
    src: Embeddings,
    tgt: Embeddings,
    progress: ProgressCallback | None,
    checkpoint: Checkpoint | None,
) -> Alignment:
    return aligner.fit(src, tgt, progress=progress, checkpoint=checkpoint).alignment_


def _save(checkpoint: Checkpoint, identity: Identity, state: State, seconds: Mapping[str, float]) -> None:
    checkpoint.save(state, seconds, identity)


@cache
def _parameters(cls: type[Aligner]) -> dict[str, Parameter]:
    return declared.parameters(Composition(pipeline=cls.pipeline))
