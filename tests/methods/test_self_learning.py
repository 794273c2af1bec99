"""Self-learning: its three initializers, its two kinds of map, and its phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon
from qwp.arrays import unit
from qwp.maps.procrustes import orthogonality_error, procrustes, reweighted
from qwp.methods.self_learning import SelfLearning, StochasticSelfLearning
from qwp.search.retrieval import Pairs, cross_neighbours
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import normalised, p1, seeds
from tests.problems import Array

# Small and quick, with all phases.
QUICK: dict[str, Any] = {"threads": 1, "patience": 3, "verdict": "none"}


def steps(aligner: SelfLearning) -> list[dict[str, Any]]:
    return [record for record in aligner.alignment_.history if record["stage"] == "learn"]


def last_dictionary(aligner: SelfLearning, w: Array) -> Pairs:
    """The dictionary of all words under the map `w` (d, d), both directions."""
    x, y = normalised(aligner.alignment_)
    return cross_neighbours(unit(x @ w), y, csls_k=aligner.csls_k).union()


# --------------------------------------------------------------------------- starts


def test_profiles_need_nothing_but_the_vectors() -> None:
    aligner = SelfLearning(**{**QUICK, "verdict": "full"}).fit(*planted_embeddings(400, noise=0.1, shuffle=True))
    assert p1(aligner) > 0.95
    assert aligner.quality_.verdict == "succeeded"


def test_initialization_from_a_lexicon() -> None:
    spaces = planted_embeddings(400, noise=0.4, shuffle=True)
    first = SelfLearning(start="lexicon", max_steps=0, map="orthogonal", **QUICK).fit(*spaces, lexicon=seeds(15))
    learnt = SelfLearning(start="lexicon", **QUICK).fit(*spaces, lexicon=seeds(15))
    assert p1(learnt) > 0.8
    assert p1(learnt) > p1(first)
    # A wrong lexicon gives another map.
    wrong = Lexicon(tuple((f"s{i}", f"t{399 - i}") for i in range(100)))
    misled = SelfLearning(start="lexicon", max_steps=0, **QUICK).fit(*spaces, lexicon=wrong)
    assert p1(misled) < 0.3


def test_initialization_from_identical_strings() -> None:
    src, tgt = planted_embeddings(400, noise=0.1, shuffle=True)
    shared = {f"t{i}": f"s{i}" for i in range(25)}
    renamed = Embeddings([shared.get(word, word) for word in tgt.words], tgt.vectors)
    assert p1(SelfLearning(start="identical", **QUICK).fit(src, renamed)) > 0.95
    with pytest.raises(InputError, match="identical strings: no pair is covered"):
        SelfLearning(start="identical", **QUICK).fit(src, tgt)


def test_lexicon_and_identical_strings_with_the_same_pairs_give_the_same_map() -> None:
    src, tgt = planted_embeddings(300, noise=0.3)
    shared = {f"t{i}": f"s{i}" for i in range(30)}
    renamed = Embeddings([shared.get(word, word) for word in tgt.words], tgt.vectors)
    by_string = SelfLearning(start="identical", **QUICK).fit(src, renamed)
    by_lexicon = SelfLearning(start="lexicon", **QUICK).fit(src, tgt, lexicon=seeds(30))
    assert_same(by_string.map_, by_lexicon.map_)


# --------------------------------------------------------------------------- maps


def test_the_orthogonal_map_is_orthogonal_and_one_sided() -> None:
    aligner = SelfLearning(map="orthogonal", dtype="float64", **QUICK)
    aligner.fit(*planted_embeddings(300, noise=0.2, shuffle=True))
    assert orthogonality_error(aligner.map_) < 1e-10
    assert aligner.alignment_.tgt_map is None
    assert p1(aligner) > 0.95
    # Procrustes on the last dictionary; the map has converged, so its own dictionary is the same.
    (x, y), pairs = normalised(aligner.alignment_), last_dictionary(aligner, aligner.map_)
    assert_close(aligner.map_, procrustes(x[host(pairs.src)], y[host(pairs.tgt)]), atol=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_reweighted_map_is_two_sided(power: float) -> None:
    spaces = planted_embeddings(300, noise=0.3, shuffle=True)
    plain = SelfLearning(map="orthogonal", dtype="float64", **QUICK).fit(*spaces)
    aligner = SelfLearning(reweight=power, dtype="float64", **QUICK).fit(*spaces)
    tgt_map = aligner.alignment_.tgt_map
    assert tgt_map is not None
    assert p1(aligner) > 0.85
    (x, y), pairs = normalised(aligner.alignment_), last_dictionary(aligner, plain.map_)
    src, tgt = reweighted(x[host(pairs.src)], y[host(pairs.tgt)], power)
    assert tgt is not None
    # The sign of an axis is free, on both sides at once.
    assert_close(aligner.map_ @ tgt_map.T, src @ tgt.T, atol=1e-6)
    for matrix in (aligner.map_, tgt_map):
        assert (orthogonality_error(matrix) < 1e-8) == (power == 0.0)


def test_targets_are_mapped_by_their_own_map() -> None:
    aligner = SelfLearning(**QUICK).fit(*planted_embeddings(300, noise=0.1))
    x, y = normalised(aligner.alignment_)
    tgt_map = aligner.alignment_.tgt_map
    assert tgt_map is not None
    assert_close(aligner.alignment_.transform(["t7"], side="tgt")[0], y[7] @ tgt_map, atol=1e-5)
    assert_close(aligner.transform(["s7"])[0], x[7] @ aligner.map_, atol=1e-5)


# --------------------------------------------------------------------------- phases


def test_keep_and_the_vocabulary_grow() -> None:
    options = {"keep": 0.2, "keep_growth": 2.0, "start_words": 100, "train_words": 400, **QUICK}
    aligner = SelfLearning(**options).fit(*planted_embeddings(500, noise=0.2))
    records = steps(aligner)
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))
    phases = list(dict.fromkeys((record["keep"], record["words"]) for record in records))
    assert [keep for keep, _ in phases] == pytest.approx([0.2, 0.4, 0.8, 1.0])
    # From 100 to 400 words in three equal ratios.
    assert [words for _, words in phases] == [100, 159, 252, 400]
    assert all(np.diff([record["keep"] for record in records]) >= 0)


def test_a_phase_ends_after_patience_steps_without_progress() -> None:
    aligner = SelfLearning(keep=0.25, threads=1, patience=4, tol=1e-6).fit(*planted_embeddings(300, noise=0.2))
    by_phase: dict[float, list[float]] = {}
    for record in steps(aligner):
        by_phase.setdefault(record["keep"], []).append(record["mean_csls"])
    assert list(by_phase) == [0.25, 0.5, 1.0]
    for objectives in by_phase.values():
        best, waited, ended = -np.inf, 0, []
        for objective in objectives:
            best, waited = (objective, 0) if objective > best + 1e-6 else (best, waited + 1)
            ended.append(waited >= 4)
        assert ended == [False] * (len(objectives) - 1) + [True]


def test_number_of_phases() -> None:
    cases: list[tuple[float, float, int]] = [
        (1.0, 2.0, 0),
        (0.5, 2.0, 1),
        (0.125, 2.0, 3),
        (0.1, 2.0, 4),
        (0.1, 10.0, 1),
    ]
    for keep, growth, phases in cases:
        assert StochasticSelfLearning(keep=keep, keep_growth=growth)._phases == phases


def test_without_dropout_there_is_one_phase_on_all_words() -> None:
    options = {"keep": 1.0, "start_words": 50, "train_words": 200, **QUICK}
    records = steps(SelfLearning(**options).fit(*planted_embeddings(300, noise=0.2)))
    assert {(record["keep"], record["words"]) for record in records} == {(1.0, 200)}


def test_steps_are_limited() -> None:
    records = steps(SelfLearning(max_steps=5, **QUICK).fit(*planted_embeddings(200, noise=0.2)))
    assert len(records) == 5


def test_dropout_depends_on_the_seed() -> None:
    spaces = planted_embeddings(300, noise=0.3)
    first = [steps(SelfLearning(seed=s, max_steps=3, **QUICK).fit(*spaces)) for s in (1, 1, 2)]
    assert first[0] == first[1]
    assert first[0] != first[2]


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"start": "magic"}, "start='magic' is not known; expected one of profiles, lexicon, identical"),
        ({"map": "magic"}, "map='magic' is not known; expected one of reweighted, orthogonal"),
        ({"start": "lexicon"}, r"start='lexicon' needs lexicon=\.\.\.; none was given"),
        ({"start_words": 0}, "start_words=0"),
        ({"train_words": 0}, "train_words=0"),
        ({"patience": 0}, "patience=0"),
        ({"tol": -1e-3}, r"tol=-0\.001"),
        ({"max_steps": -1}, "max_steps=-1"),
        ({"reweight": -0.5}, r"reweight=-0\.5"),
        ({"keep": 0.0}, r"keep=0\.0 is out of range; expected 0\.001 to 1"),
        ({"keep": 1.5}, r"keep=1\.5 is out of range"),
        ({"keep": float("nan")}, "keep=nan"),
        ({"keep_growth": 1.0}, r"keep_growth=1\.0 is out of range; expected above 1"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            SelfLearning(threads=1, **options).fit(*planted_embeddings(50))
