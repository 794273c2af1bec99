from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import Alignment, arrays
from qwp.arrays import Floats
from qwp.errors import InputError
from qwp.judging.evaluation import Evaluation, RetrievalScores, Score, evaluate, interval, ratios
from qwp.judging.ranks import AlignedFiles
from qwp.search import retrieval as retrieve
from qwp.search.spelling import LABEL, Spelling
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon
from tests.libraries import as_strict, assert_close, host

NAN = float("nan")
INF = float("inf")


@dataclass(frozen=True)
class Table:
    """Aligned spaces with similarities from a table, which can contain a single NaN."""

    scores: Floats

    @property
    def src(self) -> Embeddings:
        return embeddings("s", np.ones((self.scores.shape[0], 1)))

    @property
    def tgt(self) -> Embeddings:
        return embeddings("t", np.ones((self.scores.shape[1], 1)))

    def mapped(self, side: Literal["src", "tgt"]) -> Floats:
        """Return row numbers as the only coordinate; `TableRetriever` looks them up."""
        return np.arange(float(self.scores.shape[side == "tgt"]))[:, None]


@dataclass(frozen=True)
class TableRetriever(retrieve.Retriever):
    table: Floats = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))

    def scores(self, queries: Any) -> Any:
        return self.table[queries[:, 0].astype(int)]


def embeddings(prefix: str, vectors: Any) -> Embeddings:
    return Embeddings([f"{prefix}{i}" for i in range(len(vectors))], np.asarray(vectors, dtype=np.float64))


def run_table(scores: Any, pairs: Sequence[tuple[str, str]], **options: Any) -> Evaluation:
    table = np.asarray(scores, dtype=np.float64)

    def build(keys: Any, pool: Any, *, method: str, csls_k: int) -> TableRetriever:
        return TableRetriever(keys, np.zeros(len(keys)), 1.0, method, csls_k, table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieve, "retriever", build)
        return evaluate(Table(table), Lexicon(tuple(pairs)), **{"retrieval": ("nn",), "bootstrap": 0, **options})


def covered(scores: Any, pairs: Sequence[tuple[str, str]], **options: Any) -> dict[str, float]:
    return values(run_table(scores, pairs, **options).scores["nn"], "covered")


def every(scores: Any, pairs: Sequence[tuple[str, str]], **options: Any) -> dict[str, float]:
    return values(run_table(scores, pairs, **options).scores["nn"], "all_words")


def values(scores: RetrievalScores, kind: str) -> dict[str, float]:
    return {name: score.value for name, score in getattr(scores, kind).items()}


def brute(scores: Any, pairs: Sequence[tuple[str, str]], at: Sequence[int]) -> dict[str, dict[str, float]]:
    """Compute all measures by the definitions: one explicit sort for each word, wrong words first among equals."""
    table = np.asarray(scores, dtype=np.float64)
    n, m = table.shape
    golds: dict[str, list[str]] = {}
    for s, t in dict.fromkeys(pairs):
        golds.setdefault(s, []).append(t)
    per_word: list[tuple[list[int], int]] = []  # ranks of the golds in vocabulary, number of golds listed
    for word, translations in golds.items():
        rows = [int(t[1:]) for t in translations if int(t[1:]) < m] if int(word[1:]) < n else []
        if rows:
            line = [-INF if np.isnan(x) else float(x) for x in table[int(word[1:])]]
            order = sorted(range(m), key=lambda j, line=line, rows=rows: (-line[j], j in rows))  # type: ignore[misc]
            ranks = sorted(order.index(j) + 1 for j in rows)
        else:
            ranks = []
        per_word.append((ranks, len(translations)))

    def means(words: list[tuple[list[int], int]], listed: bool) -> dict[str, float]:
        out = {f"P@{k}": float(np.mean([bool(r) and r[0] <= k for r, _ in words])) for k in at}
        out["MRR"] = float(np.mean([1 / r[0] if r else 0.0 for r, _ in words]))
        n_pairs = sum(total if listed else len(r) for r, total in words)
        out["MAP"] = sum(1 / rank for r, _ in words for rank in r) / n_pairs
        precision = [
            sum((i + 1) / rank for i, rank in enumerate(r)) / (total if listed else len(r)) for r, total in words
        ]
        out["AP"] = float(np.mean(precision))
        return out

    return {"covered": means([w for w in per_word if w[0]], False), "all_words": means(per_word, True)}


# --------------------------------------------------------------------------- known answers


