"""The walk that all methods share, with a method that does nothing but be watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from qwp import QWP, InputError, arrays
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.methods import METHODS, make_aligner
from qwp.methods.base import Aligner
from qwp.methods.run import Progress, Run, timed
from qwp.methods.supervision import REQUIRED, Supervision
from qwp.parameters import OTHER, param
from qwp.results.checkpoints import Checkpoint
from qwp.version import __version__
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close, assert_same
from tests.methods.cases import normalised, seeds
from tests.problems import rotation


@dataclass(kw_only=True, eq=False, repr=False)
class Turn(Aligner):
    """Turns the source by a rotation whose number is a parameter."""

    method: ClassVar[str] = "turn"
    summary: ClassVar[str] = "a rotation"
    paper: ClassVar[str] = "none"

    number: int = param(3, "Which rotation.", OTHER, least=0, most=99)

    def find_maps(self, run: Run) -> Maps:
        """The rotation, whatever the spaces."""
        with timed([run], "start"):
            run.report("start", 1, 1, {"threads": arrays.threads()})
            return Maps(arrays.asarray(rotation(run.x.shape[1], self.number), run.x))


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
    assert [record["stage"] for record in done.history] == ["start", "verdict"]
    assert list(done.provenance.seconds) == ["prepare", "start", "verdict"]
    assert all(seconds >= 0 for seconds in done.provenance.seconds.values())


def test_the_verdict_is_that_of_the_normalised_vectors() -> None:
    from qwp.judging.verdict import judge

    aligner = Turn(threads=1, device="cpu", seed=4, csls_k=7).fit(*planted_embeddings(220))
    with arrays.use_threads(1):
        expected = judge(*normalised(aligner.alignment_), Maps(aligner.map_), seed=4, csls_k=7)
    assert aligner.quality_ == expected


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
    @dataclass(kw_only=True, eq=False, repr=False)
    class Supervised(Turn):
        supervision: ClassVar[str] = REQUIRED

    Supervised().validate(Supervision(seeds(3)))
    with pytest.raises(InputError, match="is supervised and needs a seed lexicon"):
        Supervised().validate()


def test_threads_and_memory_are_those_that_were_asked_for() -> None:
    seen: list[tuple[int, int]] = []

    @dataclass(kw_only=True, eq=False, repr=False)
    class Watched(Turn):
        def find_maps(self, run: Run) -> Maps:
            seen.append((arrays.threads(), arrays.block_rows(10_000, run.x)))
            return super().find_maps(run)

    before = arrays.threads(), arrays.block_rows(10_000, np.zeros(1, dtype="f4"))
    Watched(threads=1, max_memory=0.001).fit(*planted_embeddings(30))
    Watched(threads=3).fit(*planted_embeddings(30))
    assert [threads for threads, _ in seen] == [1, 3]
    assert seen[0][1] < seen[1][1]
    assert (arrays.threads(), arrays.block_rows(10_000, np.zeros(1, dtype="f4"))) == before


def test_progress_is_told_of_every_report() -> None:
    events: list[Progress] = []
    Turn(threads=1).fit(*planted_embeddings(30), progress=events.append)
    verdict = [("verdict", step, 4) for step in (1, 2, 3, 4)]
    assert [(event.stage, event.done, event.total) for event in events] == [("start", 1, 1), *verdict]
    assert events[0].figures == {"threads": 1}
    assert set(events[-1].figures) == {"ratio", "verdict"}
    # The steps of the verdict are shown, not kept.
    events.clear()
    alignment = Turn(threads=1, verdict="none").fit(*planted_embeddings(30), progress=events.append).alignment_
    assert [(event.stage, event.done, event.total) for event in events] == [("start", 1, 1), ("verdict", 1, 1)]
    assert [record["stage"] for record in alignment.history] == ["start", "verdict"]
    assert alignment.quality.verdict == "unjudged"


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
    assert events == [(number, stage) for number in range(3) for stage in ("start", *["verdict"] * 4)]
    assert Turn().fit_many([]) == []
    with pytest.raises(InputError, match="number=-1 is out of range"):
        Turn(number=-1).fit_many([])


def test_as_many_at_a_time_as_the_method_says() -> None:
    groups: list[int] = []

    @dataclass(kw_only=True, eq=False, repr=False)
    class InGroups(Turn):
        def pairs_at_a_time(self) -> int:
            return 2

        def find_maps_of_many(self, runs: Sequence[Run]) -> list[Maps]:
            groups.append(len(runs))
            return super().find_maps_of_many(runs)

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


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    @dataclass(kw_only=True, eq=False, repr=False)
    class Stopped(Turn):
        def find_maps(self, run: Run) -> Maps:
            if run.state is None:
                run.checkpoint("start", 1, np.eye(12), now=True)
                raise KeyboardInterrupt
            return Maps(arrays.asarray(run.state.map, run.x))

    spaces = planted_embeddings(30)
    with pytest.raises(KeyboardInterrupt):
        Stopped(seed=1).fit(*spaces, checkpoint=Checkpoint(tmp_path))
    with pytest.raises(InputError, match="seed was 1, now 2"):
        Stopped(seed=2).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True))
    resumed = Stopped(seed=1).fit(*spaces, checkpoint=Checkpoint(tmp_path, resume=True))
    assert_same(resumed.map_, np.eye(12))


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
    @dataclass(kw_only=True, eq=False, repr=False)
    class OnTorch(Turn):
        needs_torch: ClassVar[bool] = True

    with pytest.raises(InputError, match="method 'turn' needs torch, but backend 'numpy' was asked for"):
        OnTorch(backend="numpy").place()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="method 'turn' needs torch, which is not installed"):
        OnTorch().place()
    assert Turn().place() == arrays.HOST
