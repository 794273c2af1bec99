"""Methods that learn from pairs of words: known answers, what the lexicon does, and what is refused."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon
from qwp.maps.procrustes import Maps, orthogonality_error, procrustes
from qwp.maps.refinement import RefineSettings, induce_pairs, refine
from qwp.methods import METHODS, Aligner, make_aligner
from qwp.methods.identical import Identical
from qwp.methods.least_squares import LeastSquares
from qwp.methods.proc_b import ProcB
from qwp.methods.procrustes import Procrustes
from qwp.methods.supervision import IDENTICAL, NONE, REQUIRED
from tests.conftest import planted_embeddings
from tests.problems import Array

SUPERVISED = sorted(name for name, aligner in METHODS.items() if aligner.supervision == REQUIRED)
UNSUPERVISED = sorted(name for name, aligner in METHODS.items() if aligner.supervision in (NONE, IDENTICAL))
EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


def seeds(n: int, first: int = 0) -> Lexicon:
    return Lexicon(tuple((f"s{i}", f"t{i}") for i in range(first, first + n)))


def p1(aligner: Aligner) -> float:
    """Share of the source words s<i> whose best translation is t<i>."""
    found = aligner.alignment_.translate(aligner.alignment_.src.words, k=1)
    return float(np.mean([best[0].word == f"t{word[1:]}" for word, best in found.items()]))


def vectors(aligner: Aligner) -> tuple[Array, Array]:
    """Both sides as the method saw them: normalised, (n, d) and (m, d)."""
    done = aligner.alignment_
    sides = ((done.src, done.src_normalization), (done.tgt, done.tgt_normalization))
    x, y = (np.asarray(n.apply(space.vectors.astype(done.src_map.dtype))) for space, n in sides)
    return x, y


def rows_of(aligner: Aligner, lexicon: Lexicon) -> tuple[Array, Array]:
    """The matched vectors of a lexicon that both sides cover, (p, d) each."""
    (x, y), done = vectors(aligner), aligner.alignment_
    covered = [(done.src.index[a], done.tgt.index[b]) for a, b in lexicon if a in done.src and b in done.tgt]
    src, tgt = np.array(covered).T
    return x[src], y[tgt]


# --------------------------------------------------------------------------- procrustes and least squares


def test_procrustes_is_that_of_the_covered_pairs() -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s1", "t2"), ("s3", "nowhere"), ("nobody", "t3")))
    aligner = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    np.testing.assert_allclose(aligner.map_, procrustes(*rows_of(aligner, lexicon)), atol=1e-12)
    assert orthogonality_error(aligner.map_) < 1e-12
    assert aligner.alignment_.tgt_map is None
    assert [record["stage"] for record in aligner.alignment_.history] == ["verdict"]


def test_procrustes_refines_only_when_asked() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    refined = Procrustes(refine=2, **EXACT).fit(*spaces, lexicon=lexicon)
    expected = refine(*vectors(plain), Maps(plain.map_), RefineSettings(rounds=2))
    np.testing.assert_allclose(refined.map_, expected.src, atol=1e-12)
    assert refined.alignment_.tgt_map is None
    assert np.abs(refined.map_ - plain.map_).max() > 1e-3


def test_procrustes_refines_as_it_is_told() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4, shuffle=True), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    told: dict[str, Any] = {"refine_max_rank": 150, "refine_first_rank": 60, "refine_directions": "union"}
    told |= {"refine_weights": "csls", "refine_map": "reweighted", "map": "reweighted"}
    told |= {"reweight": 0.6, "dewhiten": 0.5, "csls_k": 7}
    refined = Procrustes(refine=3, **told, **EXACT).fit(*spaces, lexicon=lexicon).alignment_
    settings = RefineSettings(3, 7, 150, "union", "csls", 60, "reweighted", "reweighted", 0.6, 0.5)
    expected = refine(*vectors(plain), Maps(plain.map_), settings)
    assert refined.tgt_map is not None
    assert expected.tgt is not None
    np.testing.assert_allclose(refined.src_map @ refined.tgt_map.T, expected.src @ expected.tgt.T, atol=1e-10)
    steps = [record for record in refined.history if record["stage"] == "refine"]
    assert [record["n_words"] for record in steps] == [60, 95, 150]
    # The last map may be orthogonal all the same.
    turned = Procrustes(refine=3, **{**told, "map": "orthogonal"}, **EXACT).fit(*spaces, lexicon=lexicon)
    assert turned.alignment_.tgt_map is None
    assert orthogonality_error(turned.map_) < 1e-12


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_least_squares_is_that_of_the_covered_pairs(ridge: float) -> None:
    spaces = planted_embeddings(200, 150, noise=0.4, shuffle=True)
    lexicon = Lexicon((*seeds(40), ("s3", "nowhere")))
    aligner = LeastSquares(ridge=ridge, **EXACT).fit(*spaces, lexicon=lexicon)
    x, y = rows_of(aligner, lexicon)
    expected = np.linalg.solve(x.T @ x + ridge * np.eye(12), x.T @ y)
    np.testing.assert_allclose(aligner.map_, expected, atol=1e-10)
    # The point of it: the pairs fit better than under any rotation.
    if ridge == 0.0:
        assert np.linalg.norm(x @ aligner.map_ - y) < np.linalg.norm(x @ procrustes(x, y) - y)


def test_least_squares_finds_a_map_that_is_no_rotation() -> None:
    src, _ = planted_embeddings(200)
    stretch = np.random.default_rng(0).standard_normal((12, 12))
    tgt = Embeddings([f"t{i}" for i in range(200)], (src.vectors @ stretch).astype("f4"))
    aligner = LeastSquares(normalize="none", **EXACT).fit(src, tgt, lexicon=seeds(30))
    np.testing.assert_allclose(aligner.map_, stretch, atol=1e-4)
    assert p1(aligner) > 0.99


def test_too_few_pairs_are_said_to_be_too_few(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="qwp"):
        aligner = LeastSquares(**EXACT).fit(*planted_embeddings(50), lexicon=seeds(5))
    assert "5 pairs for 12 dimensions" in caplog.text
    x, y = rows_of(aligner, seeds(5))
    np.testing.assert_allclose(aligner.map_, np.linalg.pinv(x) @ y, atol=1e-8)


# --------------------------------------------------------------------------- identical strings


def with_shared_words(shared: int) -> tuple[Embeddings, Embeddings]:
    """A planted rotation where the first words of the source are spelt alike on both sides."""
    src, tgt = planted_embeddings(200, noise=0.1, shuffle=True)
    same = {f"t{i}": f"s{i}" for i in range(shared)}
    return src, Embeddings([same.get(word, word) for word in tgt.words], tgt.vectors)


def test_identical_strings_are_the_seeds() -> None:
    src, tgt = with_shared_words(25)
    plain = Identical(refine=0, **EXACT).fit(src, tgt)
    lexicon = Lexicon(tuple((f"s{i}", f"s{i}") for i in range(25)))
    np.testing.assert_allclose(plain.map_, procrustes(*rows_of(plain, lexicon)), atol=1e-12)
    refined = Identical(**EXACT).fit(src, tgt)
    steps = [record["step"] for record in refined.alignment_.history if record["stage"] == "refine"]
    assert steps == [1, 2, 3, 4, 5]
    expected = refine(*vectors(plain), Maps(plain.map_), RefineSettings(rounds=5))
    np.testing.assert_allclose(refined.map_, expected.src, atol=1e-12)
    found = refined.alignment_.translate([f"s{i}" for i in range(25, 200)], k=1)
    assert np.mean([best[0].word == f"t{word[1:]}" for word, best in found.items()]) > 0.95


def test_no_identical_string_is_an_error() -> None:
    with pytest.raises(InputError, match="identical strings: no pair is covered by the two vocabularies"):
        Identical(threads=1).fit(*planted_embeddings(50))


# --------------------------------------------------------------------------- bootstrapped Procrustes


def test_bootstrapping_beats_procrustes_on_few_noisy_seeds() -> None:
    spaces = planted_embeddings(400, noise=0.4, shuffle=True)
    wrong = tuple((f"s{i}", f"t{i + 1}") for i in range(20, 24))
    lexicon = Lexicon((*seeds(14), *wrong))
    plain = Procrustes(threads=1).fit(*spaces, lexicon=lexicon)
    grown = ProcB(threads=1, rounds=8, growth=50).fit(*spaces, lexicon=lexicon)
    assert p1(plain) < 0.8
    assert p1(grown) > p1(plain) + 0.1
    assert orthogonality_error(grown.map_) < 1e-5


def test_no_rounds_of_bootstrapping_are_procrustes() -> None:
    spaces, lexicon = planted_embeddings(200, noise=0.4), seeds(20)
    plain = Procrustes(**EXACT).fit(*spaces, lexicon=lexicon)
    np.testing.assert_array_equal(ProcB(rounds=0, **EXACT).fit(*spaces, lexicon=lexicon).map_, plain.map_)


def test_a_round_adds_the_best_mutual_pairs_to_the_seeds() -> None:
    spaces, lexicon = planted_embeddings(200, 170, noise=0.4, shuffle=True), seeds(20)
    aligner = ProcB(rounds=3, growth=30, **EXACT).fit(*spaces, lexicon=lexicon)
    (x, y), (seed_x, seed_y) = vectors(aligner), rows_of(aligner, lexicon)
    w, counts = procrustes(seed_x, seed_y), []
    for number in (1, 2, 3):
        pairs = induce_pairs(x, y, Maps(w))
        best = np.argsort(-pairs.scores, kind="stable")[: 30 * number]
        w = procrustes(np.vstack([seed_x, x[pairs.src[best]]]), np.vstack([seed_y, y[pairs.tgt[best]]]))
        counts.append(20 + len(best))
    np.testing.assert_allclose(aligner.map_, w, atol=1e-10)
    records = [record for record in aligner.alignment_.history if record["stage"] == "learn"]
    assert [record["n_pairs"] for record in records] == counts
    assert counts[0] == 50


def test_rare_words_do_not_join_the_dictionary() -> None:
    spaces = planted_embeddings(200, noise=0.2)
    aligner = ProcB(rounds=2, growth=1000, max_rank=40, **EXACT).fit(*spaces, lexicon=seeds(20))
    records = [record for record in aligner.alignment_.history if record["stage"] == "learn"]
    assert all(20 < record["n_pairs"] <= 60 for record in records)


def test_seed_pairs_takes_the_first_covered_pairs() -> None:
    spaces = planted_embeddings(200, noise=0.4)
    uncovered = Lexicon((("nobody", "t0"), *seeds(15), ("s1", "nowhere"), *seeds(60, 15)))
    few = ProcB(rounds=2, seed_pairs=18, **EXACT).fit(*spaces, lexicon=uncovered)
    expected = ProcB(rounds=2, **EXACT).fit(*spaces, lexicon=seeds(18))
    np.testing.assert_array_equal(few.map_, expected.map_)
    everything = ProcB(rounds=2, **EXACT).fit(*spaces, lexicon=uncovered)
    assert np.abs(everything.map_ - few.map_).max() > 1e-6


# --------------------------------------------------------------------------- what is refused


def test_there_are_methods_of_both_kinds() -> None:
    assert SUPERVISED == ["least-squares", "proc-b", "procrustes", "rcsls"]
    assert {"gromov", "identical"} <= set(UNSUPERVISED)


@pytest.mark.parametrize("method", SUPERVISED)
def test_a_missing_lexicon_is_explained(method: str) -> None:
    expected = (
        rf"method '{method}' is supervised and needs a seed lexicon, none was given: add --lexicon FILE \(in Python"
    )
    with pytest.raises(InputError, match=expected):
        make_aligner(method, threads=1).fit(*planted_embeddings(50))


@pytest.mark.parametrize("method", SUPERVISED)
def test_a_lexicon_of_other_words_is_explained(method: str) -> None:
    lexicon = Lexicon((("nobody", "nowhere"), ("s1", "nowhere")))
    with pytest.raises(InputError, match="seed lexicon of 2 pairs: no pair is covered"):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=lexicon)


@pytest.mark.parametrize("method", UNSUPERVISED)
def test_a_lexicon_for_a_method_without_one_is_refused(method: str) -> None:
    if METHODS[method].needs_torch:
        pytest.importorskip("torch")
    with pytest.raises(InputError, match=f"a lexicon was given, but method '{method}' does not use one: leave it out"):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=seeds(5))


@pytest.mark.parametrize("method", ["qwp", "wp", "multi", "self-learning"])
def test_a_lexicon_that_the_start_does_not_use_is_refused(method: str) -> None:
    with pytest.raises(InputError, match=r"lexicon was given,? but start="):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=seeds(5))


@pytest.mark.parametrize("method", [*SUPERVISED, "identical", "gromov", "self-learning"])
def test_a_start_matrix_for_a_method_without_one_is_refused(method: str) -> None:
    lexicon = seeds(20) if method in SUPERVISED else None
    with pytest.raises(InputError, match=f"start_matrix was given, but method '{method}' does not use one"):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=lexicon, start_matrix=np.eye(12))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("least-squares", {"ridge": -0.1}, r"ridge=-0\.1 should be at least 0"),
        ("least-squares", {"ridge": float("nan")}, "ridge=nan"),
        ("least-squares", {"csls_k": 0}, "csls_k=0"),
        ("procrustes", {"refine": -1}, "rounds=-1"),
        ("procrustes", {"refine_directions": "both"}, "'both' is not known"),
        ("procrustes", {"refine_max_rank": -1}, "max_rank=-1"),
        ("procrustes", {"refine_first_rank": -1}, "refine_first_rank=-1 should be at least 0"),
        (
            "procrustes",
            {"refine_weights": "cosine"},
            "refine_weights 'cosine' is not known; expected one of equal, csls",
        ),
        ("procrustes", {"refine_map": "affine"}, "refine_map 'affine' is not known"),
        ("procrustes", {"map": "affine"}, "map 'affine' is not known; expected one of reweighted, orthogonal"),
        ("procrustes", {"reweight": -1.0}, r"reweight=-1\.0 should lie between 0 and 10"),
        ("procrustes", {"reweight": 11.0}, r"reweight=11\.0 should lie between 0 and 10"),
        ("procrustes", {"map": "reweighted", "refine": 0}, "refine=0: set refine=1"),
        ("identical", {"map": "reweighted", "refine": 0}, "refine=0: set refine=1"),
        ("procrustes", {"dewhiten": 2.0}, r"dewhiten=2\.0 should lie between 0 and 1"),
        ("procrustes", {"order": "alphabetical"}, "order 'alphabetical' is not known; expected one of auto, given"),
        ("procrustes", {"dtype": "float16"}, "float16"),
        ("procrustes", {"normalize": "shout"}, "shout"),
        ("proc-b", {"rounds": -1}, "rounds=-1 should be at least 0"),
        ("proc-b", {"growth": 0}, "growth=0 should be at least 1"),
        ("proc-b", {"max_rank": -1}, "max_rank=-1 should be at least 0"),
        ("proc-b", {"seed_pairs": 0}, "seed_pairs=0 should be at least 1"),
        ("identical", {"refine": -1}, "rounds=-1"),
        ("identical", {"seed": -1}, "seed=-1"),
    ],
)
def test_bad_parameters_are_refused(method: str, options: dict[str, Any], message: str) -> None:
    lexicon = seeds(20) if method in SUPERVISED else None
    with pytest.raises(InputError, match=message):
        make_aligner(method, threads=1, **options).fit(*planted_embeddings(50), lexicon=lexicon)