def test_single_gold_of_rank_two() -> None:
    found = covered([[5, 4, 3, 2, 1, 0]], [("s0", "t1")], at=(1, 2, 5))
    assert found == {"P@1": 0.0, "P@2": 1.0, "P@5": 1.0, "MRR": 0.5, "MAP": 0.5, "AP": 0.5}


def test_several_golds() -> None:
    # Golds of ranks 1 and 3.
    found = covered([[5, 4, 3, 2, 1, 0]], [("s0", "t0"), ("s0", "t2")])
    assert found["P@1"] == found["MRR"] == 1.0
    assert found["MAP"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["AP"] == pytest.approx((1 / 1 + 2 / 3) / 2)


def test_map_averages_over_pairs_and_ap_over_words() -> None:
    # s0: ranks 1, 2, 3; s1: rank 4.
    scores = [[9, 8, 7, 1, 0], [4, 3, 2, 1, 0]]
    found = covered(scores, [("s0", "t0"), ("s0", "t1"), ("s0", "t2"), ("s1", "t3")])
    assert found["MAP"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert found["AP"] == pytest.approx((1 + 1 / 4) / 2)
    assert found["MRR"] == pytest.approx((1 + 1 / 4) / 2)


def test_perfect_scorer_reaches_the_maximum() -> None:
    found = covered(np.eye(4) + 1, [(f"s{i}", f"t{i}") for i in range(4)])
    assert set(found.values()) == {1.0}
    two = covered([[2, 2, 0, 0, 0]], [("s0", "t0"), ("s0", "t1")])
    assert two["P@1"] == two["MRR"] == two["AP"] == 1.0
    assert two["MAP"] == pytest.approx(0.75)


def test_tie_with_a_wrong_word_counts_against() -> None:
    found = covered([[1, 1, 0, 0]], [("s0", "t0")])
    assert found["P@1"] == 0.0
    assert found["MRR"] == found["MAP"] == found["AP"] == 0.5


def test_tied_golds_do_not_hurt_each_other_but_wrong_words_do() -> None:
    # One wrong word ties with two golds at the top: ranks 2 and 3.
    found = covered([[1, 1, 1, 0]], [("s0", "t0"), ("s0", "t2")])
    assert found["MRR"] == 0.5
    assert found["MAP"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert found["AP"] == pytest.approx((1 / 2 + 2 / 3) / 2)


@pytest.mark.parametrize("constant", [0.0, 0.3, NAN, -INF, INF])
def test_constant_scorer_gets_no_credit(constant: float) -> None:
    m = 500
    pairs = [(f"s{i}", f"t{i}") for i in range(20)] + [(f"s{i}", f"t{i + 1}") for i in range(5)]
    found = run_table(np.full((20, m), constant), pairs)
    for kind in ("covered", "all_words"):
        measures = values(found.scores["nn"], kind)
        assert measures["P@1"] == measures["P@5"] == measures["P@10"] == 0.0
        assert max(measures.values()) < 0.005


def test_collapsed_vectors_get_no_credit() -> None:
    # A map that sends every word to the same point, with the actual retrievers.
    line = np.tile(np.array([[0.6, 0.8]]), (64, 1))
    spaces = AlignedFiles(embeddings("s", line), embeddings("t", line))
    lexicon = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(64)))
    found = evaluate(spaces, lexicon, retrieval=("nn", "csls", "softmax"), bootstrap=0)
    for scores in found.scores.values():
        assert scores.covered["P@10"].value == 0.0


def test_nan_gold_ranks_behind_everything() -> None:
    found = covered([[NAN, 1, NAN, 0, -INF]], [("s0", "t0")])
    assert found["MRR"] == found["MAP"] == found["AP"] == pytest.approx(1 / 5)


def test_nan_score_of_a_wrong_word_ranks_last() -> None:
    found = covered([[NAN, 1, NAN, 0]], [("s0", "t1")])
    assert set(found.values()) == {1.0}


def test_nan_gold_beside_a_good_one() -> None:
    # Ranks 1 and 4: the gold without a score is last, the other one is not affected.
    found = covered([[7, 1, 2, NAN]], [("s0", "t0"), ("s0", "t3")])
    assert found["P@1"] == 1.0
    assert found["MAP"] == pytest.approx((1 + 1 / 4) / 2)
    assert found["AP"] == pytest.approx((1 + 2 / 4) / 2)


def test_denominators() -> None:
    # s0 is right; s1's golds are unknown; s9 is unknown; s2 has one known gold (rank 2) out of two.
    scores = [[2, 1, 0], [2, 1, 0], [2, 1, 0]]
    pairs = [("s0", "t0"), ("s1", "t8"), ("s1", "t9"), ("s9", "t0"), ("s2", "t1"), ("s2", "t7")]
    found = run_table(scores, pairs)
    assert found.coverage.to_dict() == {
        "pairs": 6,
        "covered_pairs": 2,
        "source_words": 4,
        "covered_source_words": 2,
        "share": 0.5,
    }
    known = values(found.scores["nn"], "covered")
    assert known["P@1"] == 0.5
    assert known["MRR"] == known["MAP"] == known["AP"] == pytest.approx(0.75)
    total = values(found.scores["nn"], "all_words")
    assert total["P@1"] == 0.25
    assert total["P@5"] == 0.5
    assert total["MRR"] == pytest.approx(1.5 / 4)
    assert total["MAP"] == pytest.approx(1.5 / 6)
    assert total["AP"] == pytest.approx((1 + (1 / 2) / 2) / 4)


def test_repeated_pairs_count_once() -> None:
    scores = [[2, 1, 0], [2, 1, 0]]
    once = covered(scores, [("s0", "t0"), ("s1", "t1")])
    assert covered(scores, [("s0", "t0"), ("s1", "t1"), ("s1", "t1")]) == once


def test_ranks_of_every_query_in_the_order_of_the_lexicon() -> None:
    # s2 has one gold of rank 4; s0 two, of ranks 1 and 3; s9 is not covered.
    scores = [[5, 4, 3, 2, 1], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5]]
    ranks = run_table(scores, [("s2", "t1"), ("s9", "t1"), ("s0", "t2"), ("s0", "t0")]).ranks["nn"]
    assert (ranks.golds.tolist(), ranks.ranks.tolist()) == ([1, 2], [4, 1, 3])
    assert ranks.shares("P@1")[0].tolist() == [0.0, 1.0]
    shares, weights = ranks.shares("MAP")
    assert (shares.tolist(), weights.tolist()) == ([1 / 4, 1 + 1 / 3], [1.0, 2.0])
    with pytest.raises(InputError, match="measure='P@k'"):
        ranks.shares("P@k")


