"""Word similarity: correlations equal those of scipy, files of several formats, and bad lines."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import qwp
from qwp.errors import InputError
from qwp.judging.ranks import AlignedFiles
from qwp.judging.similarity import SimilarityPairs, _correlations, evaluate_similarity
from qwp.spaces.embeddings import Embeddings


def on_circle(prefix: str, degrees: list[float]) -> Embeddings:
    """Words at angles, whose cosines are known."""
    angles = np.radians(degrees)
    words = [f"{prefix}{i}" for i in range(len(degrees))]
    return Embeddings(words, np.stack([np.cos(angles), np.sin(angles)], axis=1))


SPACES = AlignedFiles(on_circle("s", [0, 10, 40, 90]), on_circle("t", [0, 20, 60, 170]))


def put(folder: Path, text: str | bytes, name: str = "pairs.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --------------------------------------------------------------------------- measuring


def test_spearman_of_ordered_cosines() -> None:
    # Angles of 10, 40 and 90 degrees: the scores are in that order.
    pairs = [("s0", "s1", 9.0), ("s0", "s2", 5.0), ("s0", "s3", 4.0)]
    found = evaluate_similarity(SPACES, pairs)
    assert found.where == "src"
    assert found.scores["Spearman"].value == pytest.approx(1.0)
    cosines = np.cos(np.radians([10, 40, 90]))
    assert found.scores["Pearson"].value == pytest.approx(scipy.stats.pearsonr(cosines, [9, 5, 4])[0])
    turned = evaluate_similarity(SPACES, [(a, b, -score) for a, b, score in pairs])
    assert turned.scores["Spearman"].value == pytest.approx(-1.0)


def test_pairs_of_each_side_and_across() -> None:
    across = [("s0", "t0", 9.0), ("s0", "t1", 8.0), ("s3", "t3", 4.0), ("s0", "t3", 1.0)]
    found = evaluate_similarity(SPACES, across)
    assert (found.where, found.covered_pairs) == ("cross", 4)
    assert found.scores["Spearman"].value == pytest.approx(1.0)
    mine = evaluate_similarity(SPACES, [("t0", "t1", 2), ("t0", "t2", 1), ("t0", "x", 9)])
    assert (mine.where, mine.covered_pairs, mine.pairs) == ("tgt", 2, 3)
    assert mine.share == pytest.approx(2 / 3)
    with pytest.raises(
        InputError, match=r"none of the 4 pairs .* is covered as src.* Other sides would cover 4 as cross"
    ):
        evaluate_similarity(SPACES, across, side="src")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 1)), min_size=3, max_size=30), st.integers(0, 99))
def test_correlations_equal_scipy_in_every_resample(rows: list[tuple[int, float]], seed: int) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    picks = np.random.default_rng(seed).integers(len(x), size=(4, len(x)))
    counts = np.stack([np.bincount(p, minlength=len(x)) for p in picks]).astype(float)
    for (spearman, pearson), p in zip(_correlations(counts, x, y), picks, strict=True):
        if np.ptp(x[p]) > 1e-6 and np.ptp(y[p]) > 1e-6:
            assert spearman == pytest.approx(scipy.stats.spearmanr(x[p], y[p])[0], abs=1e-9)
            assert pearson == pytest.approx(scipy.stats.pearsonr(x[p], y[p])[0], abs=1e-6)
        elif np.ptp(x[p]) == 0 or np.ptp(y[p]) == 0:
            assert np.isnan([spearman, pearson]).all()


def test_intervals_contain_the_value_and_depend_on_the_seed() -> None:
    rng = np.random.default_rng(1)
    space = Embeddings([f"w{i}" for i in range(200)], rng.standard_normal((200, 8)))
    spaces = AlignedFiles(space, space)
    pairs = [(f"w{i}", f"w{i + 1}", float(rng.random())) for i in range(199)]
    first, again = (evaluate_similarity(spaces, pairs, seed=3) for _ in range(2))
    assert first == again
    for score in first.scores.values():
        assert score.low < score.value < score.high
        # The standard error of a correlation of zero among 199 pairs is about 0.071.
        assert 0.2 < score.high - score.low < 0.36
    plain = evaluate_similarity(spaces, pairs, bootstrap=0).scores["Spearman"]
    assert plain.low == plain.value == plain.high


def test_undefined_correlations_are_refused() -> None:
    with pytest.raises(InputError, match="scores of all 2 covered pairs of the pairs are equal"):
        evaluate_similarity(SPACES, [("s0", "s1", 1), ("s0", "s2", 1)])
    with pytest.raises(InputError, match="similarities of all 2 covered pairs"):
        evaluate_similarity(SPACES, [("s0", "s1", 1), ("s1", "s0", 2)])
    with pytest.raises(InputError, match="1 of the 2 pairs of the pairs is covered as src, expected at least 2"):
        evaluate_similarity(SPACES, [("s0", "s1", 1), ("s0", "x", 2)])
    with pytest.raises(InputError, match="In lower case 1 would be covered"):
        evaluate_similarity(SPACES, [("S0", "S1", 1)])


def test_result_in_a_line_and_in_a_notebook() -> None:
    found = qwp.evaluate_similarity(SPACES, [("s0", "s1", 9.0), ("s0", "s2", 5.0)])
    assert repr(found) == "WordSimilarity(src, Spearman 1.000, Pearson 1.000, 2 of 2 pairs covered)"
    assert "2 of 2 pairs covered" in found._repr_html_()
    assert found.to_dict()["coverage"] == {"pairs": 2, "covered_pairs": 2, "share": 1.0}


# --------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "text",
    [
        "tiger\tcat\t7.35\nbook\tpaper\t7.46\n",
        "word1\tword2\tscore\ntiger\tcat\t7.35\nbook\tpaper\t7.46",
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\ntiger\tcat\tN\t7.35\t4.9\nbook\tpaper\tN\t7.46\t1\n",
        "Word 1,Word 2,Human (mean)\r\ntiger,cat,7.35\r\nbook,paper,7.46\r\n",
        "tiger cat 7.35\n\n  book   paper\t7.46 9 9 9\n",
        b"\xef\xbb\xbftiger\tcat\t7.35\nbook\tpaper\t7.46\n",
        gzip.compress(b"tiger\tcat\t7.35\nbook\tpaper\t7.46\n", mtime=0),
    ],
)
def test_pairs_are_read_with_headers_and_extra_columns(tmp_path: Path, text: str | bytes) -> None:
    found = SimilarityPairs.load(put(tmp_path, text))
    assert found.pairs == (("tiger", "cat", 7.35), ("book", "paper", 7.46))
    assert found.skipped == 0


def test_bad_lines_are_counted_and_explained(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = b"tiger\tcat\t7\nlonely\n\t\t3\na\tb\tnan\nGulf of Mexico\tsea\t3\na\t\xff\t1\n"
    found = SimilarityPairs.load(put(tmp_path, text))
    assert found.pairs == (("tiger", "cat", 7.0), ("Gulf of Mexico", "sea", 3.0))
    assert found.skipped == 4
    assert found.skipped_lines == (
        "line 2: holds 1 fields, expected two words and a score",
        "line 3: has an empty field, expected two words and a score",
        "line 4: holds no number after two words",
        "line 6: is not UTF-8 text",
    )
    assert "4 lines skipped, the first: line 2" in caplog.text


def test_lower_case(tmp_path: Path) -> None:
    assert SimilarityPairs.load(put(tmp_path, "A\tB\t1\n"), case="lower").pairs == (("a", "b", 1.0),)


@pytest.mark.parametrize("text", ["only words here\n", "", "a b\nc d\n"])
def test_a_file_without_scores_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"holds no pair of words with a score|empty"):
        SimilarityPairs.load(put(tmp_path, text))


@pytest.mark.parametrize("given", [[("a", "b")], [("a", "b", "x")], ["abc"], [(1, "b", 2)], [("a", "b", float("inf"))]])
def test_invalid_triples_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="expected two words and a finite score"):
        SimilarityPairs.of(given)


def test_no_pairs_are_refused() -> None:
    with pytest.raises(InputError, match="received no pairs with scores"):
        SimilarityPairs.of([])
