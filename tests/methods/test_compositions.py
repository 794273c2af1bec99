"""Methods that are compositions of stages: known answers, seeds, initializers, small inputs, checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import QWP, Alignment, Embeddings, InputError, Lexicon, arrays
from qwp.arrays import Device
from qwp.maps.procrustes import Maps, orthogonality_error, procrustes
from qwp.methods.compositions import SEARCH, WP, Identical, LeastSquares, Procrustes, initializers
from qwp.methods.options import Method
from qwp.methods.settings import Supervision
from qwp.parameters import with_values
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.init.best_of import FALLBACK
from qwp.stages.problem import Prepare, PreparedSpace, Problem
from qwp.stages.refinement import WEIGHTED, Anchors, CslsRefinement
from qwp.stages.stage import Monitor, State, unprojected
from tests.conftest import QUICK, SHORT_SEARCH, planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import matched, normalised, seeds
from tests.methods.cases import p1 as score
from tests.problems import rotation, space

pytestmark = pytest.mark.usefixtures("short_trials")

# For tests without the search for an initial map, which takes most of the time.
NO_SEARCH: dict[str, Any] = {**QUICK, "start": "profiles"}
# For tests that need no correct map.
SHORT: dict[str, Any] = {**NO_SEARCH, "epochs": 1, "steps": 3, "refine": 2}
# Enough words for a verdict.
N = 250


def gold(n: int) -> Lexicon:
    return Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))


def p1(alignment: Alignment, n: int = N) -> float:
    return qwp.evaluate(alignment, gold(n), bootstrap=0).p_at_1()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "shuffle"), [("qwp", True), ("wp", False)])
def test_recovers_a_planted_rotation(method: Method, shuffle: bool) -> None:
    alignment = qwp.align(*planted_embeddings(N, noise=0.1, shuffle=shuffle), method=method, **QUICK)
    assert p1(alignment) > 0.95
    assert alignment.quality.verdict == "succeeded"
    # Both sides are mapped and re-weighted.
    assert alignment.tgt_map is not None
    assert min(orthogonality_error(matrix) for matrix in (alignment.src_map, alignment.tgt_map)) > 0.1


@pytest.mark.slow
def test_an_orthogonal_map_of_the_source_alone_when_asked() -> None:
    spaces = planted_embeddings(N, noise=0.1, shuffle=True)
    alignment = qwp.align(*spaces, map="orthogonal", **NO_SEARCH)
    assert p1(alignment) > 0.95
    assert alignment.tgt_map is None
    assert orthogonality_error(alignment.src_map) < 1e-5


def test_without_refinement_the_map_is_the_orthogonal_one_of_the_loop() -> None:
    alignment = qwp.align(*planted_embeddings(N, noise=0.1), **{**NO_SEARCH, "refine": 0})
    assert alignment.tgt_map is None
    assert orthogonality_error(alignment.src_map) < 1e-5


@pytest.mark.slow
def test_refinement_by_default_is_that_of_the_documented_settings() -> None:
    spaces = planted_embeddings(250, noise=0.4)
    options = {**NO_SEARCH, "dtype": "float64", "epochs": 1, "steps": 3}
    begun = qwp.align(*spaces, **{**options, "refine": 0})
    x, y = normalised(begun)
    # By default the words grow from 4,000 on; the second case sets a smaller number.
    documented = CslsRefinement(
        rounds=10,
        words=20_000,
        directions="union",
        weights="csls",
        search_map="reweighted",
        map="reweighted",
        reweight=1.0,
        dewhiten=None,
        csls_k=10,
    )
    for first in (4000, 80):
        settings = replace(documented, first_words=first)
        expected = settings.refine(x, y, Maps(begun.src_map))
        asked = {} if first == 4000 else {"refine_first_words": first}
        found = qwp.align(*spaces, **{**options, **asked})
        assert found.tgt_map is not None
        assert expected.tgt is not None
        assert_close(found.src_map @ found.tgt_map.T, host(expected.src) @ host(expected.tgt).T, atol=1e-8)
        words = [record["n_words"] for record in found.history if record["stage"] == "refine"]
        assert words == [settings.words_of_round(number, 250) for number in range(1, 11)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"coreset": "lloyd"}, {"ot": "unbalanced"}, {"ot": "exact"}, {"cost": "dot", "epsilon": 0.025}],
)
def test_variants_recover_it_too(options: dict[str, Any]) -> None:
    assert p1(qwp.align(*planted_embeddings(N, noise=0.1), **{**NO_SEARCH, **options})) > 0.95


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    spaces = planted_embeddings(120, noise=0.2)
    maps = [qwp.align(*spaces, seed=s, **{**SHORT, "refine": 0}).src_map.tobytes() for s in (3, 3, 4)]
    assert maps[0] == maps[1] != maps[2]


def test_unequal_sizes() -> None:
    assert p1(qwp.align(*planted_embeddings(200, 300, noise=0.05), **NO_SEARCH), 200) > 0.9


@pytest.mark.slow
def test_tiny_vocabularies_work_and_are_undecided() -> None:
    cases: list[int] = [1, 3, 11]
    for n in cases:
        src, tgt = planted_embeddings(n, n + 1, d=4)
        # Default settings, with fewer steps to save time.
        alignment = qwp.align(src, tgt, threads=1, steps=2 if n > 2 else 15)
        assert alignment.quality.verdict == "undecided"
        assert np.isfinite(alignment.src_map).all()
        assert len(alignment.translate("s0", k=50)["s0"]) == n + 1


@pytest.mark.parametrize(("n", "two_sided"), [(15, False), (20, False), (21, True)])
def test_fewer_words_than_dimensions_give_an_orthogonal_map_alone(n: int, two_sided: bool, tmp_path: Path) -> None:
    alignment = qwp.align(*planted_embeddings(n, d=20), **{**QUICK, "start": "lexicon"}, lexicon=gold(n))
    assert (alignment.tgt_map is not None) == two_sided
    assert (orthogonality_error(alignment.src_map) < 1e-4) == (not two_sided)
    # Every word finds its translation.
    assert p1(alignment, n) == 1.0
    # The provenance records the parameter; the maps show the result.
    assert alignment.provenance.config["map"] == "reweighted"
    assert (Alignment.load(alignment.save(tmp_path)).tgt_map is not None) == two_sided


def test_zero_vectors_never_produce_nan() -> None:
    src, tgt = planted_embeddings(150)
    vectors = src.vectors.copy()
    vectors[[5, 50]] = 0.0
    alignment = qwp.align(Embeddings(src.words, vectors), tgt, **SHORT)
    assert np.isfinite(host(alignment.mapped("src"))).all()
    assert alignment.translate("s5", k=2)


@pytest.mark.slow
def test_the_verdict_on_noise_is_failed() -> None:
    src, _ = planted_embeddings(N)
    noise = np.random.default_rng(0).standard_normal((N, 12)).astype("f4")
    alignment = qwp.align(src, noise, **QUICK)
    assert alignment.quality.failed
    assert alignment.quality.explanation.startswith("Failed")


def test_float64_is_used_when_asked() -> None:
    spaces, options = planted_embeddings(100), {**SHORT, "dtype": "float64"}
    alignment = qwp.align(*spaces, map="orthogonal", **options)
    assert alignment.src_map.dtype == np.float64
    assert orthogonality_error(alignment.src_map) < 1e-12
    both = qwp.align(*spaces, **options)
    assert both.tgt_map is not None
    assert both.src_map.dtype == both.tgt_map.dtype == np.float64


def test_initialization_from_a_lexicon_a_matrix_identical_strings_and_the_identity() -> None:
    src, tgt = planted_embeddings(N, noise=0.1)
    options = {**QUICK, "refine": 0, "steps": 1, "epochs": 1, "learning_rate": 1e-6}
    by_lexicon = qwp.align(src, tgt, start="lexicon", lexicon=gold(50), **options)
    assert p1(by_lexicon) > 0.9
    by_matrix = qwp.align(src, tgt, start="matrix", start_matrix=by_lexicon.src_map, **options)
    assert_close(by_matrix.src_map, by_lexicon.src_map, atol=1e-3)
    renamed = Embeddings(src.words[:], tgt.vectors)
    identical = qwp.align(src, renamed, start="identical", **options)
    found = identical.translate(src.words, k=1)
    assert np.mean([best[0].word == word for word, best in found.items()]) > 0.9
    assert_close(qwp.align(src, tgt, start="identity", **options).src_map, np.eye(12), atol=1e-3)


def test_invalid_options_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"start": "lexicon"}, "needs lexicon"),
        ({"start": "matrix"}, "needs start_matrix"),
        ({"start": "magic"}, "'magic' is not known"),
        ({"start": "auto", "lexicon": gold(3)}, "does not use it"),
        ({"start": "lexicon", "lexicon": Lexicon((("x", "y"),))}, "no pair is covered"),
        ({"start": "identical"}, "no pair is covered"),
        ({"start": "matrix", "start_matrix": np.eye(3)}, r"\(3, 3\)"),
        ({"start": "matrix", "start_matrix": 2 * np.eye(12)}, "not orthogonal"),
        ({"coreset": "grid"}, "'grid' is not known"),
        ({"ot": "partial"}, "'partial' is not known"),
        ({"cost": "cosine"}, "'cosine' is not known"),
        ({"schedule": "cosine"}, "'cosine' is not known"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"coreset_size": 0}, "coreset_size=0"),
        ({"steps": -1}, "steps=-1"),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"refine_first_words": -1}, "refine_first_words=-1"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"map": "affine"}, "map='affine' is not known"),
        ({"reweight": -1.0}, r"reweight=-1\.0"),
        ({"dewhiten": 1.1}, r"dewhiten=1\.1"),
        ({"order": "alphabetical"}, "order='alphabetical' is not known"),
        ({"train_words": 0}, "train_words=0"),
        ({"normalize": "unit,whiten"}, "'whiten'.* is not known"),
        ({"dtype": "float16"}, "'float16' is not known"),
        ({"seed": -1}, "seed=-1"),
        ({"threads": 0}, "threads=0"),
        ({"epsylon": 1.0}, "has no option epsylon"),
        ({"method": "muse"}, "'muse' is not known"),
    ]
    for options, message in cases:
        src, tgt = planted_embeddings(50)
        with pytest.raises(InputError, match=message):
            qwp.align(src, tgt, **options)


@pytest.mark.slow
def test_progress_reports_every_stage() -> None:
    events: list[Progress] = []
    alignment = qwp.align(*planted_embeddings(200), progress=events.append, coreset="kmeans++", **QUICK)
    stages = [e.stage for e in events if e.stage not in ("initialize", "coresets")]
    assert stages == ["loop"] * 30 + ["refine"] * 10 + ["verdict"] * 4
    # The coresets are drawn before the first step, and the last event reports all of them.
    bank = [i for i, e in enumerate(events) if e.stage == "coresets"]
    assert [events[i].done for i in bank] == sorted({events[i].done for i in bank})
    assert events[bank[-1]].done == events[bank[-1]].total
    assert bank[-1] < [e.stage for e in events].index("loop")
    assert all(1 <= e.done <= e.total for e in events)
    assert {r["stage"] for r in alignment.history} == {"initialize", "loop", "refine", "verdict"}
    assert set(alignment.provenance.seconds) == {"prepare", "initialize", "coresets", "loop", "refine", "verdict"}
    assert all(seconds >= 0 for seconds in alignment.provenance.seconds.values())


# From 80 to 200 words: a resumed round needs its number of words and the maps of both sides.
INTERRUPTED: dict[str, Any] = {**NO_SEARCH, "steps": 8, "refine_first_words": 80, "seed": 5}


@pytest.fixture(scope="session")
def uninterrupted() -> Alignment:
    """Return the result of the uninterrupted run."""
    return qwp.align(*planted_embeddings(200, noise=0.2), **INTERRUPTED)


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "step"), [("initialize", 5), ("loop", 11), ("refine", 5), ("refine", 10)])
def test_an_interrupted_run_resumes_to_the_same_result(
    uninterrupted: Alignment, tmp_path: Path, stage: str, step: int
) -> None:
    spaces = planted_embeddings(200, noise=0.2)
    options, whole = INTERRUPTED, uninterrupted
    if stage == "initialize":
        options = {**options, "start": "auto"}
        whole = qwp.align(*spaces, **options)

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qwp.align(*spaces, checkpoint=Checkpoint(tmp_path, interval=0.0), progress=interrupt, **options)
    seen: list[Progress] = []
    resumed = qwp.align(*spaces, checkpoint=Checkpoint(tmp_path, resume=True), progress=seen.append, **options)
    assert resumed.src_map.tobytes() == whole.src_map.tobytes()
    assert resumed.tgt_map is not None
    assert whole.tgt_map is not None
    assert resumed.tgt_map.tobytes() == whole.tgt_map.tobytes()
    assert [(r["stage"], r["step"]) for r in resumed.history] == [(r["stage"], r["step"]) for r in whole.history]
    # Finished steps are not repeated.
    events = [(event.stage, event.done) for event in seen if event.stage != "coresets"]
    if stage == "refine":
        assert events == [("refine", number) for number in range(step, 11)] + [
            ("verdict", number) for number in range(1, 5)
        ]
    elif stage == "loop":
        assert events[0] == ("loop", step)
    with pytest.raises(InputError, match="seed was 5, now 6"):
        qwp.align(*spaces, checkpoint=Checkpoint(tmp_path, resume=True), **{**options, "seed": 6})


@pytest.mark.parametrize(("stage", "step"), [("loop", 4), ("refine", 1), ("refine", 2)])
def test_an_interrupted_run_between_spaces_of_different_width_has_the_same_result(
    stage: str, step: int, tmp_path: Path
) -> None:
    src, tgt = planted_embeddings(150, noise=0.2)
    spaces = src, Embeddings(tgt.words, tgt.vectors @ rotation(15, 5)[:12, :].astype("f4"))

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == (stage, step):
            raise KeyboardInterrupt

    options = {**SHORT, "steps": 5}
    whole = qwp.align(*spaces, **options)
    with pytest.raises(KeyboardInterrupt):
        qwp.align(*spaces, checkpoint=Checkpoint(tmp_path, interval=0.0), progress=interrupt, **options)
    events: list[Progress] = []
    resumed = qwp.align(*spaces, checkpoint=Checkpoint(tmp_path, resume=True), progress=events.append, **options)
    assert next((event.stage, event.done) for event in events if event.stage != "coresets") == (stage, step)
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))


@pytest.mark.slow
def test_one_side_with_fewer_words_than_dimensions_gets_an_orthogonal_map() -> None:
    for sizes in ((15, 150), (150, 15)):
        src, tgt = planted_embeddings(*sizes, d=20, noise=0.1)
        alignment = QWP(**SHORT).fit(src, tgt).alignment_
        assert alignment.tgt_map is None
        assert_close(alignment.src_map.T @ alignment.src_map, np.eye(20), atol=1e-4)


# --------------------------------------------------------------------------- the search for an initial map


class BriefSearch(QWP):
    """qWP with a search by profiles alone, which fail on the spaces below."""

    pipeline = replace(
        QWP.pipeline,
        init=initializers(replace(SHORT_SEARCH, rounds=0, brief=replace(SHORT_SEARCH.brief, steps=0))),
    )


HARD: dict[str, Any] = {**QUICK, "start_words": 50, "epochs": 1, "steps": 3, "refine": 2}


def shared_strings(n: int = N) -> tuple[Embeddings, Embeddings]:
    """Return a planted rotation whose first 50 source words are noise; both sides spell the next hundred alike.

    It has too many dimensions to be stumbled upon.
    """
    src, tgt = planted_embeddings(n, d=60, noise=0.1)
    vectors = src.vectors.copy()
    vectors[:50] = np.random.default_rng(0).standard_normal((50, 60))
    words = [f"s{i}" if 50 <= i < 150 else word for i, word in enumerate(tgt.words)]
    return Embeddings(src.words, vectors), Embeddings(words, tgt.vectors)


def test_shared_strings_are_the_fallback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = BriefSearch(**HARD).fit(*shared_strings()).alignment_
    assert found.provenance.initializer == FALLBACK
    assert "words spelt alike on both sides are tried" in caplog.text
    assert "this alignment begins with words that both sides spell alike" in found.quality.explanation
    assert found.provenance.candidates[-1]["initializer"] == FALLBACK
    right = found.translate([f"s{i}" for i in range(150, N)], k=1)
    assert np.mean([right[f"s{i}"][0].word == f"t{i}" for i in range(150, N)]) > 0.9
    # It is saved with the result.
    found.save(tmp_path)
    assert Alignment.load(tmp_path).provenance == found.provenance


def test_unsupervised_initialization_has_no_fallback() -> None:
    found = BriefSearch(**HARD, start="unsupervised").fit(*shared_strings()).alignment_
    assert found.provenance.initializer != FALLBACK
    assert found.quality.failed
    assert "spell alike" not in found.quality.explanation


def test_few_shared_strings_are_no_fallback() -> None:
    src, tgt = shared_strings()
    renamed = Embeddings([f"t{i}" for i in range(N)], tgt.vectors)
    found = BriefSearch(**HARD, verdict="none").fit(src, renamed).alignment_
    assert found.provenance.initializer != FALLBACK


def test_the_candidates_are_in_the_provenance_with_their_scores() -> None:
    found = QWP(**QUICK).fit(*planted_embeddings(N, noise=0.1)).alignment_.provenance
    assert found.initializer == "profiles"
    [tried] = found.candidates
    assert (tried["initializer"], tried["order"], tried["rescore"]) == ("profiles", "given", None)
    assert tried["score"] >= SEARCH.accept_ratio


@dataclass(frozen=True, kw_only=True)
class ReversedEstimate(Prepare):
    """Estimate that the words are in reversed order."""

    def spaces(self, spaces: Sequence[Embeddings], device: Device, seed: int) -> list[PreparedSpace]:
        prepared = super().spaces(spaces, device, seed)
        return [replace(side, estimate=np.arange(len(side.space))[::-1].copy()) for side in prepared]


class InDoubt(QWP):
    """qWP with this estimate."""

    pipeline = replace(QWP.pipeline, prepare=ReversedEstimate(order="given"), init=initializers(SHORT_SEARCH))


@pytest.mark.parametrize("winner", ["given", "estimated"])
def test_an_estimated_order_is_one_more_candidate(winner: str, tmp_path: Path) -> None:
    src, tgt = planted_embeddings(N, noise=0.1)
    if winner == "estimated":
        # The profiles use the most frequent words, which are the planted ones only in the estimated order.
        noise = np.random.default_rng(0).standard_normal((N, 12)).astype("f4")
        src = Embeddings(src.words, np.concatenate([noise[: N // 2], src.vectors[N // 2 :]]))
    options: dict[str, Any] = {**QUICK, "start_words": N // 2, "verdict": "none"}
    checkpoint = Checkpoint(tmp_path)
    found = InDoubt(**options).fit(src, tgt, checkpoint=checkpoint).alignment_
    assert found.provenance.order == winner
    assert (found.src_side.order is not None) == (winner == "estimated")
    assert found.src.words == src.words
    # An interrupted run continues in the order of the best candidate.
    again = InDoubt(**options).fit(src, tgt, checkpoint=Checkpoint(tmp_path, resume=True)).alignment_
    assert again.provenance.order == winner
    assert again.provenance.candidates == found.provenance.candidates
    assert_same(again.src_map, found.src_map)


@pytest.mark.slow
def test_an_interrupted_search_continues_with_its_candidates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    src, tgt = (Embeddings([f"{side}{i}" for i in range(60)], rng.standard_normal((60, 10))) for side in "ab")
    options: dict[str, Any] = {**QUICK, "start": "auto", "steps": 3, "refine": 1, "verdict": "none"}
    whole = qwp.align(src, tgt, **options)
    assert len(whole.provenance.candidates) > 2

    def interrupt(event: Progress) -> None:
        if event.figures.get("initializer") == "fused 3":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qwp.align(src, tgt, checkpoint=Checkpoint(tmp_path, interval=0.0), progress=interrupt, **options)
    seen: list[Progress] = []
    resumed = qwp.align(src, tgt, checkpoint=Checkpoint(tmp_path, resume=True), progress=seen.append, **options)
    assert "profiles" not in {event.figures.get("initializer") for event in seen}
    assert resumed.provenance.candidates == whole.provenance.candidates
    assert resumed.src_map.tobytes() == whole.src_map.tobytes()


def test_anchors_are_the_pairs_of_the_lexicon() -> None:
    src, tgt = planted_embeddings(noise=0.1)
    pairs = [(f"s{i}", f"t{i}") for i in range(40)]
    options: dict[str, Any] = {**QUICK, "verdict": "none"}
    without, weighty = (qwp.align(src, tgt, lexicon=pairs, anchor_weight=weight, **options) for weight in (0.0, 20.0))
    assert weighty.provenance.config["anchor_weight"] == 20.0
    assert not np.array_equal(without.src_map, weighty.src_map)

    def closeness(alignment: Alignment) -> float:
        rows = [alignment.transform([word for word, _ in pairs]), alignment.transform([t for _, t in pairs], "tgt")]
        a, b = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in rows)
        return float((a * b).sum(axis=1).mean())

    assert closeness(weighty) > closeness(without)


REMARK = "The refinement used the known pairs as anchors in every round"


class AstrayRefinement(CslsRefinement):
    """A refinement that returns a random rotation without anchors, and its input with anchors."""

    def refined(
        self, problem: Problem, state: State, monitor: Monitor, anchors: Anchors | None = None, *, save: bool = True
    ) -> State:
        state = unprojected(problem, state)
        wrong = arrays.asarray(rotation(problem.width, 7), state.map)
        return replace(state, maps=Maps(wrong)) if anchors is None else state


class Astray(QWP):
    """qWP with this refinement."""

    pipeline = replace(QWP.pipeline, refine=AnchoredRefinement(refinement=AstrayRefinement(**vars(WEIGHTED))))


def test_known_pairs_become_anchors_if_the_refinement_loses_them() -> None:
    src, tgt = planted_embeddings(400, noise=0.1)
    pairs = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(250)))
    options: dict[str, Any] = {**QUICK, "start": "lexicon"}
    usual = QWP(**options).fit(src, tgt, lexicon=pairs).alignment_
    assert REMARK not in usual.quality.explanation
    held = Astray(**options).fit(src, tgt, lexicon=pairs).alignment_
    start = "Succeeded: 100 % of 25 held-out known pairs are ranked first (89-100 %)."
    assert held.quality.explanation.startswith(start)
    remark = f"{REMARK}: it finds 100 % of 25 validation words, and 0 % without anchors."
    assert held.quality.explanation.endswith(remark)
    assert qwp.evaluate(held, pairs).scores["nn"].covered["P@1"].value == 1.0
    # No pairs are held out if there are few, or if the weight is given.
    for lexicon, weight in ((Lexicon(pairs.pairs[:150]), None), (pairs, 0.0)):
        lost = Astray(anchor_weight=weight, **options).fit(src, tgt, lexicon=lexicon).alignment_
        assert REMARK not in lost.quality.explanation


@pytest.mark.parametrize(("shared", "share"), [(0, 0.0), (400, 0.5)])
def test_items_without_counterparts_have_no_accuracy(shared: int, share: float) -> None:
    """The map is right in both cases: the sides have the same clusters."""
    items, w = space(1600 - shared, 24, 0, clusters=200).astype("f4"), rotation(24, 1)
    tgt = np.concatenate([items[:shared], items[800:]]) @ w.astype("f4")
    options: dict[str, Any] = {**QUICK, "order": "none", "start": "matrix", "start_matrix": w, "steps": 1, "refine": 0}
    quality = qwp.align(items[:800], tgt, **options).quality
    assert quality.verdict == "succeeded"
    assert quality.counterparts is not None
    assert (quality.counterparts.src, quality.counterparts.tgt) == pytest.approx((share, share), abs=0.1)
    assert "outside the calibration range (24 dimensions" in quality.explanation
    assert "translations" not in quality.explanation
    assert quality.explanation.endswith(quality.counterparts.sentence)
    assert ("Hardly any item" in quality.explanation) == (share == 0)


WRONG_LEXICONS: dict[str, Callable[[int, int], int]] = {
    "reversed": lambda i, n: n - 1 - i,
    "all wrong": lambda i, n: (7 * i + 3) % n,
    "shifted after a tenth": lambda i, n: i if i < n // 10 else i + 1,
    "of another pair": lambda i, n: 399 - i,
}


@pytest.mark.parametrize("kind", WRONG_LEXICONS)
@pytest.mark.parametrize("options", [{**QUICK, "steps": 5}, {"method": "procrustes", "refine": 5}])
def test_a_wrong_lexicon_never_succeeds(options: dict[str, Any], kind: str) -> None:
    """Refinement finds the right map of these spaces from anywhere. The user's pairs still contradict it."""
    spaces = planted_embeddings(400, noise=0.1)
    for n in (300, 150):  # with and without held-out pairs
        pairs = Lexicon(tuple((f"s{i}", f"t{WRONG_LEXICONS[kind](i, n)}") for i in range(n)))
        for lexicon, verdicts in ((pairs, ("weak", "failed")), (gold(n), ("succeeded",))):
            quality = qwp.align(*spaces, lexicon=lexicon, **options).quality
            assert quality.verdict in verdicts
            assert quality.measured is not None