# --------------------------------------------------------------------------- against a sort

_cell = st.sampled_from([NAN, -INF, -1.0, 0.0, 0.5, 0.5, 1.0, 2.0, INF])


@st.composite
def _problems(draw: st.DrawFn) -> tuple[Floats, list[tuple[str, str]]]:
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    cells = draw(st.lists(_cell, min_size=n * m, max_size=n * m))
    pair = st.tuples(st.integers(0, n + 1), st.integers(0, m + 1))
    pairs = [(0, 0), *draw(st.lists(pair, max_size=20))]  # (0, 0) is always covered
    return np.array(cells).reshape(n, m), [(f"s{i}", f"t{j}") for i, j in pairs]


def small_blocks(rows: int, columns: int) -> AbstractContextManager[None]:
    """Bound the memory of a block, a few arrays of float64, to a number of rows."""
    return arrays.use_memory(rows * columns * 8 * 4 * 1.01 / 2**30)


@given(_problems(), st.integers(1, 4))
@settings(max_examples=60)
def test_against_brute_force(problem: tuple[Floats, list[tuple[str, str]]], rows: int) -> None:
    scores, pairs = problem
    with arrays.use_threads(1), small_blocks(rows, scores.shape[1]):
        found = run_table(scores, pairs, at=(1, 2, 5))
    for kind, expected in brute(scores, pairs, (1, 2, 5)).items():
        assert values(found.scores["nn"], kind) == pytest.approx(expected)
    for name, value in values(found.scores["nn"], "covered").items():
        shares, weights = found.ranks["nn"].shares(name)
        assert shares.sum() / weights.sum() == pytest.approx(value)


def _random_spaces(n: int, m: int, d: int, seed: int, dtype: str = "float64") -> AlignedFiles:
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((max(n, m), d))
    src = common[:n] + 0.5 * rng.standard_normal((n, d))
    tgt = common[:m] + 0.5 * rng.standard_normal((m, d))
    words = [f"s{i}" for i in range(n)], [f"t{i}" for i in range(m)]
    return AlignedFiles(Embeddings(words[0], src.astype(dtype)), Embeddings(words[1], tgt.astype(dtype)))


def _random_lexicon(n: int, m: int, seed: int) -> Lexicon:
    rng = np.random.default_rng(seed)
    near = [(f"s{i}", f"t{i}") for i in range(0, n + 5, 2)]
    return Lexicon(tuple(near) + tuple((f"s{rng.integers(n)}", f"t{rng.integers(m)}") for _ in range(n)))


