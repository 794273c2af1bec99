"""The contract of every backend: equal results and equal behaviour of NumPy and torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import QWP, Alignment, Lexicon, arrays
from qwp.judging.ranks import AlignedFiles
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.results.checkpoints import Checkpoint
from qwp.search import retrieval
from qwp.showing.events import Progress
from qwp.stages.init.frank_wolfe import FrankWolfe
from qwp.stages.init.profiles import Profiles
from qwp.stages.refinement import CslsRefinement
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.problems import Array, Planted, planted, rotation

pytestmark = pytest.mark.usefixtures("short_trials")

# A cheap initializer and few steps: the contract needs all stages, not accuracy. One thread, because the threads of
# torch synchronise after every small operation, which is slow on a busy machine.
FAST: dict[str, Any] = {**QUICK, "start": "profiles", "epochs": 1, "steps": 8, "refine": 2}
N = 220


@pytest.fixture
def torch_installed() -> Iterator[None]:
    pytest.importorskip("torch", reason="torch is not installed")
    with arrays.use_threads(1):
        yield


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest) -> str:
    """Return each installed backend."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    return str(request.param)


@cache
def aligned(library: str, dtype: str = "float32") -> Alignment:
    """Return an alignment of a small planted problem on the CPU; tests must not change it."""
    return align(library, dtype=dtype, max_memory=1.0)


def align(library: str, *, noise: float = 0.1, **options: Any) -> Alignment:
    """Align a small planted problem on the CPU."""
    chosen = {**FAST, **options, "backend": library}
    return qwp.align(*planted_embeddings(N, noise=noise), device="cpu", **chosen)


def p1(alignment: Alignment, n: int = N) -> float:
    gold = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))
    return qwp.evaluate(alignment, gold, bootstrap=0).p_at_1()


def both_maps(alignment: Alignment) -> tuple[Array, Array]:
    """Return the maps of both sides."""
    assert alignment.tgt_map is not None
    return alignment.src_map, alignment.tgt_map


def similarities(alignment: Alignment) -> Array:
    """Return the product of both maps, (d, d), which does not depend on the axes of the common space."""
    src, tgt = both_maps(alignment)
    return np.asarray(src @ tgt.T)


def map_bytes(alignment: Alignment) -> tuple[bytes, bytes]:
    src, tgt = both_maps(alignment)
    return src.tobytes(), tgt.tobytes()


# --------------------------------------------------------------------------- one backend at a time


def test_recovers_a_planted_rotation_from_scratch(library: str) -> None:
    spaces = planted_embeddings(220, noise=0.1, shuffle=True)
    options: dict[str, Any] = {**QUICK, "backend": library}
    alignment = qwp.align(*spaces, device="cpu", **options)
    assert p1(alignment, 220) > 0.95
    assert alignment.quality.verdict == "succeeded"
    assert alignment.tgt_map is not None
    assert orthogonality_error(alignment.src_map) > 1e-5
    assert set(alignment.provenance.seconds) == {"prepare", "initialize", "coresets", "loop", "refine", "verdict"}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(library: str) -> None:
    maps = [align(library, noise=0.2, seed=s, refine=0).src_map.tobytes() for s in (3, 3, 4)]
    assert maps[0] == maps[1] != maps[2]


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("float64", 1e-12)])
def test_the_map_has_the_precision_that_was_asked_for(library: str, dtype: str, error: float) -> None:
    alignment = align(library, dtype=dtype, map="orthogonal")
    assert alignment.src_map.dtype == dtype
    assert isinstance(alignment.src_map, np.ndarray)
    assert orthogonality_error(alignment.src_map) < error
    assert p1(alignment) > 0.95
    both = aligned(library, dtype)
    for matrix in both_maps(both):
        assert matrix.dtype == dtype
        assert isinstance(matrix, np.ndarray)
    assert p1(both) > 0.95


def test_saving_and_loading(library: str, tmp_path: Path) -> None:
    alignment = aligned(library)
    loaded = Alignment.load(alignment.save(tmp_path / "saved"))
    assert map_bytes(loaded) == map_bytes(alignment)
    assert loaded.provenance == alignment.provenance
    assert loaded.quality == alignment.quality
    assert loaded.translate("s3") == alignment.translate("s3")


def test_provenance_names_the_backend_and_the_config_does_not(library: str) -> None:
    provenance = aligned(library).provenance
    assert provenance.backend == str(arrays.choose_device("cpu", library))
    assert provenance.backend.split()[0] == library
    assert not {"device", "backend", "threads", "max_memory", "seed"} & set(provenance.config)
    assert provenance.config["pairs_per_step"] == FAST["pairs_per_step"]