def test_a_run_resumes_from_rounds_with_anchors(tmp_path: Path) -> None:
    # So noisy that the maps find few of the held-out words.
    src, tgt = planted_embeddings(300, noise=2.0)
    options: dict[str, Any] = {**QUICK, "lexicon": [(f"s{i}", f"t{i}") for i in range(250)], "refine": 2}
    seen: list[Progress] = []
    whole = qwp.align(src, tgt, progress=seen.append, **options)
    rounds = [event for event in seen if event.stage == "refine"]
    assert len(rounds) == 4

    def interrupt(event: Progress) -> None:
        if event.stage == "refine":
            seen.append(event)
        if len(seen) == 3:
            raise KeyboardInterrupt

    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        qwp.align(src, tgt, checkpoint=Checkpoint(tmp_path), progress=interrupt, **options)
    resumed = qwp.align(src, tgt, checkpoint=Checkpoint(tmp_path, resume=True), **options)
    assert resumed.src_map.tobytes() == whole.src_map.tobytes()
    assert resumed.quality.explanation == whole.quality.explanation


def test_anchors_without_pairs_are_refused() -> None:
    message = "anchor_weight=3 was given, but there are no known pairs: give a lexicon and start='lexicon'"
    with pytest.raises(InputError, match=message):
        QWP(anchor_weight=3.0).validate()
    with pytest.raises(InputError, match="with refine_weights='equal' pairs have no weights"):
        QWP(anchor_weight=3.0, start="lexicon", refine_weights="equal").validate(Supervision(gold(40)))