def test_retrievers_against_dense_formulas() -> None:
    spaces, lexicon = _random_spaces(40, 50, 6, 1), _random_lexicon(40, 50, 2)
    similarity = host(spaces.mapped("src")) @ host(spaces.mapped("tgt")).T
    hubs = np.sort(similarity, axis=0)[-4:].mean(axis=0)
    dense = {
        "nn": similarity,
        "csls": 2 * similarity - hubs,
        "softmax": 30 * similarity - np.log(np.exp(30 * similarity).sum(axis=0)),
    }
    found = evaluate(spaces, lexicon, retrieval=tuple(dense), csls_k=4, bootstrap=0)
    for method, scores in dense.items():
        expected = brute(scores, lexicon.pairs, (1, 5, 10))
        assert values(found.scores[method], "covered") == pytest.approx(expected["covered"])
        assert values(found.scores[method], "all_words") == pytest.approx(expected["all_words"])
    assert found.scores["nn"] != found.scores["csls"]


def test_an_alignment_that_maps_both_sides_is_scored_with_both_maps(aligned: Alignment) -> None:
    assert aligned.tgt_map is not None
    lexicon = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(len(aligned.src))))
    found = values(evaluate(aligned, lexicon, retrieval="nn", bootstrap=0).scores["nn"], "covered")
    normalised = [host(side.normalization.apply(side.space.vectors)) for side in (aligned.src_side, aligned.tgt_side)]
    src, tgt = normalised[0] @ aligned.src_map, normalised[1] @ aligned.tgt_map
    cosines = src @ (tgt / np.linalg.norm(tgt, axis=1, keepdims=True)).T
    gold = np.array([aligned.tgt.index[f"t{i}"] for i in range(len(aligned.src))])
    ranks = 1 + (cosines > cosines[np.arange(len(gold)), gold][:, None]).sum(axis=1)
    assert found["P@1"] > 0.9
    assert found["P@1"] == pytest.approx(np.mean(ranks == 1))
    assert found["MRR"] == pytest.approx(np.mean(1 / ranks), abs=1e-3)
    half = dataclasses.replace(aligned, tgt_side=dataclasses.replace(aligned.tgt_side, map=None))
    assert evaluate(half, lexicon, retrieval="nn", bootstrap=0).p_at_1("nn") < 0.5


def test_blocks_change_scores_by_rounding_alone() -> None:
    spaces, lexicon = _random_spaces(70, 60, 5, 3), _random_lexicon(70, 60, 4)
    whole = evaluate(spaces, lexicon, bootstrap=0)
    with arrays.use_threads(1), small_blocks(3, 60):
        blocked = evaluate(spaces, lexicon, bootstrap=0)
    for method in ("nn", "csls"):
        for kind in ("covered", "all_words"):
            assert values(blocked.scores[method], kind) == pytest.approx(values(whole.scores[method], kind))


def test_float32_agrees_with_float64() -> None:
    lexicon = _random_lexicon(50, 50, 5)
    single = evaluate(_random_spaces(50, 50, 8, 6, "float32"), lexicon)
    double = evaluate(_random_spaces(50, 50, 8, 6), lexicon)
    assert values(single.scores["csls"], "covered") == pytest.approx(values(double.scores["csls"], "covered"))


def test_other_array_library_gives_the_same() -> None:
    spaces, lexicon = _random_spaces(30, 35, 5, 7), _random_lexicon(30, 35, 8)

    class Strict:
        src, tgt = spaces.src, spaces.tgt

        def mapped(self, side: Literal["src", "tgt"]) -> Any:
            return as_strict(spaces.mapped(side))

    methods = ("nn", "csls", "softmax")
    strict = evaluate(Strict(), lexicon, retrieval=methods)
    numpy = evaluate(spaces, lexicon, retrieval=methods)
    for method in methods:
        assert values(strict.scores[method], "all_words") == pytest.approx(values(numpy.scores[method], "all_words"))


# --------------------------------------------------------------------------- intervals


def _hits(n: int, share: float) -> tuple[Floats, list[tuple[str, str]]]:
    """Return a table in which the golds of the first `share` of n words rank 1st, the others 2nd of 3."""
    right = np.arange(n) < share * n
    return np.where(right[:, None], [[3.0, 2, 1]], [[2.0, 3, 1]]), [(f"s{i}", "t0") for i in range(n)]


def _interval(n: int, **options: Any) -> Score:
    return run_table(*_hits(n, 0.6), bootstrap=2000, **options).scores["nn"].covered["P@1"]


