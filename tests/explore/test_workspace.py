from __future__ import annotations

from qwp.explore.workspace import Workspace
from tests.explore.conftest import pairs_of


def test_words_are_completed_without_case_and_accents(workspace: Workspace) -> None:
    assert workspace.completed("src", "S1", 3) == ["s1", "s10", "s11"]
    assert workspace.completed("src", "99", 2) == ["s99", "s199"]
    assert workspace.completed("src", "", 5) == []
    assert workspace.completed("tgt", "nothing like it", 5) == []


def test_answers_are_judged_by_the_lexicon(workspace: Workspace) -> None:
    assert workspace.right("src", "s0", "t0") is True
    assert workspace.right("src", "s0", "t1") is False
    assert workspace.right("src", "s9", "t9") is None
    assert workspace.right("tgt", "t300", "s1") is True
    assert workspace.judged(["s1", "s2", "s3"], ["t300", "t2", "t3"]) == [True, False, None]


def test_ranks_count_from_one(workspace: Workspace) -> None:
    assert workspace.ranks("src")[:3].tolist() == [1, 2, 3]


def test_accepted_answers_replace_the_computed_ones(workspace: Workspace) -> None:
    computed = pairs_of(workspace)
    assert workspace.answers is not None
    assert workspace.answers.best.tolist() == computed.best.tolist()
    workspace.corrections.set([("s5", "t200"), ("s0", "t0")], "right")
    answers = workspace.answers
    assert answers is not None
    row = workspace.row("tgt", "t200")
    assert (answers.best[5], answers.confidence[5], bool(answers.pinned[5])) == (row, 1.0, True)
    assert answers.margin[5] < 0 < computed.margin[5]
    assert answers.mutual[5]
    assert answers.back[answers.tgt_rows.tolist().index(row)] == workspace.row("src", "s5")
    assert not answers.mutual[200]  # its best translation is taken
    assert (answers.best[0], answers.score[0]) == (computed.best[0], computed.score[0])
    assert not answers.suspects[[0, 5]].any()
    workspace.corrections.undo()
    assert workspace.answers.best.tolist() == computed.best.tolist()