@pytest.mark.parametrize("order", ["none", "given"])
def test_only_the_refinement_of_unordered_items_has_further_rounds(order: str) -> None:
    rng = np.random.default_rng(0)
    src, tgt = (rng.standard_normal((60, 10)) for _ in "ab")
    options: dict[str, Any] = {**QUICK, "order": order, "steps": 3, "refine": 1, "verdict": "none"}
    failed = BriefSearch(**options, start="unsupervised").fit(src, tgt).alignment_
    assert all(tried["score"] < SEARCH.accept_ratio for tried in failed.provenance.candidates)
    rounds = [record["step"] for record in failed.history if record["stage"] == "refine"]
    assert rounds == list(range(1, len(rounds) + 1))
    assert (len(rounds) > 1) == (order == "none")
    # Without a search no candidate was rejected.
    plain = BriefSearch(**options, start="profiles").fit(src, tgt).alignment_
    assert [record["step"] for record in plain.history if record["stage"] == "refine"] == [1]


# --------------------------------------------------------------------------- wp

BRIEF: dict[str, Any] = {**QUICK, "start": "profiles", "epochs": 1, "steps": 3, "refine": 1}


def test_wp_is_qwp_with_random_batches() -> None:
    assert WP().get_params() == QWP(coreset="random").get_params() == QWP().get_params()
    spaces = planted_embeddings(200, noise=0.2)
    plain = WP(**BRIEF).fit(*spaces)
    assert_same(QWP(**BRIEF).fit(*spaces).map_, plain.map_)
    quantized = QWP(coreset="kmeans++", **BRIEF).fit(*spaces)
    assert_same(WP(coreset="kmeans++", **BRIEF).fit(*spaces).map_, quantized.map_)
    assert (plain.map_ != quantized.map_).any()


