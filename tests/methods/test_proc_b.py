"""Bootstrapped Procrustes: each round by hand, and what it is good for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import InputError, Lexicon
from qwp.maps.procrustes import Maps, orthogonality_error, procrustes
from qwp.methods.compositions import Procrustes
from qwp.methods.proc_b import ProcB
from qwp.stages.refinement import induce_pairs
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import matched, normalised, p1, seeds

EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64"}


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
    assert_same(ProcB(rounds=0, **EXACT).fit(*spaces, lexicon=lexicon).map_, plain.map_)


def test_a_round_adds_the_best_mutual_pairs_to_the_seeds() -> None:
    spaces, lexicon = planted_embeddings(200, 170, noise=0.4, shuffle=True), seeds(20)
    aligner = ProcB(rounds=3, growth=30, **EXACT).fit(*spaces, lexicon=lexicon)
    (x, y), (seed_x, seed_y) = normalised(aligner.alignment_), matched(aligner.alignment_, lexicon)
    w, counts = procrustes(seed_x, seed_y), []
    for number in (1, 2, 3):
        pairs = induce_pairs(x, y, Maps(w))
        best = np.argsort(-host(pairs.scores), kind="stable")[: 30 * number]
        w = procrustes(np.vstack([seed_x, x[host(pairs.src)[best]]]), np.vstack([seed_y, y[host(pairs.tgt)[best]]]))
        counts.append(20 + len(best))
    assert_close(aligner.map_, w, atol=1e-10)
    records = [record for record in aligner.alignment_.history if record["stage"] == "learn"]
    assert [record["n_pairs"] for record in records] == counts
    assert counts[0] == 50


def test_rare_words_do_not_join_the_dictionary() -> None:
    spaces = planted_embeddings(200, noise=0.2)
    aligner = ProcB(rounds=2, growth=1000, train_words=40, **EXACT).fit(*spaces, lexicon=seeds(20))
    records = [record for record in aligner.alignment_.history if record["stage"] == "learn"]
    assert all(20 < record["n_pairs"] <= 60 for record in records)


def test_seed_pairs_takes_the_first_covered_pairs() -> None:
    spaces = planted_embeddings(200, noise=0.4)
    uncovered = Lexicon((("nobody", "t0"), *seeds(15), ("s1", "nowhere"), *seeds(60, 15)))
    few = ProcB(rounds=2, seed_pairs=18, **EXACT).fit(*spaces, lexicon=uncovered)
    expected = ProcB(rounds=2, **EXACT).fit(*spaces, lexicon=seeds(18))
    assert_same(few.map_, expected.map_)
    everything = ProcB(rounds=2, **EXACT).fit(*spaces, lexicon=uncovered)
    assert np.abs(everything.map_ - few.map_).max() > 1e-6


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"rounds": -1}, "rounds=-1 is out of range; expected 0 to"),
        ({"growth": 0}, "growth=0 is out of range; expected 1 to"),
        ({"train_words": 0}, "train_words=0 is out of range; expected 1 to"),
        ({"seed_pairs": 0}, "seed_pairs=0 is out of range; expected 1 to"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            ProcB(threads=1, **options).fit(*planted_embeddings(50), lexicon=seeds(20))