def test_interval_matches_the_binomial_one_and_shrinks() -> None:
    small, large = _interval(50), _interval(800)
    for n, score in ((50, small), (800, large)):
        half = 1.96 * np.sqrt(0.6 * 0.4 / n)
        assert score.value == pytest.approx(0.6)
        assert score.low == pytest.approx(0.6 - half, abs=0.2 * half)
        assert score.high == pytest.approx(0.6 + half, abs=0.2 * half)
    assert large.high - large.low < 0.5 * (small.high - small.low)


def test_map_resamples_words_with_all_their_pairs() -> None:
    # Words are either all right or all wrong, each with 4 golds: 200 pairs are worth only 50 observations.
    n, golds = 50, 4
    right = np.arange(n) < n // 2
    top = np.array([4.0] * golds + [0.0] * 60)
    bottom = np.array([0.0] * golds + [4.0] * 60)
    scores = np.where(right[:, None], top, bottom)
    pairs = [(f"s{i}", f"t{j}") for i in range(n) for j in range(golds)]
    score = run_table(scores, pairs, bootstrap=2000).scores["nn"].covered["MAP"]
    spread = (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4 - sum(1 / r for r in range(61, 65)) / 4
    half = 1.96 * spread * np.sqrt(0.25 / n)
    assert score.high - score.low == pytest.approx(2 * half, rel=0.2)


def test_map_over_all_words_keeps_each_word_with_its_own_pairs() -> None:
    # First 50 unknown words with 9 pairs each, then 50 known words with one right pair. With x
    # known words drawn, MAP is x / (x + 9 (100 - x)); 40 and 60 are the 2.5 % and 97.5 % points of x.
    pairs = [(f"u{i}", f"t{j}") for i in range(50) for j in range(9)] + [(f"s{i}", "t0") for i in range(50)]
    scores = np.tile(np.arange(12.0)[::-1], (50, 1))
    score = run_table(scores, pairs, bootstrap=4000).scores["nn"].all_words["MAP"]
    assert score.value == pytest.approx(50 / 500)
    assert score.low == pytest.approx(40 / 580, abs=0.006)
    assert score.high == pytest.approx(60 / 420, abs=0.006)


@given(_problems(), st.integers(0, 5), st.integers(0, 3))
@settings(max_examples=50)
def test_intervals_contain_the_value(problem: tuple[Floats, list[tuple[str, str]]], resamples: int, seed: int) -> None:
    found = run_table(*problem, bootstrap=resamples, seed=seed).scores["nn"]
    for score in (*found.covered.values(), *found.all_words.values()):
        assert 0 <= score.low <= score.value <= score.high <= 1 + 1e-12


def test_intervals_are_empty_without_resamples() -> None:
    score = run_table(*_hits(10, 0.6), bootstrap=0).scores["nn"].covered["P@1"]
    assert (score.low, score.high) == (score.value, score.value)


def test_seed_determines_the_intervals() -> None:
    spaces, lexicon = _random_spaces(40, 40, 3, 11), _random_lexicon(40, 40, 12)
    first = evaluate(spaces, lexicon, seed=1)
    assert evaluate(spaces, lexicon, seed=1) == first
    other = evaluate(spaces, lexicon, seed=2).scores["nn"].covered["MAP"]
    mine = first.scores["nn"].covered["MAP"]
    assert other.value == mine.value
    assert (other.low, other.high) != (mine.low, mine.high)


def test_methods_share_resamples() -> None:
    found = run_table(*_hits(40, 0.6), retrieval=("nn", "csls"), bootstrap=200)
    assert found.scores["nn"].covered == found.scores["csls"].covered


# --------------------------------------------------------------------------- the result and its errors


def test_result_is_json_and_names_its_conventions() -> None:
    spaces, lexicon = _random_spaces(12, 9, 3, 9), _random_lexicon(12, 9, 10)
    found = evaluate(spaces, lexicon, bootstrap=20, seed=3)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(data["scores"]) == ["nn", "csls"]
    assert list(data["scores"]["csls"]["covered"]) == ["P@1", "P@5", "P@10", "MRR", "MAP", "AP"]
    assert data["scores"]["csls"]["covered"]["P@1"]["value"] == found.p_at_1() == found.p_at_1("csls")
    assert data["coverage"] == found.coverage.to_dict()
    assert (data["n_src"], data["n_tgt"], data["csls_k"]) == (12, 9, 9)
    assert data["percent"] is False
    assert data["bootstrap"] == {"resamples": 20, "confidence": 0.95, "seed": 3}
    assert {"covered", "all_words", "MAP", "AP", "ties"} <= set(data["conventions"])
    assert "XLING" in data["conventions"]["MAP"]


@pytest.mark.parametrize("kind", [list, dict])
def test_lexicon_may_be_pairs(kind: Any) -> None:
    spaces, pairs = _random_spaces(12, 9, 3, 9), [(f"s{i}", f"t{i}") for i in range(5)]
    expected = evaluate(spaces, Lexicon(tuple(pairs)), bootstrap=0)
    assert evaluate(spaces, kind(pairs), bootstrap=0).to_dict() == expected.to_dict()


def test_lexicon_may_be_a_path(tmp_path: Path) -> None:
    spaces, path = _random_spaces(12, 9, 3, 9), tmp_path / "gold.txt"
    path.write_text("s1 t1\ns2 t3\n")
    expected = evaluate(spaces, Lexicon.load(path), bootstrap=0)
    for named in (path, str(path)):
        assert evaluate(spaces, named, bootstrap=0).to_dict() == expected.to_dict()
    with pytest.raises(InputError, match="as a lexicon, expected a Lexicon, the path of a file"):
        evaluate(spaces, 5)  # type: ignore[arg-type]


def test_scores_in_one_line_and_in_a_notebook() -> None:
    spaces, pairs = _random_spaces(12, 9, 3, 9), [(f"s{i}", f"t{i}") for i in range(5)]
    found = evaluate(spaces, [*pairs, ("<b>", "t1")], bootstrap=50)
    best = {method: 100 * found.p_at_1(method) for method in ("nn", "csls")}
    shown = f"Evaluation(nn P@1 {best['nn']:.1f} %, csls P@1 {best['csls']:.1f} %, 5 of 6 words covered)"
    assert repr(found) == shown
    text = " ".join(ElementTree.fromstring(found._repr_html_()).itertext())
    for expected in ("5 of 6 source words covered", "(83.3 %)", "covered words", "all words", "P@10", "MRR", " to "):
        assert expected in text
    assert found.scores["csls"].covered["P@1"].percent() in text
    assert dataclasses.replace(found, scores={})._repr_html_().startswith("<pre>Evaluation(")
    assert Score(0.5, 0.5, 0.5).percent() == "50.0"
    assert Score(0.5, 0.25, 0.75).percent() == "50.0 (25.0 to 75.0)"


def test_a_lone_method_name_and_repeats() -> None:
    scores, pairs = _hits(4, 0.5)
    assert list(run_table(scores, pairs, retrieval="csls").scores) == ["csls"]
    assert list(run_table(scores, pairs, retrieval=("nn", "csls", "nn")).scores) == ["nn", "csls"]
    assert list(covered(scores, pairs, at=(5, 1, 5))) == ["P@1", "P@5", "MRR", "MAP", "AP"]


def test_missing_p_at_1_is_explained() -> None:
    found = run_table(*_hits(4, 0.5), at=(5,))
    with pytest.raises(InputError, match=r"'csls'.*holds nn"):
        found.p_at_1()
    with pytest.raises(InputError, match="put 1 into `at`"):
        found.p_at_1("nn")


def test_one_word_each_side() -> None:
    found = evaluate(AlignedFiles(embeddings("s", [[1.0]]), embeddings("t", [[2.0]])), Lexicon((("s0", "t0"),)))
    assert found.p_at_1("nn") == found.p_at_1("csls") == 1.0


def test_zero_vectors_give_numbers() -> None:
    spaces = AlignedFiles(embeddings("s", np.zeros((3, 2))), embeddings("t", np.eye(2)))
    found = evaluate(spaces, Lexicon((("s0", "t0"), ("s2", "t1"))), retrieval=("nn", "csls", "softmax"))
    assert [s.covered["P@1"].value for s in found.scores.values()] == [0.0, 0.0, 0.0]


def test_aligned_files_are_unit_rows() -> None:
    spaces = AlignedFiles(embeddings("s", [[3.0, 4.0], [0.0, 0.0]]), embeddings("t", [[0.0, 2.0]]))
    assert_close(spaces.mapped("src"), [[0.6, 0.8], [0.0, 0.0]])
    assert_close(spaces.mapped("tgt"), [[0.0, 1.0]])


def test_too_large_k_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="qwp.evaluation"):
        covered([[1, 2, 3]], [("s0", "t0")], at=(1, 3))
    assert "P@3 over 3 target words" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retrieval": ()}, "retrieval is empty"),
        ({"retrieval": ("nn", "cosine")}, "'cosine' is not known; expected one of nn, csls, softmax"),
        ({"at": (0, 1)}, "holds 0; every k of P@k should be at least 1"),
        ({"csls_k": 0}, "csls_k=0 should be at least 1"),
        ({"bootstrap": -1}, "bootstrap=-1 should be at least 0"),
        ({"seed": -5}, "seed=-5 should be at least 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_table([[1.0]], [("s0", "t0")], **options)


def test_nothing_covered_shows_both_sides() -> None:
    pairs = [("x1", "y1"), ("x1", "y2"), ("x2", "y3"), ("s0", "y4")]
    with pytest.raises(InputError) as caught:
        run_table(np.zeros((4, 5)), pairs)
    message = str(caught.value)
    assert "0 of 3 source words and 0 of 4 pairs" in message
    assert "1 of 3 source words are in the source vocabulary, 0 of 4 target words" in message
    assert "'x1' -> 'y1', 'x1' -> 'y2', 'x2' -> 'y3'" in message
    assert "'s0', 's1', 's2'" in message
    assert "'t0', 't1', 't2'" in message
    assert "Check the languages" in message


def test_nothing_covered_because_of_direction() -> None:
    with pytest.raises(InputError, match="reversed lexicon would cover 2 words"):
        run_table(np.zeros((4, 5)), [("t0", "s0"), ("t1", "s1")])


def test_nothing_covered_because_of_case() -> None:
    with pytest.raises(InputError, match=r'In lower case 2 pairs would be covered: .*case="lower"'):
        run_table(np.zeros((4, 5)), [("S0", "T0"), ("S1", "t1")])


def test_spaces_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="source vectors have 2 dimensions, target vectors 3"):
        evaluate(AlignedFiles(embeddings("s", np.eye(2)), embeddings("t", np.eye(3))), Lexicon((("s0", "t0"),)))

    class Short:
        src, tgt = embeddings("s", np.eye(3)), embeddings("t", np.eye(3))

        def mapped(self, side: Literal["src", "tgt"]) -> Floats:
            return np.eye(3)[: 2 if side == "tgt" else 3]

    with pytest.raises(InputError, match="target side has 2 mapped vectors, expected 3"):
        evaluate(Short(), Lexicon((("s0", "t0"),)))


