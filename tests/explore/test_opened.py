from __future__ import annotations

from qwp.explore.opened import Explored, folded


def test_words_are_completed_without_case_and_accents(explored: Explored) -> None:
    assert folded("Ángel") == "angel"
    assert explored.completed("src", "S1", 3) == ["s1", "s10", "s11"]
    assert explored.completed("src", "99", 2) == ["s99", "s199"]
    assert explored.completed("src", "", 5) == []
    assert explored.completed("tgt", "nothing like it", 5) == []


def test_answers_are_judged_by_the_lexicon(explored: Explored) -> None:
    assert explored.right("src", "s0", "t0") is True
    assert explored.right("src", "s0", "t1") is False
    assert explored.right("src", "s9", "t9") is None
    assert explored.right("tgt", "t300", "s1") is True
    assert explored.judged(["s1", "s2", "s3"], ["t300", "t2", "t3"]) == [True, False, None]


def test_ranks_count_from_one(explored: Explored) -> None:
    assert explored.ranks("src")[:3].tolist() == [1, 2, 3]
