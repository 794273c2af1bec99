from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from qwp import Alignment
from qwp.errors import InputError
from qwp.results.corrections import (
    ANCHORS,
    RIGHT,
    WRONG,
    Corrections,
    anchors,
    held_out,
    pinned_lexicon,
    pins,
    save_anchors,
)
from qwp.spaces.lexicon import Lexicon


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


def test_changes_are_taken_back(tmp_path: Path) -> None:
    marks = Corrections(tmp_path)
    with pytest.raises(InputError, match="there is no change to take back"):
        marks.undo()
    marks.set([("a", "b")], RIGHT)
    marks.set([("a", "b"), ("c", "d")], WRONG)
    marks.clear()
    assert (len(marks), marks.undoable) == (0, 3)
    assert not list(tmp_path.iterdir())
    marks.undo()
    assert marks.counts() == {RIGHT: 0, WRONG: 2}
    marks.undo()
    assert Lexicon.load(tmp_path / "corrections.tsv").pairs == (("a", "b"),)
    for number in range(30):
        marks.set([(f"w{number}", "x")], RIGHT)
    assert marks.undoable == 20


def test_the_last_accepted_answer_is_pinned(aligned: Alignment) -> None:
    marks = Corrections(None, {("s1", "t9"): RIGHT, ("s1", "t7"): RIGHT, ("s2", "t7"): WRONG, ("other", "t1"): RIGHT})
    assert pins(aligned, marks) == {"src": {"s1": "t7"}, "tgt": {"t9": "s1", "t7": "s1"}}


def test_pinned_pairs_replace_induced_ones(aligned: Alignment) -> None:
    induced = aligned.induce(mutual_only=False)
    wrong = next(pair for pair in induced if pair.src == "s7")
    marks = Corrections(None, {("s7", "t9"): RIGHT, ("s1", "t1"): RIGHT})
    found = {pair.src: pair for pair in pinned_lexicon(aligned, induced, marks)}
    assert [*found] == [pair.src for pair in induced]
    assert (found["s7"].tgt, found["s7"].confidence, found["s7"].mutual) == ("t9", 1.0, True)
    expected = {each.word: each.score for each in aligned.translate("s7", k=400)["s7"]}
    assert found["s7"].score == pytest.approx(expected["t9"], abs=1e-5)
    assert found["s7"].margin == pytest.approx(expected["t9"] - wrong.score, abs=1e-5)
    assert not found["s9"].mutual
    assert found["s3"] == next(pair for pair in induced if pair.src == "s3")


def test_anchors_are_those_of_the_provenance(aligned: Alignment, tmp_path: Path) -> None:
    assert anchors(aligned) == Lexicon(())
    given = Lexicon((("s1", "t1"), ("s2", "t2")))
    provenance = replace(aligned.provenance, supervision={"lexicon": given.sha256(), "start_matrix": None})
    supervised = replace(aligned, provenance=provenance)
    assert anchors(supervised) is None
    assert anchors(supervised, Lexicon((("s1", "t1"),))) is None
    assert anchors(supervised, given) == given
    folder = supervised.save(tmp_path / "saved")
    save_anchors(folder, given)
    found = anchors(Alignment.load(folder))
    assert found is not None
    assert found.pairs == given.pairs
    save_anchors(folder, Lexicon((("s3", "t3"),)))  # of another fit
    assert anchors(Alignment.load(folder)) is None
    (folder / ANCHORS).write_bytes(b"\xff\n")
    assert anchors(Alignment.load(folder)) is None


def test_words_of_anchors_are_left_out() -> None:
    lexicon = Lexicon((("a", "b"), ("a", "c"), ("d", "e")))
    assert held_out(lexicon, Lexicon((("a", "x"),))).pairs == (("d", "e"),)
    assert held_out(lexicon, None) == lexicon