# --------------------------------------------------------------------------- methods with known pairs

EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


def with_shared_words(shared: int) -> tuple[Embeddings, Embeddings]:
    """Return a planted rotation; both sides spell the first words of the source alike."""
    src, tgt = planted_embeddings(200, noise=0.1, shuffle=True)
    same = {f"t{i}": f"s{i}" for i in range(shared)}
    return src, Embeddings([same.get(word, word) for word in tgt.words], tgt.vectors)


def test_identical_strings_are_the_seeds() -> None:
    src, tgt = with_shared_words(25)
    plain = Identical(refine=0, **EXACT).fit(src, tgt)
    lexicon = Lexicon(tuple((f"s{i}", f"s{i}") for i in range(25)))
    assert_close(plain.map_, procrustes(*matched(plain.alignment_, lexicon)), atol=1e-12)
    refined = Identical(**EXACT).fit(src, tgt)
    steps = [record["step"] for record in refined.alignment_.history if record["stage"] == "refine"]
    assert steps == [1, 2, 3, 4, 5]
    expected = CslsRefinement(rounds=5).refine(*normalised(plain.alignment_), Maps(plain.map_))
    assert_close(refined.map_, expected.src, atol=1e-12)
    found = refined.alignment_.translate([f"s{i}" for i in range(25, 200)], k=1)
    assert np.mean([best[0].word == f"t{word[1:]}" for word, best in found.items()]) > 0.95