# --------------------------------------------------------------------------- spelling


def spelled(n: int, d: int, seed: int = 0) -> tuple[AlignedFiles, list[tuple[str, str]]]:
    """Return two spaces of n words with few letters, and a dictionary."""
    rng = np.random.default_rng(seed)

    def words() -> list[str]:
        found: dict[str, None] = {}
        while len(found) < n:
            found["".join(rng.choice([*"abcd"], size=rng.integers(3, 9)))] = None
        return [*found]

    src, tgt = (Embeddings(words(), rng.standard_normal((n, d))) for _ in range(2))
    return AlignedFiles(src, tgt), [(src.words[i], tgt.words[int(rng.integers(n))]) for i in range(n)]


def test_spelling_adds_scores() -> None:
    aligned, pairs = spelled(150, 8)
    plain = evaluate(aligned, pairs, bootstrap=0)
    found = evaluate(aligned, pairs, bootstrap=0, spelling=0.3)
    assert list(found.scores) == ["nn", "csls", LABEL]
    assert {method: found.scores[method] for method in plain.scores} == plain.scores
    assert found.spelling == found.to_dict()["spelling"] == 0.3
    assert plain.spelling == plain.to_dict()["spelling"] == 0.0
    assert LABEL not in plain.to_dict()["scores"]
    assert found.p_at_1(LABEL) == found.to_dict()["scores"][LABEL]["covered"]["P@1"]["value"]
    alone = evaluate(aligned, pairs, retrieval="nn", bootstrap=0, spelling=True)
    assert list(alone.scores) == ["nn", LABEL]
    assert alone.spelling == Spelling.weight