def test_little_memory_changes_results_by_rounding_alone(library: str) -> None:
    with arrays.use_memory(0.001):
        like = arrays.choose_device("cpu", library).put(np.zeros(1), "float64")
        assert arrays.block_rows(N, like) < N  # else there would be one block either way
    roomy, tight = aligned(library, "float64"), align(library, dtype="float64", max_memory=0.001)
    assert_close(similarities(tight), similarities(roomy), atol=1e-9)
    assert tight.quality.fitted.pairs == roomy.quality.fitted.pairs


def test_the_number_of_threads_changes_results_by_rounding_alone(library: str) -> None:
    one, two = (align(library, dtype="float64", threads=n, steps=3, coreset_size=40) for n in (1, 2))
    assert_close(similarities(two), similarities(one), atol=1e-9)


def test_an_interrupted_run_resumes_to_the_same_result(library: str, tmp_path: Path) -> None:
    whole = align(library, seed=5)

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == ("loop", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        align(library, seed=5, checkpoint=Checkpoint(tmp_path, interval=0.0), progress=interrupt)
    seen: list[Progress] = []
    resumed = align(library, seed=5, checkpoint=Checkpoint(tmp_path, resume=True), progress=seen.append)
    assert map_bytes(resumed) == map_bytes(whole)
    assert "start" not in {event.stage for event in seen}


class ThreeAtATime(QWP):
    """Run pairs in lock-step on the CPU, as on a GPU."""

    def pairs_at_a_time(self) -> int:
        return 3


def test_many_pairs_in_lock_step_equal_each_alone(library: str) -> None:
    pairs = [planted_embeddings(n, m, noise=0.1, seed=n) for n, m in ((120, 120), (100, 130), (150, 110))]
    aligner = ThreeAtATime(
        **{**FAST, "dtype": "float64", "steps": 3, "coreset_size": 60}, backend=library, device="cpu"
    )
    events: set[tuple[int, str]] = set()
    together = aligner.fit_many(pairs, progress=lambda number, event: events.add((number, event.stage)))
    assert {(number, stage) for number in range(3) for stage in ("loop", "refine", "verdict")} <= events
    assert len(together) == 3
    for pair, found in zip(pairs, together, strict=True):
        alone = aligner.fit(*pair).alignment_
        assert_close(similarities(found), similarities(alone), atol=1e-4)
        assert found.provenance.src == alone.provenance.src
        assert found.quality.verdict == alone.quality.verdict


def test_many_pairs_one_at_a_time_are_the_same_bytes(library: str) -> None:
    pairs = [planted_embeddings(n, noise=0.1, seed=n) for n in (100, 120)]
    aligner = QWP(**FAST, backend=library, device="cpu")
    for pair, found in zip(pairs, aligner.fit_many(pairs), strict=True):
        assert map_bytes(found) == map_bytes(aligner.fit(*pair).alignment_)


# --------------------------------------------------------------------------- NumPy against torch


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize(
    "options",
    [{}, {"coreset": "random"}, {"coreset": "lloyd", "ot": "unbalanced"}, {"ot": "exact", "start": "frank-wolfe"}],
    ids=str,
)
def test_both_backends_find_the_same_map(options: dict[str, Any]) -> None:
    # Without refinement, which has the same fixed point for different maps. One pair of coresets a step, because torch
    # stops a batch when its last problem converges.
    fixed: dict[str, Any] = {"dtype": "float64", "refine": 0, "noise": 0.2, "pairs_per_step": 1}
    maps = [align(b, **fixed, **options).src_map for b in ("numpy", "torch")]
    assert_close(maps[1], maps[0], atol=1e-6)


@pytest.mark.usefixtures("torch_installed")
def test_both_backends_find_nearly_the_same_map_from_several_coresets_a_step() -> None:
    maps = [align(b, dtype="float64", refine=0, noise=0.2, pairs_per_step=4).src_map for b in ("numpy", "torch")]
    # Within the tolerance of the transport; another seed differs ten times as much.
    assert_close(maps[1], maps[0], atol=0.003)
    other = align("torch", dtype="float64", refine=0, noise=0.2, pairs_per_step=4, seed=1).src_map
    assert np.abs(other - maps[0]).max() > 0.01


@pytest.mark.usefixtures("torch_installed")
def test_both_backends_translate_equally_well_in_float32() -> None:
    scores = [p1(align(b, noise=0.4)) for b in ("numpy", "torch")]
    assert 0.1 < scores[0] < 0.99  # hard enough to tell them apart
    assert scores[1] == pytest.approx(scores[0], abs=0.01)


@pytest.fixture(scope="session")
def problem() -> Planted:
    return planted(220, 260, d=10, noise=0.4, shuffle=True, seed=3)


def on_torch(*given: Any) -> list[Any]:
    place = arrays.choose_device("cpu", "torch")
    return [place.put(x, "float64") for x in given]


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize(
    "initializer", [Profiles(words=200), FrankWolfe(words=150, steps=10)], ids=["profiles", "frank-wolfe"]
)
def test_initializers_agree(problem: Planted, initializer: Profiles | FrankWolfe) -> None:
    expected = initializer.solve(problem.src, problem.tgt)
    found = initializer.solve(*on_torch(problem.src, problem.tgt))
    assert_close(arrays.to_numpy(found), expected, atol=1e-8)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize(
    ("directions", "options"),
    [
        ("mutual", {}),
        ("forward", {}),
        (
            "union",
            {"weights": "csls", "first_words": 50, "search_map": "reweighted", "map": "reweighted"},
        ),
    ],
    ids=["mutual", "forward", "re-weighted"],
)
def test_refinement_agrees(problem: Planted, directions: str, options: dict[str, Any]) -> None:
    settings = CslsRefinement(rounds=3, words=200, directions=directions, **options)
    expected = settings.refine(problem.src, problem.tgt, Maps(rotation(10, 8)))
    x, y, w = on_torch(problem.src, problem.tgt, rotation(10, 8))
    found = settings.refine(x, y, Maps(w))
    assert (found.tgt is None) == (expected.tgt is None)
    ours, wanted = (host(m.src) if m.tgt is None else host(m.src) @ host(m.tgt).T for m in (found, expected))
    assert_close(ours, wanted, atol=1e-10)


@pytest.mark.usefixtures("torch_installed")
def test_judgements_agree(problem: Planted) -> None:
    turn = rotation(10, 9)
    expected = judge(problem.src, problem.tgt, Maps(problem.w @ turn, turn), seed=0)
    x, y, *maps = on_torch(problem.src, problem.tgt, problem.w @ turn, turn)
    found = judge(x, y, Maps(*maps), seed=0)
    assert found.verdict == expected.verdict
    assert not found.failed
    assert found.ratio == pytest.approx(expected.ratio, rel=1e-9)
    for name in ("fitted", "random", "held_out", "null"):
        assert asdict(getattr(found, name)) == pytest.approx(asdict(getattr(expected, name)), rel=1e-9)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("memory", [None, 0.0005], ids=["one block", "several blocks"])
def test_cross_neighbours_agree(problem: Planted, memory: float | None) -> None:
    expected = retrieval.cross_neighbours(problem.src @ problem.w, problem.tgt)
    with arrays.use_memory(memory):
        found = retrieval.cross_neighbours(*on_torch(problem.src @ problem.w, problem.tgt))
    for name in ("forward", "backward"):
        assert_same(arrays.to_numpy(getattr(found, name)), getattr(expected, name))
        scores = f"{name}_scores"
        assert_close(arrays.to_numpy(getattr(found, scores)), getattr(expected, scores), atol=1e-12)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("method", retrieval.METHODS)
def test_retrievers_agree(problem: Planted, method: str) -> None:
    mapped = problem.src @ problem.w
    columns, scores = retrieval.retriever(problem.tgt, mapped, method=method).top_k(mapped, 5)
    keys, queries = on_torch(problem.tgt, mapped)
    found_columns, found_scores = retrieval.retriever(keys, queries, method=method).top_k(queries, 5)
    assert_same(arrays.to_numpy(found_columns), columns)
    assert_close(arrays.to_numpy(found_scores), scores, atol=1e-11)


@pytest.mark.usefixtures("torch_installed")
def test_evaluations_agree() -> None:
    alignment = align("numpy", dtype="float64", noise=0.4)
    gold = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(0, N, 2)))
    files = AlignedFiles(alignment.src, alignment.tgt)
    for aligned in (alignment, files):
        expected, found = (
            qwp.evaluate(where, gold, retrieval=retrieval.METHODS, bootstrap=20).to_dict()
            for where in (aligned, aligned.on("cpu", "torch"))
        )
        assert found == expected
