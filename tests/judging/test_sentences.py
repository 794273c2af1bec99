"""Sentence retrieval: known translations, weights computed by hand, and invalid texts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp.errors import InputError
from qwp.judging.ranks import AlignedFiles
from qwp.judging.sentences import TextPair, _idf, _sentence_vectors, evaluate_sentences
from qwp.spaces.embeddings import Embeddings


def one_hot(n: int) -> AlignedFiles:
    """s<i> means t<i>, and nothing else is near it."""
    src, tgt = (Embeddings([f"{side}{i}" for i in range(n)], np.eye(n)) for side in "st")
    return AlignedFiles(src, tgt)


def text(rows: list[list[int]], side: str) -> list[str]:
    return [" ".join(f"{side}{i}" for i in row) for row in rows]


def test_translations_are_found_and_wrong_lines_are_not() -> None:
    rows = [[0, 1], [2, 3], [4, 5], [1, 2], [6]]
    found = evaluate_sentences(one_hot(8), (text(rows, "s"), text(rows, "t")))
    for direction in ("src-tgt", "tgt-src"):
        assert {name: s.value for name, s in found.scores[direction]["nn"].items()} == {
            "P@1": 1.0,
            "P@5": 1.0,
            "P@10": 1.0,
            "MRR": 1.0,
        }
    crossed = [rows[1], rows[0], *rows[2:]]
    wrong = evaluate_sentences(one_hot(8), (text(rows, "s"), text(crossed, "t")), retrieval=("nn",))
    assert wrong.scores["src-tgt"]["nn"]["P@1"].value == pytest.approx(3 / 5)
    assert wrong.scores["src-tgt"]["nn"]["P@5"].value == 1.0


def test_sentence_vectors_are_idf_weighted_sums() -> None:
    lines = ["s0 s1", "s0 s2", "s0\ts1 s1  unknown", ""]
    idf = _idf(lines)
    assert idf.weight("s0") == pytest.approx(math.log(4 / 3))
    assert idf.weight("s1") == pytest.approx(math.log(2))
    assert idf.weight("never") == pytest.approx(math.log(4))
    vectors = _sentence_vectors(lines, one_hot(4).src.index, np.eye(4), idf)
    expected = np.zeros((4, 4))
    expected[:3, 0] = math.log(4 / 3)
    expected[0, 1], expected[2, 1], expected[1, 2] = math.log(2), 2 * math.log(2), math.log(4)
    assert np.allclose(vectors, expected)


def test_idf_of_other_texts() -> None:
    # All sentences share one word, which has no weight unless the idf is that of other texts.
    rows = [[0, 1], [0, 2], [0]]
    pair = text(rows, "s"), text(rows, "t")
    own = evaluate_sentences(one_hot(4), pair)
    assert (own.coverage.covered, own.coverage.lines) == (2, 3)
    other = evaluate_sentences(one_hot(4), pair, idf=(["s0", "s1", "s2"], ["t0", "t1", "t2", "t3"]))
    assert other.coverage.covered == 3


def test_repeated_lines_are_left_out_and_counted() -> None:
    rows = [[0], [1], [0], [2], [3]]
    src, tgt = text(rows, "s"), text([[0], [1], [4], [1], [3]], "t")
    found = evaluate_sentences(one_hot(5), (src, tgt))
    assert (found.coverage.lines, found.coverage.repeated, found.coverage.covered) == (5, 2, 3)
    assert found.coverage.share == 1.0


def test_queries_are_drawn_and_all_sentences_are_candidates() -> None:
    n = 60
    rows = [[i] for i in range(n)]
    few = evaluate_sentences(one_hot(n), (text(rows, "s"), text(rows, "t")), queries=7, bootstrap=0)
    assert (few.coverage.queries, few.coverage.covered) == (7, n)
    assert few.csls_k == 7
    noisy = AlignedFiles(
        one_hot(n).src, Embeddings(one_hot(n).tgt.words, np.random.default_rng(0).standard_normal((n, n)))
    )
    chance = evaluate_sentences(noisy, (text(rows, "s"), text(rows, "t")), queries=30, bootstrap=0)
    assert chance.scores["src-tgt"]["nn"]["P@1"].value < 0.2


def test_files_with_case_and_max_sentences(tmp_path: Path) -> None:
    for side in "st":
        (tmp_path / side).write_text("".join(f"{side.upper()}{i}\n" for i in range(6)))
    pair = TextPair.load(tmp_path / "s", tmp_path / "t", case="lower", max_sentences=4)
    assert (len(pair.src), pair.tgt[3]) == (4, "t3")
    found = qwp.evaluate_sentences(one_hot(6), pair)
    assert found.coverage.covered == 4
    assert found.sources == (str(tmp_path / "s"), str(tmp_path / "t"))
    assert repr(found).startswith("SentenceRetrieval(src-tgt csls P@1 100.0 %, tgt-src csls P@1 100.0 %, 4 of 4 lines")
    assert "4 queries among 4 sentences" in found._repr_html_()
    assert found.to_dict()["scores"]["src-tgt"]["csls"]["P@10"]["value"] == 1.0


def test_an_undecodable_line_keeps_its_number(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"s0\n\xff\ns2\n")
    (tmp_path / "t").write_bytes(b"t0\nt1\nt2\n")
    found = evaluate_sentences(one_hot(3), (tmp_path / "s", tmp_path / "t"))
    assert (found.skipped, found.coverage.lines, found.coverage.covered) == (1, 3, 2)
    assert found.scores["src-tgt"]["nn"]["P@1"].value == 1.0


def test_invalid_texts_are_refused(tmp_path: Path) -> None:
    spaces = one_hot(3)
    with pytest.raises(InputError, match="the source has 2 lines and the target 1, expected the same number"):
        evaluate_sentences(spaces, (["s0", "s1"], ["t0"]))
    with pytest.raises(InputError, match="0 of the 2 different pairs of sentences have known words on both sides"):
        evaluate_sentences(spaces, (["S0", "S1"], ["T0", "T1"]))
    (tmp_path / "blank").write_text("\n\n")
    with pytest.raises(InputError, match="holds no sentence"):
        TextPair.load(tmp_path / "blank", ["t0"])
    for wrong in ("text", (["s0"],), ([1], ["t0"])):
        given: Any = wrong
        with pytest.raises(InputError, match=r"as sentences, expected two|as a sentence, expected text"):
            evaluate_sentences(spaces, given)
    with pytest.raises(InputError, match="retrieval='dot' is not known"):
        evaluate_sentences(spaces, (["s0"], ["t0"]), retrieval=["dot"])
