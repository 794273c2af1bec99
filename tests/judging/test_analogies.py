"""Analogies: vectors with known answers, and files in the usual format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import arrays
from qwp.errors import InputError
from qwp.judging.analogies import ADD, MUL, AnalogyQuestions, evaluate_analogies
from qwp.judging.ranks import AlignedFiles
from qwp.spaces.embeddings import Embeddings

# A direction for royalty and one for each sex: queens are kings - men + women.
KING = {
    "man": [1.0, 0.0, 0.1],
    "woman": [0.0, 1.0, 0.1],
    "king": [1.0, 0.0, 1.1],
    "queen": [0.0, 1.0, 1.1],
    "apple": [-1.0, -1.0, 0.2],
}
SPACE = Embeddings(list(KING), np.array([*KING.values()]))
OTHER = Embeddings([f"t.{word}" for word in KING], np.array([*KING.values()]))
SPACES = AlignedFiles(SPACE, OTHER)


def brute(spaces: AlignedFiles, questions: Sequence[tuple[str, ...]], where: str) -> list[tuple[bool, bool]]:
    """Return both answers to each question by the definitions, candidate by candidate."""
    one, other = spaces.src, spaces.src if where == "src" else spaces.tgt

    def unit(vector: Any) -> Any:
        return vector / np.linalg.norm(vector)

    found = []
    for a, b, c, d in questions:
        va, vb, vc = unit(one[a]), unit(one[b]), unit(other[c])
        banned = {a, b, c} if where == "src" else {c}
        add, mul = {}, {}
        for word in other.words:
            if word not in banned:
                v = unit(other[word])
                add[word] = v @ vb - v @ va + v @ vc
                mul[word] = (1 + v @ vb) / 2 * (1 + v @ vc) / 2 / ((1 + v @ va) / 2 + 0.001)
        found.append((max(add, key=lambda w: add[w]) == d, max(mul, key=lambda w: mul[w]) == d))
    return found


def test_queen_is_found_in_each_language_and_across() -> None:
    found = evaluate_analogies(SPACES, [("man", "king", "woman", "queen"), ("man", "king", "woman", "apple")])
    assert found.where == "src"
    assert {name: score.value for name, score in found.total.covered.items()} == {ADD: 0.5, MUL: 0.5}
    tgt = evaluate_analogies(SPACES, [("t.man", "t.king", "t.woman", "t.queen")])
    assert (tgt.where, tgt.total.covered[ADD].value) == ("tgt", 1.0)
    across = evaluate_analogies(SPACES, [("man", "king", "t.woman", "t.queen")])
    assert (across.where, across.total.covered[ADD].value) == ("cross", 1.0)


def test_words_of_the_question_are_excluded_and_ties_are_wrong() -> None:
    # king - man + king is nearest to king itself, and then to queen.
    assert evaluate_analogies(SPACES, [("man", "king", "king", "queen")]).total.covered[ADD].value == 1.0
    twins = Embeddings(["a", "b", "c", "d", "e"], np.array([[1.0, 0], [0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.2, 0.8]]))
    found = evaluate_analogies(AlignedFiles(twins, twins), [("a", "b", "c", "d"), ("a", "b", "c", "e")], side="src")
    assert found.total.covered[ADD].value == 0.0


@pytest.mark.parametrize("where", ["src", "cross"])
def test_answers_follow_the_definitions(where: str) -> None:
    rng = np.random.default_rng(5)
    src, tgt = (Embeddings([f"{p}{i}" for i in range(40)], rng.standard_normal((40, 4))) for p in "st")
    spaces = AlignedFiles(src, tgt)
    second = "s" if where == "src" else "t"
    rows = [rng.choice(40, 4, replace=False) for _ in range(150)]
    questions = [(f"s{a}", f"s{b}", f"{second}{c}", f"{second}{d}") for a, b, c, d in rows]
    expected = brute(spaces, questions, where)
    with arrays.use_memory(1e-4):  # several blocks
        found = evaluate_analogies(spaces, questions, side=where, bootstrap=0).total.covered
    assert found[ADD].value == pytest.approx(np.mean([add for add, _ in expected]))
    assert found[MUL].value == pytest.approx(np.mean([mul for _, mul in expected]))
    assert 0 < found[ADD].value < 1


def test_sections_and_coverage(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(
        ": royal\nman king woman queen\nman king woman nobody\n\n: fruit\nman king woman apple\n: unknown\nx y z u\n"
    )
    found = qwp.evaluate_analogies(SPACES, path)
    assert [(s.name, s.questions, s.covered_questions) for s in found.sections] == [
        *(("royal", 2, 1), ("fruit", 1, 1), ("unknown", 1, 0)),
    ]
    royal, fruit, unknown = found.sections
    assert (royal.covered[ADD].value, royal.all[ADD].value) == (1.0, 0.5)
    assert (fruit.covered[ADD].value, unknown.covered, unknown.all[ADD].value) == (0.0, {}, 0.0)
    assert (found.total.covered[ADD].value, found.total.all[ADD].value) == (0.5, 0.25)
    assert repr(found) == "Analogies(src, 3CosAdd 50.0 %, 3CosMul 50.0 %, 2 of 4 questions covered)"
    assert "unknown" in found._repr_html_()
    assert found.to_dict()["coverage"] == {"questions": 4, "covered_questions": 2, "share": 0.5}
    assert found.to_dict()["sections"][0]["section"] == "royal"


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_bytes(b"\xef\xbb\xbfman king woman queen\nman king woman\nman king woman king\nMan King Woman Queen\n")
    found = AnalogyQuestions.load(path)
    assert (len(found), found.skipped) == (2, 2)
    assert found.skipped_lines == (
        "line 2: holds 3 words, expected 4",
        "line 3: has its answer among the words of the question",
    )
    assert len(set(AnalogyQuestions.load(path, case="lower"))) == 1
    assert "2 questions in 1 sections" in repr(found)


def test_invalid_questions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text(": empty\na b c\n")
    with pytest.raises(InputError, match=r"holds no analogy \(1 lines skipped; line 2: holds 3 words"):
        AnalogyQuestions.load(tmp_path / "none.txt")
    with pytest.raises(InputError, match="received the analogy"):
        AnalogyQuestions.of([("a", "b", "c")])
    with pytest.raises(InputError, match="received no analogies"):
        AnalogyQuestions.of([])
    with pytest.raises(InputError, match="In lower case 1 would be covered"):
        evaluate_analogies(SPACES, [("Man", "King", "Woman", "Queen")])
    with pytest.raises(InputError, match="Other sides would cover 1 as src: name the side"):
        evaluate_analogies(SPACES, [("man", "king", "woman", "queen")], side="tgt")
