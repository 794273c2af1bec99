"""The benchmarks run, compare like with like and report what they measured. No time is asserted."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import common, csls, frank_wolfe, memory, pipeline, plot, reference, run, sinkhorn
from benchmarks.data import generated_pair
from qwp.errors import InputError
from qwp.maps.loop import LoopSettings, make_schedule, wasserstein_procrustes
from qwp.search import retrieval
from qwp.starts import frank_wolfe as convex_start
from qwp.starts.frank_wolfe import FrankWolfeSettings
from tests.libraries import assert_close, assert_same
from tests.problems import planted

pytest.importorskip("ot", reason='POT is not installed: pip install "qwp[pot]"')

Array = npt.NDArray[Any]


# --------------------------------------------------------------------------- what they share


def test_in_turns_alternates() -> None:
    calls: list[str] = []
    times = common.in_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3
    assert all(len(values) == 3 and min(values) >= 0 for values in times.values())
    assert common.medians({"x": [5.0, 1.0, 2.0]}) == {"x": 2.0}


def test_the_generated_space_is_sound() -> None:
    x = common.clustered_space(300, 20)
    assert x.dtype == np.float32
    assert_close(np.linalg.norm(x, axis=1), 1.0, atol=1e-5)
    assert_same(x, common.clustered_space(300, 20))


def test_the_generated_pair_is_what_it_says() -> None:
    pair = generated_pair(200, 15, noise=0.0)
    assert pair.rotation is not None
    rows = [pair.tgt.index[f"t{i}"] for i in range(200)]
    assert rows != list(range(200))  # equal rank says nothing
    assert_close(pair.src.vectors @ pair.rotation, pair.tgt.vectors[rows], atol=1e-5)
    assert pair.gold.pairs[7] == ("s7", "t7")


def test_the_machine_is_described() -> None:
    state = common.machine(gemm_size=50)
    assert state["cores"] >= 1
    assert isinstance(state["model"], str)
    assert state["gemm_flops_per_second"] > 0


def prepare_array(size: int) -> Callable[[], int]:
    """A call that fills `size` bytes; the inputs before it take four times as much, and are gone by then."""
    np.ones(4 * size, dtype=np.uint8)
    return lambda: int(np.ones(size, dtype=np.uint8).sum())


@pytest.mark.slow
def test_peak_memory_is_that_of_the_call_alone() -> None:
    size = 1 << 26
    measured = memory.in_fresh_process(prepare_array, size=size)
    assert measured.value == size
    if memory._RESET.exists():
        # Summing takes a buffer, the interpreter some pages.
        assert size <= measured.peak_bytes + (1 << 20) <= 1.5 * size


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        common.save({"x": 1}, tmp_path / "latest.json")
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------- the reference


@pytest.mark.slow
def test_the_reference_and_qwp_find_the_same_start(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = planted(200, d=12, seed=1, shuffle=True, dtype="float64")
    steps = 10
    # Linear steps solved well on both sides: what is left is the difference of two implementations.
    monkeypatch.setattr(convex_start, "_TOL", 1e-6)
    monkeypatch.setattr(convex_start, "_MAX_ITER", 2000)
    settings = FrankWolfeSettings(start_words=200, start_steps=steps, start_epsilon=0.3)
    objectives: list[float] = []
    ours = convex_start.first_map(problem.src, problem.tgt, settings, lambda _, value: objectives.append(value))
    theirs = reference.frank_wolfe_reference(problem.src, problem.tgt, words=200, steps=steps, epsilon=0.3)
    assert_close(theirs.map, ours, atol=1e-3)
    assert_close(theirs.plan.sum(axis=0), 1.0, atol=1e-5)
    assert_close(theirs.plan.sum(axis=1), 1.0, atol=1e-5)
    kernels = reference.similarity_matrices(problem.src, problem.tgt)
    assert reference.relaxation_objective(theirs.plan, *kernels) == pytest.approx(objectives[-1], rel=1e-3)


def test_the_similarity_matrices_square_to_the_similarities() -> None:
    problem = planted(40, d=6, seed=2)
    kx, ky = reference.similarity_matrices(problem.src, 3.0 * problem.tgt)
    assert_close(kx @ kx, problem.src @ problem.src.T, atol=1e-12)
    assert np.linalg.norm(ky) == pytest.approx(np.linalg.norm(kx))


def test_a_tolerance_stops_pot_earlier() -> None:
    cost = np.random.default_rng(0).random((60, 60))
    weights = np.full(60, 1 / 60)
    tight, loose = (sinkhorn.reached_error(reference.uniform_plan(cost, 0.02, tol), weights) for tol in (None, 0.01))
    assert tight < 1e-7
    assert tight < loose < 0.02


def test_the_schedule_is_the_published_one() -> None:
    schedule = reference.published_schedule(500, 5000, 5, n_max=20_000)
    assert [(e.steps, e.batch) for e in schedule] == [(5000, 500), (1250, 1000), (312, 2000), (78, 4000), (19, 8000)]
    ours = make_schedule("grave", steps=5000, k=500, epochs=5, n_max=3000)
    clamped = reference.published_schedule(500, 5000, 5, n_max=3000)
    assert [(e.steps, e.batch) for e in clamped] == [(e.steps, e.k) for e in ours.epochs for _ in range(e.count)]


def test_the_loop_reports_its_steps_and_stays_orthogonal() -> None:
    problem = planted(80, d=6, seed=3)
    seen: list[tuple[int, int, float]] = []
    w = reference.wasserstein_procrustes_reference(
        problem.src,
        problem.tgt,
        np.eye(6),
        reference.published_schedule(10, 8, 2, 80),
        progress=lambda *values: seen.append(values),
    )
    assert [(epoch, step) for epoch, step, _ in seen] == [(1, s) for s in range(1, 9)] + [(2, 9), (2, 10)]
    assert all(a[2] <= b[2] for a, b in pairwise(seen))
    assert_close(w.T @ w, np.eye(6), atol=1e-10)


def test_one_step_of_the_loop_is_that_of_qwp() -> None:
    """With batches of all words the draws do not matter: the step has to be the same to rounding."""
    problem = planted(50, d=6, seed=4, noise=0.2)
    settings = LoopSettings(
        coreset="random", epsilon=0.05, learning_rate=2.0, final_rate=0.1, sinkhorn_tol=1e-10, sinkhorn_max_iter=5000
    )
    schedule = make_schedule("fixed", steps=3, k=50, epochs=1, n_max=50)
    ours = wasserstein_procrustes(problem.src, problem.tgt, np.eye(6), schedule, settings)
    everything = reference.published_schedule(50, 3, 1, 50)
    theirs = reference.wasserstein_procrustes_reference(problem.src, problem.tgt, np.eye(6), everything)
    assert_close(theirs, ours, atol=1e-4)


@pytest.mark.parametrize("rows", [7, 1000])
def test_mutual_pairs_agree_with_qwp(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_CSLS_BLOCK_ROWS", rows)
    problem = planted(90, 70, d=8, noise=0.5, seed=5)
    src, tgt = reference.mutual_pairs(problem.src @ problem.w, problem.tgt)
    ours = retrieval.cross_neighbours(problem.src @ problem.w, problem.tgt).mutual()
    assert_same(src, ours.src)
    assert_same(tgt, ours.tgt)
    means = reference.csls_means(problem.src, problem.tgt, 10)
    assert_close(means, retrieval.neighbourhood_means(problem.src, problem.tgt, 10))


@pytest.mark.slow
def test_the_reference_pipeline_finds_a_planted_rotation() -> None:
    # In float64 POT's default threshold ends its iterations early.
    problem = planted(250, d=12, seed=1, shuffle=True, dtype="float64")
    stages: list[str] = []
    found = reference.pipeline_reference(
        problem.src,
        problem.tgt,
        reference.Published(start_words=250, start_steps=20, start_epsilon=0.2, batch=60, steps=40, epochs=2, rounds=2),
        after_stage=lambda stage, seconds, w: stages.append(stage),
    )
    assert stages == ["start", "loop", "refine"]
    assert list(found.seconds) == stages
    assert_close(found.map, problem.w, atol=1e-6)


# --------------------------------------------------------------------------- the quick configurations


@pytest.fixture(scope="session")
def quick() -> dict[str, dict[str, Any]]:
    """The figures of every benchmark in its quick form."""
    pytest.importorskip("sklearn")
    pytest.importorskip("gensim")
    return {name: benchmark.run(**benchmark.quick) for name, benchmark in run.BENCHMARKS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(run.BENCHMARKS))
def test_quick_figures_are_finite_and_positive(quick: dict[str, dict[str, Any]], name: str) -> None:
    rows = run.BENCHMARKS[name].rows(quick[name])
    assert rows
    for row in rows:
        assert math.isfinite(row.ratio)
        assert row.ours > 0
        assert row.theirs > 0
        assert row.peak_bytes is not None
        assert row.peak_bytes >= 0
    json.dumps(quick[name])


@pytest.mark.slow
def test_coresets_are_counted_by_the_bank(quick: dict[str, dict[str, Any]]) -> None:
    (case,) = quick["coreset"]["cases"]
    assert case["bank_size"] == 8
    assert case["qwp_seconds"] == pytest.approx(case["times"]["qwp"][0] / 8)
    assert case["ratio"] == pytest.approx(case["sklearn_seconds"] / case["qwp_seconds"])


@pytest.mark.slow
def test_sinkhorn_is_compared_at_the_same_error(quick: dict[str, dict[str, Any]]) -> None:
    cases = quick["sinkhorn"]["cases"]
    assert [case["mode"] for case in cases] == ["loose", "default", "default64"]
    for case in cases:
        assert 0 < case["qwp_error"] <= case["pot_error"]
        assert case["qwp_iterations"] >= 1
        assert 1 <= case["pot_iterations"] <= 1000


@pytest.mark.slow
def test_both_frank_wolfes_reach_the_same_objective(quick: dict[str, dict[str, Any]]) -> None:
    figures = quick["frank_wolfe"]
    assert len(figures["cases"]) == 3
    for case in figures["cases"]:
        assert case["objective"] == pytest.approx(figures["qwp_objective"], rel=0.01)
        assert case["map_distance"] < 0.1


@pytest.mark.slow
def test_the_rate_is_counted_from_the_products(quick: dict[str, dict[str, Any]]) -> None:
    figures = quick["csls"]
    for name, products in (
        ("cross_neighbours", csls.CROSS_NEIGHBOURS_PRODUCTS),
        ("retriever", csls.RETRIEVER_PRODUCTS),
    ):
        reached = figures["rate"][name]
        work = products * 2 * figures["n"] ** 2 * figures["d"]
        assert reached["flops_per_second"] == pytest.approx(work / reached["seconds"])
        assert reached["share_of_gemm"] == pytest.approx(
            reached["flops_per_second"] / figures["rate"]["gemm_flops_per_second"]
        )


@pytest.mark.slow
def test_the_table_has_a_line_for_every_row(quick: dict[str, dict[str, Any]]) -> None:
    lines = run.table({"quick": True, **quick}).splitlines()
    assert len(lines) == 1 + sum(len(b.rows(quick[name])) for name, b in run.BENCHMARKS.items())
    for other in ("gensim", "scikit-learn", "POT", "NumPy"):
        assert any(other in line for line in lines)


@pytest.mark.slow
def test_the_command_saves_what_it_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    output = tmp_path / "results" / "latest.json"
    run.main(["--quick", "--only", "coreset", "--output", str(output)])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert "scikit-learn" in shown[1]
    saved = json.loads(output.read_text(encoding="utf-8"))
    assert saved["quick"] is True
    assert set(saved) == {"quick", "machine", "coreset"}
    assert [path.name for path in output.parent.iterdir()] == ["latest.json"]


def test_slow_benchmarks_run_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def pretend(name: str) -> Callable[..., dict[str, Any]]:
        def pretended_run(**_: Any) -> dict[str, Any]:
            ran.append(name)
            return {}

        return pretended_run

    pretended = {n: run.Benchmark(pretend(n), {}, lambda _: [], slow=b.slow) for n, b in run.BENCHMARKS.items()}
    monkeypatch.setattr(run, "BENCHMARKS", pretended)
    run.run(quick=True)
    assert "pipeline" not in ran
    assert len(ran) == len(pretended) - 1
    ran.clear()
    run.run(quick=True, slow=True)
    assert ran == list(pretended)
    ran.clear()
    run.run(["pipeline"], quick=True)
    assert ran == ["pipeline"]


# --------------------------------------------------------------------------- single benchmarks


def test_the_memory_of_the_start_holds_its_gradient() -> None:
    words = 600
    peak = memory.in_fresh_process(frank_wolfe.prepare_ours, words=words, steps=1, d=20, generated=True).peak_bytes
    assert peak > 4 * words * words


def test_the_step_clock_leaves_out_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([10.0, 11.0, 14.0, 100.0, 102.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(moments))
    clock = frank_wolfe.StepClock()
    for step in (1, 2, 3, 1, 2):
        clock.tick(step)
    assert clock.seconds_per_step == [2.0, 2.0]


def test_sklearn_means_are_those_of_qwp() -> None:
    pytest.importorskip("sklearn")
    src, tgt = csls.both_sides(150, 12)
    assert_close(csls.sklearn_means(src, tgt, 10), retrieval.neighbourhood_means(src, tgt, 10), atol=1e-5)


def test_the_exponent_is_that_of_the_power_law() -> None:
    sizes = [10, 20, 40, 80]
    exponent, intercept = csls.fit_power(sizes, [3.0 * n**1.5 for n in sizes])
    assert exponent == pytest.approx(1.5)
    assert math.exp(intercept) == pytest.approx(3.0)


def test_a_true_map_scores_fully() -> None:
    pair = generated_pair(200, 15, noise=0.0)
    assert pair.rotation is not None
    # The copy is exact, but its rows are centred for themselves: equal to rounding.
    assert pipeline.p_at_1(pair, pair.rotation) == 100.0
    assert pipeline.p_at_1(pair, np.eye(15, dtype=np.float32)) < 30.0


def test_an_interrupted_reference_keeps_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "pipeline.json"
    earlier = {"ours": reference_figures(total_seconds=2.0), "references": {"earlier": reference_figures(scale=0.5)}}
    output.write_text(json.dumps(earlier), encoding="utf-8")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reference, "refine_reference", interrupt)
    settings = pipeline.ReferenceSettings(scale=0.001)
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(120, 8, ours=False, settings=settings, generated=True, gemm_size=50, output=output)
    saved = json.loads(output.read_text(encoding="utf-8"))
    assert saved["ours"] == earlier["ours"]
    assert list(saved["references"]) == ["earlier"]
    assert list(saved["unfinished"]["seconds"]) == ["start", "loop"]
    assert set(saved["unfinished"]["csls_p1_after"]) == {"start", "loop"}
    assert saved["unfinished"]["scale"] == 0.001
    assert saved["unfinished"]["n"] == 120


def reference_figures(**changes: Any) -> dict[str, Any]:
    """What a finished reference leaves, as far as it is compared."""
    return {"data": "novels en-es", "n": 20_000, "d": 300, "scale": 1.0, "total_seconds": 30.0, **changes}


@pytest.mark.parametrize(
    ("changes", "ratio"), [({}, 15.0), ({"scale": 0.1}, None), ({"n": 500}, None), ({"data": "generated"}, None)]
)
def test_a_ratio_is_given_for_equal_work_only(changes: dict[str, Any], ratio: float | None) -> None:
    record = pipeline._Record(None)
    record.add_reference("plain", reference_figures(**changes))
    assert record.result["references"]["plain"]["ratio"] is None
    record.add_ours({"data": "novels en-es", "n": 20_000, "d": 300, "total_seconds": 2.0})
    assert record.result["references"]["plain"]["ratio"] == ratio


def test_a_scaled_reference_says_so() -> None:
    settings = pipeline.ReferenceSettings(scale=0.01, tol=0.001)
    assert settings.steps() == {"start_steps": 1, "steps": 50, "rounds": 1}
    assert settings.name == "POT to 0.001, float32, scale 0.01"
    assert pipeline.ReferenceSettings().name == "POT defaults, float32"
    with pytest.raises(SystemExit):
        pipeline.main(["--scale", "0"])


# --------------------------------------------------------------------------- the drawing


@pytest.mark.slow
def test_the_drawing_is_valid_and_shows_every_point(quick: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    figures = tmp_path / "latest.json"
    figures.write_text(json.dumps({"csls": quick["csls"]}), encoding="utf-8")
    output = tmp_path / "images" / "growth.svg"
    plot.main(["--input", str(figures), "--output", str(output)])
    root = ElementTree.fromstring(output.read_text(encoding="utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    growth = quick["csls"]["growth"]
    assert len(root.findall(f".//{space}circle")) == sum(len(curve["sizes"]) for curve in growth.values())
    assert len(root.findall(f".//{space}polyline")) == len(growth)
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    for circle in root.iter(f"{space}circle"):
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height
    text = " ".join("".join(element.itertext()) for element in root.iter(f"{space}text"))
    for curve in growth.values():
        assert curve["what"] in text
        assert f"{curve['exponent']:.2f}" in text


def test_points_of_an_exact_power_law_lie_on_its_line() -> None:
    sizes = [1000, 2000, 4000]
    seconds = [1e-4 * n for n in sizes]
    exponent, intercept = csls.fit_power(sizes, seconds)
    curve = {"what": "a < b", "size": "words", "sizes": sizes, "seconds": seconds}
    drawing = plot.growth_svg({"one": {**curve, "exponent": exponent, "intercept": intercept}})
    root = ElementTree.fromstring(drawing)
    space = "{http://www.w3.org/2000/svg}"
    line = root.find(f".//{space}polyline")
    assert line is not None
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.attrib["points"].split())
    for circle in root.iter(f"{space}circle"):
        x, y = float(circle.attrib["cx"]), float(circle.attrib["cy"])
        assert y == pytest.approx(y0 + (x - x0) / (x1 - x0) * (y1 - y0), abs=0.3)


def test_ticks_are_round_numbers_in_the_range() -> None:
    assert plot.ticks(0.03, 1.5) == pytest.approx([0.05, 0.1, 0.2, 0.5, 1.0])


def test_a_file_without_growth_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "latest.json"
    path.write_text('{"machine": {}, "coreset": {}}', encoding="utf-8")
    with pytest.raises(InputError, match=r"no growth figures, only machine, coreset.*--only csls"):
        plot.read_growth(path)
