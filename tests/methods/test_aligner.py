"""The base class of all methods, with methods that only rotate the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from qwp import QWP, InputError, arrays
from qwp.arrays import Array
from qwp.judging.evaluation import evaluate
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.methods import METHODS, WP, Aligner, make_aligner
from qwp.methods.settings import REQUIRED, Supervision
from qwp.parameters import OTHER, param
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from qwp.spaces import io
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem, View
from qwp.stages.refinement import WEIGHTED, CslsRefinement
from qwp.stages.stage import Initializer, Monitor, Report, State
from qwp.version import __version__
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import normalised, seeds
from tests.problems import planted, rotation
from tests.stages.problems import StateMemory


@dataclass(frozen=True, kw_only=True)
class Rotation(Initializer):
    """Return a rotation for any spaces."""

    number: int = param(3, "Which rotation.", OTHER, least=0, most=99)

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the rotation with this number."""
        report(1, 1, {"threads": arrays.threads()})
        return arrays.asarray(rotation(problem.width, self.number), view.x)


class Turn(Aligner):
    """Rotate the source."""

    method = "turn"
    summary = "a rotation"
    paper = "none"
    pipeline = Pipeline(init=Rotation())


asked: list[str] = []


@dataclass(frozen=True, kw_only=True)
class Answer(Initializer):
    """Return the planted map of `SPACES`, and count the calls."""

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the planted map."""
        asked.append("initial map")
        return arrays.asarray(planted(200, d=12, noise=0.4).w, view.x)


class FromTheAnswer(Aligner):
    """Refine the planted map."""

    method = "answer"
    summary = "the planted map"
    paper = "none"
    pipeline = Pipeline(init=Answer(), refine=CslsRefinement())


@dataclass(frozen=True, kw_only=True)
class FarFromTheAnswer(Initializer):
    """Return a map halfway to the planted one, which was not accepted."""

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map."""
        return arrays.asarray(host(polar_svd(planted(200, d=12).w + rotation(12, 7))), view.x)

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with a candidate that was not accepted."""
        return replace(super().__call__(problem, state, monitor), accepted=False)


class FromAfar(Aligner):
    """Refine with additional rounds, because no initial map was accepted."""

    method = "afar"
    summary = "rounds from afar"
    paper = "none"
    pipeline = Pipeline(init=FarFromTheAnswer(), refine=CslsRefinement(further_rounds=20))


OPTIONS: dict[str, Any] = {"threads": 1, "dtype": "float64", "refine": 3, "refine_words": 150}
TWO_SIDED: dict[str, Any] = {"refine_weights": "csls", "refine_map": "reweighted", "map": "reweighted"}


# --------------------------------------------------------------------------- one fit


def test_a_fit_leaves_the_alignment_and_its_parts() -> None:
    src, tgt = planted_embeddings(220)
    aligner = Turn(threads=1)
    assert aligner.fit(src, tgt) is aligner
    done = aligner.alignment_
    assert aligner.map_ is done.src_map
    assert_close(aligner.map_, rotation(12, 3), atol=1e-6)
    assert aligner.map_.dtype == np.float32
    assert aligner.quality_ is done.quality
    assert aligner.n_features_in_ == 12
    assert (done.src, done.tgt, done.tgt_map) == (src, tgt, None)
    assert done.quality.verdict == "failed"
    assert [record["stage"] for record in done.history] == ["initialize", "verdict"]
    assert list(done.provenance.seconds) == ["prepare", "initialize", "verdict"]
    assert all(seconds >= 0 for seconds in done.provenance.seconds.values())


def test_the_verdict_is_that_of_the_normalised_vectors() -> None:
    aligner = Turn(threads=1, device="cpu", seed=4, csls_k=7).fit(*planted_embeddings(220))
    with arrays.use_threads(1):
        expected = judge(*normalised(aligner.alignment_), Maps(aligner.map_), seed=4, csls_k=7)
    # The method adds its remarks to the explanation.
    assert aligner.quality_.explanation.startswith(expected.explanation)
    assert replace(aligner.quality_, explanation=expected.explanation) == expected


def test_the_provenance_has_the_paths_of_the_spaces(tmp_path: Path) -> None:
    src, tgt = planted_embeddings(20)
    io.save(src, tmp_path / "src.vec")
    part = io.load(tmp_path / "src.vec", max_vocab=5)
    for given, path, words, complete in (
        (src, None, 20, True),
        (tmp_path / "src.vec", str(tmp_path / "src.vec"), 20, True),
        (part, str(tmp_path / "src.vec"), 5, False),
    ):
        found = Turn(threads=1, verdict="none").fit(given, tgt).alignment_.provenance.src
        assert (found.path, found.n_words, found.dim, found.complete) == (path, words, 12, complete)
        assert found.sha256 == (part if given is part else src).sha256()


def test_transform_maps_as_the_alignment_does() -> None:
    src, tgt = planted_embeddings(30)
    aligner = Turn(threads=1)
    with pytest.raises(InputError, match=r"this Turn is not fitted yet: call fit\(src, tgt\) first"):
        aligner.transform(src.vectors)
    aligner.fit(src.vectors, tgt.vectors)
    assert_same(aligner.transform(src.vectors), aligner.alignment_.transform(src.vectors))
    x, _ = normalised(aligner.alignment_)
    assert_close(aligner.transform(["src:3"])[0], x[3] @ aligner.map_, atol=1e-6)


def test_fit_returns_self_and_transform_maps_for_qwp() -> None:
    src, tgt = planted_embeddings(200)
    aligner = QWP(**{**QUICK, "start": "profiles", "epochs": 1, "steps": 3, "refine": 1})
    assert aligner.fit(src.vectors, tgt.vectors) is aligner
    assert aligner.n_features_in_ == 12
    assert_same(aligner.transform(src.vectors), aligner.alignment_.transform(src.vectors))


def test_what_cannot_work_is_refused_before_any_file_is_read() -> None:
    for options in ({"number": 100}, {"csls_k": 0}, {"backend": "jax"}, {"device": "tpu"}, {"threads": 0}):
        with pytest.raises(InputError, match=next(iter(options))):
            Turn(**options).fit("nowhere.vec", "nowhere.vec")
    with pytest.raises(InputError, match="method 'turn' does not use one"):
        Turn().fit("nowhere.vec", "nowhere.vec", lexicon=seeds(3))
    with pytest.raises(InputError, match="does not exist"):
        Turn().fit("nowhere.vec", "nowhere.vec")


def test_a_supervised_method_wants_its_lexicon() -> None:
    class Supervised(Turn):
        supervision = REQUIRED

    Supervised().validate(Supervision(seeds(3)))
    with pytest.raises(InputError, match="is supervised and needs a seed lexicon"):
        Supervised().validate()


def test_threads_and_memory_are_those_that_were_asked_for() -> None:
    seen: list[tuple[int, int]] = []

    class WatchedRotation(Rotation):
        def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
            seen.append((arrays.threads(), arrays.block_rows(10_000, view.x)))
            return super().initial_map(problem, view, report)

    class Watched(Turn):
        pipeline = Pipeline(init=WatchedRotation())

    before = arrays.threads(), arrays.block_rows(10_000, np.zeros(1, dtype="f4"))
    Watched(threads=1, max_memory=0.001).fit(*planted_embeddings(30))
    Watched(threads=3).fit(*planted_embeddings(30))
    assert [threads for threads, _ in seen] == [1, 3]
    assert seen[0][1] < seen[1][1]
    assert (arrays.threads(), arrays.block_rows(10_000, np.zeros(1, dtype="f4"))) == before


def test_progress_is_reported() -> None:
    events: list[Progress] = []
    Turn(threads=1).fit(*planted_embeddings(30), progress=events.append)
    verdict = [("verdict", step, 4) for step in (1, 2, 3, 4)]
    assert [(event.stage, event.done, event.total) for event in events] == [("initialize", 1, 1), *verdict]
    assert events[0].figures == {"threads": 1}
    assert set(events[-1].figures) == {"ratio", "verdict"}
    # The steps of the verdict are events, not records.
    events.clear()
    alignment = Turn(threads=1, verdict="none").fit(*planted_embeddings(30), progress=events.append).alignment_
    assert [(event.stage, event.done, event.total) for event in events] == [("initialize", 1, 1), ("verdict", 1, 1)]
    assert [record["stage"] for record in alignment.history] == ["initialize", "verdict"]
    assert alignment.quality.verdict == "unjudged"


def test_the_candidates_and_the_remark_are_in_the_result() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Searching(Rotation):
        def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
            found = super().__call__(problem, state, monitor)
            return replace(
                found, candidates=({"initializer": "a"}, {"initializer": "b"}), initializer="b", remark="Said so."
            )

    class Search(Turn):
        pipeline = Pipeline(init=Searching())

    done = Search(threads=1).fit(*planted_embeddings(30)).alignment_
    found = done.provenance
    assert (found.candidates, found.initializer) == ([{"initializer": "a"}, {"initializer": "b"}], "b")
    assert done.quality.explanation.endswith(" Said so.")


def test_the_rounds_of_a_refinement_begin_with_the_initial_map_and_are_reported() -> None:
    events: list[Progress] = []
    aligner = FromTheAnswer(**OPTIONS).fit(*planted_embeddings(200, noise=0.4), progress=events.append)
    settings = CslsRefinement(rounds=3, words=150)
    expected = settings.refine(*normalised(aligner.alignment_), Maps(planted(200, d=12, noise=0.4).w))
    assert_close(aligner.map_, expected.src, atol=1e-12)
    assert aligner.alignment_.tgt_map is None
    records = [record for record in aligner.alignment_.history if record["stage"] == "refine"]
    assert [record["step"] for record in records] == [1, 2, 3]
    assert {record["n_words"] for record in records} == {150}
    assert all(0 < record["n_pairs"] <= 150 for record in records)
    assert [(e.done, e.total) for e in events if e.stage == "refine"] == [(1, 3), (2, 3), (3, 3)]
    assert aligner.alignment_.provenance.seconds["refine"] > 0


def test_no_rounds_leave_the_initial_map() -> None:
    aligner = FromTheAnswer(**{**OPTIONS, "refine": 0}).fit(*planted_embeddings(200, noise=0.4))
    assert_same(aligner.map_, planted(200, d=12, noise=0.4).w)


def test_a_reweighted_map_needs_a_round() -> None:
    message = "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
    with pytest.raises(InputError, match=message):
        FromTheAnswer(refine=0, map="reweighted").validate()
    FromTheAnswer(refine=1, map="reweighted").validate()

    class ReweightedByDefault(FromTheAnswer):
        pipeline = Pipeline(init=Answer(), refine=WEIGHTED)

    # If re-weighting is the default, zero rounds return the map of the initializer.
    ReweightedByDefault(refine=0).validate()
    assert np.isfinite(ReweightedByDefault(threads=1, refine=0).fit(*planted_embeddings(200, noise=0.4)).map_).all()


# --------------------------------------------------------------------------- many pairs


def test_many_pairs_are_each_fitted_alone() -> None:
    pairs = [planted_embeddings(n, seed=n) for n in (20, 30, 40)]
    events: list[tuple[int, str]] = []
    found = Turn(threads=1).fit_many(pairs, progress=lambda number, event: events.append((number, event.stage)))
    for (src, tgt), alignment in zip(pairs, found, strict=True):
        alone = Turn(threads=1).fit(src, tgt).alignment_
        assert (alignment.src, alignment.tgt) == (src, tgt)
        assert_same(alignment.src_map, alone.src_map)
        assert alignment.quality == alone.quality
    assert events == [(number, stage) for number in range(3) for stage in ("initialize", *["verdict"] * 4)]
    assert Turn().fit_many([]) == []
    with pytest.raises(InputError, match="number=-1 is out of range"):
        Turn(number=-1).fit_many([])


def test_fit_many_runs_groups_of_pairs_at_a_time() -> None:
    groups: list[int] = []

    class WatchedRotation(Rotation):
        def run_many(
            self, problems: Sequence[Problem], states: Sequence[State], monitors: Sequence[Monitor]
        ) -> list[State]:
            groups.append(len(problems))
            return super().run_many(problems, states, monitors)

    class InGroups(Turn):
        pipeline = Pipeline(init=WatchedRotation())

        def pairs_at_a_time(self) -> int:
            return 2

    pairs = [planted_embeddings(n, seed=n) for n in (20, 25, 30, 35, 40)]
    found = InGroups(threads=1).fit_many(pairs)
    assert groups == [2, 2, 1]
    assert [len(alignment.src) for alignment in found] == [20, 25, 30, 35, 40]


# --------------------------------------------------------------------------- what tells one run from another


def test_the_configuration_is_what_decides_the_result() -> None:
    config = Turn(number=5, seed=9, threads=1, max_memory=1.0, device="cpu", backend="numpy").config()
    assert config == {
        "number": 5,
        "csls_k": 10,
        "normalize": "unit,center,unit",
        "order": "auto",
        "verdict": "full",
        "dtype": "float32",
    }


def test_the_identity_of_a_run() -> None:
    inputs = {"src": "a" * 64, "tgt": "b" * 64}
    one = Turn(seed=2).identity(inputs)
    assert (one.version, one.method, one.seed, dict(one.inputs), one.hub) == (__version__, "turn", 2, inputs, None)
    assert one == Turn(seed=2, threads=1).identity(inputs)
    others = [
        Turn(seed=3).identity(inputs),
        Turn(seed=2, number=4).identity(inputs),
        Turn(seed=2).identity({**inputs, "tgt": "c" * 64}),
        Turn(seed=2).identity(inputs, Supervision(seeds(3))),
        Turn(seed=2).identity(inputs, hub="tgt"),
    ]
    assert all(other != one for other in others)


# --------------------------------------------------------------------------- checkpoints


def interrupt_at(stage: str, step: int) -> Callable[[Progress], None]:
    """Return a callback that interrupts the fit in a step of a stage."""

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    return interrupt


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    spaces = planted_embeddings(200, noise=0.4)
    with pytest.raises(KeyboardInterrupt):
        FromTheAnswer(seed=1).fit(*spaces, progress=interrupt_at("refine", 1), checkpoint=Checkpoint(tmp_path))
    with pytest.raises(InputError, match="seed was 1, now 2"):
        FromTheAnswer(seed=2).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True))
    asked.clear()
    FromTheAnswer(seed=1).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True))
    assert asked == []
    # Without `resume`, a fit starts afresh.
    FromTheAnswer(seed=1).fit(*spaces, checkpoint=Checkpoint(tmp_path))
    assert asked == ["initial map"]


@pytest.mark.parametrize(("options", "stop"), [({}, 1), (TWO_SIDED, 3)], ids=["one-sided", "two-sided"])
def test_an_interrupted_refinement_continues_with_both_maps(options: dict[str, Any], stop: int, tmp_path: Path) -> None:
    spaces = planted_embeddings(200, noise=0.4)
    aligner = FromTheAnswer(**OPTIONS, **options)
    whole = aligner.fit(*spaces).alignment_
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(*spaces, progress=interrupt_at("refine", stop), checkpoint=Checkpoint(tmp_path))
    asked.clear()
    events: list[Progress] = []
    checkpoint = Checkpoint(tmp_path, resume=True)
    resumed = aligner.fit(*spaces, progress=events.append, checkpoint=checkpoint).alignment_
    assert asked == []
    # The interrupted round was reported but not saved.
    assert [event.done for event in events if event.stage == "refine"] == list(range(stop, 4))
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))
    assert resumed.history == whole.history
    assert (resumed.tgt_map is None) == (whole.tgt_map is None) == (not options)
    assert (orthogonality_error(host(resumed.src_map)) < 1e-9) == (not options)


@pytest.mark.parametrize("stop", ["in further rounds", "after them"])
def test_a_run_resumes_from_additional_rounds(stop: str, tmp_path: Path) -> None:
    # Far from the solution, so that several additional rounds improve the score.
    spaces = planted_embeddings(200, noise=0.9)
    aligner = FromAfar(**{**OPTIONS, **TWO_SIDED, "refine": 1, "refine_words": 0, "order": "none"})
    events: list[Progress] = []
    whole = aligner.fit(*spaces, progress=events.append).alignment_
    made = [event.done for event in events if event.stage == "refine"]
    assert made == list(range(1, len(made) + 1))
    assert 2 < len(made) < 21
    interrupt = interrupt_at("refine", 3) if stop == "in further rounds" else interrupt_at("verdict", 1)
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(*spaces, progress=interrupt, checkpoint=Checkpoint(tmp_path))
    events.clear()
    resumed = aligner.fit(*spaces, progress=events.append, checkpoint=Checkpoint(tmp_path, resume=True)).alignment_
    assert [e.done for e in events if e.stage == "refine"] == (made[2:] if stop == "in further rounds" else [])
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))
    assert resumed.history == whole.history
    assert resumed.quality == whole.quality


def test_seconds_before_an_interruption_count(tmp_path: Path) -> None:
    spaces = planted_embeddings(200, noise=0.4)
    with pytest.raises(KeyboardInterrupt):
        FromTheAnswer(**OPTIONS).fit(*spaces, progress=interrupt_at("verdict", 1), checkpoint=Checkpoint(tmp_path))
    resumed = FromTheAnswer(**OPTIONS).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True)).alignment_
    assert list(resumed.provenance.seconds) == ["prepare", "initialize", "refine", "verdict"]
    assert all(seconds > 0 for seconds in resumed.provenance.seconds.values())


# --------------------------------------------------------------------------- stages that fits share


def test_fits_that_differ_in_a_later_stage_share_the_earlier_ones() -> None:
    spaces, memory = planted_embeddings(200, noise=0.4), StateMemory()
    FromTheAnswer(**OPTIONS).fit(*spaces, cache=memory)
    asked.clear()
    found = FromTheAnswer(**{**OPTIONS, "refine": 2}).fit(*spaces, cache=memory).alignment_
    assert asked == []
    alone = FromTheAnswer(**{**OPTIONS, "refine": 2}).fit(*spaces).alignment_
    assert_same(found.src_map, alone.src_map)
    assert found.history == alone.history
    assert found.provenance.seconds["initialize"] > 0


def test_what_decides_a_state_keeps_it_apart() -> None:
    spaces, memory = planted_embeddings(200, noise=0.4), StateMemory()
    FromTheAnswer(**OPTIONS).fit(*spaces, cache=memory)
    asked.clear()
    others: list[dict[str, Any]] = [
        {"dtype": "float32"},
        {"normalize": "unit"},
        {"order": "none"},
        {"threads": 2},
        {"order": "given"},
    ]
    for other in others:
        FromTheAnswer(**{**OPTIONS, **other}).fit(*spaces, cache=memory)
    FromTheAnswer(**OPTIONS).fit(*planted_embeddings(200, noise=0.4, seed=1), cache=memory)
    assert len(asked) == len(others) + 1


def test_cache_keys_depend_on_the_known_pairs() -> None:
    spaces, memory = planted_embeddings(400, noise=0.4), StateMemory()
    options: dict[str, Any] = {**QUICK, "start": "lexicon", "verdict": "none", "refine": 1}
    # By default a tenth of the pairs is held out; with a weight of zero the initializer learns from all of them.
    for weight in (None, 0.0):
        for count in (250, 300):
            aligner = QWP(**options, anchor_weight=weight)
            found = aligner.fit(*spaces, lexicon=seeds(count), cache=memory).map_
            assert_same(found, aligner.fit(*spaces, lexicon=seeds(count)).map_)
    assert len(memory.states) == 8


# --------------------------------------------------------------------------- parameters, as in scikit-learn


def test_scikit_learn_clones_it() -> None:
    for method in METHODS:
        aligner = METHODS[method](csls_k=7, seed=3)
        copy = clone(aligner)
        assert type(copy) is type(aligner)
        assert copy is not aligner
        assert copy.get_params() == aligner.get_params()
        assert (copy.csls_k, copy.seed) == (7, 3)


def test_parameters_by_name() -> None:
    aligner = QWP().set_params(epsilon=0.2, refine=1)
    assert aligner.get_params()["epsilon"] == aligner.get_params(deep=False)["epsilon"] == 0.2
    assert aligner.refine == 1
    calls: list[Callable[..., object]] = [aligner.set_params, QWP, partial(make_aligner, "qwp")]
    for call in calls:
        with pytest.raises(
            InputError, match="method 'qwp' has no option epsylon; did you mean epsilon\\? expected some of start, "
        ):
            call(epsylon=1)


def test_only_what_was_changed_is_shown() -> None:
    assert repr(QWP()) == "QWP()"
    # In the order of the stages, not of the arguments.
    assert repr(QWP(refine=1, epsilon=0.2)) == "QWP(epsilon=0.2, refine=1)"
    assert repr(QWP().set_params(refine=1, epsilon=0.2)) == "QWP(epsilon=0.2, refine=1)"
    # Another default is the method's own, not a change.
    assert repr(WP(seed=2)) == "WP(seed=2)"
    assert repr(WP(coreset="kmeans++", normalize="none")) == "WP(coreset='kmeans++', normalize='none')"


def test_the_parameters_that_all_share_come_last() -> None:
    names = QWP.parameter_names()
    assert names[0] == "start"
    shared = ["normalize", "order", "dtype", "csls_k", "verdict", "device", "backend", "threads", "max_memory", "seed"]
    assert names[-len(shared) :] == shared
    assert len(set(names)) == len(names)
    for method in METHODS.values():
        assert method.parameter_names()[-len(shared) :] == shared


def test_an_aligner_equals_itself_alone() -> None:
    one, two = QWP(), QWP()
    assert one == one  # noqa: PLR0124
    assert one != two
    assert len({one, two, one}) == 2


def test_constructors_only_store() -> None:
    aligner = QWP(epsilon=-1.0, start="nonsense")
    assert aligner.get_params()["epsilon"] == -1.0
    with pytest.raises(InputError, match="start='nonsense' is not known"):
        aligner.validate()


# --------------------------------------------------------------------------- methods by name


def test_methods_are_made_by_name() -> None:
    aligner = make_aligner("procrustes", refine=3)
    assert type(aligner) is METHODS["procrustes"]
    assert aligner.get_params()["refine"] == 3
    with pytest.raises(InputError, match=r"'muse' is not known; expected one of qwp, wp"):
        make_aligner("muse")
    with pytest.raises(InputError, match="has no option colour, size; expected some of refine"):
        make_aligner("procrustes", size=1, colour="red")


def test_a_map_of_the_source_alone_is_orthogonal_to_the_precision() -> None:
    for dtype, error in (("float32", 1e-5), ("float64", 1e-12)):
        aligner = Turn(dtype=dtype, threads=1).fit(*planted_embeddings(30))
        assert aligner.map_.dtype == dtype
        assert orthogonality_error(aligner.map_) < error


def test_a_method_that_needs_torch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnTorch(Turn):
        needs_torch = True

    with pytest.raises(InputError, match="method 'turn' needs torch, but backend 'numpy' was asked for"):
        OnTorch(backend="numpy").choose_device()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="method 'turn' needs torch, which is not installed"):
        OnTorch().choose_device()
    assert Turn().choose_device() == arrays.HOST


def test_the_estimator_transforms_and_scores_as_scikit_learn_expects() -> None:
    problem = planted_embeddings(300)
    aligner = QWP(**QUICK, verdict="none")
    with pytest.raises(InputError, match="not fitted yet"):
        aligner.score([("a", "b")])
    mapped = aligner.fit_transform(*problem)
    assert_same(mapped, aligner.transform(problem[0].words))
    pairs = [(f"s{i}", f"t{i}") for i in range(100)]
    assert aligner.score(pairs) == evaluate(aligner.alignment_, pairs, bootstrap=0).p_at_1() > 0.5