@pytest.mark.parametrize("make", [lambda aligned: aligned, lambda aligned: StrictSpaces(aligned)])
def test_ranks_with_spelling_follow_the_definition(make: Any) -> None:
    aligned, pairs = spelled(150, 8)
    src, tgt = (np.asarray(aligned.mapped(side)) for side in ("src", "tgt"))
    scores = 2 * src @ tgt.T - np.sort(tgt @ src.T, axis=1)[:, -10:].mean(axis=1)
    every = np.tile(np.arange(len(aligned.tgt)), (len(aligned.src), 1))
    spelling = Spelling().similarities(aligned.src.words, aligned.tgt.words, every)
    for row, alike in zip(scores, spelling, strict=True):
        compared = np.argsort(-row)[:100]
        row[compared] += 0.3 * alike[compared]
    best = {word: int(row.argmax()) for word, row in zip(aligned.src.words, scores, strict=True)}
    gold = {word: aligned.tgt.index[other] for word, other in pairs}
    ranks = [1 + int((scores[i] > scores[i, gold[word]]).sum()) for i, word in enumerate(aligned.src.words)]
    found = evaluate(make(aligned), pairs, bootstrap=0, spelling=0.3).scores[LABEL].covered
    assert found["P@1"].value == pytest.approx(np.mean([best[word] == gold[word] for word in gold]))
    assert found["MRR"].value == pytest.approx(np.mean(1 / np.array(ranks)))