def test_no_identical_string_is_an_error() -> None:
    with pytest.raises(InputError, match="identical strings: no pair is covered by the two vocabularies"):
        Identical(threads=1).fit(*planted_embeddings(50))


def test_bad_parameters_of_identical_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"map": "reweighted", "refine": 0}, "refine=0: set refine=1"),
        ({"seed": -1}, "seed=-1 is out of range; expected 0 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Identical(threads=1, **options).fit(*planted_embeddings(50))


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_least_squares_is_that_of_the_covered_pairs(ridge: float) -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s3", "nowhere")))
    aligner = LeastSquares(ridge=ridge, **EXACT).fit(*spaces, lexicon=lexicon)
    x, y = matched(aligner.alignment_, lexicon)
    expected = np.linalg.solve(x.T @ x + ridge * np.eye(12), x.T @ y)
    assert_close(aligner.map_, expected, atol=1e-10)
    # The pairs fit better than under any rotation.
    if ridge == 0.0:
        assert np.linalg.norm(x @ aligner.map_ - y) < np.linalg.norm(x @ procrustes(x, y) - y)


def test_least_squares_finds_a_map_that_is_no_rotation() -> None:
    src, _ = planted_embeddings(200)
    stretch = np.random.default_rng(0).standard_normal((12, 12))
    tgt = Embeddings([f"t{i}" for i in range(200)], (src.vectors @ stretch).astype("f4"))
    aligner = LeastSquares(normalize="none", **EXACT).fit(src, tgt, lexicon=seeds(30))
    assert_close(aligner.map_, stretch, atol=1e-4)
    assert score(aligner) > 0.99


def test_too_few_pairs_give_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="qwp"):
        aligner = LeastSquares(**EXACT).fit(*planted_embeddings(50), lexicon=seeds(5))
    assert "5 pairs for 12 dimensions" in caplog.text
    x, y = matched(aligner.alignment_, seeds(5))
    assert_close(aligner.map_, np.linalg.pinv(x) @ y, atol=1e-8)


