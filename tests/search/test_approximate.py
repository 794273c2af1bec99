"""Approximate search compared with exact search, and its errors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.search import retrieval
from qwp.search.approximate import CrossIndex, Index, IndexSettings
from tests.libraries import assert_close, assert_same, host
from tests.problems import planted, space
from tests.tolerance import rounding

Floats = npt.NDArray[Any]

faiss = pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')

WITH_AND_WITHOUT_LISTS = pytest.mark.parametrize("lists_from", [1_000, 100_000], ids=["lists", "no lists"])


def noisy(vectors: Floats, length: float, seed: int) -> Floats:
    """Return unit rows (n, d) near the given ones: a random vector of this length is added to each."""
    rng = np.random.default_rng(seed)
    moved = vectors + length / vectors.shape[1] ** 0.5 * rng.standard_normal(vectors.shape)
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), dtype=vectors.dtype)


@pytest.fixture(scope="session")
def keys() -> Floats:
    return space(1_500, 32, seed=3).astype(np.float32)


@pytest.fixture(scope="session")
def queries(keys: Floats) -> Floats:
    return noisy(keys[:400], 0.4, seed=4)


def exact(queries: Floats, keys: Floats, k: int) -> tuple[Floats, Floats]:
    similarity = queries @ keys.T
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(similarity, order, axis=1), order


# --------------------------------------------------------------------------- the index


@pytest.mark.slow
@WITH_AND_WITHOUT_LISTS
def test_most_neighbours_are_found(keys: Floats, queries: Floats, lists_from: int) -> None:
    index = Index(keys, settings=IndexSettings(lists_from=lists_from))
    values, found = index.search(queries, 10)
    best, nearest = exact(queries, keys, 10)
    overlap = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, nearest, strict=True)])
    assert overlap >= 0.9
    assert index.recall_at(queries, sample=len(queries)) == pytest.approx(overlap, abs=0.002)
    # Neighbours have their exact inner product, are ordered and unique.
    assert_close(values, np.take_along_axis(queries @ keys.T, found, axis=1), atol=1e-5)
    assert (np.diff(values, axis=1) <= 0).all()
    assert all(len(set(row)) == 10 for row in found.tolist())
    assert (values[:, 0] <= best[:, 0] + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("d", [12, 99, 300])
def test_short_long_and_odd_dimensions(d: int) -> None:
    vectors = space(1_200, d, seed=d).astype(np.float32)
    assert Index(vectors).recall_at(noisy(vectors, 0.4, seed=1)) >= 0.9


@pytest.mark.slow
@WITH_AND_WITHOUT_LISTS
def test_the_same_seed_gives_the_same_result_and_threads_nearly_so(
    keys: Floats, queries: Floats, lists_from: int
) -> None:
    def search(seed: int, threads: int) -> tuple[Floats, Floats]:
        settings = IndexSettings(lists_from=lists_from)
        return Index(keys, seed=seed, threads=threads, settings=settings).search(queries, 50)

    first, again, threaded, other = search(7, 1), search(7, 1), search(7, 2), search(8, 1)
    for one, two in zip(first, again, strict=True):
        assert_same(one, two)
    # Codes are trained on products that BLAS may round differently with other numbers of threads.
    assert (first[1] == threaded[1]).mean() > 0.99
    assert_close(first[0][:, 0], threaded[0][:, 0], atol=rounding(np.float32, keys.shape[1]))
    assert (first[1] != other[1]).any()


@pytest.mark.slow
def test_recall_falls_with_a_worse_search(keys: Floats, queries: Floats) -> None:
    good = Index(keys).recall_at(queries)
    assert Index(keys).recall_at(queries) == good
    worse = IndexSettings(lists_from=1_000, probed_share=0.02)
    assert Index(keys, settings=worse).recall_at(queries) < good - 0.1


def test_equal_rows_are_interchangeable_in_the_recall() -> None:
    vectors = np.repeat(space(100, 20, seed=1), 20, axis=0).astype(np.float32)
    assert Index(vectors).recall_at(vectors) >= 0.99


def test_few_rows_are_searched_exactly() -> None:
    vectors = space(900, 30, seed=2)
    values, found = Index(vectors).search(noisy(vectors, 0.5, seed=3), 7)
    best, nearest = exact(noisy(vectors, 0.5, seed=3), vectors, 7)
    assert (found == nearest).mean() > 0.99  # float32 within, where two may be level
    assert_close(values, best, atol=1e-6)
    assert values.dtype == vectors.dtype == np.float64


@given(n=st.sampled_from([1, 40, 1_200]), b=st.integers(1, 4), k=st.integers(1, 2_000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_shapes_and_row_numbers(n: int, b: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = host(arrays.unit(rng.standard_normal((n, 6))))
    values, found = Index(vectors, seed=seed).search(host(arrays.unit(rng.standard_normal((b, 6)))), k)
    assert values.shape == found.shape == (b, min(k, n))
    assert np.isfinite(values).all()
    assert all(len(set(row)) == len(row) and 0 <= min(row) <= max(row) < n for row in found.tolist())


@pytest.mark.slow
def test_rows_that_the_lists_cannot_fill_are_searched_exactly(keys: Floats, queries: Floats) -> None:
    k = 200
    one_list = IndexSettings(lists_from=1_000, probed_share=1e-9)
    values, found = Index(keys, settings=one_list).search(queries[:200], k)
    best, _ = exact(queries[:200], keys, k)
    assert (found >= 0).all()
    complete = np.abs(values - best).max(axis=1) < 1e-5
    # With a single list of about seventy rows each, most queries need the exact search.
    assert complete.mean() > 0.5


def test_zero_rows_are_harmless(keys: Floats) -> None:
    vectors = keys.copy()
    vectors[:750] = 0
    values, found = Index(vectors).search(vectors[500:1_000], 10)
    assert np.isfinite(values).all()
    assert (found[250:, 0] == np.arange(750, 1_000)).mean() > 0.99


def test_number_of_threads_is_restored(keys: Floats) -> None:
    before = faiss.omp_get_max_threads()
    with arrays.use_threads(1):
        Index(keys[:1_500]).search(keys[:5], 3)
    assert faiss.omp_get_max_threads() == before


@pytest.mark.slow
def test_many_queries_are_searched_in_blocks(keys: Floats, queries: Floats) -> None:
    at_once, in_blocks = (
        Index(keys, settings=IndexSettings(query_rows=rows)).search(queries, 5) for rows in (8192, 300)
    )
    # Products of other shapes are rounded differently, which may exchange two rows of nearly equal scores.
    assert (in_blocks[1] == at_once[1]).mean() > 0.99
    assert_close(in_blocks[0], at_once[0], atol=rounding(np.float32, keys.shape[1]))


# --------------------------------------------------------------------------- retrievers


@pytest.mark.parametrize("method", ["nn", "csls"])
def test_small_vocabularies_are_ranked_as_by_the_exact_retriever(method: str) -> None:
    # Few rows are searched exactly, so the only approximation is the number of candidates.
    problem = planted(300, 350, 20, noise=0.3)
    src, tgt = problem.src @ problem.w, problem.tgt
    expected = retrieval.retriever(tgt, src, method=method, csls_k=7).top_k(src, 3)
    found = CrossIndex(src, tgt).retriever("src", method, 7).top_k(src, 3)
    assert (found[0] == expected[0]).mean() > 0.99
    same = found[0] == expected[0]
    assert_close(found[1][same], expected[1][same], atol=1e-5)
    assert found[1].dtype == expected[1].dtype


@pytest.mark.slow
def test_large_vocabularies_are_ranked_nearly_as_by_the_exact_retriever() -> None:
    problem = planted(1_500, 1_200, 40, noise=0.3, shuffle=True, dtype="float32")
    src, tgt = problem.src @ problem.w, problem.tgt
    expected, _ = retrieval.retriever(src, tgt).top_k(tgt, 1)
    found, scores = CrossIndex(src, tgt).retriever("tgt").top_k(tgt, 1)
    assert (found == expected).mean() > 0.98
    assert np.mean(found[problem.gold[:, 1], 0] == problem.gold[:, 0]) > 0.9
    assert scores.dtype == np.float32


def test_csls_demotes_a_hub() -> None:
    # Every query is nearest to the hub by cosine; CSLS finds its own counterpart.
    n = 6
    src = np.eye(n, 2 * n)
    partners = 0.4 * src + np.sqrt(1 - 0.4**2) * np.eye(n, 2 * n, n)
    tgt = np.concatenate([partners, np.full((1, n), 1 / np.sqrt(n)) @ src])
    index = CrossIndex(src, tgt)
    assert index.retriever("src", "nn").top_k(src, 1)[0][:, 0].tolist() == [n] * n
    assert index.retriever("src", "csls", n).top_k(src, 1)[0][:, 0].tolist() == list(range(n))


@pytest.mark.slow
@pytest.mark.parametrize("csls_k", [10, 80])
def test_words_of_the_index_need_no_second_search(
    keys: Floats, queries: Floats, csls_k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = CrossIndex(queries, keys[:1_200])
    expected = index.retriever("src", "csls", csls_k).top_k(queries[20:40], 10)
    index.top_k("src", slice(1), 1, csls_k)
    monkeypatch.setattr(Index, "search", None)  # a second search would fail
    for rows in (slice(20, 40), np.arange(20, 40)):
        found = index.top_k("src", rows, 10, csls_k)
        assert (found[0] == expected[0]).mean() > 0.99
        assert_close(found[1], expected[1], atol=1e-6)


def test_k_and_the_neighbourhood_are_clamped() -> None:
    problem = planted(20, 30, 8)
    retriever = CrossIndex(problem.src, problem.tgt).retriever("src", csls_k=99)
    assert retriever.csls_k == 20
    indices, scores = retriever.top_k(problem.src, 70)
    assert indices.shape == scores.shape == (20, 30)
    assert all(sorted(row) == list(range(30)) for row in indices.tolist())


def test_k_may_exceed_the_candidates() -> None:
    vectors = space(1_500, 20, seed=6)
    indices, scores = CrossIndex(vectors, vectors).retriever("src").top_k(vectors[:4], 120)
    assert indices.shape == (4, 120)
    assert (np.diff(scores, axis=1) <= 0).all()


# --------------------------------------------------------------------------- bad requests


def test_bad_requests_are_explained() -> None:
    vectors = space(20, 8, seed=0)
    index = CrossIndex(vectors, vectors)
    with pytest.raises(InputError, match=r"'softmax' cannot be approximated; expected one of nn, csls"):
        index.retriever("src", "softmax")
    with pytest.raises(InputError, match="csls_k=0 should be at least 1"):
        index.retriever("src", csls_k=0)
    with pytest.raises(InputError, match="k=0 should be at least 1"):
        Index(vectors).search(vectors, 0)
    with pytest.raises(InputError, match="no query vectors"):
        Index(vectors).search(vectors[:0], 1)
    with pytest.raises(InputError, match="threads=0"):
        Index(vectors, threads=0)


def test_no_index_is_built_for_an_unknown_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)  # an index would need it
    vectors = space(20, 8, seed=0)
    with pytest.raises(InputError, match="'softmax'"):
        CrossIndex(vectors, vectors).retriever("src", "softmax")


def test_missing_faiss_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r'pip install "qwp\[faiss\]"'):
        Index(space(20, 8, seed=0))