@dataclass(frozen=True)
class StrictSpaces:
    """The same spaces in another array library."""

    aligned: AlignedFiles

    @property
    def src(self) -> Embeddings:
        return self.aligned.src

    @property
    def tgt(self) -> Embeddings:
        return self.aligned.tgt

    def mapped(self, side: Literal["src", "tgt"]) -> Any:
        return as_strict(np.asarray(self.aligned.mapped(side)))


def test_words_without_a_common_letter_are_scored_as_without_spelling() -> None:
    rng = np.random.default_rng(4)
    aligned = AlignedFiles(embeddings("s", rng.standard_normal((60, 5))), embeddings("t", rng.standard_normal((60, 5))))
    found = evaluate(aligned, [(f"s{i}", f"t{i}") for i in range(60)], bootstrap=0, spelling=Spelling.weight)
    assert found.spelling == Spelling.weight
    assert found.scores[LABEL].covered == found.scores["csls"].covered


def test_invalid_spelling_weight_is_refused() -> None:
    aligned, pairs = spelled(20, 3)
    with pytest.raises(InputError, match=r"spelling=-0\.5 is not a weight"):
        evaluate(aligned, pairs, spelling=-0.5)


def test_other_objects_are_refused() -> None:
    spaces: Any = (Embeddings(["a"], np.ones((1, 2))), Embeddings(["b"], np.ones((1, 2))))
    with pytest.raises(
        InputError, match=r"received a tuple to evaluate, expected an Alignment; .*AlignedFiles\(src, tgt\)"
    ):
        evaluate(spaces, {"a": "b"})


def test_a_score_in_percent() -> None:
    assert Score(0.5, 0.4, 0.6).percent() == "50.0 (40.0 to 60.0)"
    assert Score(0.5, 0.5, 0.5).percent() == "50.0"


def test_ratios_and_their_binomial_interval() -> None:
    shares = (np.arange(400) < 100).astype(float)[:, None]
    value, low, high = ratios(shares, np.ones_like(shares), 2000, np.random.default_rng(0))
    assert value[0] == 0.25
    # The standard error of a share of 0.25 of 400 is 0.0217.
    assert abs(low[0] - (0.25 - 1.96 * 0.0217)) < 0.006
    assert abs(high[0] - (0.25 + 1.96 * 0.0217)) < 0.006


def test_undefined_samples_count_as_the_value() -> None:
    value = np.array([3.0])
    found = interval(value, lambda counts: np.full((len(counts), 1), np.nan), 5, 10, np.random.default_rng(0))
    assert [part.tolist() for part in found] == [[3.0], [3.0]]


def test_every_resample_has_n_rows() -> None:
    seen = []

    def sizes(counts: np.ndarray) -> np.ndarray:
        seen.extend(counts.sum(axis=1).tolist())
        return np.zeros((len(counts), 1))

    for at_once in (1, 50, 10_000):
        seen.clear()
        interval(np.zeros(1), sizes, 7, 30, np.random.default_rng(0), at_once=at_once)
        assert seen == [7.0] * 30


def test_a_lexicon_of_the_wrong_direction_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    words = [f"s{i}" for i in range(20)], [f"t{i}" for i in range(20)]
    # One name is the same in both languages.
    src, tgt = (Embeddings([*side, "paris"], np.eye(21)) for side in words)
    pairs = [*zip(words[1], words[0], strict=True), ("paris", "paris")]
    evaluate(AlignedFiles(src, tgt), pairs)
    assert "covers 1 source words, but 21 if its columns are swapped" in caplog.text
    caplog.clear()
    evaluate(AlignedFiles(src, tgt), [pair[::-1] for pair in pairs])
    assert "swapped" not in caplog.text
