from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.explore.workspace import RIGHT, WRONG, Corrections, Workspace
from qwp.spaces.lexicon import Lexicon


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


def test_marks_are_saved_as_two_lexicons(tmp_path: Path) -> None:
    marks = Corrections.of(tmp_path)
    assert marks.set([("a", "b"), ("c", "d e")], RIGHT)
    assert marks.set([("a", "x")], WRONG)
    assert Lexicon.load(tmp_path / "corrections.tsv").pairs == (("a", "b"), ("c", "d e"))
    assert Lexicon.load(tmp_path / "rejected.tsv").pairs == (("a", "x"),)
    again = Corrections.of(tmp_path)
    assert again.counts() == {RIGHT: 2, WRONG: 1}
    assert again.get("a", "b") == RIGHT
    assert again.get("a", "x") == WRONG
    assert again.get("a", "y") is None


def test_marks_change_and_disappear(tmp_path: Path) -> None:
    marks = Corrections.of(tmp_path)
    marks.set([("a", "b")], RIGHT)
    marks.set([("a", "b")], WRONG)
    assert marks.counts() == {RIGHT: 0, WRONG: 1}
    assert not (tmp_path / "corrections.tsv").exists()
    marks.set([("a", "b")], None)
    assert len(marks) == 0
    assert not list(tmp_path.iterdir())


def test_concurrent_marks_are_all_saved(tmp_path: Path) -> None:
    marks = Corrections(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda number: marks.set([(f"w{number}", "x")], RIGHT), range(64)))
    assert Lexicon.load(tmp_path / "corrections.tsv").pairs == marks.pairs(RIGHT)
    assert marks.counts() == {RIGHT: 64, WRONG: 0}


def test_unwritable_marks_stay_in_memory(tmp_path: Path) -> None:
    marks = Corrections(tmp_path / "none")
    assert not marks.set([("a", "b")], RIGHT)
    assert marks.get("a", "b") == RIGHT
    assert not Corrections(None).set([("a", "b")], RIGHT)


def test_the_number_of_marks_is_limited(tmp_path: Path) -> None:
    marks = Corrections(tmp_path, max_marks=1)
    with pytest.raises(InputError, match="received 2 more marks, expected at most 1 in all"):
        marks.set([("a", "b"), ("c", "d")], RIGHT)


def test_an_unreadable_file_raises(tmp_path: Path) -> None:
    (tmp_path / "corrections.tsv").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="holds no usable pair"):
        Corrections.of(tmp_path)


def test_words_that_break_a_line_raise(tmp_path: Path) -> None:
    marks = Corrections(tmp_path)
    for word in ("a\tb", "a\nb", " a"):
        with pytest.raises(InputError, match="does not fit on a line of a lexicon"):
            marks.set([(word, "x")], RIGHT)
    assert marks.set([("a", "b")], RIGHT)
