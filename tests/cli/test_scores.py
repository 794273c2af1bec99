"""Lines of the tables and of the TSV."""

from __future__ import annotations

import numpy as np

from qwp.cli.scores import ScoreLine, Scores
from qwp.judging.evaluation import Score, evaluate
from qwp.judging.ranks import AlignedFiles
from qwp.judging.similarity import evaluate_similarity
from qwp.spaces.embeddings import Embeddings

SRC, TGT = (Embeddings([f"{p}{i}" for i in range(4)], np.eye(4) + 0.1) for p in "st")
SPACES = AlignedFiles(SRC, TGT)


def test_correlations_are_not_shown_as_percentages() -> None:
    about = ("f", "src", "", "cosine", "covered", "Spearman", Score(0.5, 0.4, 0.6), 3, 4)
    assert ScoreLine("similarity", *about).cell(intervals=True) == ("0.500", "0.400–0.600")
    assert ScoreLine("lexicon", *about).cell(intervals=False) == "50.0"
    assert ScoreLine("lexicon", *about).cells()[-5:] == ("0.500000", "0.400000", "0.600000", "3", "4")


def test_a_single_dictionary_is_repeated_at_the_top_level() -> None:
    found = evaluate(SPACES, [("s0", "t0")], bootstrap=0)
    alone = Scores(0, 0, lexicons=[({"path": "gold"}, found)])
    assert alone.only_lexicon is found
    assert alone.to_json()["scores"] == found.to_dict()["scores"]
    assert alone.to_json()["lexicons"][0]["lexicon"] == {"path": "gold"}
    both = Scores(0, 0, lexicons=[({"path": "a"}, found), ({"path": "b"}, found)])
    assert both.only_lexicon is None
    assert "scores" not in both.to_json()
    assert [line.file for line in both.lines() if line.main] == ["a", "b"]


def test_every_score_is_a_line() -> None:
    similarity = evaluate_similarity(SPACES, [("s0", "s1", 1), ("s0", "t0", 3), ("s2", "t2", 2), ("s1", "t2", 0)])
    scored = Scores(1000, 0, similarity=[similarity])
    assert [(line.side, line.measure, line.main) for line in scored.lines()] == [
        *(("cross", "Spearman", True), ("cross", "Pearson", False)),
    ]
    rows = scored.rows()
    assert all(len(line) == len(rows.columns) for line in rows.lines)