def test_bad_parameters_of_least_squares_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ridge": -0.1}, r"ridge=-0\.1 is out of range; expected 0 to"),
        ({"ridge": float("nan")}, "ridge=nan is out of range"),
        ({"csls_k": 0}, "csls_k=0 is out of range; expected 1 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            LeastSquares(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))


def test_procrustes_is_that_of_the_covered_pairs() -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s1", "t2"), ("s3", "nowhere"), ("nobody", "t3")))
    aligner = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    assert_close(aligner.map_, procrustes(*matched(aligner.alignment_, lexicon)), atol=1e-12)
    assert orthogonality_error(aligner.map_) < 1e-12
    assert aligner.alignment_.tgt_map is None
    assert [record["stage"] for record in aligner.alignment_.history] == ["verdict"]


def test_procrustes_refines_only_when_asked() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    refined = Procrustes(refine=2, **EXACT).fit(*spaces, lexicon=lexicon)
    expected = CslsRefinement(rounds=2).refine(*normalised(plain.alignment_), Maps(plain.map_))
    assert_close(refined.map_, expected.src, atol=1e-12)
    assert refined.alignment_.tgt_map is None
    assert np.abs(refined.map_ - plain.map_).max() > 1e-3


def test_procrustes_passes_its_parameters_to_the_refinement() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    told: dict[str, Any] = {"refine_words": 150, "refine_first_words": 60, "refine_directions": "union"}
    told |= {"refine_weights": "csls", "refine_map": "reweighted", "map": "reweighted"}
    told |= {"reweight": 0.6, "dewhiten": 0.5, "csls_k": 7}
    refined = Procrustes(refine=3, **told, **EXACT).fit(*spaces, lexicon=lexicon).alignment_
    settings = with_values(CslsRefinement(rounds=3), told)
    expected = settings.refine(*normalised(plain.alignment_), Maps(plain.map_))
    assert refined.tgt_map is not None
    assert expected.tgt is not None
    assert_close(refined.src_map @ refined.tgt_map.T, expected.src @ expected.tgt.T, atol=1e-10)
    steps = [record for record in refined.history if record["stage"] == "refine"]
    assert [record["n_words"] for record in steps] == [60, 95, 150]
    # The last map may be orthogonal in this case, too.
    turned = Procrustes(refine=3, **{**told, "map": "orthogonal"}, **EXACT).fit(*spaces, lexicon=lexicon)
    assert turned.alignment_.tgt_map is None
    assert orthogonality_error(turned.map_) < 1e-12


def test_bad_parameters_of_procrustes_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"refine_directions": "both"}, "refine_directions='both' is not known; expected one of mutual, forward"),
        ({"refine_words": -1}, "refine_words=-1 is out of range; expected 0 to"),
        ({"refine_first_words": -1}, "refine_first_words=-1 is out of range; expected 0 to"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known; expected one of equal, csls"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"map": "affine"}, "map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"reweight": -1.0}, r"reweight=-1\.0 is out of range; expected 0 to 10"),
        ({"reweight": 11.0}, r"reweight=11\.0 is out of range; expected 0 to 10"),
        ({"dewhiten": 2.0}, r"dewhiten=2\.0 is out of range; expected 0 to 1"),
        ({"order": "alphabetical"}, "order='alphabetical' is not known; expected one of auto, given"),
        ({"dtype": "float16"}, "dtype='float16' is not known; expected one of float32, float64"),
        ({"normalize": "shout"}, "'shout'.* is not known"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Procrustes(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))
